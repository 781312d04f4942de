"""The inference protocol over HTTP, called by its own client and by plain requests."""

import gzip
import json
import socket
import threading

import numpy as np
import pytest
import requests
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from testing import models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape

NAMES = ["input_ids", "attention_mask"]
MODELS = {"bert": models.bert, "elementwise": models.elementwise, "scalar": models.scalar_input}


@pytest.fixture
def client(daemon):
    with triton.InferenceServerClient(daemon.http_url.removeprefix("http://"),
                                      concurrency=16) as client:
        yield client


def tensors(inputs, binary):
    result = []
    for name, array in inputs.items():
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array, binary_data=binary)
        result.append(tensor)
    return result


def post(daemon, body, model="bert", **more):
    data = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return requests.post(f"{daemon.http_url}/v2/models/{model}/infer", data=data, timeout=60,
                         **more)


def as_json(inputs, nested=False):
    return [{"name": name, "datatype": np_to_triton_dtype(array.dtype),
             "shape": list(array.shape),
             "data": array.tolist() if nested else array.ravel().tolist()}
            for name, array in inputs.items()]


def arrays(body):
    """Returns the outputs of an answer in JSON."""
    return {output["name"]: np.array(output["data"], np.float32).reshape(output["shape"])
            for output in body["outputs"]}


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_the_published_client_gets_the_reference_answer(client, paths, rng, binary_in, binary_out):
    inputs = text_inputs(NAMES, 3, 17, rng, vocabulary=200)
    expected = reference(paths["bert"], inputs)
    wanted = [triton.InferRequestedOutput(name, binary_data=binary_out) for name in expected]
    answer = client.infer("bert", tensors(inputs, binary_in), outputs=wanted, request_id="seven")
    assert_same_answer({name: answer.as_numpy(name) for name in expected}, expected)
    response = answer.get_response()
    assert response["id"] == "seven"
    assert response["parameters"]["reprise.batch_size"] == 3


def test_both_faces_answer_the_same_bits(client, daemon, rng):
    inputs = text_inputs(NAMES, 2, 9, rng, vocabulary=200)
    over_http = client.infer("bert", tensors(inputs, False))
    over_grpc = infer(daemon.client(), "bert", inputs)
    for name, array in over_grpc.outputs.items():
        # As text, too, a number is the same number.
        assert over_http.as_numpy(name).tobytes() == array.tobytes()


@pytest.mark.parametrize("nested", [True, False])
def test_plain_json_is_answered(daemon, paths, rng, nested):
    inputs = text_inputs(NAMES, 2, 5, rng, vocabulary=200)
    reply = post(daemon, {"inputs": as_json(inputs, nested)})
    assert reply.status_code == 200, reply.text
    assert reply.headers["Content-Type"] == "application/json"
    body = reply.json()
    assert (body["model_name"], body["model_version"]) == ("bert", "1")
    assert "id" not in body
    assert_same_answer(arrays(body), reference(paths["bert"], inputs))


def test_bytes_for_one_input_and_numbers_for_another(daemon, paths, rng):
    inputs = text_inputs(NAMES, 1, 6, rng, vocabulary=200)
    (first, ids), (second, mask) = inputs.items()
    listed = as_json(inputs)
    del listed[0]["data"]
    listed[0]["parameters"] = {"binary_data_size": ids.nbytes}
    head = json.dumps({"inputs": listed}).encode()
    reply = post(daemon, head + ids.tobytes(),
                 headers={"Inference-Header-Content-Length": str(len(head))})
    assert reply.status_code == 200, reply.text
    assert_same_answer(arrays(reply.json()), reference(paths["bert"], inputs))


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_requests_are_understood(client, paths, rng, algorithm):
    inputs = text_inputs(NAMES, 2, 8, rng, vocabulary=200)
    answer = client.infer("bert", tensors(inputs, True), request_compression_algorithm=algorithm,
                          response_compression_algorithm=algorithm)
    expected = reference(paths["bert"], inputs)
    assert_same_answer({name: answer.as_numpy(name) for name in expected}, expected)


def test_requests_at_the_same_time_share_a_replay_or_wait_their_turn(client, paths, rng):
    requests_ = [text_inputs(NAMES, 1, length, rng, vocabulary=200) for length in rng.integers(2, 40, 64)]
    calls = [client.async_infer("bert", tensors(inputs, True)) for inputs in requests_]
    for inputs, call in zip(requests_, calls):
        answer, expected = call.get_result(), reference(paths["bert"], inputs)
        assert_same_answer({name: answer.as_numpy(name) for name in expected}, expected)


def test_what_is_asked_of_server_and_models(client, daemon):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("bert") and client.is_model_ready("bert", "1")
    assert not client.is_model_ready("bert", "2") and not client.is_model_ready("brt")
    assert client.get_server_metadata()["name"] == "reprise"
    metadata = client.get_model_metadata("bert")
    assert metadata["versions"] == ["1"]
    assert {"name": "input_ids", "datatype": "INT64", "shape": [-1, -1]} in metadata["inputs"]
    config = client.get_model_config("bert")
    assert config["max_batch_size"] == 32 and config["input"][0]["dims"] == [-1]
    index = {model["name"]: model["state"] for model in client.get_model_repository_index()}
    assert index == {name: "READY" for name in MODELS}
    before = client.get_inference_statistics("elementwise")["model_stats"][0]
    client.infer("elementwise", tensors({"x": np.ones((1, 4), np.float32)}, True))
    after = client.get_inference_statistics("elementwise")["model_stats"][0]
    assert after["inference_count"] == before["inference_count"] + 1
    assert len(client.get_inference_statistics()["model_stats"]) == len(MODELS)


BAD = {
    "no JSON": ("{", 400, ["not JSON"]),
    "no object": ("[1]", 400, ["must be a JSON object"]),
    "deep nesting": ("[" * 100000, 400, ["not JSON"]),
    "inputs that are no list": ({"inputs": 3}, 400, ["inputs", "3", "a list"]),
    "input without a name": ({"inputs": [{}]}, 400, ["input 0", "name"]),
    "no inputs": ({}, 400, ["input_ids"]),
    "unknown input": ({"inputs": [dict(name="q", datatype="INT64", shape=[1], data=[1])]}, 400,
                      ["q", "input_ids"]),
    "neither data nor bytes": (
        {"inputs": [dict(name="input_ids", datatype="INT64", shape=[1, 1])]}, 400,
        ["input_ids", "data"]),
    "text for a number": (
        {"inputs": [dict(name="input_ids", datatype="INT64", shape=[1, 1], data=["a"])]}, 400,
        ["input_ids", "element 0", "INT64"]),
    "too few elements": (
        {"inputs": [dict(name="input_ids", datatype="INT64", shape=[1, 3], data=[1, 2])]}, 400,
        ["input_ids", "2", "3"]),
    "huge shape": (
        {"inputs": [dict(name="input_ids", datatype="INT64", shape=[1 << 40, 1 << 40], data=[])]},
        400, ["input_ids"]),
    "negative size": (
        {"inputs": [dict(name="input_ids", datatype="INT64", shape=[1, -3], data=[])]}, 400,
        ["input_ids", "-3"]),
    "more bytes than there are": (
        {"inputs": [dict(name="input_ids", datatype="INT64", shape=[1, 3],
                         parameters={"binary_data_size": 24})]}, 400, ["input_ids", "24", "0"]),
    "shared memory": (
        {"inputs": [dict(name="input_ids", datatype="INT64", shape=[1, 3],
                         parameters={"shared_memory_region": "r",
                                     "shared_memory_byte_size": 24})]}, 501,
        ["input_ids", "shared_memory_region"]),
    "unknown output": ({"inputs": as_json({"input_ids": np.ones((1, 2), np.int64),
                                           "attention_mask": np.ones((1, 2), np.int64)}),
                        "outputs": [{"name": "nonsense"}]}, 400, ["nonsense"]),
    "bad parameter": ({"inputs": [], "parameters": {"timeout": "soon"}}, 400, ["timeout", "soon"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_request_is_refused_by_name_and_the_next_one_is_answered(daemon, case):
    body, status, words = BAD[case]
    reply = post(daemon, body)
    assert reply.status_code == status, reply.text
    for word in words:
        assert word in reply.json()["error"]
    good = {"input_ids": np.ones((1, 2), np.int64), "attention_mask": np.ones((1, 2), np.int64)}
    assert post(daemon, {"inputs": as_json(good)}).status_code == 200


def test_unknown_models_versions_paths_and_methods(daemon):
    assert post(daemon, {}, model="brt").status_code == 404
    assert post(daemon, {}, model="bert/versions/7").status_code == 404
    assert requests.get(f"{daemon.http_url}/v2/nonsense", timeout=60).status_code == 404
    reply = requests.get(f"{daemon.http_url}/v2/models/bert/infer", timeout=60)
    assert reply.status_code == 405 and reply.headers["Allow"] == "POST"


def test_length_of_the_json_that_lies_is_refused(daemon):
    reply = post(daemon, "{}", headers={"Inference-Header-Content-Length": "3"})
    assert reply.status_code == 400
    assert "3" in reply.json()["error"] and "2" in reply.json()["error"]
    reply = post(daemon, "{}xyz", headers={"Inference-Header-Content-Length": "2"})
    assert reply.status_code == 400 and "3 bytes" in reply.json()["error"]


@pytest.mark.parametrize("length", ["+2", "", "2, 3"])
def test_length_of_the_json_that_is_no_number_is_refused(daemon, length):
    reply = post(daemon, "{}", headers={"Inference-Header-Content-Length": length})
    assert reply.status_code == 400 and "Inference-Header" in reply.json()["error"]


@pytest.mark.parametrize("binary", [True, False])
def test_numbers_that_json_has_not_go_both_ways(client, binary):
    x = np.array([[np.nan, np.inf, -np.inf, np.finfo(np.float32).min, 1e25]], np.float32)
    answer = client.infer("elementwise", tensors({"x": x}, binary),
                          outputs=[triton.InferRequestedOutput("y", binary_data=binary)])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(answer.as_numpy("y"), 2 * x + 1)


def test_clients_may_ask_for_shared_memory_to_be_forgotten(client):
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()
    assert client.get_system_shared_memory_status() == []
    with pytest.raises(InferenceServerException, match="not supported"):
        client.register_system_shared_memory("region", "/key", 64)


def test_compressed_bomb_is_refused_and_costs_nothing(daemon):
    bomb = gzip.compress(bytes(64 << 20)) * 200
    reply = post(daemon, bomb, headers={"Content-Encoding": "gzip"})
    assert reply.status_code in (400, 413)
    assert requests.get(f"{daemon.http_url}/v2/health/live", timeout=60).status_code == 200


@pytest.mark.parametrize("path", ["index", "models/nothing/load", "models/bert/unload"])
@pytest.mark.parametrize("body", [b'{"parameters":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
                                  b"[" * 200_000, b"[" + b"[]," * 2_000_000 + b"1]"])
def test_no_body_harms_calls_of_the_repository(daemon, path, body):
    reply = requests.post(f"{daemon.http_url}/v2/repository/{path}", data=body, timeout=60)
    assert reply.status_code == (200 if path == "index" else 400)
    assert requests.get(f"{daemon.http_url}/v2/health/live", timeout=60).status_code == 200


def test_failures_are_counted_as_those_of_the_other_face(daemon):
    def refused():
        return Scrape(daemon.metrics_url).total("reprise_requests_total", model="bert",
                                                version="1", code="INVALID_ARGUMENT")

    before = refused()
    assert post(daemon, {"inputs": []}).status_code == 400
    assert refused() == before + 1


def test_client_that_leaves_takes_its_requests_along(repository):
    # Nothing starts before half a minute is over, or 32 rows are there.
    repository.add("bert", models.bert(),
                   config='dynamic_batching { max_queue_delay_microseconds: 30000000 }')
    inputs = {"input_ids": np.ones((1, 2), np.int64), "attention_mask": np.ones((1, 2), np.int64)}
    body = json.dumps({"inputs": as_json(inputs)}).encode()
    head = f"POST /v2/models/bert/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with Daemon(repository) as daemon:
        with socket.create_connection(("127.0.0.1", daemon.http_port)) as connection:
            connection.sendall(head + body)
            wait_for(lambda: queue_depth(daemon) == 1)
        wait_for(lambda: queue_depth(daemon) == 0)


def queue_depth(daemon):
    return Scrape(daemon.metrics_url).total("reprise_queue_depth", model="bert", version="1")


def wait_for(condition):
    done = threading.Event()
    for _ in range(200):
        if condition():
            return
        done.wait(0.05)
    assert condition()


def test_answers_under_way_are_sent_before_the_daemon_ends(repository):
    repository.add("bert", models.bert(),
                   config='dynamic_batching { max_queue_delay_microseconds: 2000000 }')
    inputs = {"input_ids": np.ones((1, 2), np.int64), "attention_mask": np.ones((1, 2), np.int64)}
    replies = []
    with Daemon(repository) as daemon:
        thread = threading.Thread(
            target=lambda: replies.append(post(daemon, {"inputs": as_json(inputs)})))
        thread.start()
        wait_for(lambda: queue_depth(daemon) == 1)
        daemon.process.terminate()
        thread.join()
        assert daemon.process.wait(timeout=60) == 0
    assert replies[0].status_code == 200
