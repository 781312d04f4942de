"""The files of deploy/ are valid for the programs that read them."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from testing.daemon import BUILD, SOURCE, flags_of_reprised, reprise

DEPLOY = SOURCE / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
UNIT = DEPLOY / "systemd/reprised.service"
DATASOURCES = yaml.safe_load(
    (DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"]
DASHBOARDS = sorted((DEPLOY / "grafana/dashboards").glob("*.json"))


def tool(name, *arguments):
    """Runs a program that the Python environment of the tests brings."""
    folder = os.path.dirname(sys.executable)
    return subprocess.run([f"{folder}/{name}", *map(str, arguments)], capture_output=True,
                          text=True, timeout=120)


def compose_check(path):
    return tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)


def assert_folders_of(command, mounted):
    """Checks that the flags are the daemon's, and that the folders that they name are mounted."""
    assert {f for f in command if f.startswith("--")} <= flags_of_reprised()
    assert {f for f in command if f.startswith("/")} == mounted


# --- Compose. ---


def test_compose_file_is_what_the_specification_says():
    done = compose_check(COMPOSE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_check_notices_what_the_specification_does_not_know(tmp_path):
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(COMPOSE.read_text().replace("read_only: true", "read_olny: true"))
    assert compose_check(wrong).returncode != 0


def test_what_the_compose_file_mounts_is_there_and_agrees():
    compose = yaml.safe_load(COMPOSE.read_text())
    services = compose["services"]
    for name, service in services.items():
        for volume in service.get("volumes", []):
            if volume.startswith("."):
                assert (DEPLOY / volume.split(":")[0]).exists(), (name, volume)
            assert volume.endswith(":ro") or volume.split(":")[0] in compose["volumes"], volume
    (config,) = [v for v in services["prometheus"]["volumes"] if ":/etc/prometheus" in v]
    folder = DEPLOY / config.split(":")[0]
    scrape = yaml.safe_load((folder / "prometheus.yml").read_text())
    (target,) = scrape["scrape_configs"][0]["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert host in services
    assert any(p.endswith(f":{port}") for p in services[host]["ports"])
    reprised = services["reprised"]
    assert reprised["read_only"] is True and reprised["cap_drop"] == ["ALL"]
    mounted = {re.sub(r":ro$", "", v).rsplit(":", 1)[1] for v in reprised["volumes"]}
    assert_folders_of(reprised["command"], mounted)
    (url,) = [source["url"] for source in DATASOURCES]
    assert re.fullmatch(r"http://(\w+):\d+", url).group(1) in services


# --- Grafana. ---


def data_sources(node):
    """Returns every `datasource` in a dashboard, at any depth."""
    if isinstance(node, list):
        return [found for item in node for found in data_sources(item)]
    if not isinstance(node, dict):
        return []
    mine = [node["datasource"]] if "datasource" in node else []
    return mine + [found for value in node.values() for found in data_sources(value)]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda p: p.name)
def test_dashboard_asks_the_data_source_that_is_provisioned(path):
    (source,) = DATASOURCES
    assert source["type"] == "prometheus" and source["isDefault"]
    dashboard = json.loads(path.read_text())
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    asked = data_sources(dashboard)
    assert len(asked) >= len(dashboard["panels"])
    for one in asked:
        assert one["type"] == source["type"]
        name = re.fullmatch(r"\$\{(\w+)\}", one["uid"])
        if name is None:
            assert one["uid"] == source["uid"]
            continue
        variable = variables[name.group(1)]
        assert variable["type"] == "datasource" and variable["query"] == source["type"]
        assert variable["current"]["value"] == source["uid"]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda p: p.name)
def test_dashboard_has_the_fields_that_grafana_needs(path):
    dashboard = json.loads(path.read_text())
    assert dashboard["uid"] and dashboard["title"]
    assert dashboard["schemaVersion"] >= 36
    assert dashboard.get("id") is None, "an id of one Grafana means another dashboard in the next"
    for panel in dashboard["panels"]:
        assert isinstance(panel["id"], int) and panel["title"]
        assert set(panel["gridPos"]) == {"x", "y", "w", "h"}
        if panel["type"] == "row":
            continue
        assert panel["type"] in {"timeseries", "stat", "table", "heatmap", "bargauge", "gauge"}
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        ids = [target["refId"] for target in panel["targets"]]
        assert len(ids) == len(set(ids)) and all(target["expr"] for target in panel["targets"])


def test_provisioning_names_the_folders_that_compose_mounts():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    mounted = {v.split(":")[1] for v in services["grafana"]["volumes"]}
    provider = yaml.safe_load(
        (DEPLOY / "grafana/provisioning/dashboards/reprise.yml").read_text())["providers"][0]
    assert provider["options"]["path"] in mounted
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home.rsplit("/", 1)[0] in mounted
    assert home.rsplit("/", 1)[1] in {path.name for path in DASHBOARDS}


# --- systemd. ---


def test_unit_is_valid(tmp_path):
    unit = tmp_path / UNIT.name
    # The programs of this build stand for the installed ones.
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/", f"{BUILD}/"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True,
                          timeout=60)
    text = done.stdout + done.stderr
    assert done.returncode == 0 and UNIT.name not in text, text


def test_unit_gives_nothing_away(tmp_path):
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", UNIT],
                          capture_output=True, text=True, timeout=60)
    level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert level, done.stdout + done.stderr
    assert float(level.group(1)) < 2.0


def test_unit_starts_with_flags_that_there_are():
    text = UNIT.read_text()
    command = re.search(r"^ExecStart=((?:.*\\\n)*.*)$", text, re.M).group(1)
    assert "--recipe-cache" in command
    assert set(re.findall(r"--[a-z][a-z-]+", command)) <= flags_of_reprised()
    folder = re.search(r"--recipe-cache (\S+)", command).group(1)
    assert folder == "/var/cache/" + re.search(r"^CacheDirectory=(.*)$", text, re.M).group(1)


# --- Scripts. ---


@pytest.mark.parametrize("script", ["deploy/demo", "deploy/package", "tests/run", *(
    str(path.relative_to(SOURCE)) for path in sorted(SOURCE.glob("tests/bench/*/run")))])
def test_scripts_say_how_they_are_called_and_do_nothing_else(script, tmp_path):
    nothing = {"PATH": "/usr/bin:/bin", "REPRISE_CACHE": str(tmp_path / "cache"),
               "HOME": str(tmp_path)}
    done = subprocess.run([SOURCE / script, "--help"], env=nothing, capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 0, done.stderr
    assert f"  {script} " in done.stdout
    assert "==" not in done.stdout, "a step was begun"
    assert list(tmp_path.rglob("*")) in ([], [tmp_path / "cache"])


# --- deploy/README.md. ---


def test_readme_names_files_that_there_are():
    text = (DEPLOY / "README.md").read_text()
    named = re.findall(r"`((?:deploy/)?[\w./-]+/[\w.-]+\.(?:ya?ml|json|service|sh))`", text)
    assert named
    missing = [n for n in named
               if not (SOURCE / n).exists() and not (DEPLOY / n).exists()]
    assert missing == []


def test_readme_flags_are_real():
    text = (DEPLOY / "README.md").read_text()
    client = "".join(
        reprise(*command, "--help")
        for command in ([], ["health"], ["check"], ["bench"], ["infer"]))
    known = flags_of_reprised() | set(re.findall(r"--[a-z][a-z-]+", client))
    for line in text.splitlines():
        if not re.search(r"\breprised? (?:--|health|check|bench|infer)", line):
            continue
        unknown = set(re.findall(r"(?<!\w)--[a-z][a-z-]+", line)) - known
        assert not unknown, line
