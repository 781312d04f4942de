"""The chart of deploy/helm: linted and rendered by Helm, checked against the API server's schemas and the CRDs."""

import re
import subprocess

import pytest
import yaml

from testing.daemon import SOURCE, flags_of_reprised, run_reprised
from testing.kubernetes import api, charts, customs, definitions

HUB = {"minilm": "hf://sentence-transformers/all-MiniLM-L6-v2@" + "a" * 40}
WEB = [{"podSelector": {"matchLabels": {"app": "web"}}}]
# Every part of the chart is switched on by one of them.
CASES = {
    "defaults": {},
    "hpa": {"autoscaling": {"kind": "hpa"}, "service": {"clusterIP": ""}},
    "keda": {"autoscaling": {"kind": "keda", "maxReplicas": 20}, "podMonitor": {"enabled": True, "labels": {"release": "p"}}},
    "fetched": {"models": {"repository": {"claim": ""}, "named": HUB, "credentials": "hub", "cache": {"claim": "fetched"}},
                "networkPolicy": {"enabled": True, "clients": WEB}},
    "image_volumes": {"models": {"repository": {"claim": "", "image": "registry/models:1"}},
                      "recipes": {"bundle": {"image": "registry/recipes:1", "file": "a/recipes.bundle"}, "frozen": True}},
    "closed": {"keys": {"content": "web  0123456789abcdef01234567  infer"},
               "tls": {"certificate": "C\nC", "key": "K\nK", "mutual": True, "authorities": "A\nA"},
               "podMonitor": {"enabled": True, "keySecret": {"name": "scraper", "key": "key"}},
               "networkPolicy": {"enabled": True, "clients": WEB, "monitoring": [{"namespaceSelector": {}}],
                                 "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}},
    "pool": {"inferencePool": {"enabled": True, "objectives": {"interactive": 10, "batch": -10}},
             "networkPolicy": {"enabled": True, "clients": WEB, "pickers": [{"podSelector": {"matchLabels": {"app": "picker"}}}]}},
    "secrets_that_there_are": {"keys": {"secret": "keys"}, "tls": {"secret": "tls"}, "flags": ["--access-log"],
                               "recipes": {"claim": "recipes", "bundle": {"claim": "bundle"}},
                               "image": {"repository": "r/reprise", "tag": "1.2", "pullSecrets": [{"name": "pull"}]},
                               "nodeSelector": {"numa": "single"}, "tolerations": [{"key": "cpu", "operator": "Exists"}],
                               "labels": {"team": "search"}, "podAnnotations": {"a": "b"}, "spread": False,
                               "env": [{"name": "REPRISED_LOG_LEVEL", "value": "debug"}]},
}


def only(kind, objects):
    (found,) = [one for one in objects if one["kind"] == kind]
    return found


def pod(objects):
    return only("Deployment", objects)["spec"]["template"]["spec"]


def flags(objects):
    return pod(objects)["containers"][0]["args"]


@pytest.mark.parametrize("case", CASES)
def test_lint_finds_nothing(case):
    messages, errors = charts.lint(CASES[case])
    assert errors == []
    assert [text for severity, text in messages if severity > 1] == []


@pytest.mark.parametrize("case", CASES)
def test_objects_are_what_the_api_server_takes(case, tmp_path):
    objects = charts.objects(CASES[case])
    own = []
    for one in objects:
        if (one["apiVersion"], one["kind"]) in customs.MODULES:
            customs.check(one)
        elif (one["apiVersion"], one["kind"]) in definitions.FILES:
            definitions.check(one)
        else:
            own.append(one)
    for version in ("1.33", "1.37"):
        api.check(own, version)


def test_the_checks_notice_unknown_fields_and_wrong_values():
    objects = charts.objects(CASES["keda"])
    deployment = only("Deployment", objects)
    deployment["spec"]["template"]["spec"]["containers"][0]["readOnlyRoot"] = True
    with pytest.raises(AssertionError, match="readOnlyRoot"):
        api.check([deployment], "1.37")
    scaled, monitor = only("ScaledObject", objects), only("PodMonitor", objects)
    scaled["spec"]["maxReplicaCount"] = "20"
    with pytest.raises(ValueError, match="maxReplicaCount"):
        customs.check(scaled)
    monitor["spec"]["podMetricsEndpoints"][0]["scheme"] = "gopher"
    with pytest.raises(ValueError, match="scheme"):
        customs.check(monitor)


@pytest.mark.parametrize("case", CASES)
def test_parts_agree(case):
    objects = charts.objects(CASES[case])
    template = only("Deployment", objects)["spec"]["template"]
    labels = template["metadata"]["labels"]
    for one in objects:
        spec = one.get("spec", {})
        for selector in (spec.get("selector"), spec.get("podSelector")):
            if selector is not None:
                chosen = selector.get("matchLabels", selector)
                assert chosen and chosen.items() <= labels.items(), one["kind"]
        for target in [spec.get("scaleTargetRef")] if spec.get("scaleTargetRef") else []:
            assert target["name"] == only("Deployment", objects)["metadata"]["name"]
    container = template["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"] for port in only("Service", objects)["spec"]["ports"]} == set(ports) - {"prefixes"}
    volumes = {volume["name"] for volume in template["spec"]["volumes"]}
    used = set()
    for one in [container, *template["spec"].get("initContainers", [])]:
        mounts = {mount["mountPath"] for mount in one["volumeMounts"]}
        used |= {mount["name"] for mount in one["volumeMounts"]}
        for path in re.findall(r"(?<==)/[\w/.-]+|(?<!\S)/[\w/.-]+", " ".join(one.get("args", []) + one.get("command", []))):
            assert any(path == mount or path.startswith(mount + "/") for mount in mounts), (one["name"], path)
        # Nothing is throttled, and cores may be the pod's own.
        assert one["resources"]["requests"] == one["resources"]["limits"]
        assert one["securityContext"]["readOnlyRootFilesystem"] is True
    assert used == volumes
    secrets = {one["metadata"]["name"] for one in objects if one["kind"] == "Secret"}
    assert secrets <= {volume["secret"]["secretName"] for volume in template["spec"]["volumes"] if "secret" in volume}


@pytest.mark.parametrize("case", CASES)
def test_flags_are_taken_by_the_daemon(case, tmp_path):
    arguments = flags(charts.objects(CASES[case]))
    assert {flag.split("=")[0] for flag in arguments} <= flags_of_reprised()
    # Folders and files of the pod, here.
    (tmp_path / "models").mkdir()
    arguments = [flag.replace(":5557", ":0") for flag in arguments]
    for name in re.findall(r"=(/etc/\S+)", " ".join(arguments)):
        (tmp_path / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name[1:]).write_text("")
    here = [re.sub(r"=(/(?:models|etc/))", lambda found: f"={tmp_path}{found.group(1)}", flag + "/" * (flag[-7:] == "/models"))
            for flag in arguments]
    done = run_reprised(*here, "--print-config")
    assert done.returncode == 0, done.stderr


def test_pod_has_the_time_that_leaving_takes():
    values = {"shutdown": {"preStopSeconds": 7, "drainGraceSeconds": 3, "exitTimeoutSeconds": 90}}
    spec = pod(charts.objects(values))
    assert spec["terminationGracePeriodSeconds"] >= 7 + 3 + 90
    assert spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] == 7
    assert {"--drain-grace-secs=3", "--exit-timeout-secs=90"} <= set(flags(charts.objects(values)))
    rollout = only("Deployment", charts.objects(values))["spec"]["strategy"]["rollingUpdate"]
    assert rollout == {"maxSurge": 1, "maxUnavailable": 0}


def test_new_pod_imports_its_recipes_before_it_starts():
    spec = pod(charts.objects(CASES["image_volumes"]))
    (init,) = spec["initContainers"]
    assert init["command"] == ["reprise", "store", "import", "/bundle/a/recipes.bundle", "/var/cache/reprise"]
    assert init["image"] == spec["containers"][0]["image"]
    assert "--frozen" in spec["containers"][0]["args"]
    shared = {mount["mountPath"]: mount["name"] for mount in init["volumeMounts"]}
    assert {mount["mountPath"]: mount["name"] for mount in spec["containers"][0]["volumeMounts"]}[
        "/var/cache/reprise"] == shared["/var/cache/reprise"]


def test_service_shows_every_pod_and_says_that_grpc_is_http2():
    service = only("Service", charts.objects())["spec"]
    assert service["clusterIP"] == "None"
    assert {port["name"]: port["appProtocol"] for port in service["ports"]}["grpc"] == "kubernetes.io/h2c"
    assert "clusterIP" not in only("Service", charts.objects(CASES["hpa"]))["spec"]


def test_probes_and_scrapes_speak_tls_where_the_daemon_does():
    objects = charts.objects(CASES["closed"])
    container = pod(objects)["containers"][0]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    (endpoint,) = only("PodMonitor", objects)["spec"]["podMetricsEndpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["authorization"]["credentials"] == {"name": "scraper", "key": "key"}
    assert not any(flag.startswith("--http-use-ssl-mutual") for flag in container["args"])


def test_autoscalers_decide_how_many_and_nothing_else_does():
    for case, kind, most in (("hpa", "HorizontalPodAutoscaler", 8), ("keda", "ScaledObject", 20)):
        objects = charts.objects(CASES[case])
        assert "replicas" not in only("Deployment", objects)["spec"]
        spec = only(kind, objects)["spec"]
        assert spec.get("maxReplicas", spec.get("maxReplicaCount")) == most
        assert spec.get("minReplicas", spec.get("minReplicaCount")) == 2
    metrics = {metric["pods"]["metric"]["name"]: metric["pods"]["target"]["averageValue"]
               for metric in only("HorizontalPodAutoscaler", charts.objects(CASES["hpa"]))["spec"]["metrics"]}
    assert metrics == {"reprise_utilization": "700m", "reprise_queue_seconds_p99": "100m"}
    adapter = yaml.safe_load((SOURCE / "deploy/prometheus/adapter.yml").read_text())["rules"]
    assert {rule["name"]["as"] for rule in adapter} == set(metrics)


def queries():
    """Returns every query of PromQL that decides about pods."""
    triggers = only("ScaledObject", charts.objects(CASES["keda"]))["spec"]["triggers"]
    found = [trigger["metadata"]["query"] for trigger in triggers]
    for rule in yaml.safe_load((SOURCE / "deploy/prometheus/adapter.yml").read_text())["rules"]:
        series = rule["seriesQuery"].split("{")[0]
        query = rule["metricsQuery"].replace("<<.Series>>", series).replace("<<.GroupBy>>", "namespace,pod")
        found.append(query.replace("<<.LabelMatchers>>", 'namespace="default",pod=~"reprise-1|reprise-2"'))
    return found


def test_queries_say_how_busy_the_pods_are(tmp_path):
    """Two pods: one busy for 0.9 of the time, where 1 of 100 requests waits longer than 0.05 s; one without requests."""
    labels = 'namespace="default",pod="reprise-{}"'
    bucket = "reprise_queue_duration_seconds_bucket{{{},le=\"{}\"}}"
    series = [("reprise_utilization{" + labels.format(1) + "}", "0.9x20"),
              ("reprise_utilization{" + labels.format(2) + "}", "0.1x20")]
    for one, step in (("0.05", 99), ("0.1", 100), ("+Inf", 100)):
        series.append((bucket.format(labels.format(1), one), f"0+{step}x20"))
        series.append((bucket.format(labels.format(2), one), "5x20"))
    utilization, queue, per_pod, waits = queries()
    own = [{"labels": '{namespace="default",pod="reprise-%d"}' % n, "value": value}
           for n, value in ((1, 0.05), (2, 0))]
    expected = [(utilization, [{"labels": "{}", "value": 1.0}]), (queue, [{"labels": "{}", "value": 0.05}]), (waits, own)]
    (tmp_path / "queries.yml").write_text(yaml.safe_dump({
        "tests": [{"interval": "15s", "input_series": [{"series": s, "values": v} for s, v in series],
                   "promql_expr_test": [{"expr": f"round({query}, 0.001)", "eval_time": "4m", "exp_samples": samples}
                                        for query, samples in expected]}]}))
    done = subprocess.run(["promtool", "test", "rules", "queries.yml"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert per_pod.startswith("max by (namespace,pod) (reprise_utilization{")


@pytest.mark.parametrize("values,says", [
    ({"replica": 3}, "replica"),
    ({"resources": {"cpu": 1.5, "memory": "2Gi"}}, "cpu"),
    ({"models": {"named": {"a": "ftp://host/a"}}}, "named"),
    ({"autoscaling": {"kind": "vpa"}}, "kind"),
    ({"models": {"repository": {"image": "models:1"}}}, "exclude each other"),
    ({"models": {"repository": {"claim": ""}}}, "no model"),
    ({"tls": {"mutual": True}}, "tls.mutual needs"),
    ({"tls": {"secret": "t"}, "inferencePool": {"enabled": True}}, "without TLS"),
    ({"inferencePool": {"objectives": {"a": "high"}}}, "objectives"),
    ({"tls": {"certificate": "C"}}, "tls.key"),
    ({"autoscaling": {"kind": "hpa", "maxReplicas": 1}}, r"maxReplicas \(1\) is below replicas \(2\)"),
])
def test_mistakes_in_values_are_refused_by_name(values, says):
    with pytest.raises(Exception, match=says):
        charts.objects(values)


def test_plain_manifest_is_the_chart_with_its_defaults():
    assert (SOURCE / "deploy/kubernetes/reprise.yaml").read_text() == charts.plain_manifest(), (
        "PYTHONPATH=tests python -m testing.kubernetes.charts > deploy/kubernetes/reprise.yaml")


def test_pods_run_as_the_user_of_the_image():
    user = pod(charts.objects())["securityContext"]["runAsUser"]
    assert f"USER {user}\n" in (SOURCE / "Dockerfile").read_text()


def test_version_is_the_project_s():
    version = re.search(r"project\([^)]*VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
    chart = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version
