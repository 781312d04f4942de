"""Load reports (ORCA), as balancers read them: with answers, and as a stream; and the name of the server."""

import base64
import os
import re
import struct
import subprocess
import time

import grpc
import numpy as np
import pytest
import requests
from google.protobuf import descriptor_pb2
from tritonclient.grpc import service_pb2, service_pb2_grpc

from testing import decoders, models
from testing.daemon import Daemon, run_reprised
from testing.patience import wait_until
from testing.replicas import orca
from testing.repository import Repository

# The fields of every report of a server that has just answered.
ALWAYS = {*orca.NUMBERS, "named_metrics.queue_requests", "named_metrics.queue_tokens", "named_metrics.running_tokens",
          "named_metrics.misses"}


@pytest.fixture(scope="module")
def models_folder(tmp_path_factory):
    folder = Repository(tmp_path_factory.mktemp("reports") / "models")
    folder.add("m", models.elementwise())
    return folder


@pytest.fixture(scope="module")
def daemon(models_folder):
    with Daemon(models_folder, "--instance", "replica-7") as running:
        infer(running)
        yield running


def http_body(model="m"):
    return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}


def post(daemon, **headers):
    return requests.post(f"{daemon.http_url}/v2/models/m/infer", json=http_body(), timeout=60, headers=headers)


def message_for(model):
    message = service_pb2.ModelInferRequest(model_name=model)
    message.inputs.add(name="x", datatype="FP32", shape=[1, 3])
    message.raw_input_contents.append(np.ones(3, np.float32).tobytes())
    return message


def infer(daemon, model="m"):
    """(initial metadata, trailing metadata, code) of a gRPC call."""
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer.future(message_for(model), timeout=60)
        code = call.code()
        return dict(call.initial_metadata()), dict(call.trailing_metadata()), code


def trailers(daemon, model="m", **fields):
    """Fields after a gRPC call's answer. gRPC's own clients keep the report for their balancer."""
    body = message_for(model).SerializeToString()
    flags = [word for name, value in fields.items() for word in ("-H", f"{name}: {value}")]
    said = subprocess.run(
        ["curl", "-sv", "-o", "/dev/null", "--http2-prior-knowledge", "-H", "content-type: application/grpc", "-H",
         "te: trailers", *flags, "--data-binary", "@-",
         f"http://{daemon.grpc_address}/inference.GRPCInferenceService/ModelInfer"],
        input=b"\0" + struct.pack(">I", len(body)) + body, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    return dict(re.findall(r"^< ([\w-]+): (.*?)\r?$", said.stderr.decode(), re.M))


def test_our_messages_are_the_published_ones(tmp_path):
    root = os.environ["REPRISE_SOURCE_DIR"]
    out = tmp_path / "descriptors.bin"
    subprocess.run(["protoc", f"--proto_path={root}", f"--descriptor_set_out={out}",
                    f"{root}/proto/orca_report.proto", f"{root}/proto/orca_service.proto"], check=True)
    ours = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    for mine, module in zip(ours, (orca.orca_load_report_pb2, orca.orca_pb2), strict=True):
        theirs = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(theirs)
        assert mine.package == theirs.package
        for one, other in zip(mine.message_type, theirs.message_type, strict=True):
            assert one.name == other.name
            facts = [{field.name: (field.number, field.type, field.label, field.type_name) for field in message.field}
                     for message in (one, other)]
            assert facts[0] == facts[1]
        assert [(m.name, m.input_type, m.output_type, m.server_streaming) for s in mine.service for m in s.method] == [
            (m.name, m.input_type, m.output_type, m.server_streaming) for s in theirs.service for m in s.method]


def test_answers_have_a_report_where_the_request_asks(daemon):
    assert orca.HEADER not in post(daemon).headers
    text = orca.from_text(post(daemon, **{orca.FORMAT: "TEXT"}).headers[orca.HEADER])
    assert ALWAYS <= set(text)
    assert text["rps_fractional"] > 0 and 0 < text["mem_utilization"] < 1
    assert 0 <= text["application_utilization"] <= 1
    as_json = orca.from_json(post(daemon, **{orca.FORMAT: "json"}).headers[orca.HEADER])
    assert ALWAYS <= set(as_json)
    binary = post(daemon, **{orca.FORMAT: "BIN"}).headers[orca.TRAILER]
    assert ALWAYS <= set(orca.numbers(orca.from_bytes(base64.b64decode(binary))))


def test_grpc_answers_have_it_as_a_trailer(daemon):
    plain = trailers(daemon)
    assert plain["grpc-status"] == "0" and orca.TRAILER not in plain
    # An error is an answer, too.
    for model, code in (("m", grpc.StatusCode.OK), ("unknown", grpc.StatusCode.NOT_FOUND)):
        trailing = trailers(daemon, model, **{orca.FORMAT: "TEXT"})
        assert trailing["grpc-status"] == str(code.value[0])
        report = orca.from_bytes(base64.b64decode(trailing[orca.TRAILER] + "=="))
        assert ALWAYS <= set(orca.numbers(report))


def test_stream_comes_as_often_as_it_is_asked_for_and_follows_the_load(daemon):
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        reports = orca.stream(channel, 200)
        begin, last = time.monotonic(), 0
        for count, report in enumerate(reports):
            for _ in range(20):
                post(daemon)
            if report.rps_fractional > 10:
                break
            assert count < 50, report
        begin = time.monotonic()
        for _ in range(5):
            last = next(reports).rps_fractional
        assert time.monotonic() - begin > 0.6
        # It falls once nothing is asked.
        wait_until(lambda: next(reports).rps_fractional < last or last == 0)
        reports.cancel()


def test_stream_ends_when_the_server_leaves(models_folder):
    with Daemon(models_folder) as leaving, grpc.insecure_channel(leaving.grpc_address) as channel:
        reports = orca.stream(channel, 100)
        next(reports)
        leaving.process.terminate()
        with pytest.raises(grpc.RpcError) as error:
            for _ in reports:
                pass
        assert error.value.code() == grpc.StatusCode.UNAVAILABLE
        assert leaving.process.wait(60) == 0


@pytest.mark.parametrize("mode,with_answers,with_stream", [("off", False, False), ("oob", False, True),
                                                           ("always", True, True)])
def test_modes(models_folder, mode, with_answers, with_stream):
    with Daemon(models_folder, "--load-reports", mode) as running:
        assert (orca.HEADER in post(running).headers) == with_answers
        assert (orca.HEADER in post(running, **{orca.FORMAT: "TEXT"}).headers) == with_answers
        assert (orca.TRAILER in trailers(running, **{orca.FORMAT: "TEXT"})) == with_answers
        with grpc.insecure_channel(running.grpc_address) as channel:
            if with_stream:
                assert 0 < next(orca.stream(channel, 100)).mem_utilization < 1
            else:
                with pytest.raises(grpc.RpcError) as error:
                    next(orca.stream(channel, 100))
                assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_decoders_report_their_pages(tmp_path):
    repository = Repository(tmp_path / "models")
    repository.add("decoder", decoders.make("gqa"))
    with Daemon(repository, "--load-reports", "always") as running:
        def generate():
            reply = requests.post(f"{running.http_url}/v2/models/decoder/generate", timeout=120,
                                  json={"input_ids": [1, 2, 3], "parameters": {"max_tokens": 4}})
            assert reply.status_code == 200, reply.text
            return orca.from_text(reply.headers[orca.HEADER])

        wait_until(lambda: "named_metrics.pages_used" in generate())
        assert 0 <= generate()["named_metrics.kv_cache_utilization"] <= 1


def test_answers_name_the_instance(daemon):
    assert post(daemon).headers["x-reprise-instance"] == "replica-7"
    assert infer(daemon)[0]["x-reprise-instance"] == "replica-7"
    # An error of gRPC has all of its fields in one header.
    initial, trailing, code = infer(daemon, model="unknown")
    assert code == grpc.StatusCode.NOT_FOUND and {**initial, **trailing}["x-reprise-instance"] == "replica-7"
    missing = requests.post(f"{daemon.http_url}/v2/models/unknown/infer", json=http_body(), timeout=60)
    assert missing.status_code == 404 and missing.headers["x-reprise-instance"] == "replica-7"


@pytest.mark.parametrize("name", ["two words", "line\nbreak", "x" * 257])
def test_name_that_no_header_can_have_is_refused(name):
    done = run_reprised("--instance", name)
    assert done.returncode == 2 and "visible ASCII" in done.stderr
