"""Models with text, in and out: onnxruntime's answers through an unmodified client."""

import json
import struct

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from testing import classic, texts
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference

MODELS = {**texts.all_models(), "strict": lambda: texts.columns(zeros=0),
          "labels": lambda: classic.text_labels(np.random.default_rng(5))}


def inputs_of(name, rng, rows):
    if name == "labels":
        return {"X": classic.rows(rng, rows)}
    return texts.inputs_of(name, rng, rows)


@pytest.mark.parametrize("name", sorted({*texts.all_models(), "labels"}))
def test_answers_are_those_of_onnxruntime(daemon, paths, rng, name):
    client = daemon.client()
    for rows in (1, 2, 7, 33, 520):
        inputs = inputs_of(name, rng, rows)
        answer = infer(client, name, inputs)
        assert_same_answer(texts.decoded(answer.outputs), reference(paths[name], inputs),
                           f"{name}, {rows} rows")


@pytest.mark.parametrize("name", ["columns", "encoders", "movers", "labels"])
def test_rows_of_many_clients_keep_their_own_texts(daemon, paths, rng, name):
    client = daemon.client()
    inputs = [inputs_of(name, rng, 1 + i % 3) for i in range(96)]
    answers = together(lambda one: infer(client, name, one), inputs, clients=24)
    for one, answer in zip(inputs, answers):
        assert_same_answer(texts.decoded(answer.outputs), reference(paths[name], one), name)
    assert max(a.parameters["reprise.batch_size"] for a in answers) > 3, "nothing was batched"


def test_texts_need_not_be_utf8_and_may_be_empty(daemon):
    given = np.array([[b"\xff\xfe\x00", b""], [b"", b"x" * 100_000]], object)
    answer = infer(daemon.client(), "movers", {"a": given, "b": given})
    assert np.array_equal(answer.outputs["joined"], np.concatenate([given, given], 1))
    assert answer.outputs["same"].all() and not answer.outputs["is_red"].any()


def test_typed_contents_are_raw_ones(daemon):
    request = service_pb2.ModelInferRequest(model_name="movers")
    for name in ("a", "b"):
        tensor = request.inputs.add(name=name, datatype="BYTES", shape=[1, 2])
        tensor.contents.bytes_contents.extend([b"red", b"own"])
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        response = stub.ModelInfer(request, timeout=60)
    by_name = dict(zip((o.name for o in response.outputs), response.raw_output_contents))
    assert by_name["chosen"] == struct.pack("<I3sI3s", 3, b"red", 3, b"own")


def test_metadata_and_config_say_text(daemon):
    client = daemon.client()
    metadata = client.get_model_metadata("columns")
    assert {i.name: i.datatype for i in metadata.inputs} == {
        "city": "BYTES", "colour": "BYTES", "size": "FP32"}
    assert {o.name: o.datatype for o in metadata.outputs} == {"label": "BYTES", "scores": "FP32"}
    config = client.get_model_config("columns", as_json=True)["config"]
    assert {i["name"]: i["data_type"] for i in config["input"]}["city"] == "TYPE_STRING"


def test_an_unknown_category_is_named_for_its_request_alone(daemon, rng):
    client = daemon.client()
    good = {"city": np.array([["Bern"]], object), "colour": np.array([["red"]], object),
            "size": np.ones((1, 1), np.float32)}
    bad = {**good, "colour": np.array([["mauve"]], object)}

    def ask(inputs):
        try:
            return infer(client, "strict", inputs).outputs["label"][0].decode()
        except InferenceServerException as error:
            return error.message()

    # Rows of padding are in most of these replays, and are no error.
    answers = together(ask, [bad if i % 3 == 1 else good for i in range(48)], clients=12)
    for i, answer in enumerate(answers):
        if i % 3 == 1:
            assert "'mauve'" in answer, answer
        else:
            assert answer in texts.LABELS, answer


def raw_request(client, data, rows):
    tensor = triton.InferInput("city", [rows, 1], "BYTES")
    tensor._raw_content = data
    return client.infer("encoders", [tensor])


@pytest.mark.parametrize("data, rows, parts", [
    (struct.pack("<I", 2**31) + b"abc", 1, ("element 0", "2147483648", "3")),
    (struct.pack("<I3s", 3, b"abc"), 2, ("2 texts", "7") ),
    (struct.pack("<I3sI", 3, b"abc", 5), 2, ("element 1", "5", "0")),
    (struct.pack("<I3sI1s", 3, b"abc", 1, b"x"), 1, ("7", "12")),
    (b"", 3, ("3 texts", "0")),
])
def test_hostile_bytes_are_refused_with_the_element_and_both_numbers(daemon, data, rows, parts):
    client = daemon.client()
    with pytest.raises(InferenceServerException) as refusal:
        raw_request(client, data, rows)
    assert "INVALID_ARGUMENT" in str(refusal.value.status())
    for part in ("city", *parts):
        assert part in refusal.value.message(), refusal.value
    assert client.is_server_live()


def test_the_command_line_reads_and_shows_texts(daemon, tmp_path):
    file = tmp_path / "inputs.json"
    file.write_text(json.dumps({"city": [["Bern", "Atlantis"]]}))
    shown = daemon.reprise("infer", "encoders", "--inputs", file)
    assert "'Schweiz' '_Unused'" in shown, shown
    assert "BYTES" in daemon.reprise("infer", "encoders", "--length", 3)


def test_ops_that_compute_with_text_are_refused_by_node(repository):
    lower = texts.model(
        [texts.node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER")],
        [texts.value("x", TensorProto.STRING, "n")], [texts.value("y", TensorProto.STRING, "n")])
    repository.add("lower", lower)
    with Daemon(repository) as daemon:
        with pytest.raises(InferenceServerException) as refusal:
            infer(daemon.client(), "lower", {"x": np.array(["A"], object)})
        for part in ("StringNormalizer", "stringnormalizer/y"):
            assert part in str(refusal.value), refusal.value
