"""Ops that eager runs prepare have bytes of their own: beyond them the least recently used goes, answers stay right."""


import numpy as np
import pytest

from testing import models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, tensors, text_inputs
from testing.metrics import Scrape
from testing.repository import PADDED

NAMES = ["input_ids", "attention_mask"]
MB = 1 << 20


def infer_eagerly(client, inputs):
    result = client.infer("model", tensors(inputs), parameters={"reprise.on_miss": "eager"})
    response = result.get_response()
    assert response.parameters["reprise.capture"].string_param == "eager"
    return {output.name: result.as_numpy(output.name) for output in response.outputs}


class Use:
    def __init__(self, daemon):
        scrape = Scrape(daemon.metrics_url)
        outcomes = scrape.by("reprise_eager_cache_requests_total", "outcome", model="model")
        self.hits, self.misses = outcomes.get("hit", 0), outcomes.get("miss", 0)
        self.ops = scrape.total("reprise_eager_cache_ops", model="model")
        self.bytes = scrape.total("reprise_eager_cache_bytes", model="model")
        self.evictions = scrape.total("reprise_eager_cache_evictions_total", model="model")
        self.compiles = scrape.total("reprise_compiles_total", model="model")
        self.recipes = scrape.total("reprise_cache_recipes")


def test_shapes_beyond_the_limit_drive_out_the_oldest_and_every_answer_is_right(repository, rng):
    path = repository.add("model", models.bert(), config=PADDED)
    with Daemon(repository, "--eager-cache-memory-mb", "1") as daemon:
        client = daemon.client()
        lengths, sent = list(range(1, 200)), 0
        for length in lengths:
            inputs = text_inputs(NAMES, 1, length, rng, 200)
            assert_same_answer(infer_eagerly(client, inputs), reference(path, inputs), length)
            sent += 1
            if length % 20 == 0:
                assert Use(daemon).bytes <= MB
        use = Use(daemon)
        assert use.evictions > 0, "the limit is too large for this test"
        assert use.misses == sent and use.hits == 0
        assert use.ops == use.misses - use.evictions
        # The last is there, the first is not.
        infer_eagerly(client, text_inputs(NAMES, 1, lengths[-1], rng, 200))
        assert Use(daemon).hits == 1
        infer_eagerly(client, text_inputs(NAMES, 1, lengths[0], rng, 200))
        after = Use(daemon)
        assert (after.hits, after.misses) == (1, sent + 1)
        assert after.bytes <= MB
        # None of it is a recipe.
        assert after.compiles == 0 and after.recipes == 0


def test_runs_go_on_with_what_is_driven_out_under_them(repository):
    path = repository.add("model", models.bert(), config=PADDED)
    with Daemon(repository, "--eager-cache-memory-mb", "1", "--streams", "2") as daemon:
        def work(seed):
            rng, client = np.random.default_rng(seed), daemon.client()
            for length in rng.integers(1, 300, 60):
                inputs = text_inputs(NAMES, 1, int(length), rng, 200)
                assert_same_answer(infer_eagerly(client, inputs), reference(path, inputs), length)

        together(work, range(8))
        use = Use(daemon)
        assert use.evictions > 0 and use.bytes <= MB
        assert use.hits + use.misses == 8 * 60


@pytest.mark.parametrize("length", [3, 300])
def test_without_room_everything_is_prepared_anew_and_answers(repository, rng, length):
    path = repository.add("model", models.bert(), config=PADDED)
    with Daemon(repository, "--eager-cache-memory-mb", "0") as daemon:
        client = daemon.client()
        inputs = text_inputs(NAMES, 1, length, rng, 200)
        for _ in range(2):
            assert_same_answer(infer_eagerly(client, inputs), reference(path, inputs))
        use = Use(daemon)
        assert (use.hits, use.misses, use.ops, use.bytes) == (0, 2, 0, 0)


def test_shapes_seen_once_of_a_model_that_is_never_padded_stay_in_their_room(repository, rng):
    """Beyond reprise.max_exact a shape that is new runs eagerly, whichever request asked for it."""
    path = repository.add("model", models.mixes_sequence(),
                          config='parameters { key: "reprise.max_exact" value { string_value: "2" } }\n'
                                 'parameters { key: "reprise.padding.sequence" value { string_value: "off" } }')
    with Daemon(repository, "--eager-cache-memory-mb", "1") as daemon:
        client = daemon.client()
        for length in range(1, 101):
            inputs = {"x": rng.normal(size=(1, length)).astype(np.float32)}
            answer = infer(client, "model", inputs)
            assert answer.capture == ("captured" if length <= 2 else "eager")
            assert_same_answer(answer.outputs, reference(path, inputs), length)
        use = Use(daemon)
        assert use.recipes == 2 and use.misses == 98 and use.bytes <= MB
