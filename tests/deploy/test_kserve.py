"""The files of deploy/kserve: KServe's fields, and a daemon that is started as its runtime says."""

import copy
import re

import pytest
import requests
import yaml

from testing import models
from testing.daemon import SOURCE, Daemon, flags_of_reprised
from testing.kubernetes import kserve
from testing.repository import Repository

FILES = [SOURCE / "deploy/kserve/runtime.yaml", SOURCE / "deploy/kserve/inferenceservice.yaml"]
OBJECTS = [one for path in FILES for one in yaml.safe_load_all(path.read_text())]
RUNTIMES = {one["metadata"]["name"]: one for one in OBJECTS if one["kind"] == "ClusterServingRuntime"}
(SERVICE,) = [one for one in OBJECTS if one["kind"] == "InferenceService"]


@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: one["metadata"]["name"])
def test_object_has_fields_that_kserve_knows(one):
    kserve.check(one)


@pytest.mark.parametrize("path,value,says", [
    (("spec", "predictor", "minReplica"), 2, "no field minReplica"),
    (("spec", "predictor", "maxReplicas"), "8", "'8' is no int"),
    (("spec", "predictor", "model", "modelFormat"), "onnx", "no object"),
    (("spec", "predictor", "autoScaling", "metrics", 0, "podmetric", "metric", "metricName"), [], "no field metricName"),
])
def test_the_check_notices_what_kserve_does_not_know(path, value, says):
    wrong = copy.deepcopy(SERVICE)
    at = wrong
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    with pytest.raises(AssertionError, match=says):
        kserve.check(wrong)


def test_service_asks_for_a_runtime_that_there_is():
    model = SERVICE["spec"]["predictor"]["model"]
    runtime = RUNTIMES[model["runtime"]]["spec"]
    assert model["protocolVersion"] in runtime["protocolVersions"]
    assert model["modelFormat"]["name"] in [one["name"] for one in runtime["supportedModelFormats"]]


@pytest.mark.parametrize("name", RUNTIMES)
def test_ports_of_probes_are_those_of_the_flags(name):
    (container,) = RUNTIMES[name]["spec"]["containers"]
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in container["args"])
    assert {f"--{flag}" for flag in flags} <= flags_of_reprised()
    http, grpc = int(flags.get("http-port", 8000)), int(flags.get("grpc-port", 8001))
    (port,) = container["ports"]
    assert port["containerPort"] == {"http1": http, "h2c": grpc}[port["name"]]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        for kind, asks in container[probe].items():
            if kind in ("httpGet", "grpc"):
                assert asks["port"] == {"httpGet": http, "grpc": grpc}[kind]


def test_flat_folder_is_served_under_the_name_of_the_service(tmp_path):
    """/mnt/models as KServe lays it: the files of the model, without a folder of a version."""
    flat = tmp_path / "mnt/models"
    flat.mkdir(parents=True)
    (flat / "model.onnx").write_bytes(models.elementwise().SerializeToString())
    (container,) = RUNTIMES["reprise"]["spec"]["containers"]
    (model,) = [flag for flag in container["args"] if flag.startswith("--model=")]
    model = model.replace("{{.Name}}", SERVICE["metadata"]["name"]).replace("/mnt/models", str(flat))
    empty = Repository(tmp_path / "none")
    with Daemon(empty, model) as daemon:
        name = SERVICE["metadata"]["name"]
        assert daemon.http_status(f"/v2/models/{name}/ready") == 200
        reply = requests.post(f"{daemon.http_url}/v2/models/{name}/infer", timeout=60, json={"inputs": [
            {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]})
        assert reply.json()["outputs"][0]["data"] == [3, 5]
        # V1, as clients of KServe ask: ready, then predict.
        assert "v1" in RUNTIMES["reprise"]["spec"]["protocolVersions"]
        assert requests.get(f"{daemon.http_url}/v1/models/{name}", timeout=60).json()["ready"] is True
        reply = requests.post(f"{daemon.http_url}/v1/models/{name}:predict", json={"instances": [[1, 2]]}, timeout=60)
        assert reply.json() == {"predictions": [[3, 5]]}
        metric = SERVICE["spec"]["predictor"]["autoScaling"]["metrics"][0]["podmetric"]["metric"]
        page = requests.get(daemon.metrics_url, timeout=30).text
        assert all(re.search(rf"^{name} ", page, re.M) for name in metric["metricNames"])
