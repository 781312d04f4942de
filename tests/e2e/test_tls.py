"""TLS and mutual TLS on both faces, by unmodified clients."""

import queue
import shutil
import socket
import ssl
import urllib.request

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
from tritonclient.utils import InferenceServerException

from testing import h2, models
from testing.certificates import RSA, Authority
from testing.daemon import Daemon, reprise, run_reprised
from testing.inference import tensors
from testing.patience import wait_until

INPUTS = {"x": np.ones((1, 3), np.float32)}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(authority):
    return authority.sign("server")


def flags(face, server, root=None):
    certificate, key = server
    of = [f"--{face}-use-ssl", f"--{face}-server-cert", certificate, f"--{face}-server-key", key]
    return of + ([f"--{face}-use-ssl-mutual", f"--{face}-root-cert", root] if root else [])


def start(repository, authority, *of, client=None):
    daemon = Daemon(repository, *map(str, of))
    daemon.context = ssl.create_default_context(cafile=str(authority.certificate))
    if "--http-use-ssl" in of:
        daemon.http_url = f"https://localhost:{daemon.http_port}"
    if client:
        daemon.context.load_cert_chain(*map(str, client))
    return daemon


@pytest.fixture(scope="module")
def daemon(module_repository, authority, server):
    module_repository.add("double", models.elementwise())
    with start(module_repository, authority, *flags("grpc", server),
               *flags("http", server)) as running:
        yield running


def grpc_client(daemon, authority, client=None, kind=tritonclient.grpc):
    certificate, key = client or (None, None)
    return kind.InferenceServerClient(
        f"localhost:{daemon.grpc_port}", ssl=True, root_certificates=str(authority.certificate),
        certificate_chain=certificate and str(certificate), private_key=key and str(key))


def check(client, inputs=INPUTS):
    result = client.infer("double", tensors(inputs))
    assert result.get_response().model_name == "double"


def test_the_published_client_infers_over_grpc(daemon, authority):
    with grpc_client(daemon, authority) as client:
        assert client.is_server_ready()
        check(client)


def test_a_large_request_arrives_whole(daemon, authority):
    with grpc_client(daemon, authority) as client:
        x = np.arange(3_000_000, dtype=np.float32).reshape(1_000_000, 3)
        result = client.infer("double", tensors({"x": x}))
        name = result.get_response().outputs[0].name
        assert result.as_numpy(name).shape == x.shape


def test_the_published_client_streams(daemon, authority):
    answers = queue.Queue()
    with grpc_client(daemon, authority) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for i in range(20):
            client.async_stream_infer("double", tensors(INPUTS), request_id=str(i))
        got = [answers.get(timeout=60) for _ in range(20)]
        client.stop_stream()
    assert [result.get_response().id for result, _ in got] == [str(i) for i in range(20)]


def test_the_published_client_infers_over_http(daemon, authority):
    with tritonclient.http.InferenceServerClient(
            f"localhost:{daemon.http_port}", ssl=True,
            ssl_context_factory=lambda: daemon.context) as client:
        assert client.is_server_ready()
        inputs = [tritonclient.http.InferInput("x", [1, 3], "FP32")]
        inputs[0].set_data_from_numpy(INPUTS["x"])
        assert client.infer("double", inputs).get_response()["model_name"] == "double"


def test_the_metrics_port_speaks_tls(module_repository, authority, server):
    with start(module_repository, authority, *flags("http", server),
               *flags("metrics", server)) as daemon:
        url = daemon.metrics_url.replace("http://127.0.0.1", "https://localhost")
        with urllib.request.urlopen(url, timeout=60, context=daemon.context) as reply:
            assert b"reprise_build_info" in reply.read()
        with pytest.raises(OSError):
            urllib.request.urlopen(daemon.metrics_url, timeout=60)


def test_plain_clients_and_other_protocols_are_refused(daemon, authority):
    with pytest.raises(InferenceServerException):
        daemon.client().is_server_live()
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.set_alpn_protocols(["http/1.1"])
    context.check_hostname = False
    with pytest.raises(ssl.SSLError):
        h2.Connection(daemon.grpc_port, tls=context)


def test_only_forward_secrecy_is_spoken(module_repository, authority):
    """A thief of the certificate's key who recorded a connection reads nothing later."""
    certificate = authority.sign("rsa", algorithm=RSA)

    def offering(ciphers, protocol, version):
        context = ssl.create_default_context(cafile=str(authority.certificate))
        context.maximum_version = version
        context.set_ciphers(ciphers)
        context.set_alpn_protocols([protocol])
        return context

    def cipher(port, context):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as client:
                return client.cipher()[0]

    with start(module_repository, authority, *flags("grpc", certificate),
               *flags("http", certificate)) as daemon:
        for port, protocol in ((daemon.grpc_port, "h2"), (daemon.http_port, "http/1.1")):
            old = ssl.TLSVersion.TLSv1_2
            assert cipher(port, offering("ALL", protocol, old)).startswith("ECDHE-RSA-")
            assert cipher(port, offering("ALL", protocol, ssl.TLSVersion.TLSv1_3)).startswith("TLS_")
            for ciphers in ("AES256-GCM-SHA384", "AES128-SHA", "kRSA", "ECDHE+AES:!AESGCM:!AESCCM"):
                context = offering(ciphers, protocol, old)
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    cipher(port, context)


def test_floods_are_cut_off_behind_tls(daemon, authority):
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.set_alpn_protocols(["h2"])
    context.check_hostname = False
    before = daemon.rss_bytes()
    for _ in range(50):
        with h2.Connection(daemon.grpc_port, tls=context) as client:
            client.send(h2.frame(h2.HEADERS, 0, 1, h2.call_header("/a/b")))
            part = h2.frame(h2.CONTINUATION, 0, 1, h2.literal(b"x-a", b"y" * 100) * 150)
            for _ in range(100):
                if not client.send(part):
                    break
    assert daemon.rss_bytes() - before < 16 << 20


def test_mutual_tls_takes_only_clients_of_its_root(module_repository, authority, server, tmp_path,
                                                   daemon):
    known = authority.sign("client", "gateway")
    stranger = Authority(tmp_path, "stranger").sign("guest")
    root = authority.certificate
    with start(module_repository, authority, *flags("grpc", server, root),
               *flags("http", server, root), client=known) as mutual:
        with grpc_client(mutual, authority, known) as client:
            check(client)
        for other in (None, stranger):
            with grpc_client(mutual, authority, other) as client:
                with pytest.raises(InferenceServerException) as refused:
                    client.is_server_live()
                assert "UNAVAILABLE" in refused.value.status()


def test_certificate_that_is_renewed_is_used_and_a_broken_one_is_not(module_repository, authority,
                                                                     tmp_path, daemon):
    certificate, key = authority.sign("first", "first")
    used = tmp_path / "tls.crt", tmp_path / "tls.key"
    shutil.copy(certificate, used[0]), shutil.copy(key, used[1])
    with start(module_repository, authority, *flags("http", used)) as daemon:

        def subject():
            address = ("localhost", daemon.http_port)
            pem = ssl.get_server_certificate(address, ca_certs=str(authority.certificate))
            return ssl.PEM_cert_to_DER_cert(pem)

        def is_used(path):
            return subject() == ssl.PEM_cert_to_DER_cert(path.read_text())

        assert is_used(certificate)
        renewed = authority.sign("second", "second")
        shutil.copy(renewed[1], used[1]), shutil.copy(renewed[0], used[0])
        wait_until(lambda: is_used(renewed[0]))
        used[0].write_text("no certificate")
        wait_until(lambda: is_used(renewed[0]) and "stays in use" in daemon.log())


def test_file_that_cannot_be_used_ends_the_start_and_is_named(module_repository, tmp_path):
    (tmp_path / "bad.crt").write_text("nothing")
    done = run_reprised("--model-repository", module_repository, "--grpc-port", "0", "--http-port",
                        "0", "--metrics-port", "0",
                        *flags("grpc", (tmp_path / "bad.crt", tmp_path / "bad.key")))
    assert done.returncode == 1 and "bad.crt" in done.stdout + done.stderr


def test_the_command_line_speaks_tls(module_repository, authority, server, tmp_path, daemon):
    known = authority.sign("client", "gateway")
    root = authority.certificate
    with start(module_repository, authority, *flags("grpc", server, root),
               *flags("http", server, root), client=known) as mutual:
        at = ["--server", f"localhost:{mutual.grpc_port}"]
        mine = ["--tls-cert", known[0], "--tls-key", known[1]]
        trust = ["--tls-ca", root]
        assert "is ready" in reprise("health", *at, *trust, *mine)
        named = ["--server", f"127.0.0.1:{mutual.grpc_port}", "--tls-name", "localhost"]
        assert "double" in reprise("stats", *named, *trust, *mine)
        for wrong, why in ((trust, "over TLS"), (["--tls", *mine], "certificate verify failed"),
                           ([], "--tls is for a port with TLS"),
                           (["--tls-ca", tmp_path / "none"], "cannot be read"),
                           ([*trust, *mine[:2]], "--tls-cert and --tls-key need each other")):
            done = reprise("health", *at, *wrong, check=False)
            assert done.returncode == 1 and why in done.stderr, done.stderr
            assert done.stderr.count("\n") == 1
        refused = reprise("embed", "double", "text", "--server", f"https://localhost:{mutual.http_port}",
                          *trust, *mine, check=False)
        # It arrived: the server's own words.
        assert "answers" in refused.stderr and "https://" in refused.stderr, refused.stderr
