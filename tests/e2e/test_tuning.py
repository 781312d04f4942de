"""After a quick capture the kernels are timed in the background, and the recipe is exchanged for a better one."""


import numpy as np

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.repository import PADDED

NAMES = ["input_ids", "attention_mask"]
LENGTHS = [10, 30, 60, 120, 250, 500]


def config(**parameters):
    return PADDED + "".join(
        f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in {"capture": "inline", "bucket_policy": "off", **parameters}.items())


def tunes(daemon):
    return Scrape(daemon.metrics_url).total("reprise_tunes_total")


def wait_for_tunes(daemon, count):
    wait_until(lambda: tunes(daemon) >= count, explain=daemon.log)


def assert_close(got, wanted):
    for name, value in wanted.outputs.items():
        assert np.abs(got.outputs[name] - value).max() <= 1e-5 * np.abs(value).max()


def test_recipes_are_exchanged_behind_the_traffic_and_answers_stay(repository, rng):
    repository.add("bert", models.bert(), config=config())
    inputs = [text_inputs(NAMES, 1, length, rng, 200) for length in LENGTHS]
    with Daemon(repository) as daemon:
        client = daemon.client()
        first = [infer(client, "bert", one) for one in inputs]
        while tunes(daemon) < len(LENGTHS):
            for one, wanted in zip(inputs, first):
                answer = infer(client, "bert", one)
                assert answer.capture == "replayed"
                assert answer.recipe == wanted.recipe
                assert_close(answer, wanted)
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_compiles_total") == len(LENGTHS)
        assert scrape.total("reprise_cache_recipes") == len(LENGTHS)
        batches = infer(client, "bert", inputs[0]).batch
        assert Scrape(daemon.metrics_url).total("reprise_replays_total") == batches
        # It is counted before it is told.
        wait_until(lambda: daemon.log().count("tuned recipe") == len(LENGTHS), explain=daemon.log)
        explained = daemon.reprise("explain", "bert")
        assert explained.count("tuned: ") == len(LENGTHS)
        assert "timed" in daemon.reprise("dump", "--recipe", first[0].recipe)


def test_second_start_knows_the_kernels(repository, tmp_path, rng):
    repository.add("bert", models.bert(), config=config())
    inputs = text_inputs(NAMES, 1, 60, rng, 200)
    flags = ["--recipe-cache", str(tmp_path / "store")]
    with Daemon(repository, *flags) as daemon:
        wanted = infer(daemon.client(), "bert", inputs)
        wait_for_tunes(daemon, 1)
    for recipe in (tmp_path / "store").glob("recipe-*"):
        recipe.unlink()
    with Daemon(repository, *flags) as daemon:
        assert_close(infer(daemon.client(), "bert", inputs), wanted)
        assert "tuned: by earlier timings" in daemon.reprise("explain", "bert")
        assert tunes(daemon) == 0


def test_nothing_is_tuned_that_says_so(repository, tmp_path, rng):
    """A frozen server or model that may not capture does not tune either."""
    sides = {"off": ({"tune": "off"}, []), "frozen": ({"frozen": "true"}, []),
             "server": ({}, ["--frozen"])}
    for side, (parameters, flags) in sides.items():
        repository.add(side, models.bert(), config=config(warmup="b1_s64", **parameters))
        with Daemon(repository, *flags) as daemon:
            client = daemon.client()
            answers = [infer(client, side, text_inputs(NAMES, 1, 60, rng, 200)) for _ in range(3)]
            assert [answer.capture for answer in answers] == ["replayed"] * 3
            assert "as captured, not tuned" in daemon.reprise("explain", side)
            assert tunes(daemon) == 0
        repository.remove(side)
