"""/openapi.json is OpenAPI 3.1 of every route: its bodies, answers, errors and rights are the real ones."""

import json
import re

import jsonschema
import pytest
import requests
from jsonschema.validators import Draft202012Validator

from testing import models
from testing.web.browser import Browser
from testing.daemon import SOURCE, Daemon
from testing.hub import Folder
from testing.repository import Repository

KEYS = {right: f"{right}-key-000000000000000" for right in ("infer", "observe", "admin", "metrics")}
METHODS = {"get", "post"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("openapi")
    repository = Repository(root / "models")
    repository.add("m", models.elementwise())
    Folder(root / "texts").sentence_transformer()
    with Daemon(repository, "--model", f"texts={root / 'texts'}", "--system-shared-memory",
                "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def page(served):
    return requests.get(f"{served.http_url}/openapi.json", timeout=30).json()


def operations(page):
    return [(path, method, operation) for path, item in page["paths"].items() for method, operation in item.items()]


def validate(page, content, value):
    schema = content["content"]["application/json"]["schema"]
    jsonschema.validate(value, {**schema, "components": page["components"]}, cls=Draft202012Validator)


def test_the_document_has_the_structure_of_openapi(page):
    assert page["openapi"] == "3.1.0"
    assert set(page) == {"openapi", "info", "paths", "components"} and {"title", "version"} <= set(page["info"])
    for schema in page["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    schemes = page["components"]["securitySchemes"]
    assert schemes["bearer"] == {"type": "http", "scheme": "bearer"}
    assert schemes["header"] == {"type": "apiKey", "in": "header", "name": "x-api-key"}
    seen = set()
    for path, method, operation in operations(page):
        assert path.startswith("/") and method in METHODS
        assert set(operation) <= {"operationId", "summary", "tags", "security", "parameters", "requestBody", "responses",
                                  "x-reprise-right"}
        assert operation["operationId"] not in seen and re.fullmatch(r"\w+", operation["operationId"])
        seen.add(operation["operationId"])
        # Every part of the path that is a variable is a parameter, and nothing else is.
        named = [parameter["name"] for parameter in operation.get("parameters", [])]
        assert named == re.findall(r"\{(\w+)\}", path)
        assert all(p["in"] == "path" and p["required"] and "schema" in p for p in operation.get("parameters", []))
        for need in operation["security"]:
            assert set(need) <= set(schemes)
        assert "requestBody" not in operation or (method == "post" and operation["requestBody"]["content"])
        for code, response in operation["responses"].items():
            assert re.fullmatch(r"[245]\d\d", code) and response["description"]
            for media, content in response["content"].items():
                assert re.fullmatch(r"[a-z]+/[a-z-]+", media) and "schema" in content
    assert len(seen) > 80


def test_routes_are_those_of_the_pages_of_documents(page):
    """docs name no path that is not there, and every path that is there but its second spellings."""
    docs = "".join(path.read_text() for path in (SOURCE / "docs").glob("*.md"))
    missing = [path for path, _, _ in operations(page) if not path.startswith("/models/") and "/versions/" not in path
               and "cudasharedmemory" not in path
               and f"`{path}`" not in docs and f"`{path.replace('/v2/models/{model}', '')}`" not in docs
               and path.rpartition("/")[2] not in docs]
    assert missing == []


def test_answers_are_those_of_their_schemas(served, page):
    """Each GET, and the posts of tensors and of the repository."""
    requests.post(f"{served.http_url}/v2/models/m/infer", timeout=30, json=INFER).raise_for_status()
    checked = 0
    for path, method, operation in operations(page):
        if method != "get" or path == "/info":
            continue
        at = path.replace("{model}", "texts" if path.startswith(("/models/", "/v1/")) else "m")
        answer = requests.get(served.http_url + at.replace("{version}", "1").replace("{region}", "r"), timeout=30)
        if "{region}" in path:
            assert answer.status_code in (404, 501)
            continue
        assert answer.status_code == 200, (path, answer.text)
        media = answer.headers["Content-Type"].split(";")[0]
        assert media in operation["responses"]["200"]["content"], path
        if media == "application/json":
            validate(page, operation["responses"]["200"], answer.json())
        checked += 1
    for path, body in (("/v2/models/{model}/infer", INFER), ("/v2/repository/index", {"ready": True}),
                       ("/v2/logging", {"log_verbose_level": 1})):
        operation = page["paths"][path]["post"]
        validate(page, operation["requestBody"], body)
        answer = requests.post(served.http_url + path.replace("{model}", "m"), json=body, timeout=30)
        assert answer.status_code == 200, (path, answer.text)
        validate(page, operation["responses"]["200"], answer.json())
    assert checked > 25
    with pytest.raises(jsonschema.ValidationError):
        validate(page, page["paths"]["/v2/models/{model}/infer"]["post"]["requestBody"], {"inputs": [{"name": "x"}]})


INFER = {"inputs": [{"name": "x", "shape": [2, 5], "datatype": "FP32", "data": [1.0] * 10}], "parameters": {"timeout": 10 ** 7}}


def test_errors_are_those_that_are_announced(served, page):
    wrong = {"/v2/models/{model}/infer": [("m", b"{"), ("m", b'{"inputs": []}'), ("nobody", json.dumps(INFER).encode())],
             "/v1/embeddings": [("", b"{"), ("", b'{"input": 7}'), ("", b'{"model": "nobody", "input": "a"}')],
             "/embed": [("", b"{"), ("", b'{"inputs": 7}')], "/v2/embed": [("", b'{"texts": 7}')],
             "/v2/repository/models/{model}/load": [("nobody", b"{}")]}
    for path, requests_ in wrong.items():
        responses = page["paths"][path]["post"]["responses"]
        for model, body in requests_:
            answer = requests.post(served.http_url + path.replace("{model}", model), data=body, timeout=30)
            assert str(answer.status_code) in responses and answer.status_code >= 400, (path, body, answer.text)
            validate(page, responses[str(answer.status_code)], answer.json())


def test_rights_are_those_that_a_key_needs(page, tmp_path):
    """A key with the right is let in, one with the others is not, and open routes need no key."""
    repository = Repository(tmp_path / "models")
    repository.add("m", models.elementwise())
    (tmp_path / "keys").write_text("".join(f"{right} {key} {right}\n" for right, key in KEYS.items()))
    with Daemon(repository, "--api-key-file", tmp_path / "keys") as daemon:
        for path, method, operation in operations(page):
            url = daemon.http_url + path.replace("{model}", "m").replace("{version}", "1").replace("{region}", "r")
            if operation["security"] == []:
                assert requests.request(method, url, timeout=30).status_code not in (401, 403), path
                continue
            (right,) = operation["security"][0]["bearer"]
            assert operation["security"][1]["header"] == [right] == [operation["x-reprise-right"]]
            assert requests.request(method, url, timeout=30).status_code == 401, path
            for other, key in KEYS.items():
                answer = requests.request(method, url, timeout=30, headers={"x-api-key": key}, data=b"{")
                assert (answer.status_code == 403) == (other != right), (path, other, answer.text)


def test_people_read_it_without_another_server(served):
    with Browser() as browser:
        page = browser.open(served.http_url + "/docs")
        page.wait("document.querySelectorAll('.operation').length > 50")
        page.fill("#find", "/v2/embed")
        page.wait("document.querySelectorAll('.operation:not([hidden])').length === 1")
        page.click(".operation:not([hidden]) summary")
        shown = page.text(".operation:not([hidden])")
        assert "POST /v2/embed" in shown and "embedding_types" in shown and "infer" in shown
        # Its examples can be copied into a shell; the sample of a body fits its schema.
        command = re.search(r"curl '(\S+)' -d '(.*)'", shown)
        assert command[1] == f"{served.http_url}/v2/embed"
        answer = requests.post(command[1], data=command[2], timeout=30)
        assert answer.status_code == 200, answer.text
        page.resize(360, 800)
        assert page.value("document.documentElement.scrollWidth") <= 360
        assert page.troubles() == [] and page.hosts() == {served.http_url}
