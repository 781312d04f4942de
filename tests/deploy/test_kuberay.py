"""The manifest of examples/ray_serve: KubeRay's fields, and that its parts agree with each other."""

import copy

import jsonschema
import pytest
import yaml

from testing.daemon import SOURCE, flags_of_reprised
from testing.kubernetes import definitions

(SERVICE,) = yaml.safe_load_all((SOURCE / "examples/ray_serve/rayservice.yaml").read_text())
CONFIG = yaml.safe_load(SERVICE["spec"]["serveConfigV2"])
(APPLICATION,) = CONFIG["applications"]
CLUSTER = SERVICE["spec"]["rayClusterConfig"]
(WORKERS,) = CLUSTER["workerGroupSpecs"]
(WORKER,) = WORKERS["template"]["spec"]["containers"]
FLAGS = dict(flag.split("=", 1) for flag in APPLICATION["args"]["flags"])


def test_manifest_has_fields_that_kuberay_knows():
    definitions.check(SERVICE)


@pytest.mark.parametrize("path,value,says", [
    (("excludeHeadPodFromServe",), True, "excludeHeadPodFromServe"),
    (("rayClusterConfig", "rayVersion"), 2.6, "2.6 is not of type 'string'"),
    (("rayClusterConfig", "workerGroupSpecs", 0, "minReplica"), 2, "minReplica"),
    (("rayClusterConfig", "workerGroupSpecs", 0, "rayStartParams", "num-cpus"), 2, "2 is not of type 'string'"),
    (("rayClusterConfig", "workerGroupSpecs", 0, "template", "spec", "containers", 0, "image"), 1, "not of type 'string'"),
    (("rayClusterConfig", "workerGroupSpecs", 0, "template", "spec", "volumes", 0, "claim"), {}, "claim"),
])
def test_the_check_notices_what_kuberay_does_not_know(path, value, says):
    wrong = copy.deepcopy(SERVICE)
    at = wrong["spec"]
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError, match=says):
        definitions.check(wrong)


def test_workers_fit_the_replicas():
    arguments = APPLICATION["args"]
    assert arguments["max_replicas_per_node"] == 1
    assert WORKERS["minReplicas"] == WORKERS["replicas"] == arguments["min_replicas"]
    assert WORKERS["maxReplicas"] == arguments["max_replicas"]
    cpus = WORKERS["rayStartParams"]["num-cpus"]
    assert cpus == WORKER["resources"]["limits"]["cpu"] and int(cpus) == arguments["num_cpus"]
    assert CLUSTER["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"


def test_flags_ports_and_folders_are_those_of_the_worker():
    assert set(FLAGS) <= flags_of_reprised()
    ports = {port["name"]: port["containerPort"] for port in WORKER["ports"]}
    assert ports == {"serve": CONFIG["http_options"]["port"], "metrics": int(FLAGS["--metrics-port"])}
    assert WORKERS["template"]["metadata"]["annotations"]["prometheus.io/port"] == FLAGS["--metrics-port"]
    mounts = {mount["mountPath"]: mount["name"] for mount in WORKER["volumeMounts"]}
    assert set(mounts) == {APPLICATION["args"]["models"], FLAGS["--recipe-cache"]}
    assert {volume["name"] for volume in WORKERS["template"]["spec"]["volumes"]} == set(mounts.values())


def test_image_has_the_version_of_ray_and_the_module_of_the_application():
    dockerfile = (SOURCE / "examples/ray_serve/Dockerfile").read_text()
    assert f"FROM rayproject/ray:{CLUSTER['rayVersion']}-" in dockerfile
    module, _ = APPLICATION["import_path"].split(":")
    assert f"{module}.py" in dockerfile and (SOURCE / f"examples/ray_serve/{module}.py").is_file()
