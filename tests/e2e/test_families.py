"""Encoder families in the styles of several exporters get the answers of onnxruntime."""

import pytest

from testing import families
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs


@pytest.fixture(scope="module")
def served(module_repository):
    models = {}
    for name, make in families.ALL.items():
        model = make()
        models[name] = (module_repository.add(name, model), families.inputs_of(model))
    with Daemon(module_repository) as daemon:
        yield daemon, models


@pytest.mark.parametrize("name", families.ALL)
def test_every_family_and_style_agrees_alone_and_in_batches(served, rng, name):
    daemon, models = served
    path, names = models[name]
    for batch, length in [(1, 1), (1, 16), (2, 5), (3, 17), (5, 64)]:
        inputs = text_inputs(names, batch, length, rng, families.VOCABULARY, ragged=True)
        answer = infer(daemon.client(), name, inputs)
        assert_same_answer(answer.outputs, reference(path, inputs),
                           f"{name}, batch {batch}, length {length}")


@pytest.mark.parametrize("name", [name for name in families.ALL if "mpnet" not in name])
def test_lengths_are_padded_or_packed(served, rng, name):
    """A model whose padding is not proved captures every length: these prove it."""
    daemon, models = served
    inputs = text_inputs(models[name][1], 2, 11, rng, families.VOCABULARY, ragged=True)
    assert infer(daemon.client(), name, inputs).bucket != "exact"
