"""The shipped Prometheus configuration and rules, by promtool."""

import shutil
import subprocess

import yaml

from testing.daemon import SOURCE

FOLDER = SOURCE / "deploy/prometheus"
RULE_FILES = [FOLDER / "recording.yml", FOLDER / "alerts.yml"]
TESTS = SOURCE / "tests/deploy/rules_test.yml"


def promtool(*arguments, cwd=None):
    done = subprocess.run(["promtool", *map(str, arguments)], cwd=cwd, capture_output=True,
                          text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def alerts():
    return [rule["alert"] for path in RULE_FILES
            for group in yaml.safe_load(path.read_text())["groups"]
            for rule in group["rules"] if "alert" in rule]


def run_rule_tests(folder, change=lambda text: text):
    """Runs the rule tests on a copy of the rules."""
    for path in RULE_FILES:
        (folder / path.name).write_text(change(path.read_text()))
    shutil.copy(TESTS, folder)
    return promtool("test", "rules", TESTS.name, cwd=folder)


def test_configuration_is_valid_and_loads_every_rule_file():
    code, text = promtool("check", "config", FOLDER / "prometheus.yml")
    assert code == 0, text
    loaded = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["rule_files"]
    assert sorted(loaded) == sorted(path.name for path in RULE_FILES)


def test_rules_are_valid():
    code, text = promtool("check", "rules", *RULE_FILES)
    assert code == 0, text


def test_alerts_fire_and_are_silent_as_the_rule_tests_say(tmp_path):
    code, text = run_rule_tests(tmp_path)
    assert code == 0, text


def test_rule_tests_notice_a_wrong_bound(tmp_path):
    code, text = run_rule_tests(tmp_path, lambda rules: rules.replace("> 0.5", "> 0.9"))
    assert code != 0 and "ReprisePaddingShare" in text


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not():
    fires, silent = set(), set()
    for test in yaml.safe_load(TESTS.read_text())["tests"]:
        for case in test.get("alert_rule_test", []):
            (fires if case.get("exp_alerts") else silent).add(case["alertname"])
    assert fires == set(alerts())
    assert silent == set(alerts())


def test_alerts_say_what_happened_and_what_to_do():
    for path in RULE_FILES:
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                if "alert" not in rule:
                    continue
                assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule
                assert set(rule["annotations"]) == {"summary", "action"}, rule
