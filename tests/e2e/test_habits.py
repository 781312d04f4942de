"""Habits of users of Triton and MLServer: classes, labels, warm-up, health by name, their parameters and flags."""

import base64

import grpc
import numpy as np
import pytest
import requests
import tritonclient.grpc
import tritonclient.http
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tritonclient.utils import InferenceServerException

from testing.vision import detectors
from testing.daemon import Daemon, run_reprised
from testing.metrics import Scrape

LABELS = ["red", "green", "blue"]
WARMUP = """
max_batch_size: 4
output { name: "logits" data_type: TYPE_FP32 dims: 3 label_filename: "colours.txt" }
model_warmup { name: "usual" batch_size: 2 inputs {
  key: "pixel_values" value { data_type: TYPE_FP32 dims: 3 dims: 20 dims: 30 random_data: true } } }
"""


# Its first step is a tokenizer, a program elsewhere.
CHAIN = """
platform: "ensemble"
input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 3 }
ensemble_scheduling {
  step { model_name: "tokenizer" model_version: -1 input_map { key: "TEXT" value: "TEXT" }
         output_map { key: "ids" value: "ids" } }
  step { model_name: "plain" model_version: -1 input_map { key: "pixel_values" value: "ids" }
         output_map { key: "logits" value: "y" } } }
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("habits")
    for name, config in (("labelled", WARMUP), ("plain", "max_batch_size: 0"),
                         ("chain", CHAIN),
                         ("misfit", WARMUP.replace("dims: 3 dims: 20", "dims: 4 dims: 20")),
                         ("unlabelled", WARMUP.replace("colours.txt", "none.txt"))):
        (root / name / "1").mkdir(parents=True)
        (root / name / "1" / "model.onnx").write_bytes(detectors.classifier().SerializeToString())
        (root / name / "config.pbtxt").write_text(config)
    (root / "labelled" / "colours.txt").write_text("\n".join(LABELS) + "\n")
    with Daemon(root, "--strict-readiness", "false") as daemon:
        yield daemon


def images(*colours):
    """Pictures of one colour, [rows, 3, 20, 30]."""
    return np.stack([np.broadcast_to(np.array(colour, np.float32)[:, None, None], (3, 20, 30))
                     for colour in colours])


def classes(daemon, model, values, count, http, **options):
    kit = tritonclient.http if http else tritonclient.grpc
    client = kit.InferenceServerClient(f"127.0.0.1:{daemon.http_port}" if http else daemon.grpc_address)
    tensor = kit.InferInput("pixel_values", list(values.shape), "FP32")
    tensor.set_data_from_numpy(np.ascontiguousarray(values))
    wanted = kit.InferRequestedOutput("logits", class_count=count, **options)
    return client.infer(model, [tensor], outputs=[wanted]).as_numpy("logits")


def rounded(answer):
    """Classes as text, their values to four places: means round as the CPU adds."""
    def one(text):
        value, rest = (text.decode() if isinstance(text, bytes) else str(text)).split(":", 1)
        assert len(value.split(".")[1]) == 6
        return f"{float(value):.4f}:{rest}"
    return [[one(text) for text in row] for row in np.atleast_2d(answer)]


@pytest.mark.parametrize("http", [False, True])
def test_an_output_is_answered_as_its_best_classes(served, http):
    values = images((0.1, 0.5, 0.3), (0.9, 0.2, 0.4))
    answer = classes(served, "labelled", values, 2, http)
    assert answer.shape == (2, 2)
    assert rounded(answer) == [["5.0000:1:green", "3.0000:2:blue"], ["9.0000:0:red", "4.0000:2:blue"]]
    # Without batching all rows are one; there are six values.
    answer = classes(served, "plain", values, 10, http)
    assert answer.shape == (6,) and rounded(answer)[0][0] == "9.0000:3"
    if http:
        answer = classes(served, "labelled", values, 1, http, binary_data=False)
        assert rounded(answer.ravel()) == [["5.0000:1:green", "9.0000:0:red"]]


def test_fewer_than_one_class_is_refused_by_name(served):
    body = {"inputs": [{"name": "pixel_values", "datatype": "FP32", "shape": [1, 3, 1, 1], "data": [0, 1, 2]}],
            "outputs": [{"name": "logits", "parameters": {"classification": -1}}]}
    reply = requests.post(f"{served.http_url}/v2/models/labelled/infer", json=body, timeout=60)
    assert reply.status_code == 400 and "classification is -1" in reply.json()["error"]


def test_samples_of_a_warmup_are_captured_before_the_model_is_ready(served):
    scrape = Scrape(served.metrics_url)
    assert scrape.total("reprise_compiles_total", model="labelled", reason="warmup") >= 1
    client = served.client()
    tensor = tritonclient.grpc.InferInput("pixel_values", [2, 3, 20, 30], "FP32")
    tensor.set_data_from_numpy(np.ascontiguousarray(images((1, 0, 0), (0, 1, 0))))
    answer = client.infer("labelled", [tensor]).get_response()
    assert answer.parameters["reprise.capture"].string_param == "replayed"


def test_models_that_cannot_be_say_why(served):
    index = {model["name"]: model.get("reason", "") for model in
             requests.post(f"{served.http_url}/v2/repository/index", timeout=60).json()}
    assert "model_warmup \"usual\"" in index["misfit"] and "has 4 as dim 1, the model expects 3" in index["misfit"]
    assert "none.txt" in index["unlabelled"]
    assert "step 'tokenizer'" in index["chain"] and "tokenizer.json" in index["chain"]


def test_health_is_told_by_the_name_of_a_model(served):
    with grpc.insecure_channel(served.grpc_address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)

        def status(name):
            return stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=10).status

        assert status("labelled") == status("plain") == health_pb2.HealthCheckResponse.SERVING
        assert status("misfit") == health_pb2.HealthCheckResponse.NOT_SERVING
        with pytest.raises(grpc.RpcError) as caught:
            status("gone")
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="labelled"), timeout=10)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()


def test_health_of_a_model_follows_its_loads(tmp_path):
    (tmp_path / "model/1").mkdir(parents=True)
    (tmp_path / "model/1/model.onnx").write_bytes(detectors.classifier().SerializeToString())
    with Daemon(tmp_path, "--model-control-mode", "explicit", "--load-model", "model") as daemon, \
            grpc.insecure_channel(daemon.grpc_address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service="model"), timeout=60)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        daemon.client().unload_model("model")
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        daemon.client().load_model("model")
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()


def test_parameters_of_mlservers_clients_are_taken(served):
    """Builds requests as mlserver's InferenceRequest does: content types, headers, nothing for unset fields."""
    body = {"id": None, "parameters": {"content_type": None, "headers": {"ce-id": "1"}, "tags": ["a"]},
            "inputs": [{"name": "pixel_values", "datatype": "FP32", "shape": [1, 3, 1, 1], "data": [0, 1, 2],
                        "parameters": {"content_type": "np", "headers": {}}}],
            "outputs": [{"name": "logits", "parameters": {"content_type": "np"}}]}
    reply = requests.post(f"{served.http_url}/v2/models/plain/infer", json=body, timeout=60)
    assert reply.status_code == 200, reply.text
    assert reply.json()["outputs"][0]["data"] == [0, 10, 20]
    body["parameters"] = {"priority": {"level": 1}}
    reply = requests.post(f"{served.http_url}/v2/models/plain/infer", json=body, timeout=60)
    assert reply.status_code == 400 and "priority" in reply.json()["error"]


@pytest.mark.parametrize("word, shown", [("true", "true"), ("false", "false")])
def test_flags_take_true_and_false_as_a_word(tmp_path, word, shown):
    done = run_reprised("--model-repository", tmp_path, "--grpc-use-ssl", word, "--access-log", "--print-config")
    assert done.returncode == 0, done.stderr
    assert f"grpc-use-ssl: {shown}" in done.stdout and "access-log: true" in done.stdout, done.stdout


def test_regions_of_devices_are_answered_as_by_triton(served):
    client = served.client()
    assert not client.get_cuda_shared_memory_status().regions
    with pytest.raises(InferenceServerException):
        client.register_cuda_shared_memory("r", base64.b64encode(b"handle"), 0, 16)
    client.unregister_cuda_shared_memory()
