"""--recipe-cache: what a first start measured, a second one finds, and the counters say so."""

from testing import models
from testing.daemon import Daemon
from testing.metrics import Scrape


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
