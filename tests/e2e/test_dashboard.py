"""The dashboard and the rules are true: a real Prometheus evaluates every expression."""

import json
import re
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
import yaml
from PIL import Image

from testing import decoders, hub, stateful
from testing.daemon import SOURCE, Daemon
from testing.inference import infer, text_inputs
from testing.prometheus import RULES, Prometheus
from testing.web import dashboard

DASHBOARDS = sorted((SOURCE / "deploy/grafana/dashboards").glob("*.json"))
# The values that Grafana puts in for its variables; scrapes are 200 ms apart here.
VARIABLES = {"$__rate_interval": "20s", "$model": ".*", "$job": ".*", "$instance": ".*"}


def expressions():
    """(panel, expression) of every target of every dashboard."""
    found = []

    def walk(panels):
        for panel in panels:
            walk(panel.get("panels", []))
            found.extend((panel["title"], target["expr"]) for target in panel.get("targets", []))

    for path in DASHBOARDS:
        walk(json.loads(path.read_text())["panels"])
    return found


def rules():
    """Returns every recording and alert rule."""
    return [rule for path in RULES
            for group in yaml.safe_load(path.read_text()).get("groups", [])
            for rule in group["rules"]]


def post(daemon, path, body):
    with urllib.request.urlopen(f"{daemon.http_url}{path}", json.dumps(body).encode(), timeout=60) as answer:
        return json.load(answer)


def ask_for_all_kinds(daemon):
    """Requests to each of the three models, and one that fails."""
    client, rng = daemon.client(), np.random.default_rng(3)
    for length in [5, 20, 60, 7, 33, 100]:
        infer(client, "bert", text_inputs(["input_ids", "attention_mask"], 1, length, rng, 50))
    with pytest.raises(Exception):
        infer(client, "bert", {"nonsense": np.ones((1, 1), np.float32)})
    for _ in range(2):
        post(daemon, "/v1/embeddings", {"model": "bert", "input": ["a text", "another"]})
        post(daemon, "/v2/models/gpt/generate", {"input_ids": [1, 2, 3], "parameters": {"max_tokens": 4}})
    x = tritonclient.grpc.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.ones((1, 4), np.float32))
    for step in range(3):
        client.infer("totals", [x], sequence_id=7, sequence_start=step == 0, sequence_end=step == 2)


@pytest.fixture(scope="module")
def prometheus(module_repository, tmp_path_factory):
    """Starts a Prometheus that has seen two daemons with three models each: an encoder of texts, a decoder, and
    one that keeps state. Scrapes are those without --metrics-detail."""
    hub.Folder(module_repository.root / "bert").sentence_transformer()
    module_repository.add("gpt", decoders.make("gqa"))
    module_repository.add("totals", stateful.totals(), config=stateful.totals_config())
    store = ["--recipe-cache", tmp_path_factory.mktemp("store"), "--audit-share", "1"]
    with (Daemon(module_repository, *store, metrics_detail=False) as one,
          Daemon(module_repository, *store, metrics_detail=False) as other):
        server = Prometheus(tmp_path_factory.mktemp("prometheus"), {
            "any name": [f"127.0.0.1:{daemon.metrics_port}" for daemon in (one, other)]})
        try:
            # A rate needs a sample from before the traffic.
            server.wait_for("min(count_over_time(up[1m])) >= 2 and sum(up) == 2", lambda v: True)
            # Families of texts and tokens begin with the first of them: a rate needs a later one.
            for _ in range(2):
                for daemon in (one, other):
                    ask_for_all_kinds(daemon)
                server.wait_for("min(sum by (instance) (reprise_live_sequences_total))", lambda v: v >= 2)
            server.wait_for('min(sum by (instance) (rate(reprise_text_tokens_total[10s])))', lambda v: v > 0)
            server.wait_for('min(sum by (instance) (rate(reprise_requests_total{code="OK"}[10s])))', lambda v: v > 0)
            yield server
        finally:
            server.stop()


def test_dashboard_has_expressions_and_starts_with_the_recompilation_rate():
    assert DASHBOARDS
    assert len(expressions()) > 20
    (fleet,) = [path for path in DASHBOARDS if path.name == "reprise.json"]
    titles = [p["title"] for p in json.loads(fleet.read_text())["panels"]]
    assert titles[:5] == ["Recompilation", "Captures per second, by reason",
                          "Captures per thousand requests", "Recipe hit ratio", "Padding share"]


def test_panels_do_not_overlap_and_have_distinct_ids():
    for path in DASHBOARDS:
        panels = json.loads(path.read_text())["panels"]
        assert len({p["id"] for p in panels}) == len(panels)
        cells = set()
        for panel in panels:
            at = panel["gridPos"]
            mine = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                    for y in range(at["y"], at["y"] + at["h"])}
            assert not cells & mine, panel["title"]
            assert at["x"] + at["w"] <= 24
            cells |= mine


@pytest.mark.parametrize("panel,expression", expressions())
def test_expression_is_evaluated_over_metrics_that_exist(prometheus, panel, expression):
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, "a variable that only Grafana knows"
    answer = prometheus.get("/api/v1/query", query=expression)
    assert answer["status"] == "success", answer
    assert answer["data"]["result"], f"{panel}: '{expression}' has no value"
    known = set(prometheus.get("/api/v1/label/__name__/values")["data"])
    named = set(re.findall(r"\b(?:reprise|nv|process)_\w+", expression))
    assert named and named <= known, named - known


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_can_be_drawn(prometheus, path, tmp_path):
    picture = tmp_path / "dashboard.png"
    assert dashboard.draw(json.loads(path.read_text()), dashboard.ranges(prometheus.url, 10, VARIABLES), picture) == []
    width, height = Image.open(picture).size
    assert width >= 1440 and height > 1000


@pytest.mark.parametrize("name,rule", [(r.get("record") or r["alert"], r) for r in rules()])
def test_rule_is_evaluated_over_metrics_that_exist(prometheus, name, rule):
    metric = r"[a-zA-Z_:][\w:]*reprise_[\w:]+|\b(?:reprise|nv|process)_\w+|\bup\b"
    named = set(re.findall(metric, rule["expr"]))
    # A rule's record is there from its first evaluation on, which comes after the first scrape.
    for recorded in sorted({n for n in named if ":" in n} | ({name} if "record" in rule else set())):
        prometheus.wait_for(f"count({recorded})", lambda v: v > 0)
    answer = prometheus.get("/api/v1/query", query=rule["expr"])
    assert answer["status"] == "success", answer
    known = set(prometheus.get("/api/v1/label/__name__/values")["data"])
    assert named and named <= known, named - known


def test_no_alert_but_of_a_cold_start_fires_on_a_healthy_server(prometheus):
    alerts = prometheus.get("/api/v1/alerts")["data"]["alerts"]
    firing = {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}
    assert firing <= {"RepriseColdStart"}


def test_variables_ask_for_metrics_that_exist(prometheus):
    known = set(prometheus.get("/api/v1/label/__name__/values")["data"])
    for path in DASHBOARDS:
        for variable in json.loads(path.read_text())["templating"]["list"]:
            if variable["type"] == "query":
                (metric,) = re.findall(r"label_values\((\w+)[{,]", variable["definition"])
                assert metric in known


@pytest.mark.parametrize("model, most", [("bert", 150), ("gpt", 220), ("totals", 150)])
def test_a_model_has_few_series(prometheus, model, most):
    for instance in prometheus.get("/api/v1/label/instance/values")["data"]:
        answer = prometheus.get("/api/v1/query", query=f'count({{model="{model}",instance="{instance}",__name__!~".*:.*|ALERTS.*"}})')
        (value,) = answer["data"]["result"]
        print(f"\n{model}: {value['value'][1]} series")
        assert int(value["value"][1]) < most


def test_histograms_have_few_bounds(prometheus):
    answer = prometheus.get("/api/v1/query", query='count by (__name__, model, axis, instance) ({le!="",le!="+Inf"})')
    assert len(answer["data"]["result"]) > 10
    assert max(int(one["value"][1]) for one in answer["data"]["result"]) == 7
