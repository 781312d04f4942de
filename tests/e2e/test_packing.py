"""Packed models: requests of all lengths share replays without padding, and get their answers."""

import re

import numpy as np
import pytest

from testing import exporters, families, models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape
from testing.repository import MINILM, PARAPHRASE

CONFIG = 'parameters { key: "reprise.packing" value { string_value: "auto" } }\n'
BERT_INPUTS = ["input_ids", "attention_mask", "token_type_ids"]

# Maker, inputs, vocabulary, longest request.
MODELS = {
    "minilm": (lambda: MINILM, BERT_INPUTS, 1000, 128),
    "paraphrase": (lambda: PARAPHRASE, BERT_INPUTS[:2], 1000, 128),
    "bert": (lambda: models.bert(opset=13, layers=3), BERT_INPUTS[:2], 200, 128),
    **{
        name: (make, exporters.INPUTS.get(name, BERT_INPUTS[:2]), exporters.VOCABULARY,
               exporters.POSITIONS)
        for name, make in exporters.ALL.items()
    },
}
PICKS = [f"{family}_{style}" for family in ("last_token", "last_position", "largest_id")
         for style in ("optimum", "dynamo")]
# A row of zeros hides all of its tokens. (The others of that style hide by a number whose digits
# such a row shows.)
ANY_MASK = ["last_token_dynamo", "largest_id_dynamo", "last_position_dynamo"]
MODELS |= {name: (families.ALL[name], BERT_INPUTS[:2], families.VOCABULARY, families.POSITIONS)
           for name in PICKS}
REFUSED = {"mixes_sequence": models.mixes_sequence, "similarity": models.similarity}
PACKED = ["minilm", "paraphrase", "bert"]


@pytest.fixture(scope="module")
def served(module_repository):
    paths = {
        name: module_repository.add(name, make(), config=CONFIG)
        for name, (make, *_) in MODELS.items()
    }
    for name, make in REFUSED.items():
        paths[name] = module_repository.add(name, make(), config=CONFIG)
    with Daemon(module_repository) as daemon:
        yield daemon, paths


def mixed_inputs(names, vocabulary, longest, count, rng):
    """Requests of one to three rows, most of them short, with masks of all kinds."""
    requests = []
    for i in range(count):
        rows = int(rng.integers(1, 4))
        length = int(np.clip(rng.lognormal(3, 1), 1, longest))
        inputs = text_inputs(names, rows, length, rng, vocabulary, ragged=i % 2 == 0)
        if i % 5 == 0 and "attention_mask" in inputs:
            inputs["attention_mask"][:, : length // 2] = 0  # padded on the left
        requests.append(inputs)
    return requests


@pytest.mark.parametrize("model", MODELS)
def test_concurrent_requests_of_all_lengths_get_their_answers(served, rng, model):
    daemon, paths = served
    _, names, vocabulary, longest = MODELS[model]
    requests = mixed_inputs(names, vocabulary, longest, 48, rng)
    client = daemon.client()
    answers = together(lambda inputs: infer(client, model, inputs), requests, clients=16)
    for inputs, answer in zip(requests, answers):
        ids = next(iter(inputs.values()))
        expected = reference(paths[model], inputs)
        # Scores of a row that masks everything out are rounded at the size of the mask's constant.
        alive = inputs.get("attention_mask", np.ones_like(ids)).any(axis=1)
        assert_same_answer({k: v[alive] for k, v in answer.outputs.items()},
                           {k: v[alive] for k, v in expected.items()}, f"{model}, {ids.shape}")
        for name, array in expected.items():
            np.testing.assert_allclose(answer.outputs[name][~alive], array[~alive], 1e-3, 1e-3)


@pytest.mark.parametrize("model", PACKED)
def test_nothing_is_computed_that_no_client_sent(served, rng, model):
    daemon, _ = served
    _, names, vocabulary, longest = MODELS[model]
    before = Scrape(daemon.metrics_url)
    requests = mixed_inputs(names, vocabulary, longest, 32, rng)
    client = daemon.client()
    answers = together(lambda inputs: infer(client, model, inputs), requests, clients=16)
    after = Scrape(daemon.metrics_url)

    def count(kind, axis):
        labels = {"model": model, "axis": axis, "kind": kind}
        return after.total("reprise_elements_total", **labels) - before.total(
            "reprise_elements_total", **labels)

    packed = [a for a in answers if re.fullmatch(r"t\d+", a.bucket)]
    assert len(packed) >= len(answers) - 5  # a row that masks everything out runs exact
    assert count("valid", "sequence") == sum(i["input_ids"].size for i in requests)
    assert count("padded", "sequence") == 0
    assert count("valid", "batch") == sum(len(i["input_ids"]) for i in requests)
    assert max(a.parameters["reprise.batch_size"] for a in answers) > 3, "nobody shared a replay"


def hostile_masks(rows, length, rng):
    """Rows that end or begin in zeros, with holes of all sizes, that mask everything out."""
    masks = np.ones((rows, length), np.int64)
    for mask in masks:
        begin, end = np.sort(rng.integers(0, length + 1, 2))
        if (kind := rng.integers(5)) == 0:
            mask[end:] = 0
        elif kind == 1:
            mask[:begin] = 0
        elif kind == 2:
            mask[begin:end] = 0
        elif kind == 3:
            mask[:] = rng.random(length) < 0.05
        else:
            mask[:] = 0
    return masks


@pytest.mark.parametrize("model", ["window_bert", "deberta", *ANY_MASK])
def test_positions_that_see_no_key_are_answered_among_others(served, rng, model):
    daemon, paths = served
    _, names, vocabulary, longest = MODELS[model]
    requests = []
    for _ in range(48):
        rows, length = int(rng.integers(1, 9)), int(rng.integers(1, longest + 1))
        inputs = text_inputs(names, rows, length, rng, vocabulary)
        requests.append(inputs | {"attention_mask": hostile_masks(rows, length, rng)})
    before = Scrape(daemon.metrics_url)
    client = daemon.client()
    answers = together(lambda inputs: infer(client, model, inputs), requests, clients=16)
    for inputs, answer in zip(requests, answers):
        assert re.fullmatch(r"t\d+", answer.bucket), inputs["attention_mask"]
        assert_same_answer(answer.outputs, reference(paths[model], inputs), model)
    after = Scrape(daemon.metrics_url)
    captured, buckets = (
        after.total("reprise_compiles_total", model=model) -
        before.total("reprise_compiles_total", model=model), {a.bucket for a in answers})
    assert captured <= len(buckets), f"{captured} captures for {buckets}"


@pytest.mark.parametrize("model", PICKS)
def test_the_tokens_that_masks_and_ids_pick_are_those_of_their_own_rows(served, rng, model):
    daemon, paths = served
    _, names, vocabulary, longest = MODELS[model]
    requests = []
    for i in range(48):
        rows, length = int(rng.integers(1, 9)), int(rng.integers(1, longest + 1))
        inputs = text_inputs(names, rows, length, rng, vocabulary, ragged=True)
        if i % 2 == 0:
            inputs["attention_mask"] = hostile_masks(rows, length, rng)
        requests.append(inputs)
    client = daemon.client()
    answers = together(lambda inputs: infer(client, model, inputs), requests, clients=16)
    for inputs, answer in zip(requests, answers):
        assert_same_answer(answer.outputs, reference(paths[model], inputs), model)
    # Those that the certificate lets share a replay do.
    assert all(re.fullmatch(r"t\d+", answer.bucket) for answer in answers[1::2])


@pytest.mark.parametrize("model", REFUSED)
def test_model_that_cannot_be_packed_is_served_and_says_why(served, rng, model):
    daemon, paths = served
    inputs = {"x": rng.normal(size=(2, 8)).astype(np.float32)}
    answer = infer(daemon.client(), model, inputs)
    assert_same_answer(answer.outputs, reference(paths[model], inputs), model)
    assert not answer.bucket.startswith("t")
    assert re.search(rf"model {model}: requests are padded, not packed: \S+", daemon.log())

