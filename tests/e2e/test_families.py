"""Encoder families in the styles of several exporters get the answers of onnxruntime."""

import pytest
from tritonclient.utils import InferenceServerException

from testing import families
from testing.clients import together
from testing.daemon import Daemon
from testing.exporters import POSITIONS
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


def test_positions_of_padding_may_lie_behind_their_table(module_repository, rng):
    """Buckets may be longer than the table: no request that fits is refused, and one that does not is, by name."""
    name = next(name for name in families.ALL if "roberta" in name)
    model = families.ALL[name]()
    path = module_repository.add("short_table", model, config=
        f'parameters {{ key: "reprise.sequence_buckets" value {{ string_value: "8,{2 * POSITIONS}" }} }}\n')
    names = families.inputs_of(model)
    with Daemon(module_repository) as daemon:
        def ask(length):
            inputs = text_inputs(names, 1, length, rng, families.VOCABULARY)
            inputs["input_ids"][inputs["input_ids"] == 1] = 5  # the id that is not counted
            if length > POSITIONS:
                with pytest.raises(InferenceServerException, match="out of range") as caught:
                    infer(daemon.client(), "short_table", inputs)
                assert "INVALID_ARGUMENT" in str(caught.value.status())
                return
            answer = infer(daemon.client(), "short_table", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs), f"{length}, {answer.bucket}")

        lengths = [5, 8, 9, POSITIONS // 2, POSITIONS - 1, POSITIONS, POSITIONS + 1, 2 * POSITIONS]
        for length in lengths:
            ask(length)
        together(ask, lengths * 3)
