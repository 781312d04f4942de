"""README.md is true: its links, flags, parameters and metrics are those that there are."""

import re

import pytest

from testing import models
from testing.daemon import SOURCE, Daemon, flags_of_reprised
from testing.metrics import Scrape

README = (SOURCE / "README.md").read_text()


def test_links_lead_to_files():
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    assert [t for t in targets if "://" not in t and not (SOURCE / t).exists()] == []


def test_flags_are_those_of_the_daemon():
    real = flags_of_reprised() - {"--help", "--version"}
    section = README.split("## Flags of reprised")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"--[a-z][a-z-]+", "\n".join(rows))) == real


def test_parameters_are_those_of_the_server():
    source = (SOURCE / "server/config/model_parameters.cc").read_text()
    real = {name + rest for name, rest in re.findall(r'\{"(reprise\.[\w.]+)", "([^"]*)"', source)}
    section = README.split("## config.pbtxt")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(reprise\.[^`]+)`", section, re.M)) == real


@pytest.fixture(scope="module")
def scrape(module_repository):
    module_repository.add("bert", models.bert())
    with Daemon(module_repository) as daemon:
        return Scrape(daemon.metrics_url)


def test_metrics_are_those_of_a_scrape(scrape):
    section = README.split("## Metrics")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+?)(?:\{[^`]*\})?`", section))
    families = set(re.findall(r"^# TYPE (\w+) ", scrape.text, re.M))
    ours = {f for f in families if f.startswith("reprise_")}
    assert ours - named == set()
    # Counted once a node falls back, and of models that are cut: not there before.
    assert {n for n in named if n.startswith("reprise_")} - ours <= {
        "reprise_reference_kernels_total", "reprise_eager_nodes_total",
        "reprise_eager_seconds_total"}
