"""Unmodified clients get the answers of onnxruntime, at every length and batch."""

import numpy as np
import pytest

from testing import models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.repository import MINILM, PARAPHRASE

# Around every bucket's edge, and the ends.
LENGTHS = [1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 50, 64, 65, 100, 127, 128, 129, 200, 256, 257, 384,
           511, 512]
BATCHES = [1, 2, 3, 5, 8, 13, 16, 31, 32]

BERTS = {
    "bert_11": dict(opset=11, seed=1),
    "bert_12_deep": dict(opset=12, seed=2, layers=4, hidden=48, heads=3),
    "bert_13_tanh": dict(opset=13, seed=3, tanh_gelu=True, epsilon=1e-5),
    "bert_17": dict(opset=17, seed=4, hidden=64, heads=2, layers=1),
    "bert_wide_head": dict(opset=13, seed=5, hidden=40, heads=1),
}

TOYS = {
    "elementwise": (models.elementwise, lambda b, n, r: {"x": r.normal(size=(b, n))}),
    "mixes_sequence": (models.mixes_sequence, lambda b, n, r: {"x": r.normal(size=(b, n))}),
    "mixes_batch": (models.mixes_batch, lambda b, n, r: {"x": r.normal(size=(b, 4))}),
    "similarity": (models.similarity, lambda b, n, r: {"x": r.normal(size=(b, 8))}),
    "scalar_input": (models.scalar_input, lambda b, n, r: {
        "x": r.normal(size=(b, 3)), "scale": np.array(r.normal())}),
    "unnamed_axes": (models.unnamed_axes, lambda b, n, r: {"x": r.normal(size=(b, n, 3))}),
    "no_batch_axis": (models.no_batch_axis, lambda b, n, r: {"x": r.normal(size=(4, 6))}),
}

REAL = {
    "minilm": (MINILM, ["input_ids", "attention_mask", "token_type_ids"]),
    "paraphrase": (PARAPHRASE, ["input_ids", "attention_mask"]),
}


@pytest.fixture(scope="module")
def served(module_repository):
    """Starts one daemon with every model of this file; yields it and the path of each."""
    paths = {name: module_repository.add(name, path) for name, (path, _) in REAL.items()}
    for name, options in BERTS.items():
        paths[name] = module_repository.add(name, models.bert(**options))
    for name, (make, _) in TOYS.items():
        paths[name] = module_repository.add(name, make())
    paths["shape_input"] = module_repository.add("shape_input", models.shape_input())
    with Daemon(module_repository) as daemon:
        yield daemon, paths


def check(served, model, inputs, what):
    daemon, paths = served
    answer = infer(daemon.client(), model, inputs)
    assert_same_answer(answer.outputs, reference(paths[model], inputs), f"{model}, {what}")
    return answer


@pytest.mark.parametrize("model", REAL)
def test_real_model_agrees_at_every_length(served, rng, model):
    for length in LENGTHS:
        check(served, model, text_inputs(REAL[model][1], 1, length, rng), f"length {length}")


@pytest.mark.parametrize("model", REAL)
def test_real_model_agrees_at_every_batch(served, rng, model):
    for batch in BATCHES:
        length = int(rng.integers(1, 65))
        inputs = text_inputs(REAL[model][1], batch, length, rng, ragged=True)
        check(served, model, inputs, f"batch {batch}, length {length}")


@pytest.mark.parametrize("model", REAL)
def test_real_model_agrees_on_masks_with_holes_and_without_any_position(served, rng, model):
    inputs = text_inputs(REAL[model][1], 4, 24, rng)
    inputs["attention_mask"][0, 5:9] = 0  # a hole
    inputs["attention_mask"][1, :7] = 0  # padded on the left
    inputs["attention_mask"][2, 1:] = 0  # one position
    inputs["attention_mask"][3, ::2] = 0  # every other
    check(served, model, inputs, "masks")
    if model == "minilm":
        inputs["attention_mask"][:] = 0
        check(served, model, inputs, "masks of zeros")


def test_largest_batch_of_long_sequences_is_split_and_agrees(served, rng):
    inputs = text_inputs(REAL["minilm"][1], 20, 300, rng, ragged=True)
    answer = check(served, "minilm", inputs, "20 rows of 300 tokens")
    assert len(answer.batches) > 1, "20 * 512 tokens are more than one replay may hold"


@pytest.mark.parametrize("model", BERTS)
def test_models_of_another_exporter_agree(served, rng, model):
    for batch, length in [(1, 1), (1, 5), (2, 16), (3, 17), (5, 40), (1, 129), (4, 300), (32, 70),
                          (1, 512)]:
        inputs = text_inputs(["input_ids", "attention_mask"], batch, length, rng, 200, ragged=True)
        check(served, model, inputs, f"batch {batch}, length {length}")


@pytest.mark.parametrize("model", TOYS)
def test_models_with_unsafe_or_missing_axes_agree(served, rng, model):
    for batch, length in [(1, 3), (2, 16), (5, 17), (3, 40), (1, 1)]:
        made = TOYS[model][1](batch, length, rng)
        inputs = {name: np.asarray(value, np.float32) for name, value in made.items()}
        check(served, model, inputs, f"batch {batch}, length {length}")


def test_every_value_of_a_shape_input_is_answered(served, rng):
    x = rng.normal(size=12).astype(np.float32)
    for shape in ([3, 4], [4, 3], [12, 1], [-1, 6]):
        check(served, "shape_input", {"x": x, "shape": np.array(shape, np.int64)}, f"{shape}")


def test_only_requested_outputs_come_back_in_their_order(served, rng):
    daemon, _ = served
    inputs = text_inputs(["input_ids", "attention_mask"], 2, 9, rng, 200)
    answer = infer(daemon.client(), "bert_11", inputs, outputs=["pooler_output"])
    assert list(answer.outputs) == ["pooler_output"]
    assert answer.outputs["pooler_output"].shape == (2, 32)


def test_batch_mates_and_buckets_do_not_change_an_answer(served, rng):
    """The same row alone, in a batch, and beside longer rows: equal to 1e-5 of the largest element."""
    daemon, _ = served
    client = daemon.client()
    row = text_inputs(["input_ids", "attention_mask"], 1, 20, rng, 200)
    alone = infer(client, "bert_13_tanh", row).outputs["last_hidden_state"][0]
    mates = text_inputs(["input_ids", "attention_mask"], 7, 20, rng, 200)
    both = {name: np.concatenate([mates[name], row[name]]) for name in row}
    beside = infer(client, "bert_13_tanh", both).outputs["last_hidden_state"][7]
    assert np.abs(alone - beside).max() <= 1e-5 * np.abs(alone).max()


def test_a_request_of_thousands_of_replays_is_joined_in_order(repository):
    repository.add("elementwise", models.elementwise(), config="max_batch_size: 4")
    x = np.arange(6_000 * 64, dtype=np.float32).reshape(-1, 64)
    with Daemon(repository) as daemon:
        y = infer(daemon.client(), "elementwise", {"x": x}).outputs["y"]
    np.testing.assert_array_equal(y, 2 * x + 1)
