"""Clients that flood, stall or never read: the server keeps a bounded amount for them."""

import struct
import time

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from testing import decoders, h2, models
from testing.daemon import Daemon
from testing.patience import wait_until

LIVE = "/inference.GRPCInferenceService/ServerLive"
INFER = "/inference.GRPCInferenceService/ModelInfer"
METADATA = "/inference.GRPCInferenceService/ModelMetadata"
FEW_STREAMS = 4  # of a client that has no room for answers
# Malloc and the kernel's accounting of pages may move by this much.
SLACK_BYTES = 16 << 20


@pytest.fixture(scope="module")
def daemon(module_repository):
    module_repository.add("mean", models.elementwise())
    with Daemon(module_repository, "--write-timeout-secs", "2") as running:
        assert running.client().is_server_live()
        yield running


@pytest.fixture
def growth(daemon):
    before = daemon.rss_bytes()
    return lambda: daemon.rss_bytes() - before


def test_a_header_that_never_ends_is_cut_off(daemon, growth):
    sent = 0
    while sent < 64 << 20:
        with h2.Connection(daemon.grpc_port) as client:
            client.send(h2.frame(h2.HEADERS, 0, 1, h2.call_header(LIVE)))
            part = h2.frame(h2.CONTINUATION, 0, 1, h2.literal(b"x-a", b"y" * 100) * 150)
            for _ in range(100):
                sent += len(part)
                if not client.send(part):
                    break
            else:
                goaway = client.first(h2.GOAWAY)
                assert goaway is not None
    assert growth() < SLACK_BYTES
    assert daemon.client().is_server_live()


def test_an_empty_continuation_counts_as_well(daemon, growth):
    with h2.Connection(daemon.grpc_port) as client:
        client.send(h2.frame(h2.HEADERS, 0, 1, h2.call_header(LIVE)))
        for _ in range(10000):
            if not client.send(h2.frame(h2.CONTINUATION, 0, 1) * 100):
                break
        else:
            assert not list(client.frames()), "nobody cut the client off"
    assert growth() < SLACK_BYTES


def test_header_above_the_limit_is_refused_and_the_connection_goes_on(daemon):
    with h2.Connection(daemon.grpc_port) as client:
        large = [(f"x-{i}".encode(), b"y" * 120) for i in range(150)]
        header = h2.call_header(LIVE, *large)
        client.send(h2.frame(h2.HEADERS, h2.END_STREAM, 1, header[:16000]) +
                    h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, header[16000:]))
        _, _, stream, answer = client.first(h2.HEADERS)
        assert stream == 1 and b"8" in answer  # RESOURCE_EXHAUSTED
        client.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 3, h2.call_header(LIVE)) +
                    h2.frame(h2.DATA, h2.END_STREAM, 3, h2.message(b"")))
        assert client.first(h2.DATA)[3] == h2.message(b"\x08\x01")


@pytest.mark.parametrize("path", [LIVE, "/no/method"])
def test_streams_that_are_reset_at_once_are_cut_off(daemon, growth, path):
    header = h2.call_header(path)
    with h2.Connection(daemon.grpc_port) as client:
        stream = 1
        while stream < 200_000:
            turn = b""
            for _ in range(500):
                turn += h2.frame(h2.HEADERS, h2.END_HEADERS, stream, header)
                turn += h2.frame(h2.RST_STREAM, 0, stream, struct.pack(">I", 8))
                stream += 2
            if not client.send(turn):
                break
        else:
            raise AssertionError("nobody cut the client off")
    assert growth() < SLACK_BYTES
    assert daemon.client().is_server_live()


@pytest.mark.parametrize("fault", [
    lambda stream: h2.frame(h2.WINDOW_UPDATE, 0, stream, struct.pack(">I", 0)),
    lambda stream: h2.frame(h2.WINDOW_UPDATE, 0, stream, struct.pack(">I", 0x7FFFFFFF)),
    lambda stream: h2.frame(h2.PRIORITY, 0, stream, b"\0"),
    lambda stream: (h2.frame(h2.DATA, h2.END_STREAM, stream, h2.message(b"")) +
                    h2.frame(h2.DATA, 0, stream, b"x")),
], ids=["window_of_nothing", "window_beyond_the_largest", "short_priority", "data_after_the_end"])
def test_streams_that_the_server_must_reset_are_cut_off(daemon, growth, fault):
    header = h2.call_header(LIVE)
    with h2.Connection(daemon.grpc_port) as client:
        stream = 1
        while stream < 400_000:
            turn = b""
            for _ in range(200):
                turn += h2.frame(h2.HEADERS, h2.END_HEADERS, stream, header) + fault(stream)
                stream += 2
            if not client.send(turn):
                break
        else:
            raise AssertionError("nobody cut the client off")
    assert growth() < SLACK_BYTES
    assert daemon.client().is_server_live()


@pytest.mark.parametrize("flood", [
    h2.frame(h2.PING, 0, 0, b"12345678"), h2.settings(),
    h2.frame(h2.PRIORITY, 0, 1, struct.pack(">IB", 3, 1)),
    h2.frame(h2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
    h2.frame(0x42, 0, 0, b"x" * 100), h2.frame(0xFF, 0xFF, 0), h2.frame(0xA, 0, 0, b"\0\0" + b"a" * 50),
], ids=["ping", "settings", "priority", "window_update", "unknown", "last_type", "altsvc"])
def test_frames_without_a_message_are_cut_off(daemon, growth, flood):
    with h2.Connection(daemon.grpc_port) as client:
        client.socket.settimeout(10)
        for _ in range(2000):
            if not client.send(flood * 200):
                break
        else:
            raise AssertionError("nobody cut the client off")
    assert growth() < SLACK_BYTES


def test_client_that_answers_each_piece_of_long_streams_is_no_flood(module_repository):
    """As clients of gRPC do, with a window for the stream, one for the connection, and one ping at a time."""
    module_repository.add("decoder", decoders.make("gqa", context=4096))
    ask = service_pb2.ModelInferRequest(model_name="decoder")
    ids = ask.inputs.add(name="input_ids", datatype="INT64", shape=[1, 1])
    ids.contents.int64_contents.append(1)
    ask.parameters["max_tokens"].int64_param = 4000
    ask.parameters["ignore_eos"].bool_param = True
    call = "/inference.GRPCInferenceService/ModelStreamInfer"
    pieces, stream, pinged = 0, 1, False
    with Daemon(module_repository) as daemon, h2.Connection(daemon.grpc_port) as client:
        client.send(h2.whole_call(call, stream, ask.SerializeToString()))
        for kind, flags, of, payload in client.frames():
            assert kind != h2.GOAWAY, payload
            if kind == h2.DATA and payload:
                pieces += 1
                room = struct.pack(">I", len(payload))
                ping = b"" if pinged else h2.frame(h2.PING, 0, 0, b"12345678")
                pinged = True
                client.send(h2.frame(h2.WINDOW_UPDATE, 0, of, room) +
                            h2.frame(h2.WINDOW_UPDATE, 0, 0, room) + ping)
            elif kind == h2.PING and flags & 1:  # ACK
                pinged = False
            elif kind == h2.HEADERS and flags & h2.END_STREAM:
                if pieces > 8000:
                    return
                stream += 2
                client.send(h2.whole_call(call, stream, ask.SerializeToString()))
    raise AssertionError(f"the connection was closed after {pieces} pieces")


def test_client_that_does_not_read_is_cut_off_and_its_memory_goes_back(daemon, growth):
    calls = 2 * FEW_STREAMS + 1
    with h2.Connection(daemon.grpc_port,
                       h2.PREFACE + h2.settings(initial_window_size=0)) as client:
        began = time.monotonic()
        for stream in range(1, 2 * calls, 2):
            client.send(h2.whole_call(METADATA, stream, b"\x0a\x04mean"))
        cut = []  # time and stream
        for kind, _, stream, payload in client.frames():
            if kind == h2.RST_STREAM:
                assert struct.unpack(">I", payload) == (h2.CANCEL,)
                cut.append((time.monotonic() - began, stream))
            if len(cut) == calls:
                break
    # Each call has its time, once it has begun; those after the first ones had to wait.
    assert sorted(stream for _, stream in cut) == list(range(1, 2 * calls, 2))
    assert cut[0][0] < 10 and cut[-1][0] - cut[0][0] > 2
    assert growth() < SLACK_BYTES


@pytest.mark.parametrize("settings_acked", [False, True])
def test_clients_that_do_not_read_hold_little_memory(daemon, growth, settings_acked):
    clients = [h2.Connection(daemon.grpc_port, h2.PREFACE + h2.settings(initial_window_size=0))
               for _ in range(200)]
    try:
        for client in clients:
            if settings_acked:
                client.send(h2.frame(h2.SETTINGS, h2.ACK, 0))
            for stream in range(1, 401, 2):
                client.send(h2.whole_call(METADATA, stream, b"\x0a\x04mean"))
        assert daemon.client().is_server_live()
        assert growth() < len(clients) * (64 << 10)
    finally:
        for client in clients:
            client.__exit__()


def answered(client, calls):
    """Reads until `calls` streams have ended with a status, and none otherwise."""
    done = set()
    for kind, flags, stream, _ in client.frames():
        assert kind not in (h2.RST_STREAM, h2.GOAWAY), f"stream {stream}: {kind}"
        if kind == h2.HEADERS and flags & h2.END_STREAM:
            done.add(stream)
        if len(done) == calls:
            return sorted(done)
    return sorted(done)


@pytest.mark.parametrize("path, body, calls", [(LIVE, b"", 100), (LIVE, b"", 1000),
                                               (METADATA, b"\x0a\x04mean", 100)])
def test_calls_that_are_sent_before_anything_is_read_are_all_answered(daemon, path, body, calls):
    streams = range(1, 2 * calls, 2)
    with h2.Connection(daemon.grpc_port) as client:
        client.send(b"".join(h2.whole_call(path, stream, body) for stream in streams) +
                    h2.frame(h2.SETTINGS, h2.ACK, 0) +
                    h2.frame(h2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 20)))
        assert answered(client, calls) == list(streams)


@pytest.mark.parametrize("calls", [64, 300])
def test_calls_of_a_new_channel_are_all_answered_without_retries(daemon, calls):
    options = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
    request = service_pb2.ModelMetadataRequest(name="mean")
    with grpc.insecure_channel(daemon.grpc_address, options) as channel:
        ask = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelMetadata
        begun = [ask.future(request, timeout=60) for _ in range(calls)]
        assert {call.result().name for call in begun} == {"mean"}


def test_calls_wait_for_a_client_that_makes_room_for_answers_later(daemon):
    calls = 20 * FEW_STREAMS
    streams = range(1, 2 * calls, 2)
    with h2.Connection(daemon.grpc_port,
                       h2.PREFACE + h2.settings(initial_window_size=0)) as client:
        for stream in streams:
            client.send(h2.whole_call(LIVE, stream, b""))
        assert daemon.client().is_server_live()
        client.send(h2.settings(initial_window_size=1 << 16))
        assert answered(client, calls) == list(streams)


@pytest.mark.parametrize("window", [0, 1 << 16])
def test_messages_come_to_calls_that_began_before_others(daemon, window):
    """All headers first, then all messages: more than may be open, and than is read at a time."""
    calls = 500
    streams = range(1, 2 * calls, 2)
    with h2.Connection(daemon.grpc_port,
                       h2.PREFACE + h2.settings(initial_window_size=window)) as client:
        header = h2.call_header(LIVE)
        client.send(b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS, s, header) for s in streams))
        client.send(b"".join(h2.frame(h2.DATA, h2.END_STREAM, s, h2.message(b"")) for s in streams))
        client.send(h2.settings(initial_window_size=1 << 16))
        assert answered(client, calls) == list(streams)


def grpc_body(size):
    """Makes a call whose message is not whole yet."""
    body = h2.message(b"x" * size, length=2 * size)
    return h2.PREFACE + h2.settings() + h2.frame(h2.SETTINGS, h2.ACK, 0) + h2.frame(
        h2.HEADERS, h2.END_HEADERS, 1, h2.call_header(INFER)) + b"".join(
            h2.frame(h2.DATA, 0, 1, body[at:at + 16000]) for at in range(0, len(body), 16000))


def http_body(size):
    return (b"POST /v2/models/mean/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" %
            (2 * size) + b"x" * size)


@pytest.mark.parametrize("port, body", [("grpc_port", grpc_body), ("http_port", http_body)],
                         ids=["grpc", "http"])
@pytest.mark.parametrize("crowd, size", [(60, 900_000), (250, 200_000)], ids=["large", "many"])
def test_memory_of_clients_that_are_gone_goes_back_to_the_system(module_repository, daemon, port,
                                                                 body, crowd, size):
    assert daemon.client().is_server_live()  # its models are there
    with Daemon(module_repository) as patient:
        before = patient.rss_bytes()
        clients = [h2.Connection(getattr(patient, port), body(size)) for _ in range(crowd)]
        wait_until(lambda: patient.rss_bytes() - before > 2 * SLACK_BYTES)
        for client in clients:
            client.__exit__()
        wait_until(lambda: patient.rss_bytes() - before < SLACK_BYTES)


def test_messages_that_are_announced_and_never_come_hold_nobody_up(daemon, growth):
    clients = []
    header = h2.call_header(INFER)
    for _ in range(300):
        client = h2.Connection(daemon.grpc_port)
        client.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, header) +
                    h2.frame(h2.DATA, 0, 1, h2.message(b"abc", length=100 << 20)))
        clients.append(client)
    try:
        assert daemon.client().is_server_live()
        assert daemon.http_status("/v2/health/live") == 200
        wait_until(lambda: growth() < len(clients) * (64 << 10))
    finally:
        for client in clients:
            client.__exit__()


def test_message_longer_than_the_limit_is_refused_before_it_comes(module_repository):
    with Daemon(module_repository, "--connection-memory-mb", "8") as daemon:
        with h2.Connection(daemon.grpc_port) as client:
            client.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.call_header(INFER)) +
                        h2.frame(h2.DATA, 0, 1, h2.message(b"abc", length=5 << 20)))
            answer = client.first(h2.HEADERS)[3]
            assert b"grpc-message" in answer or b"8" in answer


def test_what_is_in_flight_is_refused_at_its_limit(module_repository):
    with Daemon(module_repository, "--connection-memory-mb", "4",
                "--in-flight-memory-mb", "8") as daemon:
        with h2.Connection(daemon.grpc_port) as client:
            refused = None
            for stream in range(1, 20, 2):  # each begins a message of 1.5 MB and stops before its end
                client.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, h2.call_header(INFER)))
                body = h2.message(b"x" * 1_400_000, length=1_500_000)
                for at in range(0, len(body), 16000):
                    client.send(h2.frame(h2.DATA, 0, stream, body[at:at + 16000]))
            refused = client.first(h2.HEADERS)
            assert refused is not None and refused[1] & h2.END_STREAM
        assert daemon.client().is_server_live()


def test_probes_are_answered_while_clients_hold_every_connection(module_repository):
    with Daemon(module_repository, "--grpc-max-connections", "4", "--http-max-connections",
                "4") as daemon:
        held = [h2.Connection(daemon.grpc_port) for _ in range(4)]
        held += [h2.Connection(daemon.http_port, b"GET /v2 HTTP/1.1\r\n") for _ in range(4)]
        try:
            with h2.Connection(daemon.grpc_port) as probe:
                probe.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1,
                                    h2.call_header("/grpc.health.v1.Health/Check")) +
                           h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")))
                assert probe.first(h2.DATA)[3] == h2.message(b"\x08\x01")
            with h2.Connection(daemon.grpc_port) as other:
                metadata = LIVE.replace("ServerLive", "ServerMetadata")
                other.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.call_header(metadata)) +
                           h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")))
                assert other.first(h2.HEADERS)[1] & h2.END_STREAM
            assert daemon.http_status("/v2/health/ready") == 200
            assert daemon.http_status("/metrics") == 200
            assert daemon.http_status("/v2") == 503
        finally:
            for client in held:
                client.__exit__()
