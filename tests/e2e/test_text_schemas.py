"""/openapi.json of the paths that take texts: bodies and answers fit it, and bodies that do not are refused."""

import json

import jsonschema
import pytest
import requests

from testing.hub.served import DOCUMENTS, TEXTS, served


def of_texts(page):
    """Path, method and operation of each route that takes texts."""
    return [(path, method, operation) for path, operations in page["paths"].items()
            for method, operation in operations.items() if operation["tags"] == ["Texts"]]


def test_openapi_names_paths_that_are_there(served):
    page = requests.get(served.url() + "/openapi.json", timeout=10).json()
    assert page["openapi"] == "3.1.0" and len(of_texts(page)) > 30
    schemas = page["components"]["schemas"]
    for path, method, operation in of_texts(page):
        answer = requests.request(method, served.url() + path.replace("{model}", "sentences"),
                                  data="{" if method == "post" else None, timeout=10)
        # The path itself refuses a body that is no JSON, not the router.
        wanted = {200} if method == "get" else {400, 422}
        if path == "/info":
            wanted = {422}  # several models take texts
        assert answer.status_code in wanted, (path, answer.text)
        for reference in json.dumps(operation).split("#/components/schemas/")[1:]:
            assert reference.split('"')[0] in schemas, path


# A request of each path, and one that lacks a field of its schema.
REQUESTS = {
    "/v1/embeddings": [("sentences", {"model": "sentences", "input": TEXTS[:2]}),
                       ("sentences", {"model": "sentences", "input": [[2, 5, 7], [2, 9]]}),
                       ("sentences", {"model": "sentences", "input": "a", "dimensions": 8,
                                      "encoding_format": "base64"})],
    "/embed": [("sentences", {"inputs": TEXTS[:2], "prompt_name": "query"}),
               ("other", {"inputs": "a", "normalize": False, "truncate": True,
                          "truncation_direction": "Left"})],
    "/embed_sparse": [("words", {"inputs": TEXTS[:2]}), ("words", {"inputs": "a", "truncate": True})],
    "/embed_all": [("vectors", {"inputs": TEXTS[:2]}), ("vectors", {"inputs": [[2, 5, 7]]})],
    "/similarity": [("sentences", {"inputs": {"source_sentence": "a", "sentences": ["b", "c"]}})],
    "/rerank": [("ranker", {"query": "a", "texts": DOCUMENTS, "return_text": True}),
                ("ranker", {"query": "a", "documents": DOCUMENTS, "top_n": 2}),
                ("ranker", {"query": "a", "documents": [{"text": "b"}], "return_documents": True})],
    "/score": [("ranker", {"text_1": "a", "text_2": DOCUMENTS})],
    "/predict": [("moods", {"inputs": "a"}), ("moods", {"inputs": [["a"], ["b", "c"]]}),
                 ("tagger", {"inputs": TEXTS[0], "aggregation_strategy": "simple"})],
    "/v1/embed": [("sentences", {"texts": TEXTS[:2], "input_type": "search_query"}),
                  ("sentences", {"texts": TEXTS[:2], "embedding_types": ["float", "binary"]})],
    "/v2/embed": [("sentences", {"texts": TEXTS[:2], "input_type": "search_query", "embedding_types": ["float", "ubinary"]})],
    "/classify": [("moods", {"input": TEXTS[:2]}), ("moods", {"input": "a", "truncate": True})],
    "/pooling": [("sentences", {"input": TEXTS[:2]}), ("tagger", {"input": "a"}),
                 ("vectors", {"input": "a", "task": "token_embed"}),
                 ("moods", {"input": "a", "encoding_format": "base64"})],
    "/tokenize": [("sentences", {"prompt": "a b", "return_token_strs": True}),
                  ("sentences", {"inputs": ["a", "b"], "add_special_tokens": False})],
    "/detokenize": [("sentences", {"tokens": [5, 6]}), ("sentences", {"ids": [[5, 6], [7]]})],
    "/": [("sentences", {"inputs": TEXTS[:2]}), ("words", {"inputs": "a"}), ("vectors", {"inputs": "a"}),
          ("moods", {"inputs": "a"}),
          ("tagger", {"inputs": TEXTS[0]}),
          ("sentences", {"inputs": {"source_sentence": "a", "sentences": ["b"]}})],
}
REQUESTS.update({other: REQUESTS[path] for other, path in [
    ("/v1/rerank", "/rerank"), ("/v2/rerank", "/rerank"), ("/v1/score", "/score"),
    ("/decode", "/detokenize"), ("/v1/classify", "/classify")]})


def test_requests_and_answers_are_what_openapi_says(served):
    page = requests.get(served.url() + "/openapi.json", timeout=10).json()

    def check(content, body):
        schema = content["content"]["application/json"]["schema"]
        jsonschema.validate(body, {**schema, "components": page["components"]})

    seen = 0
    for path, method, operation in of_texts(page):
        answer = operation["responses"]["200"]
        if method == "get":
            at = served.url() + path.replace("{model}", "sentences")
            if path != "/info":
                check(answer, requests.get(at, timeout=10).json())
            continue
        base = path.removeprefix("/models/{model}") or "/"
        if base.endswith(("/completions", "/completions/render")):
            continue  # test_chat.py has a model that makes texts
        if base.startswith("/v1/audio/"):
            continue  # test_speech.py has one that hears
        for model, body in REQUESTS[base]:
            if base == path and path not in ("/", "/v1/embeddings", "/rerank"):
                body = {"model": model, **body}
            at = path.replace("{model}", model)
            if base == path and "model" not in body and path != "/rerank":
                continue  # which of several models is meant is not said
            check(operation["requestBody"], body)
            reply = served.post(at, body)
            assert reply.status_code == 200, (at, body, reply.text)
            check(answer, reply.json())
            seen += 1
        for wrong in ({"inputs": 7, "input": 7, "query": 7, "text_1": 7, "texts": 7, "prompt": 7, "tokens": 7},
                      []):
            with pytest.raises(jsonschema.ValidationError):
                check(operation["requestBody"], wrong)
            reply = served.post(path.replace("{model}", REQUESTS[base][0][0]), wrong)
            assert 400 <= reply.status_code < 500, (path, reply.text)
    assert seen > 40
