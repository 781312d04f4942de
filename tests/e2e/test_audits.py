"""A share of padded answers is computed again while a server serves; `reprise audit` does it on demand."""

import json

import pytest

from testing import models
from testing.daemon import Daemon, reprise, run_reprised
from testing.inference import infer, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until

MODELS = {"sentences": models.bert}


def audits(daemon, result):
    found = Scrape(daemon.metrics_url).find("reprise_audited_answers_total", model="sentences", result=result)
    return sum(value for _, value in found)


def ask(daemon, rng, lengths):
    for length in lengths:
        infer(daemon.client(), "sentences", text_inputs(["input_ids", "attention_mask"], 2, length, rng, 50))


def test_answers_of_traffic_are_equal_when_they_are_computed_alone(module_repository, paths, rng):
    lengths = [3, 9, 20, 33, 60]
    with Daemon(module_repository, "--audit-share", "1") as daemon:
        ask(daemon, rng, lengths)
        wait_until(lambda: audits(daemon, "equal") + audits(daemon, "skipped") >= len(lengths))
        assert audits(daemon, "equal") > 0 and audits(daemon, "different") == 0
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_audit_quarantined", model="sentences") == 0
        # An audit is no request and no replay.
        assert scrape.total("reprise_requests_total", model="sentences", code="OK") == len(lengths)
        assert scrape.total("reprise_replays_total", model="sentences") == len(lengths)


def test_one_in_a_thousand_is_looked_at_unless_said_otherwise(module_repository, paths, rng):
    with Daemon(module_repository) as daemon:
        ask(daemon, rng, [3, 9, 20])
        assert sum(audits(daemon, result) for result in ("equal", "different", "skipped")) == 0


def test_the_command_compares_made_up_requests_and_those_of_a_file(paths, tmp_path):
    path = paths["sentences"]
    found = json.loads(reprise("audit", path, "--json"))
    assert len(found) > 4 and not any(one["differs"] for one in found)
    assert any(one["bucket"] != "exact" for one in found)
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"input_ids": [[5, 6, 7]], "attention_mask": [[1, 1, 1]]}))
    table = reprise("audit", path, "--requests", request)
    assert "sequence=3" in table and "equal" in table
    recorded = tmp_path / "recorded"
    recorded.write_text('{"model_name": "served", "sizes": {"batch": 1, "sequence": 9}, "count": 2}\n')
    assert "sequence=9" in reprise("audit", path, "--requests", recorded, "--model", "served")


def test_a_file_that_is_no_request_is_refused_by_name(paths, tmp_path):
    file = tmp_path / "nonsense"
    file.write_text("nonsense")
    with pytest.raises(AssertionError, match="neither a request"):
        reprise("audit", paths["sentences"], "--requests", file)


def test_a_folder_for_requests_that_is_none_ends_the_start(module_repository, paths, tmp_path):
    ended = run_reprised("--model-repository", module_repository.root, "--audit-dir", tmp_path / "none")
    assert ended.returncode != 0 and "--audit-dir" in ended.stderr
