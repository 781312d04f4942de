"""A miss is never an outage: which requests wait for a capture, which do not, and what is reported about it."""

import re

import numpy as np
import pytest
import requests
from tritonclient.utils import InferenceServerException

from testing import models
from testing.clients import meanwhile, together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, tensors, text_inputs
from testing.metrics import Scrape
from testing.repository import PADDED

NAMES = ["input_ids", "attention_mask"]
SEQUENCES = [16, 32, 64, 128, 256, 512]
# Captures made for requests alone.
FIXED = PADDED + 'parameters { key: "reprise.bucket_policy" value { string_value: "off" } }'


def bucket_of(length):
    return next(s for s in SEQUENCES if length <= s)


def covers(recipes, rows, length):
    return any(r >= rows and s >= length for r, s in recipes)


def sizes(bucket):
    return tuple(int(n) for n in re.fullmatch(r"b(\d+)_s(\d+)", bucket).groups())


def chat(rng):
    return int(np.clip(rng.lognormal(3.2, 0.8), 1, 512))


def lumpy(rng):
    return int(rng.choice([7, 8, 60, 200, 450], p=[0.5, 0.2, 0.2, 0.09, 0.01]))


def drifting():
    state = {"at": 10.0}

    def draw(rng):
        state["at"] = min(state["at"] * 1.02, 480)
        return int(np.clip(rng.normal(state["at"], 4), 1, 512))

    return draw


TRACES = {"chat": chat, "lumpy": lumpy, "drifting": drifting()}


@pytest.mark.parametrize("trace", TRACES)
def test_a_request_waits_only_where_no_ready_recipe_is_large_enough(repository, trace):
    repository.add("bert", models.bert(), config=PADDED)
    rng = np.random.default_rng(11)
    ready = []  # (rows, length) of recipes that answers have named, in order
    with Daemon(repository) as daemon:
        client = daemon.client()
        for _ in range(250):
            length = TRACES[trace](rng)
            answer = infer(client, "bert", text_inputs(NAMES, 1, length, rng, 200))
            if answer.capture in ("captured", "waited"):
                assert not covers(ready, 1, length), (length, ready)
            else:
                assert answer.capture in ("replayed", "larger")
            ready.append(sizes(answer.bucket))
        # One after another, at most one request waits for each capture.
        before = Scrape(daemon.metrics_url).total("reprise_compiles_total", model="bert")
        assert before <= len(SEQUENCES)


def test_after_the_traffic_has_settled_nothing_is_captured(repository):
    repository.add("bert", models.bert(), config=FIXED)
    with Daemon(repository) as daemon:
        rng = np.random.default_rng(5)

        def burst(count):
            lengths = [chat(rng) for _ in range(count)]

            def work(part):
                client = daemon.client()
                for length in part:
                    inputs = text_inputs(NAMES, 1, length, np.random.default_rng(1), 200)
                    infer(client, "bert", inputs)

            together(work, (lengths[i::8] for i in range(8)))
            return Scrape(daemon.metrics_url).total("reprise_compiles_total", model="bert")

        compiles = [burst(200)]
        # Settled: two bursts in a row without a capture.
        while len(compiles) < 3 or compiles[-1] != compiles[-3]:
            compiles.append(burst(200))
            assert len(compiles) < 30, compiles
        assert compiles[-1] <= 36


def test_a_larger_recipe_gives_the_same_answer_and_its_own_bucket_follows(repository, rng):
    path = repository.add("bert", models.bert(), config=FIXED)
    inputs = text_inputs(NAMES, 1, 9, rng, 200)
    with Daemon(repository) as daemon:
        client = daemon.client()
        infer(client, "bert", text_inputs(NAMES, 1, 500, rng, 200))
        seen = []
        while not seen or seen[-1].capture != "replayed":
            seen.append(infer(client, "bert", inputs))
            assert seen[-1].capture in ("larger", "replayed"), seen[-1]
            assert len(seen) < 5000
        assert seen[0].capture == "larger" and seen[0].bucket == "b1_s512"
        assert seen[-1].bucket == "b1_s16"
        expected = reference(path, inputs)
        for answer in (seen[0], seen[-1]):
            assert_same_answer(answer.outputs, expected)
        log = daemon.log()
        assert re.search(r"captured b1_s512 .* because of first_request .*1 request waited", log)
        assert re.search(r"captured b1_s16 .*nearest was b1_s512 \(sequence 512, not 16\); no request "
                         r"waited; to avoid it: reprise.warmup", log)


def with_on_miss(client, inputs, choice):
    result = client.infer("bert", tensors(inputs), parameters={"reprise.on_miss": choice})
    return result.get_response().parameters["reprise.capture"].string_param


def test_frozen_daemon_captures_nothing_and_says_what_it_did(repository, rng):
    repository.add("bert", models.bert(), config=PADDED)
    with Daemon(repository, "--frozen") as daemon:
        client = daemon.client()
        inputs = text_inputs(NAMES, 1, 9, rng, 200)
        for choice in (None, "pad", "wait", "reject"):
            with pytest.raises(InferenceServerException, match="b1_s16.*frozen") as refused:
                infer(client, "bert", inputs) if choice is None else with_on_miss(client, inputs,
                                                                                  choice)
            assert "FAILED_PRECONDITION" in refused.value.status()
        assert with_on_miss(client, inputs, "eager") == "eager"
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_compiles_total", model="bert") == 0
        assert scrape.total("reprise_requests_total", model="bert", code="FAILED_PRECONDITION") == 4


def test_a_request_chooses_what_a_miss_does(repository, rng):
    repository.add("bert", models.bert(), config=PADDED)
    with Daemon(repository) as daemon:
        client = daemon.client()
        long, short = (text_inputs(NAMES, 1, n, rng, 200) for n in (100, 9))
        with pytest.raises(InferenceServerException, match="no recipe is ready"):
            with_on_miss(client, long, "pad")
        assert with_on_miss(client, long, "wait") == "captured"
        assert with_on_miss(client, short, "pad") == "larger"
        with pytest.raises(InferenceServerException, match="nearest that is ready is b1_s128"):
            with_on_miss(client, short, "reject")
        assert with_on_miss(client, short, "wait") == "captured"
        assert with_on_miss(client, short, "reject") == "replayed"
        with pytest.raises(InferenceServerException, match="pad, wait, eager, reject or frozen"):
            with_on_miss(client, short, "hope")


def test_a_model_is_frozen_and_thawed_while_it_serves(repository, rng):
    repository.add("bert", models.bert(), config=PADDED)
    with Daemon(repository) as daemon:
        client = daemon.client()
        long, short, longer = (text_inputs(NAMES, 1, n, rng, 200) for n in (100, 9, 200))
        infer(client, "bert", long)
        # One request of a model that is not frozen.
        with pytest.raises(InferenceServerException, match="b1_s256.*on_miss is frozen") as refused:
            with_on_miss(client, longer, "frozen")
        assert "FAILED_PRECONDITION" in refused.value.status()
        assert with_on_miss(client, short, "frozen") == "larger"

        assert daemon.reprise("freeze", "bert") == "model 'bert' version 1 is frozen\n"
        with pytest.raises(InferenceServerException, match="b1_s256.*the model is frozen") as refused:
            infer(client, "bert", longer)
        assert "FAILED_PRECONDITION" in refused.value.status()
        assert infer(client, "bert", short).capture in ("larger", "replayed")
        assert client.get_model_repository_index().models[0].reason == "frozen"
        assert "frozen" in daemon.reprise("models")
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_model_frozen", model="bert") == 1

        thawed = requests.post(daemon.http_url + "/v2/repository/thaw", timeout=60)
        assert thawed.json() == {"models": [{"model": "bert", "version": "1", "frozen": False, "asleep": False}]}
        assert infer(client, "bert", longer).capture in ("captured", "waited")
        assert Scrape(daemon.metrics_url).total("reprise_model_frozen", model="bert") == 0
        unknown = requests.post(daemon.http_url + "/v2/repository/models/none/freeze", timeout=60)
        assert unknown.status_code == 404 and "none" in unknown.json()["error"]


def test_a_frozen_daemon_is_thawed(repository, rng):
    repository.add("bert", models.bert(), config=PADDED)
    with Daemon(repository, "--frozen") as daemon:
        inputs = text_inputs(NAMES, 1, 9, rng, 200)
        assert not daemon.readiness()["ready"]
        with pytest.raises(InferenceServerException, match="frozen"):
            infer(daemon.client(), "bert", inputs)
        assert daemon.reprise("thaw", "--all") == "model 'bert' version 1 is not frozen\n"
        assert daemon.readiness()["ready"]
        assert infer(daemon.client(), "bert", inputs).capture == "captured"
        assert daemon.reprise("thaw", check=False).returncode == 2


def test_two_cold_buckets_at_once_hold_up_no_warm_one(repository, rng):
    """With one stream, a leader that captured itself would answer no other client meanwhile."""
    repository.add("bert", models.bert(), config=PADDED)
    with Daemon(repository, "--streams", "1") as daemon:
        client = daemon.client()
        infer(client, "bert", text_inputs(NAMES, 1, 16, rng, 200))
        cold = [text_inputs(NAMES, rows, length, rng, 200)
                for rows, length in [(1, 500), (4, 250), (16, 100), (32, 60)]]
        with meanwhile(lambda inputs: infer(daemon.client(), "bert", inputs), cold) as waiting:
            while not all(one.done() for one in waiting):
                warm = infer(client, "bert", text_inputs(NAMES, 1, 16, rng, 200))
                assert warm.capture in ("replayed", "larger")
        captures = {one.result().capture for one in waiting}
        assert captures <= {"captured", "waited", "larger"}
