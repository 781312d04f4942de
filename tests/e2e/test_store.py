"""--recipe-cache: what a first start measured, a second one finds, and the counters say so."""

import numpy

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape

NAMES = ["input_ids", "attention_mask"]


def lookups(daemon):
    scrape = Scrape(daemon.metrics_url)
    return {outcome: scrape.total("reprise_cache_requests_total", tier="store", outcome=outcome)
            for outcome in ("hit", "miss")}, scrape.by("reprise_store_misses_total", "reason")


def test_second_start_finds_the_certificate_and_measures_nothing(repository, tmp_path):
    repository.add("bert", models.bert())
    flags = ["--recipe-cache", str(tmp_path / "store")]
    with Daemon(repository, *flags) as daemon:
        assert lookups(daemon) == ({"hit": 0, "miss": 1}, {"absent": 1})
        assert Scrape(daemon.metrics_url).total("reprise_probes_total") > 0
    with Daemon(repository, *flags) as daemon:
        assert lookups(daemon) == ({"hit": 1, "miss": 0}, {})
        assert Scrape(daemon.metrics_url).total("reprise_probes_total") == 0


def test_daemon_without_a_store_looks_nothing_up(repository):
    repository.add("bert", models.bert())
    with Daemon(repository) as daemon:
        assert lookups(daemon) == ({"hit": 0, "miss": 0}, {})


def warm(daemon, rng):
    client = daemon.client()
    for rows, length in [(1, 10), (1, 10), (1, 40), (2, 40), (1, 40), (1, 300), (1, 300)]:
        infer(client, "bert", text_inputs(NAMES, rows, length, rng, 200))


def test_second_start_is_ready_with_the_recipes_that_the_first_one_used(repository, tmp_path, rng):
    repository.add("bert", models.bert())
    flags = ["--recipe-cache", str(tmp_path / "store")]
    inputs = text_inputs(NAMES, 1, 40, rng, 200)
    with Daemon(repository, *flags) as daemon:
        warm(daemon, rng)
        before = infer(daemon.client(), "bert", inputs)
    with Daemon(repository, *flags) as daemon:
        assert "loaded recipe" in daemon.log()
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_compiles_total") == 0
        assert scrape.total("reprise_cache_recipes") > 0
        client = daemon.client()
        for length in (10, 40, 300):
            answer = infer(client, "bert", text_inputs(NAMES, 1, length, rng, 200))
            assert answer.capture == "replayed", length
        answer = infer(client, "bert", inputs)
        assert answer.recipe == before.recipe
        for name, value in before.outputs.items():
            assert numpy.array_equal(answer.outputs[name], value)
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 0
