"""Requests that came are recorded as shapes, and a warm-up by the file leaves nothing to compile."""

import json
import re
import signal
import subprocess

import numpy as np
import pytest

from testing import models
from testing.clients import together
from testing.daemon import BUILD, Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until

NAMES = ["input_ids", "attention_mask"]
PADDED = 'parameters { key: "reprise.packing" value { string_value: "off" } }\n'
TRAFFIC = [(1, 9), (2, 40), (1, 100), (3, 9), (1, 300), (4, 60)]


def compiles_of(daemon):
    by_reason = Scrape(daemon.metrics_url).by("reprise_compiles_total", "reason")
    return {reason: count for reason, count in by_reason.items() if count}


def record(daemon, model, path, send, *flags):
    """Records while `send` sends, until the command ends by itself; returns its output."""
    process = subprocess.Popen([str(BUILD / "reprise"), "record", model, "--server",
                                daemon.grpc_address, "--out", str(path), *flags],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended():
        send()  # requests before its first look are not among its requests
        return process.poll() is not None
    wait_until(ended)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.mark.parametrize("packing", ["off", "auto"])
def test_after_a_warmup_by_recorded_requests_the_traffic_compiles_nothing(
        repository, rng, tmp_path, packing):
    repository.add("bert", models.bert(), config=PADDED.replace("off", packing))
    traffic = [text_inputs(NAMES, rows, length, rng, 200) for rows, length in TRAFFIC]
    path = tmp_path / "requests.jsonl"
    with Daemon(repository) as daemon:
        client = daemon.client()
        told = record(daemon, "bert", path, lambda: [infer(client, "bert", one) for one in traffic],
                      "--requests", str(2 * len(traffic)))
        assert re.search(r": (\d+) of \1 requests, 6 shapes", told)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(line["sizes"]["batch"], line["sizes"]["sequence"]) for line in lines} == set(TRAFFIC)
    assert all(line["count"] >= 1 and line["model_name"] == "bert" for line in lines)
    with Daemon(repository) as daemon:
        daemon.reprise("warmup", "bert", "--requests", path)
        before = compiles_of(daemon)
        assert set(before) == {"warmup"}
        if packing == "auto":
            # Together requests may have any number of tokens, also between the numbers of one request.
            captured = json.loads(daemon.reprise("recipes", "bert", "--json"))["recipes"]
            assert {one["bucket"] for one in captured} == {f"t{16 << i}" for i in range(9)}
        for one in traffic:
            assert infer(daemon.client(), "bert", one).capture == "replayed"
        # Many at once share replays, and need no other recipes.
        answers = together(lambda one: infer(daemon.client(), "bert", one), traffic * 8, 24)
        assert {answer.capture for answer in answers} == {"replayed"}
        assert compiles_of(daemon) == before


def test_a_share_of_the_requests_is_recorded(repository, rng, tmp_path):
    repository.add("bert", models.bert(), config=PADDED)
    inputs = text_inputs(NAMES, 1, 9, rng, 200)
    path = tmp_path / "requests.jsonl"
    with Daemon(repository) as daemon:
        client = daemon.client()
        told = json.loads(record(daemon, "bert", path, lambda: infer(client, "bert", inputs),
                                 "--requests", "40", "--sample", "0.25", "--json"))
        recorded, came = told["recorded"], told["requests"]
        assert came >= 40 and recorded == came // 4 and told["shapes"] == 1
        line, = (json.loads(line) for line in path.read_text().splitlines())
        assert line == {"model_name": "bert", "count": recorded,
                        "sizes": {"batch": 1, "sequence": 9},
                        "inputs": {"input_ids": "1x9", "attention_mask": "1x9"}}


def test_ctrl_c_ends_a_recording_that_then_has_what_came(repository, tmp_path):
    repository.add("mixes", models.mixes_sequence())
    path = tmp_path / "requests.jsonl"
    with Daemon(repository) as daemon:
        client = daemon.client()
        process = subprocess.Popen([str(BUILD / "reprise"), "record", "mixes", "--server",
                                    daemon.grpc_address, "--out", str(path)],
                                   stdout=subprocess.PIPE, text=True)
        wait_until(path.exists)
        for length in (10, 12, 12) * 3:
            infer(client, "mixes", {"x": np.ones((1, length), np.float32)})
        process.send_signal(signal.SIGINT)
        assert ": 9 of 9 requests, 2 shapes" in process.communicate(timeout=60)[0]
        assert process.returncode == 0
    # Sizes that no bucket holds are captured exactly, for every bucket of rows that may share a replay.
    with Daemon(repository) as daemon:
        assert "12 of 12 recipes" in daemon.reprise("warmup", "mixes", "--requests", path)
        captured = json.loads(daemon.reprise("recipes", "mixes", "--json"))["recipes"]
        assert {one["binding"] for one in captured} == {
            f"batch={rows},sequence={length}" for rows in (1, 2, 4, 8, 16, 32) for length in (10, 12)}
        for length in (10, 12):
            answer = infer(daemon.client(), "mixes", {"x": np.ones((1, length), np.float32)})
            assert answer.capture == "replayed"


@pytest.fixture(scope="module")
def bert_daemon(module_repository):
    module_repository.add("bert", models.bert(), config=PADDED)
    with Daemon(module_repository) as running:
        yield running


@pytest.mark.parametrize("line, why", [
    ('{"sizes": {"batch": 1}}', "no axis sequence"),
    ('{"sizes": {"batch": 1, "sequence": 9, "height": 3}}', "no axis 'height'"),
    ('{"sizes": {"batch": 1, "sequence": 0}}', "line 1 .* axis 'sequence' is 0"),
    ('{"sizes": 3}', "line 1 .* no object \"sizes\""),
    ('{"model_name": "other", "sizes": {}}', "no request of model 'bert'"),
    ("{", "line 1 .* no JSON"),
])
def test_a_file_that_does_not_fit_is_refused_by_name(bert_daemon, tmp_path, line, why):
    path = tmp_path / "requests.jsonl"
    path.write_text(line + "\n")
    wrong = bert_daemon.reprise("warmup", "bert", "--requests", path, check=False)
    assert wrong.returncode == 1 and re.search(why, wrong.stderr), wrong.stderr
