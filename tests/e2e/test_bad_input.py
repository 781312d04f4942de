"""Bad input gets an error that names the culprit; the daemon goes on serving."""

import json
import threading
import time

import grpc
import numpy as np
import pytest
import requests
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from testing import models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.repository import MINILM

NAMES = ["input_ids", "attention_mask"]
GOOD = [1, 5]


@pytest.fixture(scope="module")
def daemon(module_repository):
    module_repository.add("bert", models.bert())
    module_repository.add("patient_bert", models.bert(),
                          config='dynamic_batching { max_queue_delay_microseconds: 50000 }\n'
                          'parameters { key: "reprise.warmup" value { string_value: "b32_s16" } }')
    module_repository.add("elementwise", models.elementwise())
    module_repository.add("mixes_batch", models.mixes_batch())
    module_repository.add("cumulative", models.cumulative())
    module_repository.add("reversed", models.reversed_rows())
    module_repository.add("empty", models.elementwise_of_three_axes())
    with Daemon(module_repository) as daemon:
        yield daemon


def request(**changes):
    """Makes a good request for `bert` as a message, with parts replaced."""
    message = service_pb2.ModelInferRequest(model_name=changes.get("model", "bert"),
                                            model_version=changes.get("version", ""))
    for name in changes.get("names", NAMES):
        tensor = message.inputs.add()
        tensor.name = name
        tensor.datatype = changes.get("datatype", "INT64")
        tensor.shape.extend(changes.get("shape", GOOD))
    raw = changes.get("raw", np.ones(GOOD, np.int64).tobytes())
    message.raw_input_contents.extend([raw] * changes.get("raw_count", len(message.inputs)))
    for name in changes.get("outputs", []):
        message.outputs.add().name = name
    return message


def send(daemon, message):
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        return service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(message, timeout=60)


BAD = {
    "wrong datatype": (dict(datatype="FP32"), "INVALID_ARGUMENT", ["input_ids", "FP32", "INT64"]),
    "unknown datatype": (dict(datatype="INT63"), "INVALID_ARGUMENT", ["input_ids", "INT63"]),
    "wrong rank": (dict(shape=[1, 1, 5]), "INVALID_ARGUMENT", ["input_ids", "3", "2"]),
    "negative dim": (dict(shape=[1, -5]), "INVALID_ARGUMENT", ["input_ids", "-5"]),
    "huge dims": (dict(shape=[1 << 40, 1 << 40]), "INVALID_ARGUMENT", ["input_ids"]),
    "overflowing dims": (dict(shape=[1 << 62, 8]), "INVALID_ARGUMENT", ["input_ids"]),
    "shape that claims 3 GB": (dict(shape=[786432, 512]), "INVALID_ARGUMENT", ["input_ids"]),
    "too few bytes": (dict(raw=b"\1" * 39), "INVALID_ARGUMENT", ["input_ids", "39", "40"]),
    "too many bytes": (dict(raw=b"\1" * 48), "INVALID_ARGUMENT", ["input_ids", "48", "40"]),
    "no rows": (dict(shape=[0, 5], raw=b""), "INVALID_ARGUMENT", ["input_ids", "0 rows"]),
    "rows of nothing": (dict(shape=[1 << 26, 0], raw=b""), "INVALID_ARGUMENT",
                        ["input_ids", str(1 << 26)]),
    "more rows of nothing": (dict(shape=[1 << 45, 0], raw=b""), "INVALID_ARGUMENT",
                             ["input_ids", str(1 << 45)]),
    "positions of nothing": (dict(model="empty", names=["x"], datatype="FP32",
                                  shape=[1, 1 << 26, 0], raw=b""), "INVALID_ARGUMENT",
                             ["x", str(1 << 26)]),
    "missing input": (dict(names=["input_ids"]), "INVALID_ARGUMENT", ["attention_mask"]),
    "unknown input": (dict(names=["input_ids", "attention_mask", "extra"]), "INVALID_ARGUMENT",
                      ["extra"]),
    "input twice": (dict(names=["input_ids", "input_ids"]), "INVALID_ARGUMENT", ["input_ids"]),
    "too few raw entries": (dict(raw_count=1), "INVALID_ARGUMENT", ["1", "2"]),
    "unknown output": (dict(outputs=["nonsense"]), "INVALID_ARGUMENT", ["nonsense"]),
    "unknown model": (dict(model="brt"), "NOT_FOUND", ["brt"]),
    "unknown version": (dict(version="7"), "NOT_FOUND", ["bert", "7"]),
    "version that is no number": (dict(version="new"), "", ["new"]),
    "empty model name": (dict(model=""), "", []),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_request_is_refused_by_name_and_the_next_one_is_answered(daemon, case):
    changes, code, words = BAD[case]
    with pytest.raises(grpc.RpcError) as caught:
        send(daemon, request(**changes))
    error = caught.value
    if code:
        assert error.code().name == code, error.details()
    else:
        assert error.code().name in ("INVALID_ARGUMENT", "NOT_FOUND"), error.details()
    for word in words:
        assert word in error.details()
    assert len(send(daemon, request()).outputs) == 2


def test_unknown_triton_parameter_is_refused_by_name(daemon):
    message = request()
    message.parameters["triton_frobnicate"].bool_param = True
    with pytest.raises(grpc.RpcError) as caught:
        send(daemon, message)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "triton_frobnicate" in caught.value.details()


def test_raw_and_typed_contents_for_one_input_are_refused(daemon):
    message = request()
    message.inputs[0].contents.int64_contents.extend([1] * 5)
    with pytest.raises(grpc.RpcError) as caught:
        send(daemon, message)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "input_ids" in caught.value.details()


def test_typed_contents_are_answered_like_raw_ones(daemon):
    message = request(raw_count=0)
    for tensor in message.inputs:
        tensor.contents.int64_contents.extend([1] * 5)
    assert (send(daemon, message).raw_output_contents
            == send(daemon, request()).raw_output_contents)


def test_lengths_that_disagree_between_inputs_are_refused(daemon):
    message = request()
    message.inputs[1].shape[1] = 4
    message.raw_input_contents[1] = np.ones(4, np.int64).tobytes()
    with pytest.raises(grpc.RpcError) as caught:
        send(daemon, message)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "attention_mask" in caught.value.details()
    assert "4" in caught.value.details() and "5" in caught.value.details()


@pytest.mark.parametrize("shape", [[1 << 26, 0], [1 << 45, 0], [3, 0], [1 << 62, 1 << 62, 0]])
@pytest.mark.parametrize("binary", [True, False])
def test_rows_of_nothing_over_rest_are_answered_at_once(daemon, shape, binary):
    tensors = [{"name": name, "datatype": "INT64", "shape": shape} for name in NAMES]
    for tensor in tensors:
        if binary:
            tensor["parameters"] = {"binary_data_size": 0}
        else:
            tensor["data"] = []
    body = json.dumps({"inputs": tensors})
    headers = {"Inference-Header-Content-Length": str(len(body))} if binary else {}
    start = time.monotonic()
    reply = requests.post(f"{daemon.http_url}/v2/models/bert/infer", body, headers=headers,
                          timeout=60)
    assert time.monotonic() - start < 2
    if shape != [3, 0]:
        assert 400 <= reply.status_code < 500, reply.text
        assert "input_ids" in reply.json()["error"]
    assert len(send(daemon, request()).outputs) == 2


@pytest.mark.parametrize("axis", [2, -3, 1 << 40])
def test_an_axis_out_of_range_is_refused_with_input_value_and_range(daemon, axis):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)

    def sums(along):
        return infer(daemon.client(), "cumulative", {"x": x, "axis": np.array(along, np.int64)})

    for _ in range(2):
        with pytest.raises(InferenceServerException) as caught:
            sums(axis)
        assert "INVALID_ARGUMENT" in str(caught.value.status())
        for word in ("'axis'", str(axis), "[-2, 1]"):
            assert word in caught.value.message()
        for along in (0, 1, -1):
            np.testing.assert_array_equal(sums(along).outputs["y"], np.cumsum(x, along))


def test_axes_of_requests_that_come_together_are_each_their_own(daemon):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)

    def work(number):
        axis = (0, 1, -1, -2, 5)[number % 5]
        inputs = {"x": x + number, "axis": np.array(axis, np.int64)}
        if axis == 5:
            with pytest.raises(InferenceServerException, match="5 is out of range"):
                infer(daemon.client(), "cumulative", inputs)
            return
        answer = infer(daemon.client(), "cumulative", inputs)
        np.testing.assert_array_equal(answer.outputs["y"], np.cumsum(x + number, axis))

    together(work, range(60))


@pytest.mark.parametrize("length", [-1, 8, 16, 1 << 40])
def test_a_length_beyond_the_request_is_refused_where_it_is_padded(daemon, rng, length):
    client = daemon.client()
    x = {size: rng.standard_normal((2, size, 3), np.float32) for size in (16, 7)}
    infer(client, "reversed", {"x": x[16], "lengths": np.array([16, 3], np.int64)})
    with pytest.raises(InferenceServerException) as caught:
        infer(client, "reversed", {"x": x[7], "lengths": np.array([3, length], np.int64)})
    assert "INVALID_ARGUMENT" in str(caught.value.status())
    for word in ("'lengths'", str(length), "[0, 7]"):
        assert word in caught.value.message()
    answer = infer(client, "reversed", {"x": x[7], "lengths": np.array([3, 7], np.int64)}).outputs["y"]
    np.testing.assert_array_equal(answer[0], np.concatenate([x[7][0, 2::-1], x[7][0, 3:]]))
    np.testing.assert_array_equal(answer[1], x[7][1, ::-1])


@pytest.mark.parametrize("bad_id", [200, 1 << 40, -201, -(1 << 62)])
def test_token_id_out_of_range_is_refused_with_input_value_and_range(daemon, bad_id):
    inputs = {name: np.ones(GOOD, np.int64) for name in NAMES}
    inputs["input_ids"][0, 3] = bad_id
    with pytest.raises(InferenceServerException) as caught:
        infer(daemon.client(), "bert", inputs)
    assert "INVALID_ARGUMENT" in str(caught.value.status())
    for word in ("input_ids", str(bad_id), "200"):
        assert word in caught.value.message()


def test_negative_token_ids_count_from_the_end_as_onnx_says(daemon, module_repository):
    inputs = {name: np.ones(GOOD, np.int64) for name in NAMES}
    inputs["input_ids"][0] = [-1, -200, 199, 0, -7]
    answer = infer(daemon.client(), "bert", inputs)
    assert_same_answer(answer.outputs, reference(module_repository.path("bert"), inputs))


def test_token_id_out_of_range_fails_only_its_own_request_of_a_batch(daemon, module_repository, rng):
    requests = [text_inputs(NAMES, 1, int(length), rng, 200) for length in rng.integers(2, 17, 96)]
    bad = set(range(0, 96, 7))
    for index in bad:
        requests[index]["input_ids"][0, 1] = 1000 + index
    outcomes, start = {}, threading.Barrier(48)

    def work(first):
        client = daemon.client()
        start.wait()
        for index in range(first, 96, 48):
            try:
                outcomes[index] = infer(client, "patient_bert", requests[index])
            except InferenceServerException as error:
                outcomes[index] = error

    together(work, range(48))
    sizes = []
    for index, outcome in sorted(outcomes.items()):
        if index in bad:
            assert isinstance(outcome, InferenceServerException), index
            assert "INVALID_ARGUMENT" in str(outcome.status()), outcome
            assert str(1000 + index) in outcome.message()
        else:
            assert not isinstance(outcome, InferenceServerException), outcome
            sizes.append(outcome.parameters["reprise.batch_size"])
            expected = reference(module_repository.path("patient_bert"), requests[index])
            assert_same_answer(outcome.outputs, expected, f"request {index}")
    assert max(sizes) > 1, "no request had batch-mates"


def test_empty_and_broken_messages_are_refused(daemon):
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        for payload in (b"", b"\xff" * 64, b"\x0a\xff\xff\xff\xff\x0f"):
            with pytest.raises(grpc.RpcError):
                call(payload, timeout=30)
    assert len(send(daemon, request()).outputs) == 2


def test_deadline_that_is_past_is_deadline_exceeded(daemon, rng):
    with pytest.raises(InferenceServerException) as caught:
        infer(daemon.client(), "bert", text_inputs(NAMES, 8, 500, rng, 200), timeout_s=1e-4)
    assert "DEADLINE_EXCEEDED" in str(caught.value.status())
    assert len(send(daemon, request()).outputs) == 2


def bad_models():
    whole = MINILM.read_bytes()
    return {
        "truncated": (whole[: len(whole) // 2], []),
        "no_protobuf": (b"this is not a model", []),
        "empty": (b"", []),
        "cyclic": (models.cyclic(), ["first"]),
        "unknown_op": (models.unknown_op(), ["Frobnicate"]),
    }


def test_models_that_cannot_load_stop_neither_the_daemon_nor_the_others(repository, rng):
    bad = bad_models()
    for name, (model, _) in bad.items():
        repository.add(name, model)
    repository.add("unknown_field", models.elementwise(), config="frobnicate: 3\n")
    repository.add("unsupported_field", models.elementwise(),
                   config="sequence_batching { iterative_sequence: true }\n")
    repository.add("good", models.bert())
    words = {name: expected for name, (_, expected) in bad.items()}
    words["unknown_field"] = ["frobnicate"]
    words["unsupported_field"] = ["sequence_batching"]
    with Daemon(repository) as daemon:
        client = daemon.client()
        assert client.is_server_live() and not client.is_server_ready()
        index = {m.name: m for m in client.get_model_repository_index().models}
        assert index["good"].state == "READY"
        for name, expected in words.items():
            assert index[name].state == "UNAVAILABLE", name
            assert index[name].reason, name
            assert not client.is_model_ready(name)
            with pytest.raises(InferenceServerException) as caught:
                infer(client, name, {"x": np.ones((1, 3), np.float32)})
            assert "UNAVAILABLE" in str(caught.value.status()), name
            for word in expected:
                assert word in index[name].reason, name
                assert word in caught.value.message(), name
            assert name in daemon.log()
        inputs = text_inputs(NAMES, 2, 9, rng, 200)
        answer = infer(client, "good", inputs)
        assert_same_answer(answer.outputs, reference(repository.path("good"), inputs))
