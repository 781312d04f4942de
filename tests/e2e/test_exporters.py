"""Models in the styles of several exporters and families get the answers of onnxruntime."""

import pytest

from testing import exporters
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs


@pytest.fixture(scope="module")
def served(module_repository):
    paths = {name: module_repository.add(name, make()) for name, make in exporters.ALL.items()}
    with Daemon(module_repository) as daemon:
        yield daemon, paths


@pytest.mark.parametrize("model", exporters.ALL)
def test_every_style_agrees_alone_and_in_batches(served, rng, model):
    daemon, paths = served
    names = exporters.INPUTS.get(model, ["input_ids", "attention_mask"])
    for batch, length in [(1, 1), (1, 16), (2, 5), (3, 17), (5, 64), (32, 9)]:
        inputs = text_inputs(names, batch, length, rng, exporters.VOCABULARY, ragged=True)
        answer = infer(daemon.client(), model, inputs)
        assert_same_answer(answer.outputs, reference(paths[model], inputs),
                           f"{model}, batch {batch}, length {length}")


@pytest.mark.parametrize("model", sorted(set(exporters.ALL) - set(exporters.INPUTS)))
def test_rows_without_any_position_agree(served, rng, model):
    daemon, paths = served
    inputs = text_inputs(["input_ids", "attention_mask"], 3, 11, rng, exporters.VOCABULARY)
    inputs["attention_mask"][1] = 0
    inputs["attention_mask"][2, 3:6] = 0
    answer = infer(daemon.client(), model, inputs)
    assert_same_answer(answer.outputs, reference(paths[model], inputs), f"{model}, empty mask")
