"""The V1 protocol over HTTP, as clients of KServe and of TensorFlow Serving speak it."""

import base64

import numpy as np
import pytest
import requests

from testing import models, texts
from testing.daemon import Daemon
from testing.inference import reference
from testing.metrics import Scrape
from testing.repository import Repository
from testing.tiny_texts import TinyFolder

MODELS = {"bert": models.bert, "double": models.elementwise, "scaled": models.scalar_input, "matrix": models.no_batch_axis,
          "cities": texts.encoders}
KEY = "0123456789abcdef01234567"


def predict(daemon, model, body, version="", **more):
    return requests.post(f"{daemon.http_url}/v1/models/{model}{version}:predict", json=body, timeout=60, **more)


def answer(daemon, model, body, **more):
    reply = predict(daemon, model, body, **more)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_rows_of_the_only_input_are_predictions(daemon):
    assert answer(daemon, "double", {"instances": [[1, 2, 3], [4, 5.5, 6]]}) == {"predictions": [[3, 5, 7], [9, 12, 13]]}
    assert answer(daemon, "double", {"signature_name": "serving_default", "instances": [[1]]}) == {"predictions": [[3]]}
    assert answer(daemon, "double", {"instances": [{"x": [1, 2]}, {"x": [3, 4]}]}) == {"predictions": [[3, 5], [7, 9]]}
    assert answer(daemon, "double", {"instances": [[1]]}, version="/versions/1") == {"predictions": [[3]]}


def test_rows_of_several_inputs_are_named_and_so_are_rows_of_several_outputs(daemon, paths, rng):
    ids = rng.integers(5, 100, (3, 7))
    mask = np.ones_like(ids)
    rows = [{"input_ids": i.tolist(), "attention_mask": m.tolist()} for i, m in zip(ids, mask)]
    wanted = reference(paths["bert"], {"input_ids": ids, "attention_mask": mask})
    for name in ("instances", "inputs"):  # KServe's clients may say either
        got = answer(daemon, "bert", {name: rows})["predictions"]
        if len(wanted) == 1:
            got = [{next(iter(wanted)): row} for row in got]
        for output, array in wanted.items():
            np.testing.assert_allclose([row[output] for row in got], array, rtol=1e-4, atol=1e-5)
    columns = answer(daemon, "bert", {"inputs": {"input_ids": ids.tolist(), "attention_mask": mask.tolist()}})["outputs"]
    if len(wanted) == 1:
        columns = {next(iter(wanted)): columns}
    for output, array in wanted.items():
        np.testing.assert_allclose(columns[output], array, rtol=1e-4, atol=1e-5)


def test_inputs_that_are_no_rows_come_by_their_names(daemon):
    assert answer(daemon, "scaled", {"inputs": {"x": [[1, 2, 3]], "scale": 2}}) == {"outputs": [[2, 4, 6]]}
    x = np.arange(24).reshape(4, 6)
    wanted = (x @ np.arange(12).reshape(6, 2)).tolist()
    assert answer(daemon, "matrix", {"inputs": {"x": x.tolist()}}) == {"outputs": wanted}


def test_the_only_input_as_a_whole_has_both_answers(daemon):
    got = answer(daemon, "double", {"inputs": [[1, 2], [3, 4]]})
    assert got == {"outputs": [[3, 5], [7, 9]], "predictions": [[3, 5], [7, 9]]}


def test_texts_come_as_strings_and_as_base64_and_go_as_strings(daemon):
    city = base64.b64encode("Bern".encode()).decode()
    by_name = answer(daemon, "cities", {"instances": [{"city": ["Bern", "Aachen"]}, {"city": [{"b64": city}, "?"]}]})
    alone = answer(daemon, "cities", {"instances": [["Bern", "Aachen"], [{"b64": city}, "?"]]})
    assert by_name == alone
    first, second = by_name["predictions"]
    assert first["land"] == ["Schweiz", "Deutschland"] and second["land"][0] == "Schweiz"
    assert first["number"][0] == second["number"][0] and second["number"][1] == -7


def test_texts_for_a_model_that_makes_tokens_of_them(tmp_path):
    folder = TinyFolder(tmp_path / "tiny", ["red", "green"], np.arange(14).reshape(7, 2))
    with Daemon(Repository(tmp_path / "none"), "--model", f"tiny={folder.path}") as running:
        got = answer(running, "tiny", {"instances": ["red green", "green"]})["predictions"]
        by_name = answer(running, "tiny", {"instances": [{"text": "red green"}, {"text": "green"}]})["predictions"]
        assert got == by_name
        # The mean of [CLS] red green [SEP]; the mask leaves out the padding of the shorter text.
        np.testing.assert_allclose(got, [[8, 9], [22 / 3, 25 / 3]], rtol=1e-6)


@pytest.mark.parametrize("model,body,status,says", [
    ("double", {}, 400, '"instances" is missing'),
    ("double", [], 400, "must be a JSON object"),
    ("double", {"instances": [[1]], "inputs": [[1]]}, 400, "exclude each other"),
    ("double", {"instances": []}, 400, '"instances" is empty'),
    ("double", {"instances": {"x": [1]}}, 400, "expected a list"),
    ("double", {"instances": [[1]], "signature_name": "other"}, 400, '"signature_name" is "other"'),
    ("double", {"instances": [[1, 2], [1, 2, 3]]}, 400, r"instance 1 has the shape [3], the first one [2]"),
    ("double", {"instances": [[[1], [2]], [[1], [2, 3]]]}, 400, "instance 1: the list at element 2 has more than 1"),
    ("double", {"instances": [[1, [2]]]}, 400, "instance 0: element 1 is [2], no FP32"),
    ("double", {"instances": [["one"]]}, 400, "text"),
    ("double", {"instances": [{"y": [1]}]}, 400, 'there is no input "y"; the model has the inputs x'),
    ("bert", {"instances": [[1, 2]]}, 400, "the inputs input_ids, attention_mask, which must be named"),
    ("bert", {"instances": [{"input_ids": [1], "attention_mask": [1]}, {"input_ids": [1]}]}, 400, "instance 1 is"),
    ("matrix", {"instances": np.zeros((4, 6)).tolist(), }, 200, None),
    ("cities", {"instances": [[{"b64": "?"}]]}, 400, "base64"),
    ("cities", {"instances": [[1]]}, 400, "element 0 is 1, no BYTES"),
    ("nothing", {"instances": [[1]]}, 404, "nothing"),
])
def test_wrong_requests_are_refused_by_name(daemon, model, body, status, says):
    reply = predict(daemon, model, body)
    assert reply.status_code == status, reply.text
    if says is not None:
        assert says in reply.json()["error"], reply.text  # as the protocol has it: a text


def test_refused_requests_are_counted_and_others_as_inferences(daemon):
    def counted():
        page = Scrape(daemon.metrics_url)
        return [page.total(f"nv_inference_request_{what}", model="double") for what in ("success", "failure")]

    before = counted()
    answer(daemon, "double", {"instances": [[1]]})
    predict(daemon, "double", {"instances": [{"z": 1}]})
    assert [now - was for now, was in zip(counted(), before)] == [1, 1]


def test_models_are_listed_and_said_to_be_ready(daemon):
    listed = requests.get(f"{daemon.http_url}/v1/models", timeout=60).json()
    assert sorted(listed["models"]) == sorted(MODELS) == sorted(one["id"] for one in listed["data"])
    one = requests.get(f"{daemon.http_url}/v1/models/double", timeout=60).json()
    assert (one["name"], one["ready"], one["id"]) == ("double", True, "double")
    assert requests.get(f"{daemon.http_url}/v1/models/nothing", timeout=60).status_code == 404
    wrong = requests.get(f"{daemon.http_url}/v1/models/double:predict", timeout=60)
    assert wrong.status_code == 404


def test_keys_without_the_right_are_refused_in_the_words_of_the_protocol(tmp_path):
    repository = Repository(tmp_path / "models")
    repository.add("double", models.elementwise())
    keys = tmp_path / "keys"
    keys.write_text(f"web  {KEY}  infer\n")
    keys.chmod(0o600)
    with Daemon(repository, "--api-key-file", keys) as running:
        refused = predict(running, "double", {"instances": [[1]]})
        assert refused.status_code == 401 and isinstance(refused.json()["error"], str)
        got = answer(running, "double", {"instances": [[1]]}, headers={"authorization": f"Bearer {KEY}"})
        assert got == {"predictions": [[3]]}
