"""Log lines are one event each, whatever clients and files bring along; and requests can be followed."""

import http.client
import json
import os
import re
import signal
import socket
import time

import numpy as np
import pytest
import requests
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon, free_ports, run_reprised
from testing.inference import tensors, text_inputs
from testing.metrics import Scrape

NAMES = ["input_ids", "attention_mask"]
# Another line in either format, a terminal's commands, a line that runs backwards.
EVIL = ('x"\n2026-01-01T00:00:00.000Z error forged\r\n{"level":"error","message":"forged"}'
        '\x1b[2J\u2028\u202e')
TEXT_LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error) ")
INLINE = 'parameters { key: "reprise.capture" value { string_value: "inline" } }'


def lines(daemon):
    return daemon.log().splitlines()


def ask(daemon, request_id, model="bert", length=5):
    inputs = text_inputs(NAMES, 1, length, np.random.default_rng(length), 200)
    return daemon.client().infer(model, tensors(inputs), request_id=request_id)


@pytest.fixture
def served(repository):
    repository.add("bert", models.bert(), config=INLINE)
    repository.add("evil\nmodel", b"nonsense")
    return repository


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_ids_names_and_errors_cannot_forge_lines(served, log_format):
    with Daemon(served, "--log-format", log_format, "--log-level", "debug",
                "--access-log") as daemon:
        assert ask(daemon, EVIL).get_response().id == EVIL  # echoed as it came
        with pytest.raises(InferenceServerException):
            ask(daemon, EVIL, model=EVIL)
        reply = requests.post(f"{daemon.http_url}/v2/models/bert/infer", timeout=60,
                              json={"id": EVIL, "inputs": [{"name": EVIL, "datatype": "INT64",
                                                            "shape": [1], "data": [1]}]})
        assert reply.status_code == 400 and "\n" not in reply.json()["error"]
        explained = daemon.reprise("explain")
        assert "forged" in explained and "\x1b" not in explained and "\u202e" not in explained
        assert "evil\\nmodel" in requests.get(f"{daemon.http_url}/v2/overview", timeout=60).text
        written = lines(daemon)
    assert any("forged" in line for line in written)
    for line in written:
        assert "\x1b" not in line and "\u2028" not in line and "\u202e" not in line
        if log_format == "json":
            assert json.loads(line)["level"] != "error" or "evil" in line, line
        else:
            assert TEXT_LINE.match(line), line
            assert not line.startswith("2026-01-01"), line


def test_access_log_has_a_line_for_each_request(served):
    with Daemon(served, "--log-format", "json", "--access-log") as daemon:
        ask(daemon, "first")
        ask(daemon, "second")
        with pytest.raises(InferenceServerException):
            ask(daemon, "third", model="gone")
        records = [json.loads(line) for line in lines(daemon)]
    by_id = {r["id"]: r for r in records if r["message"] == "request" and "model" in r}
    assert list(by_id) == ["first", "second", "third"]
    first, second, third = by_id.values()
    assert (first["capture"], second["capture"]) == ("captured", "replayed")
    assert second["model"] == "bert" and second["version"] == "1" and second["code"] == "OK"
    assert second["bytes_in"] == 2 * 5 * 8 and second["bytes_out"] == (5 + 1) * 32 * 4
    assert 0 <= second["queue_us"] + second["compute_us"] <= second["total_us"]
    assert third["code"] == "NOT_FOUND" and third["model"] == "gone"
    assert third["error"] == 'there is no model "gone"'


def test_requests_that_reach_no_model_have_their_lines(served, tmp_path):
    """Refused keys, unknown paths, bodies that cannot be read, calls that there are not."""
    keys = tmp_path / "keys"
    keys.write_text("me secret-key-of-sixteen infer\n")
    with Daemon(served, "--log-format", "json", "--access-log", "--api-key-file", str(keys)) as daemon:
        def post(path, body, key="secret-key-of-sixteen"):
            return requests.post(daemon.http_url + path, data=body, timeout=60,
                                 headers={"x-api-key": key}).status_code
        asked = [(post("/v2/models/bert/infer", "{}", key="wrong-key"), "/v2/models/bert/infer", 401),
                 (post("/v2/repository/index", "{}"), "/v2/repository/index", 403),
                 (post("/v2/nothing", "{}"), "/v2/nothing", 404),
                 (post("/v2/models/bert", "{}"), "/v2/models/bert", 405),
                 (post("/v1/embeddings", "{"), "/v1/embeddings", 400)]
        with pytest.raises(InferenceServerException):
            daemon.client().get_model_metadata("bert")
        assert post("/v2/models/bert/infer", "{") == 400
        records = [json.loads(line) for line in lines(daemon)]
    found = [r for r in records if r["message"] == "request"]
    for status, path, expected in asked:
        assert status == expected
        (line,) = [r for r in found if r.get("path") == path]
        assert line["status"] == expected and line["method"] == "POST" and line["error"], line
        assert line.get("key") == (None if expected in (401, 403) else "me"), line
    (rpc,) = [r for r in found if r.get("path", "").endswith("/ModelMetadata")]
    assert rpc["code"] == "UNAUTHENTICATED" and rpc["error"]
    # A body that cannot be read is a failed request of its model, and has one line.
    (bad,) = [r for r in found if r.get("model") == "bert"]
    assert bad["code"] == "INVALID_ARGUMENT" and "path" not in bad
    assert "wrong-key" not in json.dumps(found) and "secret-key" not in json.dumps(found)


def test_captures_and_loads_have_fields_in_json(served):
    with Daemon(served, "--log-format", "json") as daemon:
        ask(daemon, "one")
        records = [json.loads(line) for line in lines(daemon)]
    ready = [r for r in records if r["message"] == "model ready"]
    assert [(r["model"], r["version"]) for r in ready] == [("bert", "1")]
    assert 0 < ready[0]["load_us"] < 60e6
    (failed,) = [r for r in records if r["message"] == "model not loaded"]
    assert failed["model"] == "evil\\nmodel" and failed["code"] and failed["error"]
    captured = [r for r in records if r["message"] == "captured"]
    assert any(r["reason"] == "first_request" and r["bucket"] and r["total_us"] > 0
               and r["model"] == "bert" for r in captured)


def test_a_request_that_fails_has_a_line_at_debug_alone(served):
    for level, expected in (("debug", 1), ("info", 0)):
        with Daemon(served, "--log-level", level) as daemon:
            ask(daemon, "fine")
            with pytest.raises(InferenceServerException):
                ask(daemon, "wrong", model="gone")
            found = [line for line in lines(daemon) if " request id=" in line]
        assert len(found) == expected
        if found:
            assert 'debug request id="wrong"' in found[0] and "code=\"NOT_FOUND\"" in found[0]


@pytest.mark.parametrize("collector", ["pipe", "socket"])
def test_a_collector_that_hangs_holds_up_nothing(repository, collector):
    """A pipe without a reader took 219 lines; then requests and SIGTERM hung."""
    repository.add("m", models.elementwise())
    ends = os.pipe() if collector == "pipe" else [s.detach() for s in socket.socketpair()]
    try:
        with Daemon(repository, "--log-level", "debug", log_to=ends[1]) as daemon:
            connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=60)
            # Lines of some 300 bytes: more than the pipe and the buffer hold.
            dropped = 0
            for i in range(40_000):
                connection.request("POST", f"/v2/models/{'x' * 200}/infer", b"{}")
                assert connection.getresponse().read()
                if i % 1000 == 999:
                    dropped = Scrape(daemon.metrics_url).total("reprise_log_lines_dropped_total")
                    if dropped > 0:
                        break
            assert dropped > 0
            x = np.ones((2, 5), np.float32)
            tensor = tritonclient.grpc.InferInput("x", x.shape, "FP32")
            tensor.set_data_from_numpy(x)
            assert (daemon.client().infer("m", [tensor]).as_numpy("y") == 3).all()
            begin = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(30) == 0
            assert time.monotonic() - begin < 20
    finally:
        for end in ends:
            os.close(end)


def test_long_ids_are_cut_where_they_are_shown_and_echoed_whole(served):
    with Daemon(served, "--access-log") as daemon:
        longest = "ä" * 2048
        assert ask(daemon, longest).get_response().id == longest
        with pytest.raises(InferenceServerException, match="4098 bytes, the most is 4096"):
            ask(daemon, longest + "ab")
        assert f'id="{"ä" * 64}… (4096 bytes)"' in daemon.log()
        assert f'{"ä" * 64}… (4096 bytes)' in daemon.reprise("explain")


def test_a_port_that_is_taken_says_why(served):
    (http,) = free_ports(1)
    with Daemon(served) as daemon:
        for taken in (("--grpc-port", daemon.grpc_port), ("--http-port", daemon.http_port)):
            ports = {"--grpc-port": 0, "--http-port": http, "--metrics-port": 0, taken[0]: taken[1]}
            done = run_reprised("--model-repository", served,
                                *(word for pair in ports.items() for word in pair))
            assert done.returncode == 1
            assert f":{taken[1]}" in done.stderr and "in use" in done.stderr, done.stderr
