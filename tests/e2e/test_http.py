"""HTTP/1.1 as people and proxies expect it."""

import contextlib
import gzip
import socket

import grpc
import pytest
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc

from testing import h2, models
from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.patience import wait_until

MODELS = {"double": models.elementwise}


def raw(daemon, request):
    """Returns the status of the server's answer to these bytes."""
    with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=30) as client:
        client.sendall(request)
        answer = b""
        while b"\r\n" not in answer and (more := client.recv(4096)):
            answer += more
    return int(answer.split()[1])


def infer(daemon, length, **headers):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, length],
                        "data": [1.0] * length}]}
    return requests.post(f"{daemon.http_url}/v2/models/double/infer", json=body, headers=headers,
                         timeout=60)


@pytest.mark.parametrize("port", ["http", "metrics"])
def test_metrics_are_compressed_for_who_takes_it(daemon, port):
    url = daemon.metrics_url if port == "metrics" else daemon.http_url + "/metrics"
    small = requests.get(url, headers={"Accept-Encoding": "gzip"}, stream=True, timeout=60)
    packed = small.raw.read()
    assert small.headers["Content-Encoding"] == "gzip" and len(packed) == int(
        small.headers["Content-Length"])
    text = gzip.decompress(packed).decode()
    assert "reprise_build_info" in text and len(packed) < len(text) / 2
    plain = requests.get(url, headers={"Accept-Encoding": "identity"}, timeout=60)
    assert "Content-Encoding" not in plain.headers and "reprise_build_info" in plain.text


def test_answers_are_compressed_where_that_pays(daemon):
    large, small = (infer(daemon, n, **{"Accept-Encoding": "gzip"}) for n in (5000, 1))
    assert large.headers["Content-Encoding"] == "gzip"
    assert large.json()["outputs"][0]["data"] == [3.0] * 5000
    assert "Content-Encoding" not in small.headers and small.json()["outputs"][0]["data"] == [3.0]
    assert "Content-Encoding" not in infer(daemon, 5000, **{"Accept-Encoding": "gzip;q=0"}).headers


@pytest.mark.parametrize("request_bytes, status", [
    (b"GET /v2 HTTP/1.1\r\n\r\n", 400),
    (b"GET /v2 HTTP/1.0\r\n\r\n", 200),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n", 400),
    (b"GET /v2 HTTP/1.1\nHost: a\n\n", 400),
    (b"POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999\r\n\r\n",
     413),
    (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 70000 + b"\r\n\r\n", 431),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
])
def test_what_is_no_request_is_refused(daemon, request_bytes, status):
    assert raw(daemon, request_bytes) == status


def test_bodies_and_answers_that_no_connection_may_hold_are_refused_for_good(repository):
    """413 and 400: a client that gets 429 sends its request again, which would never be of use."""
    repository.add("double", models.elementwise())
    with Daemon(repository, "--in-flight-memory-mb", "1") as daemon:
        refused = infer(daemon, 400_000)
        assert refused.status_code == 413 and str((1 << 20) // 2) in refused.text
        assert infer(daemon, 10).status_code == 200


def held_bytes(daemon):
    return Scrape(daemon.metrics_url).total("reprise_memory_bytes", kind="in_flight")


def test_clients_that_do_not_read_are_cut_off_and_their_memory_goes_back(repository):
    repository.add("double", models.elementwise())
    size = 2_000_000  # an answer that no buffer of the system takes
    body = ('{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, %d], "data": [%s]}]}'
            % (size, ",".join(["1"] * size))).encode()
    request = (b"POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
               % len(body) + body)
    with Daemon(repository, "--write-timeout-secs", "1") as daemon, contextlib.ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", daemon.http_port))
            client.sendall(request)
        wait_until(lambda: Scrape(daemon.metrics_url).total(
            "reprise_requests_total", model="double", code="OK") == 4)
        assert held_bytes(daemon) > 4 << 20
        wait_until(lambda: held_bytes(daemon) == 0)


def test_idle_connections_keep_nothing_of_their_last_answer(daemon):
    length, clients = 200_000, 60  # an answer has two bytes of text for each number
    headers = {"Accept-Encoding": "identity"}
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, length],
                        "data": [1.0] * length}]}
    with contextlib.ExitStack() as stack:
        def ask():
            session = stack.enter_context(requests.Session())
            reply = session.post(f"{daemon.http_url}/v2/models/double/infer", json=body,
                                 headers=headers, timeout=60)
            assert reply.status_code == 200 and len(reply.content) > 2 * length

        for _ in range(8):
            ask()
        before = daemon.rss_bytes()
        for _ in range(clients):
            ask()
        # Answers that were kept would be two bytes and more for each number.
        wait_until(lambda: daemon.rss_bytes() - before < 1.5 * clients * length)


def test_chunks_that_are_none_end_their_request_alone(daemon):
    begin = b"POST /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(begin)
        with contextlib.suppress(ConnectionError):  # it may be refused before its end
            for byte in b"0\r\n\n0\r\n\r\n":
                client.sendall(bytes([byte]))
        assert client.recv(4096).startswith(b"HTTP/1.1 400")
    assert daemon.http_status("/v2/health/live") == 200


def test_few_descriptors_leave_places_for_probes(repository):
    """Clients that hold all the connections that a port takes, on both ports."""
    repository.add("double", models.elementwise())
    with Daemon(repository, descriptors=128) as daemon:
        held = []
        try:
            for port in (daemon.http_port, daemon.grpc_port, daemon.metrics_port):
                for _ in range(60):
                    held.append(socket.create_connection(("127.0.0.1", port), timeout=30))
            wait_until(lambda: daemon.http_status("/v2/health/live") == 200)
            with grpc.insecure_channel(daemon.grpc_address) as channel:
                health = health_pb2_grpc.HealthStub(channel)
                for _ in range(5):
                    assert daemon.http_status("/v2/health/ready") == 200
                    assert daemon.http_status("/metrics") == 200
                    reply = health.Check(health_pb2.HealthCheckRequest(), timeout=60,
                                         wait_for_ready=True)
                    assert reply.status == health_pb2.HealthCheckResponse.SERVING
            # A client of the protocol asks for it by its own method.
            assert daemon.client().is_server_live()
        finally:
            for client in held:
                client.close()
        wait_until(lambda: infer(daemon, 3).status_code == 200)


def test_spare_connections_are_for_one_question(repository):
    repository.add("double", models.elementwise())
    with Daemon(repository, "--http-max-connections", "1") as daemon:
        with h2.Connection(daemon.http_port, b"GET /v2 HTTP/1.1\r\n"):
            with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=30) as idle:
                assert idle.recv(1) == b"", "it has little time"
