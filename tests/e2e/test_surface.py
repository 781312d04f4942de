"""Everything a client can ask for beside inference: health, metadata, statistics, reflection."""

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tritonclient.grpc import service_pb2_grpc, service_pb2
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon, reprise, run_reprised
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape
from testing.repository import MINILM, PADDED

NAMES = ["input_ids", "attention_mask"]

# Metrics that the dashboard and the alerts stand on: there from the first scrape, before any request.
METRICS = [
    "reprise_compiles_total", "reprise_compile_duration_seconds_count", "reprise_replays_total",
    "reprise_replay_duration_seconds_count", "reprise_cache_requests_total",
    "reprise_cache_recipes", "reprise_cache_bytes", "reprise_cache_evictions_total",
    "reprise_elements_total", "reprise_batch_size_count", "reprise_request_length_count",
    "reprise_queue_depth", "reprise_queue_duration_seconds_count",
    "reprise_request_duration_seconds_count", "reprise_requests_total",
    "reprise_tunes_total", "reprise_build_info",
    "nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count",
    "nv_inference_exec_count", "nv_inference_pending_request_count",
    "nv_inference_request_duration_us", "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us", "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
]
# Metrics that are not about one model.
GLOBAL_METRICS = {"reprise_build_info"}


@pytest.fixture(scope="module")
def daemon(module_repository):
    module_repository.add("bert", models.bert(), config=PADDED)
    module_repository.add("minilm", MINILM)
    module_repository.add("mixes_batch", models.mixes_batch())
    module_repository.add(
        "configured", models.bert(seed=3),
        config='max_batch_size: 8\n'
               'dynamic_batching { max_queue_delay_microseconds: 500 }\n'
               'parameters { key: "reprise.max_batch_tokens" value { string_value: "1024" } }\n')
    with Daemon(module_repository) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def channel(daemon):
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        yield channel


def test_metrics_are_there_at_the_first_scrape(daemon):
    """First in this file: no request has been sent yet."""
    scrape = Scrape(daemon.metrics_url)
    missing = [name for name in METRICS if not scrape.find(
        name, **({} if name in GLOBAL_METRICS else {"model": "bert", "version": "1"}))]
    assert missing == []
    reasons = {labels["reason"] for labels, _ in scrape.find("reprise_compiles_total", model="bert")}
    assert {"first_request", "new_shape", "warmup", "evicted"} <= reasons
    assert scrape.total("reprise_compiles_total") == 0
    assert scrape.total("reprise_replays_total") == 0
    found = {labels["bucket"] for labels, _ in scrape.find("reprise_replays_total", model="bert")}
    assert {"b1_s16", "b32_s128", "exact"} <= found
    packed = {labels["bucket"]
              for labels, _ in scrape.find("reprise_replays_total", model="minilm")}
    assert {"t16", "t4096", "exact"} <= packed
    for line in scrape.text.splitlines():
        if line.startswith("# TYPE"):
            assert f"# HELP {line.split()[2]} " in scrape.text


def test_http_port_serves_health_and_metrics_as_well(daemon):
    assert daemon.http_status("/v2/health/live") == 200
    assert daemon.http_status("/v2/health/ready") == 200
    assert daemon.http_status("/metrics") == 200
    assert daemon.http_status("/nonsense") == 404


def test_server_is_live_ready_and_names_its_extensions(daemon):
    client = daemon.client()
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("bert") and client.is_model_ready("bert", "1")
    metadata = client.get_server_metadata()
    assert metadata.name == "reprise" and metadata.version
    assert "statistics" in metadata.extensions


def test_model_metadata_is_the_model(daemon):
    metadata = daemon.client().get_model_metadata("bert")
    assert metadata.name == "bert" and list(metadata.versions) == ["1"]
    assert [(i.name, i.datatype, list(i.shape)) for i in metadata.inputs] == [
        ("input_ids", "INT64", [-1, -1]), ("attention_mask", "INT64", [-1, -1])]
    assert [(o.name, o.datatype, list(o.shape)) for o in metadata.outputs] == [
        ("last_hidden_state", "FP32", [-1, -1, 32]), ("pooler_output", "FP32", [-1, 32])]


def test_model_config_without_a_file_has_the_largest_batch_bucket(daemon):
    config = daemon.client().get_model_config("bert").config
    assert config.name == "bert" and config.max_batch_size == 32
    assert [(i.name, list(i.dims)) for i in config.input] == [
        ("input_ids", [-1]), ("attention_mask", [-1])]
    assert [(o.name, list(o.dims)) for o in config.output] == [
        ("last_hidden_state", [-1, 32]), ("pooler_output", [32])]


def test_model_config_of_a_batch_that_is_not_certified_has_no_batching(daemon):
    config = daemon.client().get_model_config("mixes_batch").config
    assert config.max_batch_size == 0
    assert [list(i.dims) for i in config.input] == [[-1, 4]]


def test_model_config_from_a_file_is_kept(daemon):
    config = daemon.client().get_model_config("configured").config
    assert config.max_batch_size == 8
    assert config.dynamic_batching.max_queue_delay_microseconds == 500
    assert config.parameters["reprise.max_batch_tokens"].string_value == "1024"


def test_batch_above_max_batch_size_is_split_by_rows(daemon, module_repository, rng):
    inputs = text_inputs(NAMES, 19, 5, rng, 200)
    answer = infer(daemon.client(), "configured", inputs)
    assert len(answer.batches) == 3, "8 + 8 + 3"
    assert_same_answer(answer.outputs, reference(module_repository.path("configured"), inputs))


def test_unknown_model_is_not_found_everywhere(daemon):
    client = daemon.client()
    for call in (client.get_model_metadata, client.get_model_config,
                 client.get_inference_statistics):
        with pytest.raises(InferenceServerException) as caught:
            call("nonsense")
        assert "NOT_FOUND" in str(caught.value.status())
        assert "nonsense" in caught.value.message()
    assert not client.is_model_ready("nonsense")


def test_statistics_count_requests_rows_and_executions(daemon, rng):
    client = daemon.client()

    def statistics():
        (model,) = client.get_inference_statistics("minilm", "1").model_stats
        return model

    before = statistics()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    for rows in (1, 3, 2):
        infer(client, "minilm", text_inputs(names, rows, 7, rng))
    after = statistics()
    assert after.name == "minilm" and after.version == "1"
    assert after.inference_count - before.inference_count == 6
    assert after.execution_count - before.execution_count == 3
    stats = after.inference_stats
    assert stats.success.count - before.inference_stats.success.count == 3
    assert stats.success.ns > 0 and stats.fail.count == 0
    assert stats.compute_input.count == stats.compute_infer.count == stats.compute_output.count
    assert after.last_inference > 1_600_000_000_000
    everything = client.get_inference_statistics().model_stats
    assert sorted(m.name for m in everything) == ["bert", "configured", "minilm", "mixes_batch"]


def test_nv_metrics_agree_with_the_statistics(daemon, rng):
    client = daemon.client()
    infer(client, "bert", text_inputs(NAMES, 4, 9, rng, 200))
    (model,) = client.get_inference_statistics("bert", "1").model_stats
    scrape = Scrape(daemon.metrics_url)
    labels = {"model": "bert", "version": "1"}
    assert scrape.total("nv_inference_count", **labels) == model.inference_count
    assert scrape.total("nv_inference_exec_count", **labels) == model.execution_count
    assert scrape.total("nv_inference_request_success", **labels) == (
        model.inference_stats.success.count)


def test_repository_index_lists_every_model(daemon):
    index = daemon.client().get_model_repository_index().models
    assert sorted((m.name, m.version, m.state) for m in index) == [
        ("bert", "1", "READY"), ("configured", "1", "READY"), ("minilm", "1", "READY"),
        ("mixes_batch", "1", "READY")]


def test_health_service_answers_for_server_and_service(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ("", "inference.GRPCInferenceService"):
        response = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
        assert response.status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(health_pb2.HealthCheckRequest(service="nonsense"), timeout=10)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_reflection_lists_the_services_and_their_files(channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    requests = [reflection_pb2.ServerReflectionRequest(list_services=""),
                reflection_pb2.ServerReflectionRequest(
                    file_containing_symbol="inference.ModelInferRequest")]
    services, files = stub.ServerReflectionInfo(iter(requests), timeout=10)
    names = {s.name for s in services.list_services_response.service}
    assert {"inference.GRPCInferenceService", "grpc.health.v1.Health", "reprise.v1.Admin"} <= names
    assert files.file_descriptor_response.file_descriptor_proto


@pytest.mark.parametrize("method", [
    "SystemSharedMemoryRegister", "CudaSharedMemoryRegister"])
def test_methods_that_are_missing_say_so_by_name(channel, method):
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    with pytest.raises(grpc.RpcError) as caught:
        getattr(stub, method)(getattr(service_pb2, method + "Request")(), timeout=10)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert method in caught.value.details()


@pytest.mark.parametrize("word, meant", [("--grpc-prot", "--grpc-port"),
                                         ("--load-models=x", "--load-model")])
def test_flags_that_are_nearly_another_name_it(module_repository, word, meant):
    done = run_reprised("--model-repository", module_repository, word, "1")
    assert done.returncode == 2 and f"did you mean {meant}?" in done.stderr, done.stderr


@pytest.mark.parametrize("words, meant", [
    (("explan",), "explain"), (("wramup", "m"), "warmup"), (("stats", "--sever", "x"), "--server")])
def test_commands_and_flags_that_are_nearly_another_name_it(words, meant):
    done = reprise(*words, check=False)
    assert done.returncode == 2 and f"did you mean {meant}?" in done.stderr, done.stderr


def test_wrong_flags_end_with_2_and_one_line(module_repository):
    for flags in (["--frobnicate"], ["--grpc-port", "port"], []):
        done = run_reprised(*flags)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
