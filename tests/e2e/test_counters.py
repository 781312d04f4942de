"""The metrics count the same as the response parameters say."""

import threading

import numpy as np
import pytest

from testing import models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape
from testing.repository import MINILM, PADDED

SEQUENCES = [16, 32, 64, 128, 256, 512]
ROWS = [1, 2, 4, 8, 16, 32]
MAX_TOKENS = 4096
NAMES = ["input_ids", "attention_mask"]


def buckets():
    return [(rows, length) for length in SEQUENCES for rows in ROWS if rows * length <= MAX_TOKENS]


def capture_every_bucket(client, model, rng):
    for rows, length in buckets():
        answer = infer(client, model, text_inputs(NAMES, rows, length, rng, 200))
        assert answer.bucket == f"b{rows}_s{length}"


@pytest.fixture(scope="module")
def warm(module_repository):
    """Starts a daemon in which every bucket of `bert` was captured."""
    module_repository.add("bert", models.bert(), config=PADDED)
    with Daemon(module_repository) as daemon:
        capture_every_bucket(daemon.client(), "bert", np.random.default_rng(1))
        yield daemon


def test_each_bucket_was_compiled_once(warm):
    scrape = Scrape(warm.metrics_url)
    assert scrape.total("reprise_compiles_total", model="bert") == len(buckets())
    reasons = scrape.by("reprise_compiles_total", "reason", model="bert")
    assert reasons == {"first_request": 1, "new_shape": len(buckets()) - 1}
    assert scrape.total("reprise_cache_recipes") == len(buckets())


def test_random_lengths_compile_nothing_and_counters_agree_with_the_answers(warm, rng):
    before = Scrape(warm.metrics_url)
    client = warm.client()
    batches, tokens = set(), 0
    for _ in range(200):
        length = int(rng.integers(1, 513))
        answer = infer(client, "bert", text_inputs(NAMES, 1, length, rng, 200))
        assert answer.capture == "replayed"
        batches.update(answer.batches)
        tokens += length
    after = Scrape(warm.metrics_url)

    def growth(name, **labels):
        return after.total(name, model="bert", **labels) - before.total(name, model="bert", **labels)

    assert growth("reprise_compiles_total") == 0
    assert growth("reprise_replays_total") == len(batches)
    assert growth("reprise_requests_total", code="OK") == 200
    assert growth("reprise_cache_requests_total", tier="memory", outcome="miss") == 0
    assert growth("reprise_elements_total", axis="sequence", kind="valid") == tokens
    assert growth("reprise_request_duration_seconds_count") == 200
    assert growth("reprise_request_length_count", axis="sequence") == 200
    assert growth("reprise_request_length_sum", axis="sequence") == tokens


def test_replays_by_bucket_grow_with_the_buckets_of_the_answers(warm, rng):
    before = Scrape(warm.metrics_url).by("reprise_replays_total", "bucket", model="bert")
    client = warm.client()
    seen = {}
    for length in [3, 20, 20, 100, 500, 10, 64]:
        answer = infer(client, "bert", text_inputs(NAMES, 1, length, rng, 200))
        seen.setdefault(answer.bucket, set()).update(answer.batches)
    after = Scrape(warm.metrics_url).by("reprise_replays_total", "bucket", model="bert")
    grown = {b: after[b] - before.get(b, 0) for b in after if after[b] != before.get(b, 0)}
    assert grown == {bucket: len(ids) for bucket, ids in seen.items()}


def test_concurrent_requests_of_different_lengths_share_replays_and_counters_agree(warm, rng):
    before = Scrape(warm.metrics_url)
    requests = [text_inputs(NAMES, 1, int(length), rng, 200)
                for length in rng.integers(1, 65, 128)]
    answers, start = [], threading.Barrier(32)

    def work(part):
        client = warm.client()
        start.wait()
        for inputs in part:
            answers.append(infer(client, "bert", inputs))

    together(work, (requests[i::32] for i in range(32)))
    after = Scrape(warm.metrics_url)
    assert len(answers) == 128
    ids = {i for answer in answers for i in answer.batches}
    grown = (after.total("reprise_replays_total", model="bert")
             - before.total("reprise_replays_total", model="bert"))
    assert grown == len(ids)
    assert max(a.parameters["reprise.batch_size"] for a in answers) > 1, "nothing was batched"
    assert len(ids) < 128


@pytest.mark.parametrize("model, names, config, kind", [
    (MINILM, ["input_ids", "attention_mask", "token_type_ids"], "", "t"),
    (models.bert(), ["input_ids", "attention_mask"], PADDED, "b32_s")], ids=["packed", "padded"])
def test_sixty_four_clients_at_one_cold_length_cause_one_compile(repository, rng, model, names,
                                                                 config, kind):
    repository.add("model", model, config=config)
    with Daemon(repository) as daemon:
        # All together stay below the largest queue: 20 replays of the largest bucket.
        inputs = text_inputs(names, 32, 35, rng, 200)
        answers, start = [], threading.Barrier(64)

        def work(_):
            client = daemon.client()
            start.wait()
            answers.append(infer(client, "model", inputs, timeout_s=600))

        together(work, range(64))
        captures = [answer.capture for answer in answers]
        assert captures.count("captured") == 1, captures
        assert set(captures) <= {"captured", "waited", "replayed"}, captures
        (bucket,) = {answer.bucket for answer in answers}
        assert bucket.startswith(kind)
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_compiles_total", model="model") == 1
        ids = {i for answer in answers for i in answer.batches}
        assert scrape.total("reprise_replays_total", model="model") == len(ids)
        first = answers[0].outputs["last_hidden_state"]
        for answer in answers[1:]:
            assert np.abs(answer.outputs["last_hidden_state"] - first).max() <= 1e-5 * np.abs(
                first).max()
