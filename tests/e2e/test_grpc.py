"""gRPC as its own clients speak it: compression, metadata, deadlines, ages, watches, large messages."""

import asyncio
import signal
import threading
import time

import grpc
import grpc.aio
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from testing import h2, models
from testing.daemon import Daemon
from testing.inference import tensors
from testing.patience import wait_until

MODELS = {"double": models.elementwise}


def request(x):
    message = service_pb2.ModelInferRequest(model_name="double")
    tensor = message.inputs.add(name="x", datatype="FP32")
    tensor.shape.extend(x.shape)
    message.raw_input_contents.append(x.tobytes())
    return message


def answer_of(response):
    return np.frombuffer(response.raw_output_contents[0], np.float32)


@pytest.fixture
def channel(daemon):
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(daemon.grpc_address, unlimited) as channel:
        yield channel


@pytest.fixture
def stub(channel):
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
@pytest.mark.parametrize("size", [1, 1000, 500_000])
def test_compressed_messages_are_understood(stub, compression, size):
    x = np.arange(size, dtype=np.float32).reshape(1, size)
    response = stub.ModelInfer(request(x), compression=compression, timeout=60)
    np.testing.assert_allclose(answer_of(response), 2 * x[0] + 1)


def test_large_messages_go_both_ways(stub):
    x = np.arange(8_000_000, dtype=np.float32).reshape(1000, 8000)
    response = stub.ModelInfer(request(x), timeout=120)
    np.testing.assert_allclose(answer_of(response), 2 * x.ravel() + 1)


def test_many_calls_share_a_connection(stub):
    x = [np.full((1, 8), i, np.float32) for i in range(500)]
    calls = [stub.ModelInfer.future(request(of), timeout=120) for of in x]
    for of, call in zip(x, calls):
        np.testing.assert_allclose(answer_of(call.result()), 2 * of[0] + 1)


def test_metadata_of_any_kind_are_taken(stub):
    metadata = [("key-bin", bytes(range(256))), ("traceparent", "00-1-2-01"), ("x-empty", "")]
    assert stub.ServerLive(service_pb2.ServerLiveRequest(), metadata=metadata, timeout=60).live


def test_metadata_above_the_limit_are_refused_and_the_channel_goes_on(stub):
    with pytest.raises(grpc.RpcError) as refused:
        stub.ServerLive(service_pb2.ServerLiveRequest(), metadata=[("x", "y" * 20000)], timeout=60)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=60).live


def test_errors_keep_their_words(stub):
    message = request(np.ones((1, 3), np.float32))
    message.model_name = "größer\n100%"
    with pytest.raises(grpc.RpcError) as refused:
        stub.ModelInfer(message, timeout=60)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    assert "größer" in refused.value.details() and "100%" in refused.value.details()


def test_bytes_that_are_no_message_are_refused(channel):
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    with pytest.raises(grpc.RpcError) as refused:
        call(b"\xff\xff\xff\xff", timeout=60)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_unknown_methods_are_unimplemented(channel):
    for path in ("/inference.GRPCInferenceService/Nothing", "/no.Service/Nothing"):
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary(path)(b"", timeout=60)
        assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_clients_of_http_1_are_told_off(daemon):
    with h2.Connection(daemon.grpc_port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") as client:
        list(client.frames())  # ends


def test_watch_tells_each_change(repository):
    repository.add("double", models.elementwise())
    with Daemon(repository) as daemon, grpc.insecure_channel(daemon.grpc_address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        known = stub.Watch(health_pb2.HealthCheckRequest(service=""))
        unknown = stub.Watch(health_pb2.HealthCheckRequest(service="nobody"))
        assert next(known).status == health_pb2.HealthCheckResponse.SERVING
        assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        daemon.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert next(known).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert daemon.process.wait(60) == 0
        assert time.monotonic() - began < 20, "watches do not hold up the end"


def test_asynchronous_clients_infer_and_stream(daemon):
    inputs = {"x": np.ones((1, 3), np.float32)}

    async def work():
        async with tritonclient.grpc.aio.InferenceServerClient(daemon.grpc_address) as client:
            results = await asyncio.gather(*[client.infer("double", tensors(inputs))
                                             for _ in range(50)])
            assert all(result.as_numpy("y").shape == (1, 3) for result in results)

            async def requests():
                for i in range(20):
                    yield {"model_name": "double", "inputs": tensors(inputs), "request_id": str(i)}

            ids = []
            async for result, error in client.stream_infer(requests()):
                assert error is None
                ids.append(result.get_response().id)
            assert ids == [str(i) for i in range(20)]

    asyncio.run(work())


def test_old_connections_end_and_their_clients_see_no_error(repository):
    repository.add("double", models.elementwise())
    with Daemon(repository, "--grpc-max-connection-age-secs", "1") as daemon:
        seen = set()
        with grpc.insecure_channel(daemon.grpc_address) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            channel.subscribe(seen.add)
            x = np.ones((1, 3), np.float32)
            end = time.monotonic() + 5
            while time.monotonic() < end:
                stub.ModelInfer(request(x), timeout=30)
        assert grpc.ChannelConnectivity.IDLE in seen or grpc.ChannelConnectivity.CONNECTING in seen
        with h2.Connection(daemon.grpc_port) as idle:
            assert idle.first(h2.GOAWAY) is not None
            assert list(idle.frames()) is not None  # the connection ends


def test_silent_clients_are_pinged_and_those_that_are_gone_are_cut_off(repository):
    repository.add("double", models.elementwise())
    with Daemon(repository, "--grpc-keepalive-time", "1000", "--grpc-keepalive-timeout", "1000",
                "--grpc-keepalive-permit-without-calls") as daemon:
        with h2.Connection(daemon.grpc_port) as client:
            assert client.first(h2.PING) is not None
            list(client.frames())  # which is not answered: the server ends the connection


def test_impatient_pings_end_the_connection(daemon):
    with h2.Connection(daemon.grpc_port) as client:
        for _ in range(5):
            client.send(h2.frame(h2.PING, 0, 0, b"12345678"))
        goaway = client.first(h2.GOAWAY)
        assert b"too_many_pings" in goaway[3]


def test_more_streams_than_the_limit_wait_for_their_turn(repository):
    repository.add("double", models.elementwise())
    with Daemon(repository, "--grpc-max-streams", "4") as daemon:
        with grpc.insecure_channel(daemon.grpc_address) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            x = np.ones((1, 3), np.float32)
            calls = [stub.ModelInfer.future(request(x), timeout=60) for _ in range(100)]
            assert all(len(answer_of(call.result())) == 3 for call in calls)


def test_calls_under_way_end_when_the_daemon_drains(repository):
    repository.add("double", models.elementwise())
    with Daemon(repository) as daemon, grpc.insecure_channel(daemon.grpc_address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        x = np.ones((1, 3), np.float32)
        failures, stop = [], threading.Event()

        def call():
            while not stop.is_set():
                try:
                    stub.ModelInfer(request(x), timeout=30)
                except grpc.RpcError as error:
                    failures.append(error.code())
                    return

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)  # some are under way
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(60) == 0
        stop.set()
        for thread in threads:
            thread.join()
        assert set(failures) <= {grpc.StatusCode.UNAVAILABLE}


def test_message_that_inflates_beyond_what_a_model_takes_is_refused(repository):
    repository.add("double", models.elementwise(),
                   config='parameters { key: "reprise.max_queue_bytes" value { string_value: "1000" } }')
    with Daemon(repository) as daemon, grpc.insecure_channel(
            daemon.grpc_address, [("grpc.max_send_message_length", -1)]) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        zeros = np.zeros((1, 30_000_000), np.float32)
        before = daemon.rss_bytes()
        with pytest.raises(grpc.RpcError) as refused:
            stub.ModelInfer(request(zeros), compression=grpc.Compression.Gzip, timeout=60)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "decompresses to more than" in refused.value.details()
        wait_until(lambda: daemon.rss_bytes() - before < 48 << 20)


def test_a_request_that_no_queue_ever_takes_is_the_clients_to_change(repository):
    repository.add("double", models.elementwise(),
                   config='parameters { key: "reprise.max_queue_bytes" value { string_value: "1000" } }')
    with Daemon(repository) as daemon, grpc.insecure_channel(daemon.grpc_address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        stub.ModelInfer(request(np.zeros((1, 100), np.float32)), timeout=60)
        with pytest.raises(grpc.RpcError) as refused:
            stub.ModelInfer(request(np.zeros((1, 1000), np.float32)), timeout=60)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert '4000 bytes, the queue of model "double"' in refused.value.details()
        assert "takes at most 1000" in refused.value.details()


def test_unknown_compression_names_what_is_supported(daemon):
    header = h2.call_header("/inference.GRPCInferenceService/ServerLive", (b"grpc-encoding", b"zstd"))
    with h2.Connection(daemon.grpc_port) as client:
        client.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, header) +
                    h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")))
        assert client.first(h2.HEADERS)[1] & h2.END_STREAM


def test_published_client_reports_refusals_by_code(daemon):
    with daemon.client() as client, pytest.raises(InferenceServerException) as refused:
        client.get_model_metadata("nobody")
    assert refused.value.status() == "StatusCode.NOT_FOUND"
