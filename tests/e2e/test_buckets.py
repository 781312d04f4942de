"""Buckets follow the traffic: with no configuration, at no request's cost, and visibly."""

import re

import numpy as np

from testing import models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.repository import PADDED

NAMES = ["input_ids", "attention_mask"]


def lumps(rng, centres):
    return int(rng.choice(centres)) - int(rng.integers(0, 3))


def length_of(bucket):
    return int(re.fullmatch(r"b\d+_s(\d+)", bucket).group(1))


def traffic(daemon, lengths, clients=2):
    """Answers with their lengths, in no order; errors fail the test."""
    answers = []

    def work(part):
        client, rng = daemon.client(), np.random.default_rng(1)
        for length in part:
            answer = infer(client, "bert", text_inputs(NAMES, 1, length, rng, 200))
            answers.append((length, answer))

    together(work, (lengths[i::clients] for i in range(clients)))
    return answers


def changes(daemon):
    return Scrape(daemon.metrics_url).total("reprise_bucket_changes_total", model="bert")


def wait_for_changes(daemon, count, rng, centres):
    """More of the same traffic until the buckets have changed; how many requests it took."""
    sent = []

    def send():
        lengths = [lumps(rng, centres) for _ in range(64)]
        traffic(daemon, lengths)
        sent.extend(lengths)

    wait_until(lambda: changes(daemon) >= count, meanwhile=send, explain=daemon.log)
    return len(sent)


def padding(scrape):
    elements = scrape.by("reprise_elements_total", "kind", model="bert", axis="sequence")
    return elements.get("padded", 0), elements["valid"]


def test_buckets_follow_the_traffic_and_its_drift_and_no_request_waits(repository, rng):
    path = repository.add("bert", models.bert(), config=PADDED)
    first, then = [40, 70, 140, 300], [25, 100, 200, 410]
    with Daemon(repository) as daemon:
        client = daemon.client()
        infer(client, "bert", text_inputs(NAMES, 2, 512, rng, 200))
        answers = traffic(daemon, [lumps(rng, first) for _ in range(600)])
        wait_for_changes(daemon, 1, rng, first)

        # 40% with the buckets that it began with.
        before = Scrape(daemon.metrics_url)
        answers += traffic(daemon, [lumps(rng, first) for _ in range(400)])
        after = Scrape(daemon.metrics_url)
        padded, valid = (b - a for a, b in zip(padding(before), padding(after)))
        assert padded / (padded + valid) < 0.12

        sent = 256
        answers += traffic(daemon, [lumps(rng, then) for _ in range(sent)])
        inputs = text_inputs(NAMES, 1, 410, rng, 200)
        served = infer(client, "bert", inputs)
        while length_of(served.bucket) > 420:
            answers += traffic(daemon, [lumps(rng, then) for _ in range(64)])
            sent += 64
            assert sent <= 2000, daemon.log()
            served = infer(client, "bert", inputs)
        assert_same_answer(served.outputs, reference(path, inputs))

        assert {answer.capture for _, answer in answers} <= {"replayed", "larger"}
        assert all(length_of(answer.bucket) >= length for length, answer in answers)
        scrape = Scrape(daemon.metrics_url)
        assert scrape.by("reprise_compiles_total", "reason", model="bert")["bucket_change"] > 0
        assert scrape.total("reprise_captures_saved_total", model="bert") > 0
        wasted = scrape.by("reprise_wasted_seconds_total", "axis", model="bert")
        assert wasted["sequence"] > 0 and "batch" not in wasted
        assert "buckets in force: sequence" in daemon.log()
        text = daemon.reprise("explain", "bert")
        assert "follow the traffic" in text and re.search(r"changed [1-9]\d* times", text)


def test_suggested_buckets_are_shown_and_nothing_changes(repository, rng):
    repository.add("bert", models.bert(), config=PADDED + (
        'parameters { key: "reprise.bucket_policy" value { string_value: "suggest" } }'))
    centres = [40, 70, 140]
    with Daemon(repository) as daemon:
        def saving():
            return Scrape(daemon.metrics_url).total("reprise_bucket_suggested_saving_ratio",
                                                    model="bert")

        wait_until(lambda: saving() > 0.02,
                   meanwhile=lambda: traffic(daemon, [lumps(rng, centres) for _ in range(128)]),
                   explain=daemon.log)
        assert changes(daemon) == 0
        assert "reprise.bucket_policy suggest" in daemon.log()
        text = daemon.reprise("explain", "bert")
        assert re.search(r"better +sequence [\d,]*,512: saves", text), text
        assert "in force sequence 16,32,64,128,256,512" in text
