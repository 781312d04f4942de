"""One of several daemons goes away under traffic: no request fails, without any retry."""

import signal
import struct
import threading
import time

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from testing import h2, models
from testing.daemon import Daemon

SERVERS = 4
RATE = 60  # requests a second, all clients together


def request():
    message = service_pb2.ModelInferRequest(model_name="m")
    tensor = message.inputs.add(name="x", datatype="FP32", shape=[2, 5])
    del tensor
    message.raw_input_contents.append(np.ones((2, 5), np.float32).tobytes())
    return message


@pytest.fixture
def daemons(repository):
    repository.add("m", models.elementwise())
    running = [Daemon(repository, "--drain-grace-secs", "2") for _ in range(SERVERS)]
    for daemon in running:
        daemon.start()
    try:
        for daemon in running:
            daemon.wait_ready()
        yield running
    finally:
        for daemon in running:
            daemon.kill()


def test_client_that_calls_learns_with_an_answer_that_its_server_leaves(daemons):
    live = "/inference.GRPCInferenceService/ServerLive"
    leaving = daemons[0]
    with h2.Connection(leaving.grpc_port) as client:
        frames, last, stream = client.frames(), None, 1
        client.send(h2.whole_call(live, stream, b""))
        for kind, flags, of, _ in frames:
            if kind == h2.GOAWAY:
                break
            last = (kind, flags & h2.END_STREAM, of)
            if last == (h2.HEADERS, h2.END_STREAM, stream):
                if stream == 1:
                    leaving.process.send_signal(signal.SIGTERM)
                # The next call comes a little later: the news is there before it.
                client.socket.settimeout(0.1)
                try:
                    client.unread += client.socket.recv(1 << 16)
                except TimeoutError:
                    pass
                client.socket.settimeout(30)
                if client.unread[3:4] != bytes([h2.GOAWAY]):
                    stream += 2
                    client.send(h2.whole_call(live, stream, b""))
        else:
            raise AssertionError("the connection ended without any news")
    assert last == (h2.HEADERS, h2.END_STREAM, stream), "the news met a call on its way"


def test_call_on_its_way_when_its_server_leaves_is_answered(daemons):
    """The client reads the news late: its calls count until it says that it has read it."""
    live = "/inference.GRPCInferenceService/ServerLive"
    leaving = daemons[2]
    with h2.Connection(leaving.grpc_port) as client:
        client.send(h2.whole_call(live, 1, b""))
        frames = client.frames()
        assert next(f for f in frames if f[0] == h2.DATA)[3] == h2.message(b"\x08\x01")
        leaving.process.send_signal(signal.SIGTERM)
        news = next(f for f in frames if f[0] == h2.GOAWAY)
        assert struct.unpack(">I", news[3][:4])[0] == 2**31 - 1
        ping = next(f for f in frames if f[0] == h2.PING)
        time.sleep(1)
        client.send(h2.whole_call(live, 3, b"") + h2.frame(h2.PING, h2.ACK, 0, ping[3]))
        rest = list(frames)
        assert h2.message(b"\x08\x01") in [payload for kind, _, of, payload in rest
                                            if kind == h2.DATA and of == 3]
        last = [payload for kind, _, _, payload in rest if kind == h2.GOAWAY]
        assert [struct.unpack(">II", payload[:8]) for payload in last] == [(3, 0)]


def test_grpc_round_robin_loses_no_request(daemons):
    options = [("grpc.lb_policy_name", "round_robin"), ("grpc.enable_retries", 0)]
    target = "ipv4:" + ",".join(d.grpc_address for d in daemons)
    errors, answered, stop = [], [], threading.Event()
    with grpc.insecure_channel(target, options) as channel:
        infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        infer(request(), timeout=60, wait_for_ready=True)

        def client():
            while not stop.is_set():
                begin = time.monotonic()
                try:
                    infer(request(), timeout=60)
                    answered.append(begin)
                except grpc.RpcError as error:
                    errors.append((error.code(), error.details()))
                time.sleep(max(0, 6 / RATE - (time.monotonic() - begin)))  # the rate of arrivals

        clients = [threading.Thread(target=client) for _ in range(6)]
        for one in clients:
            one.start()
        while len(answered) < RATE:
            time.sleep(0.05)
        leaving = daemons[1]
        leaving.process.send_signal(signal.SIGTERM)
        assert leaving.process.wait(60) == 0
        after = len(answered)
        while len(answered) < after + RATE and not errors:
            time.sleep(0.05)
        stop.set()
        for one in clients:
            one.join()
    assert errors == []
