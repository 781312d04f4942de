"""The files of deploy/inference-extension: fields of their kinds, the chart's pool, and the gauges and paths of the daemon."""

import copy
import re

import jsonschema
import pytest
import requests
import yaml

from testing import decoders
from testing.daemon import SOURCE, Daemon
from testing.kubernetes import api, charts, definitions
from testing.repository import Repository

FOLDER = SOURCE / "deploy/inference-extension"
PICKER = {one["kind"]: one for one in yaml.safe_load_all((FOLDER / "picker.yaml").read_text())}
(ROUTE,) = yaml.safe_load_all((FOLDER / "route.yaml").read_text())
CONFIG = yaml.safe_load(PICKER["ConfigMap"]["data"]["config.yaml"])
PLUGINS = {one["type"]: one.get("parameters", {}) for one in CONFIG["plugins"]}
CHART = charts.objects({"inferencePool": {"enabled": True}})
POOL, DEPLOYMENT, SERVICE = (next(one for one in CHART if one["kind"] == kind)
                             for kind in ("InferencePool", "Deployment", "Service"))


def test_objects_are_what_the_api_server_takes():
    for version in ("1.33", "1.37"):
        api.check(list(PICKER.values()), version)
    definitions.check(ROUTE)


@pytest.mark.parametrize("change,says", [
    (lambda spec: spec.update(targetPort=8000), "targetPort"),
    (lambda spec: spec["targetPorts"][0].update(number="8000"), "not of type 'integer'"),
    (lambda spec: spec["endpointPickerRef"].update(failureMode="Open"), "not one of"),
])
def test_the_check_notices_what_the_pool_does_not_know(change, says):
    wrong = copy.deepcopy(POOL)
    change(wrong["spec"])
    with pytest.raises(jsonschema.ValidationError, match=says):
        definitions.check(wrong)


def test_route_pool_and_picker_name_each_other():
    (backend,) = ROUTE["spec"]["rules"][0]["backendRefs"]
    assert backend["name"] == POOL["metadata"]["name"]
    assert backend["port"] == POOL["spec"]["targetPorts"][0]["number"] == 8000
    reference = POOL["spec"]["endpointPickerRef"]
    assert reference["name"] == PICKER["Service"]["metadata"]["name"]
    (container,) = PICKER["Deployment"]["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"]: port["port"] for port in PICKER["Service"]["spec"]["ports"]} == {
        "ext-proc": reference["port"]["number"], "metrics": ports["metrics"]}
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in container["args"])
    assert flags["pool-name"] == POOL["metadata"]["name"]
    assert int(flags["grpc-port"]) == ports["ext-proc"] and int(flags["grpc-health-port"]) == ports["health"]
    (mount,) = container["volumeMounts"]
    assert flags["config-file"] == f"{mount['mountPath']}/config.yaml"
    # Tokens come from the pods of the chart.
    assert PLUGINS["token-producer"]["vllm"]["url"] == f"http://{SERVICE['metadata']['name']}:8000"


def test_every_plugin_that_is_named_is_there():
    named = {one["pluginRef"] for profile in CONFIG["schedulingProfiles"] for one in profile["plugins"]}
    for source in CONFIG["dataLayer"]["sources"]:
        named |= {source["pluginRef"], *(one["pluginRef"] for one in source["extractors"])}
    assert named <= set(PLUGINS)
    assert PLUGINS["prefix-cache-scorer"]["prefixMatchInfoProducerName"] in PLUGINS


def test_pods_tell_their_pages_where_the_picker_listens():
    (container,) = DEPLOYMENT["spec"]["template"]["spec"]["containers"]
    port = PLUGINS["precise-prefix-cache-producer"]["kvEventsConfig"]["podDiscoveryConfig"]["socketPort"]
    assert f"--prefix-events=0.0.0.0:{port}" in container["args"]
    assert {"name": "prefixes", "containerPort": port} in container["ports"]
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    (engine,) = PLUGINS["core-metrics-extractor"]["engineConfigs"]
    assert labels["llm-d.ai/engine-type"] == engine["name"] == PLUGINS["core-metrics-extractor"]["defaultEngine"]
    without = charts.objects({"inferencePool": {"enabled": True, "prefixEvents": False}})
    assert "prefix-events" not in str(without)


def test_gauges_and_pages_are_those_of_the_daemon(tmp_path):
    repository = Repository(tmp_path / "models")
    repository.add("decoder", decoders.make("gqa"))
    with Daemon(repository, metrics_detail=False) as daemon:
        source = PLUGINS["metrics-data-source"]
        page = requests.get(f"{daemon.http_url}{source['path']}", timeout=30).text
        (engine,) = PLUGINS["core-metrics-extractor"]["engineConfigs"]
        for name, metric in engine.items():
            if name.endswith("Spec"):
                assert re.search(rf"^{metric} [0-9.]+$", page, re.M), metric
        page_size = PLUGINS["precise-prefix-cache-producer"]["tokenProcessorConfig"]["blockSize"]
        ids = list(range(1, page_size + 2))
        for _ in range(2):
            reply = requests.post(f"{daemon.http_url}/v2/models/decoder/generate", timeout=60,
                                  json={"input_ids": ids, "parameters": {"max_tokens": 1}})
        assert int(reply.headers["x-reprise-cached-tokens"]) == page_size
