"""Requests as traces: spans at a collector, headers in and out, settings, exemplars."""

import re

import numpy as np
import pytest
import requests
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from testing import decoders, models
from testing.daemon import Daemon, run_reprised
from testing.hub import Folder
from testing.inference import tensors, text_inputs
from testing.metrics import Scrape
from testing.tracing.otlp import Collector
from testing.patience import wait_until

NAMES = ["input_ids", "attention_mask"]
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
INLINE = 'parameters { key: "reprise.capture" value { string_value: "inline" } }'


def parent(trace=TRACE, sampled=True):
    return {"traceparent": f"00-{trace}-{CALLER}-{'01' if sampled else '00'}", "tracestate": "vendor=7"}


def body(rows, length):
    shape = [rows, length]
    return {"inputs": [{"name": name, "datatype": "INT64", "shape": shape, "data": [1] * rows * length}
                       for name in NAMES]}


def infer(daemon, headers, rows=2, length=7, model="bert"):
    return requests.post(f"{daemon.http_url}/v2/models/{model}/infer", json=body(rows, length),
                         headers=headers, timeout=60)


def whole(collector, trace_id, root):
    """Returns the spans of a trace by name, once the request's own has come."""
    wait_until(lambda: any(span.name == root for span in collector.trace(trace_id)),
               explain=lambda: f"{root} is not among {collector.spans}")
    spans = {}
    for span in collector.trace(trace_id):
        spans.setdefault(span.name, []).append(span)
    return spans


@pytest.fixture
def collector():
    with Collector() as one:
        yield one


@pytest.fixture
def served(repository, tmp_path):
    repository.add("bert", models.bert(), config=INLINE)
    Folder(repository.root / "texts").sentence_transformer()
    return repository


def test_a_request_over_http_is_a_tree_of_spans(served, collector):
    with Daemon(served, "--trace-endpoint", collector.url) as daemon:
        reply = infer(daemon, parent())
        assert reply.status_code == 200, reply.text
        spans = whole(collector, TRACE, "POST /v2/models/{model}/infer")
        again = infer(daemon, parent(trace="1" * 32))
        warm = whole(collector, "1" * 32, "POST /v2/models/{model}/infer")
    assert again.status_code == 200
    (root,) = spans["POST /v2/models/{model}/infer"]
    assert root.parent == CALLER and root.kind == 2 and root.state == "vendor=7" and not root.error
    assert reply.headers["traceparent"] == f"00-{TRACE}-{root.id}-01"
    assert reply.headers["tracestate"] == "vendor=7"
    assert root.attributes["http.response.status_code"] == 200
    assert root.attributes["reprise.model"] == "bert" and root.attributes["reprise.rows"] == 2
    assert root.resource["service.name"] == "reprise" and root.resource["service.version"]
    (queue,), (batch,), (capture,) = spans["queue"], spans["batch"], spans["capture"]
    (replay,), (gather,), (scatter,) = spans["replay"], spans["gather"], spans["scatter"]
    assert queue.parent == batch.parent == root.id
    assert {capture.parent, replay.parent, gather.parent, scatter.parent} == {batch.id}
    assert batch.attributes["reprise.capture"] == "captured"
    assert root.start <= queue.start <= queue.end == batch.start <= batch.end <= root.end
    for before, after in [(capture, gather), (gather, replay), (replay, scatter)]:
        assert batch.start <= before.start <= before.end <= after.start <= after.end <= batch.end + 1
    assert "capture" not in warm and warm["batch"][0].attributes["reprise.capture"] == "replayed"
    assert collector.requests[0][0] == "/v1/traces"
    assert collector.requests[0][1]["Content-Type"] == "application/x-protobuf"


def test_a_call_over_grpc_is_traced_and_answers_with_its_span(served, collector):
    with Daemon(served, "--trace-endpoint", collector.url) as daemon:
        inputs = tensors(text_inputs(NAMES, 1, 5, np.random.default_rng(1), 200))
        client = daemon.client()
        client.infer("bert", inputs, headers=parent())
        spans = whole(collector, TRACE, "inference.GRPCInferenceService/ModelInfer")
        with pytest.raises(InferenceServerException):
            client.infer("gone", inputs, headers=parent(trace="2" * 32))
        refused = whole(collector, "2" * 32, "inference.GRPCInferenceService/ModelInfer")
    (root,) = spans["inference.GRPCInferenceService/ModelInfer"]
    assert root.parent == CALLER and root.attributes["rpc.grpc.status_code"] == 0
    assert root.attributes["rpc.method"] == "ModelInfer"
    assert spans["batch"][0].parent == root.id
    (root,) = refused["inference.GRPCInferenceService/ModelInfer"]
    assert root.attributes["rpc.grpc.status_code"] == 5 and "batch" not in refused
    assert not root.error  # the fault is the client's


def test_texts_have_a_span_of_the_tokenizer_each(served, collector):
    with Daemon(served, "--trace-endpoint", collector.url) as daemon:
        reply = requests.post(f"{daemon.http_url}/v1/embeddings", headers=parent(), timeout=60,
                              json={"model": "texts", "input": ["one fox", "two dogs and a fox"]})
        assert reply.status_code == 200, reply.text
        spans = whole(collector, TRACE, "POST /v1/embeddings")
    (root,) = spans["POST /v1/embeddings"]
    assert len(spans["tokenizer"]) == len(spans["queue"]) == 2
    assert {span.parent for span in spans["tokenizer"]} == {root.id}
    assert all(span.attributes["reprise.tokens"] > 2 for span in spans["tokenizer"])


def test_generated_tokens_are_a_prompt_and_its_tokens(repository, collector):
    repository.add("decoder", decoders.make("gqa"),
                   config='parameters { key: "reprise.context" value { string_value: "128" } }')
    with Daemon(repository, "--trace-endpoint", collector.url) as daemon:
        reply = requests.post(f"{daemon.http_url}/v2/models/decoder/generate_stream",
                              headers=parent(), timeout=120,
                              json={"input_ids": [1, 2, 3, 4, 5], "parameters": {"max_tokens": 6}})
        assert reply.status_code == 200, reply.text
        spans = whole(collector, TRACE, "POST /v2/models/{model}/generate_stream")
    (root,) = spans["POST /v2/models/{model}/generate_stream"]
    (queue,), (prompt,), (tokens,) = spans["queue"], spans["prompt"], spans["tokens"]
    assert {queue.parent, prompt.parent, tokens.parent} == {root.id}
    assert prompt.attributes["reprise.prompt_tokens"] == 5
    assert tokens.attributes["reprise.tokens"] == 6
    assert root.start <= queue.end <= prompt.end == tokens.start <= tokens.end <= root.end


def test_the_caller_decides_and_else_the_share(served, collector):
    with Daemon(served, "--trace-endpoint", collector.url, "--trace-sample", "0") as daemon:
        assert "traceparent" not in infer(daemon, {}).headers
        assert "traceparent" not in infer(daemon, parent(trace="3" * 32, sampled=False)).headers
        assert infer(daemon, parent()).headers["traceparent"].startswith(f"00-{TRACE}-")
        # A header that breaks the standard begins a trace of its own, by the share.
        assert "traceparent" not in infer(daemon, {"traceparent": "00-nonsense"}).headers
        whole(collector, TRACE, "POST /v2/models/{model}/infer")
    assert {span.trace_id for span in collector.spans} == {TRACE}


def test_triton_clients_read_and_change_the_settings(served, collector):
    with Daemon(served, "--trace-endpoint", collector.url) as daemon:
        grpc = tritonclient.grpc.InferenceServerClient(daemon.grpc_address)
        http = tritonclient.http.InferenceServerClient(f"127.0.0.1:{daemon.http_port}")
        told = http.get_trace_settings()
        assert told["trace_level"] == ["TIMESTAMPS"] and told["trace_rate"] == "1"
        assert told["trace_count"] == "-1" and told["trace_mode"] == "opentelemetry"
        assert http.get_trace_settings("bert") == told
        grpc.update_trace_settings(settings={"trace_rate": "4", "trace_count": "1"})
        assert http.get_trace_settings()["trace_rate"] == "4"
        assert infer(daemon, parent()).headers["traceparent"]
        assert "traceparent" not in infer(daemon, parent()).headers  # one was left
        http.update_trace_settings(settings={"trace_count": None, "trace_rate": None})
        assert http.get_trace_settings() == told
        grpc.update_trace_settings(settings={"trace_level": ["OFF"]})
        assert "traceparent" not in infer(daemon, parent()).headers
        for settings, why in [({"trace_rate": "0"}, "trace_rate"), ({"trace_level": ["TENSORS"]}, "TENSORS"),
                              ({"trace_file": "x"}, "trace_file"), ({"colour": "x"}, "colour")]:
            with pytest.raises(InferenceServerException, match=why):
                grpc.update_trace_settings(settings=settings)
            with pytest.raises(InferenceServerException, match=why):
                http.update_trace_settings(settings=settings)
        with pytest.raises(InferenceServerException, match="gone"):
            http.get_trace_settings("gone")
        with pytest.raises(InferenceServerException, match="all models together"):
            http.update_trace_settings("bert", settings={"trace_rate": "4"})


def test_without_a_collector_nothing_is_traced_and_that_is_said(served):
    with Daemon(served) as daemon:
        assert "traceparent" not in infer(daemon, parent()).headers
        http = tritonclient.http.InferenceServerClient(f"127.0.0.1:{daemon.http_port}")
        assert http.get_trace_settings()["trace_level"] == ["OFF"]
        with pytest.raises(InferenceServerException, match="--trace-endpoint"):
            http.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]})
    done = run_reprised("--model-repository", served, "--trace-endpoint", "collector:4318")
    assert done.returncode == 2 and "collector:4318" in done.stderr


def test_a_collector_that_is_away_costs_spans_alone(served):
    with Collector(answer=400) as refusing, \
         Daemon(served, "--trace-endpoint", refusing.url + "/own/path") as daemon:
        assert infer(daemon, parent()).status_code == 200

        def failed():
            return Scrape(daemon.metrics_url).total("reprise_spans_total", outcome="failed")

        wait_until(lambda: failed() > 0)
        assert refusing.requests[0][0] == "/own/path"
        assert "spans are not sent" in daemon.log() and "400" in daemon.log()
    with Daemon(served, "--trace-endpoint", "http://127.0.0.1:9") as daemon:
        for _ in range(3):
            assert infer(daemon, parent()).status_code == 200
        wait_until(lambda: "spans are not sent" in daemon.log())


def test_latencies_have_exemplars_for_scrapers_that_ask(served, collector):
    accept = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5"}
    with Daemon(served, "--trace-endpoint", collector.url) as daemon:
        infer(daemon, parent())
        plain = requests.get(daemon.metrics_url, timeout=30)
        open_metrics = requests.get(daemon.metrics_url, timeout=30, headers=accept)
        lines = daemon.log()
    assert plain.headers["Content-Type"].startswith("text/plain") and "trace_id" not in plain.text
    assert open_metrics.headers["Content-Type"].startswith("application/openmetrics-text")
    text = open_metrics.text
    assert text.endswith("# EOF\n")
    exemplars = re.findall(r'^(reprise_\w+)_bucket\{(.*?)\} \S+ # \{trace_id="(\w+)"\} (\S+) (\S+)$', text,
                           re.MULTILINE)
    assert {name for name, *_ in exemplars} == {"reprise_request_duration_seconds",
                                                "reprise_queue_duration_seconds"}
    for _, labels, trace, value, _ in exemplars:
        assert trace == TRACE and 'model="bert"' in labels
        bound = float(re.search(r'le="([^"]+)"', labels).group(1))
        assert float(value) <= bound
    # Names are the plain page's.
    names = {line.split("{")[0].split(" ")[0] for line in plain.text.splitlines() if line[:1] != "#"}
    assert {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line[:1] != "#"} == names
    families = re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)
    assert len(set(families)) == len(families), "two families of one name"
    assert "# TYPE nv_inference_request_success unknown" in text
    assert "# TYPE reprise_requests counter" in text
    assert lines


def test_the_access_log_names_the_trace(served, collector):
    with Daemon(served, "--trace-endpoint", collector.url, "--access-log") as daemon:
        infer(daemon, parent())
        wait_until(lambda: f'trace_id="{TRACE}"' in daemon.log(), explain=daemon.log)
