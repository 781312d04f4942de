"""Clients that carry their cache run on the recipes of the steps: no length captures anything."""

import numpy as np
import pytest
import tritonclient.grpc

from testing import decoders
from testing.daemon import Daemon
from testing.metrics import Scrape

CONTEXT = 256
LAYOUTS = {"gqa": dict(window=9), "mha": {}, "concat": dict(kv_heads=1, norms=True),
           "range": dict(heads=3, kv_heads=3), "alibi": {}, "onnx": dict(window=5)}
# Tokens are few and the cache is long: as where answers are long.
NEW_TOKENS = 200


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("carried")
    models = {}
    for form, layout in LAYOUTS.items():
        models[form] = decoders.make(form, context=CONTEXT, **layout)
        folder = root / form / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(models[form].SerializeToString())
        (root / form / "config.pbtxt").write_text(
            f'parameters {{ key: "reprise.context" value {{ string_value: "{CONTEXT}" }} }}')
    with Daemon(root) as daemon:
        yield daemon, models


class Carrier:
    """A client of the daemon that carries the caches of some rows of one length."""

    def __init__(self, daemon, form, model, rows=1):
        self.client = tritonclient.grpc.InferenceServerClient(daemon.grpc_address)
        self.form = form
        self.inputs = {one.name: one for one in model.graph.input}
        self.outputs = [one.name for one in model.graph.output]
        self.past = {}
        self.length = 0
        self.rows = rows
        for name, one in self.inputs.items():
            if "past" in name:
                dims = [dim.dim_value for dim in one.type.tensor_type.shape.dim]
                self.past[name] = np.zeros((rows, dims[1], 0, dims[3]), np.float32)

    def feeds(self, ids):
        total = self.length + ids.shape[1]
        feeds = {"input_ids": ids, **self.past}
        if "attention_mask" in self.inputs:
            feeds["attention_mask"] = np.ones((self.rows, total), np.int64)
        if "position_ids" in self.inputs:
            feeds["position_ids"] = np.tile(np.arange(self.length, total), (self.rows, 1))
        return feeds

    def step(self, ids, **changes):
        """Returns the scores of each token; the answer's caches are the next request's."""
        ids = np.asarray(ids, np.int64).reshape(self.rows, -1)
        feeds = {**self.feeds(ids), **changes}
        inputs = []
        for name, array in feeds.items():
            kind = "FP32" if array.dtype == np.float32 else "INT64"
            inputs.append(tritonclient.grpc.InferInput(name, array.shape, kind))
            inputs[-1].set_data_from_numpy(array)
        self.answer = self.client.infer(self.form, inputs)
        for name in self.past:
            present = name.replace("past_key_values", "present")
            self.past[name] = self.answer.as_numpy(present)
        self.length += ids.shape[1]
        return self.answer.as_numpy("logits")


@pytest.mark.parametrize("form", LAYOUTS)
def test_200_lengths_capture_nothing_and_copy_one_cache_each(served, rng, form):
    daemon, models = served
    carrier, stepper = Carrier(daemon, form, models[form]), decoders.Stepper(models[form])
    before = Scrape(daemon.metrics_url)
    prompt = rng.integers(0, 97, 5)
    got, expected = carrier.step(prompt)[0], stepper.step(prompt)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    copied = sum(one.nbytes for one in carrier.past.values())
    for _ in range(NEW_TOKENS):
        token = [int(expected[-1].argmax())]
        got, expected = carrier.step(token)[0], stepper.step(token)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
        copied += sum(one.nbytes for one in carrier.past.values())
    for name, past in carrier.past.items():
        np.testing.assert_allclose(past, stepper.past[name], rtol=1e-4, atol=1e-4)
    after = Scrape(daemon.metrics_url)

    def rise(metric):
        return (after.total(metric, model=form) - before.total(metric, model=form))
    assert rise("reprise_compiles_total") == 0
    assert rise("reprise_carried_tokens_total") == NEW_TOKENS + len(prompt)
    assert rise("reprise_carried_bytes_total") == copied


@pytest.mark.parametrize("form", LAYOUTS)
def test_batches_chunks_and_lengths_change_no_bit(served, rng, form):
    daemon, models = served
    rows, length = 3, 100  # more tokens than one replay scores
    ids = rng.integers(0, 97, (rows, length))
    together = Carrier(daemon, form, models[form], rows)
    whole = together.step(ids)
    for row in range(rows):
        alone = Carrier(daemon, form, models[form])
        pieces = [alone.step(piece)[0] for piece in np.split(ids[row], [1, 3, 20, 21, 90])]
        np.testing.assert_array_equal(np.concatenate(pieces), whole[row])
        for name, past in alone.past.items():
            np.testing.assert_array_equal(past[0], together.past[name][row])


def test_masks_with_holes_are_served_as_before(served, rng):
    daemon, models = served
    carrier = Carrier(daemon, "concat", models["concat"])
    ids = rng.integers(0, 97, 6)
    mask = np.array([[0, 0, 1, 1, 1, 1]], np.int64)
    places = np.array([[1, 1, 0, 1, 2, 3]], np.int64)
    scores = carrier.step(ids, attention_mask=mask, position_ids=places)
    alone = Carrier(daemon, "concat", models["concat"])
    np.testing.assert_allclose(scores[0, 2:], alone.step(ids[2:])[0], rtol=1e-4, atol=1e-4)
