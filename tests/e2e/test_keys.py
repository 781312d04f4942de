"""Keys: which may infer, observe, administer and scrape, over both faces, with unmodified clients."""

import http.client

import grpc
import numpy as np
import pytest
import requests
import tritonclient.grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tritonclient.utils import InferenceServerException

from testing import decoders, h2, models
from testing.clients import together
from testing.daemon import Daemon, free_ports, reprise, run_reprised
from testing.hub import Folder
from testing.patience import wait_until

INFER, OPS, SCRAPER = "infer-key-000000000000", "ops-key-00000000000000", "scrape-key-0000000000"
KEYS = (f"team {INFER} infer\n"
        f"ops {OPS} infer,observe,admin\n"
        f"scraper {SCRAPER} metrics\n")
X = np.ones((2, 5), np.float32)
EXPLICIT = ("--model-control-mode", "explicit", "--load-model", "m")


@pytest.fixture
def served(repository):
    repository.add("m", models.elementwise())
    return repository


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(KEYS)
    return path


def replace(path, text):
    """Replaces a file as an operator does: by a rename."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def infer(daemon, headers=None):
    tensor = tritonclient.grpc.InferInput("x", X.shape, "FP32")
    tensor.set_data_from_numpy(X)
    return daemon.client().infer("m", [tensor], headers=headers).as_numpy("y")


def http_infer(daemon, headers=None):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": list(X.shape),
                        "data": X.ravel().tolist()}]}
    return requests.post(f"{daemon.http_url}/v2/models/m/infer", json=body, headers=headers,
                         timeout=60)


def code_of(call, *arguments, **named):
    with pytest.raises(InferenceServerException) as caught:
        call(*arguments, **named)
    return caught.value.status()


def test_each_right_opens_what_it_names_and_nothing_else(served, key_file, monkeypatch):
    with Daemon(served, *EXPLICIT, "--api-key-file", key_file) as daemon:
        client = daemon.client()
        for headers in (bearer(INFER), {"x-api-key": INFER}):
            assert (infer(daemon, headers) == 3).all()
            assert http_infer(daemon, headers).status_code == 200
        # Without a key, or with a wrong one.
        for headers in (None, bearer("infer-key-000000000001"), {"x-api-key": SCRAPER[:-1]}):
            assert code_of(infer, daemon, headers) == "StatusCode.UNAUTHENTICATED"
            reply = http_infer(daemon, headers)
            assert reply.status_code == 401 and "error" in reply.json()
            assert reply.headers["WWW-Authenticate"] == "Bearer"
        # With one that lacks the right.
        assert code_of(infer, daemon, bearer(SCRAPER)) == "StatusCode.PERMISSION_DENIED"
        denied = http_infer(daemon, bearer(SCRAPER))
        assert denied.status_code == 403 and '"scraper"' in denied.json()["error"]
        for call in (client.get_inference_statistics, client.get_model_repository_index):
            assert code_of(call, headers=bearer(INFER)) == "StatusCode.PERMISSION_DENIED"
            call(headers=bearer(OPS))
        assert code_of(client.unload_model, "m", headers=bearer(INFER)) == (
            "StatusCode.PERMISSION_DENIED")
        client.unload_model("m", headers=bearer(OPS))
        client.load_model("m", headers=bearer(OPS))
        url = f"{daemon.http_url}/v2/repository/models/m"
        assert requests.post(f"{url}/unload", timeout=60).status_code == 401
        assert requests.post(f"{url}/load", headers=bearer(OPS), timeout=60).status_code == 200
        for metrics in (daemon.metrics_url, f"{daemon.http_url}/metrics"):
            assert requests.get(metrics, timeout=60).status_code == 401
            text = requests.get(metrics, headers=bearer(SCRAPER), timeout=60).text
            assert 'reprise_refused_calls_total{reason="unauthenticated"}' in text
        # The page shows nothing by itself: its numbers are for keys that observe.
        assert requests.get(f"{daemon.http_url}/v2/overview", timeout=60).status_code == 401
        monkeypatch.setenv("REPRISE_API_KEY", OPS)
        assert "m" in daemon.reprise("stats")
        monkeypatch.setenv("REPRISE_API_KEY", INFER)
        denied = daemon.reprise("stats", check=False)
        assert denied.returncode == 1 and "PERMISSION_DENIED" in denied.stderr
        log = daemon.log()
        assert INFER not in log and OPS not in log and SCRAPER not in log


def spellings(path):
    """Targets that ask for `path` in other words; clients of Python would normalise them."""
    parts = path.strip("/").split("/")
    last = parts[-1]
    encoded = "".join(f"%{ord(c):02x}" for c in last)
    at = "/" + "".join(f"{part}/" for part in parts[:-1])
    return [path, f"{path}?a=b", f"{path}/", f"//{path[1:].replace('/', '//')}",
            f"{at}%{ord(last[0]):02X}{last[1:]}", f"{at}{encoded}", f"http://host{path}",
            f"http://host{at}{encoded}/?x"]


def status_of(port, method, target, key=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = bearer(key) if key else {}
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in {**headers, "content-length": "0"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def test_no_spelling_of_a_path_goes_around_the_rights(served, key_file):
    admin, = free_ports(1)
    guarded = [("POST", "/v2/repository/models/m/unload"), ("POST", "/v2/repository/models/m/load"),
               ("GET", "/v2/logging"), ("POST", "/v2/logging"), ("GET", "/v2/models/m/stats"),
               ("GET", "/v2/models/stats"), ("GET", "/metrics"), ("POST", "/v2/repository/index")]
    with Daemon(served, *EXPLICIT, "--api-key-file", key_file) as daemon:
        for method, path in guarded:
            for target in spellings(path):
                asked = (daemon.http_port, method, target)
                assert status_of(*asked, INFER) == 403, target
                assert status_of(*asked) == 401, target
        for target in spellings("/metrics"):
            assert status_of(daemon.metrics_port, "GET", target, INFER) == 403, target
            assert status_of(daemon.metrics_port, "GET", target, SCRAPER) == 200, target
        for target in spellings("/v2/models/m/stats"):
            assert status_of(daemon.http_port, "GET", target, OPS) == 200, target
        for target in ("/v2/models/m%2fstats", "/v2/models/m/../m/stats", "/v2/models/%00/stats",
                       "/v2/models/%2e%2E/stats", "/v2/models/%ff/stats", "/v2/models/m/stat%7"):
            assert status_of(daemon.http_port, "GET", target, OPS) == 400, target
        # The page is public, its numbers are for keys that observe, texts for keys that infer.
        assert status_of(daemon.http_port, "GET", "/") == 200
        for target in spellings("/v2/overview"):
            assert status_of(daemon.http_port, "GET", target, INFER) == 403, target
            assert status_of(daemon.http_port, "GET", target, OPS) == 200, target
        assert status_of(daemon.http_port, "POST", "/", INFER) == 422  # no model takes texts
        assert status_of(daemon.http_port, "POST", "/", SCRAPER) == 403
        assert daemon.client().is_model_ready("m")
    with Daemon(served, *EXPLICIT, "--admin-port", str(admin)) as daemon:
        for method, path in guarded[:4]:
            for target in spellings(path):
                assert status_of(daemon.http_port, method, target) == 403, target
        assert daemon.client().is_model_ready("m")
        assert status_of(admin, "POST", "/v2/repository/models/m/%75nload") == 200


def test_errors_below_v1_are_openais(served, key_file):
    def error(reply, status, code):
        assert reply.status_code == status, reply.text
        told = reply.json()["error"]
        assert set(told) == {"message", "type", "param", "code"} and told["message"]
        assert told["code"] == code and told["param"] is None
        assert told["type"] == "invalid_request_error"

    with Daemon(served, "--api-key-file", key_file) as daemon:
        url, key = daemon.http_url, bearer(INFER)
        for path in ("/v1/embeddings", "/v1/nothing", "/models/m/v1/embeddings"):
            error(requests.post(url + path, json={}, timeout=60), 401, "invalid_api_key")
        error(requests.post(url + "/v1/embeddings", json={}, headers=bearer(SCRAPER), timeout=60),
              403, "insufficient_permissions")
        error(requests.post(url + "/v1/no/such/path", json={}, headers=key, timeout=60),
              404, "not_found")
        error(requests.get(url + "/v1/embeddings", headers=key, timeout=60),
              405, "method_not_supported")
        error(requests.post(url + "/v1/embeddings", data=b"{}", timeout=60,
                            headers={**key, "content-encoding": "br"}),
              415, "unsupported_media_type")
        huge = {**key, "content-length": str(1 << 60)}
        connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=60)
        connection.request("POST", "/v1/embeddings", headers=huge)
        reply = connection.getresponse()
        assert reply.status == 413
        assert b'"code":"request_too_large"' in reply.read()
        error(requests.post(url + "/v1/rerank", json={}, timeout=60), 401, "invalid_api_key")
        refused = requests.post(url + "/v1/rerank", json={}, headers=key, timeout=60)
        assert refused.status_code == 400 and refused.json()["error"]["message"]
        assert refused.json()["message"] == refused.json()["detail"]
        # Other paths keep the form of their protocol.
        assert isinstance(requests.post(url + "/v2/nothing", timeout=60).json()["error"], str)


def test_blanks_around_a_key_are_no_part_of_it(served, key_file):
    """Load generators send the value of `authorization: Bearer KEY` with the blank before it."""
    path = "/inference.GRPCInferenceService/ServerMetadata"
    with Daemon(served, "--api-key-file", key_file) as daemon:
        for name, value in ((b"authorization", f" Bearer {INFER} "), (b"x-api-key", f" {INFER}")):
            with h2.Connection(daemon.grpc_port) as client:
                client.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1,
                                     h2.call_header(path, (name, value.encode()))) +
                            h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")))
                assert b"reprise" in client.first(h2.DATA)[3]


def test_the_command_line_says_where_its_key_comes_from(served, key_file, monkeypatch):
    monkeypatch.delenv("REPRISE_API_KEY", raising=False)
    with Daemon(served, "--api-key-file", key_file) as daemon:
        for server in (daemon.grpc_address, daemon.http_url):
            # Health needs none, by either port.
            assert "is ready" in reprise("health", "--server", server, "--wait-secs", 60)
            assert "model 'm' is ready" in reprise("health", "m", "--server", server)
            refused = reprise("stats", "--server", server, check=False)
            assert refused.returncode == 1 and "$REPRISE_API_KEY" in refused.stderr
        unknown = reprise("health", "nope", "--server", daemon.http_url, check=False)
        assert unknown.returncode == 1 and 'no model "nope"' in unknown.stderr


def test_probes_need_no_key(served, key_file):
    with Daemon(served, "--api-key-file", key_file) as daemon:
        client = daemon.client()
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("m")
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/m/ready"):
            assert daemon.http_status(path) == 200
        with grpc.insecure_channel(daemon.grpc_address) as channel:
            reply = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=10)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_the_file_is_read_again_and_a_mistake_keeps_what_was(served, key_file):
    with Daemon(served, "--api-key-file", key_file) as daemon:
        assert http_infer(daemon, bearer(INFER)).status_code == 200
        replace(key_file, KEYS.replace(INFER, "another-key-0000000000"))
        wait_until(lambda: http_infer(daemon, bearer(INFER)).status_code == 401)
        assert http_infer(daemon, bearer("another-key-0000000000")).status_code == 200
        replace(key_file, "team short infer\n")
        # The former keys go on; the log says so once.
        wait_until(lambda: http_infer(daemon, bearer(OPS)).status_code == 200
                   and "the keys are as they were" in daemon.log())
        assert "line 1" in daemon.log()


def test_limits_are_by_key(served, key_file):
    replace(key_file, f"team {INFER} infer rate=0.001 burst=3\nops {OPS} infer concurrent=64\n")
    with Daemon(served, "--api-key-file", key_file) as daemon:
        codes = [http_infer(daemon, bearer(INFER)).status_code for _ in range(5)]
        assert codes == [200, 200, 200, 429, 429]
        assert code_of(infer, daemon, bearer(INFER)) == "StatusCode.RESOURCE_EXHAUSTED"
        # Others are not concerned, and an answered request is not under way any more.
        assert set(together(lambda _: http_infer(daemon, bearer(OPS)).status_code,
                            range(100), 8)) == {200}


@pytest.fixture
def makers(tmp_path):
    """Starts a model that makes tokens and one that embeds texts."""
    root = tmp_path / "makers"
    (root / "decoder" / "1").mkdir(parents=True)
    (root / "decoder" / "1" / "model.onnx").write_bytes(decoders.make("gqa").SerializeToString())
    (root / "decoder" / "config.pbtxt").write_text(
        'parameters { key: "reprise.context" value { string_value: "64" } }')
    Folder(root / "sentences").sentence_transformer()
    return root


def test_limits_count_tokens_and_texts_as_one_request_each(makers, key_file):
    replace(key_file, f"team {INFER} infer concurrent=1\nops {OPS} infer rate=0.001 burst=4\n")
    tokens = {"input_ids": [1, 2, 3], "parameters": {"max_tokens": 4, "temperature": 0}}
    asked = [("/v1/embeddings", {"model": "sentences", "input": ["a", "b", "c"]}),
             ("/v2/models/decoder/generate", tokens),
             ("/v2/models/decoder/generate_stream", tokens),
             ("/models/sentences/tokenize", {"inputs": ["a"]})]

    def ask(daemon, key, path, body):
        return requests.post(daemon.http_url + path, json=body, headers=bearer(key), timeout=60)

    with Daemon(makers, "--api-key-file", key_file) as daemon:
        # The answered request is not under way any more.
        for path, body in asked * 2:
            wait_until(lambda: ask(daemon, INFER, path, body).status_code == 200)
        for path, body in asked:
            assert ask(daemon, OPS, path, body).status_code == 200
        for path, body in asked:
            refused = ask(daemon, OPS, path, body)
            assert refused.status_code == 429 and '\\"ops\\"' in refused.text, refused.text


def test_key_file_that_cannot_be_used_ends_the_start(served, tmp_path):
    ports = ("--grpc-port", "0", "--http-port", "0", "--metrics-port", "0")
    broken = tmp_path / "broken"
    broken.write_text("team secret-key-0000000000 everything\n")
    for path, why in ((tmp_path / "none", "No such file"), (broken, "line 1")):
        done = run_reprised("--model-repository", served, *ports, "--api-key-file", path)
        assert done.returncode == 1 and why in done.stderr, done.stderr
        assert "secret" not in done.stderr


def test_admin_calls_have_a_port_of_their_own(served):
    admin, admin_grpc = free_ports(2)
    with Daemon(served, *EXPLICIT, "--admin-port", str(admin), "--admin-grpc-port",
                str(admin_grpc)) as daemon:
        client = daemon.client()
        assert code_of(client.unload_model, "m") == "StatusCode.PERMISSION_DENIED"
        path = "/v2/repository/models/m/unload"
        denied = requests.post(daemon.http_url + path, timeout=60)
        assert denied.status_code == 403 and "--admin-port" in denied.json()["error"]
        tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{admin_grpc}").unload_model("m")
        assert not client.is_model_ready("m")
        url = f"http://127.0.0.1:{admin}/v2/repository/models/m"
        assert requests.post(f"{url}/load", timeout=60).status_code == 200
        assert (infer(daemon) == 3).all()


def test_browsers_of_other_pages_are_answered_where_that_is_allowed(served, key_file):
    origin = {"Origin": "https://pages.example"}
    with Daemon(served) as daemon:
        assert "Access-Control-Allow-Origin" not in http_infer(daemon, origin).headers
    with Daemon(served, "--cors-allow-origin", "https://pages.example", "--api-key-file",
                key_file) as daemon:
        preflight = requests.options(
            f"{daemon.http_url}/v2/models/m/infer", timeout=60,
            headers={**origin, "Access-Control-Request-Method": "POST",
                     "Access-Control-Request-Headers": "authorization, content-type"})
        assert preflight.status_code == 204
        assert preflight.headers["Access-Control-Allow-Headers"] == "authorization, content-type"
        for headers, status in (({**origin, **bearer(INFER)}, 200), (origin, 401)):
            reply = http_infer(daemon, headers)
            assert reply.status_code == status
            assert reply.headers["Access-Control-Allow-Origin"] == "https://pages.example"
        other = http_infer(daemon, {"Origin": "https://evil.example", **bearer(INFER)})
        assert "Access-Control-Allow-Origin" not in other.headers


def test_events_of_a_stream_are_for_pages_too(makers):
    page = "https://pages.example"
    with Daemon(makers, "--cors-allow-origin", page) as daemon:
        reply = requests.post(f"{daemon.http_url}/v2/models/decoder/generate_stream",
                              json={"input_ids": [1, 2], "parameters": {"max_tokens": 2}},
                              headers={"Origin": page}, timeout=60)
        assert reply.status_code == 200 and reply.text.startswith("data: ")
        assert reply.headers["Access-Control-Allow-Origin"] == page
        # A cache tells answers apart by both.
        reply = requests.get(f"{daemon.http_url}/metrics", timeout=60,
                             headers={"Origin": page, "Accept-Encoding": "gzip"})
        assert reply.headers["Vary"] == "Origin, Accept-Encoding"
