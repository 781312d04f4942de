"""Classic models (ai.onnx.ml) get onnxruntime's answers, and requests of many clients share replays."""

import numpy as np
import pytest

from testing import classic
from testing.clients import together
from testing.inference import assert_same_answer, infer, reference

MODELS = {**classic.all_models(), "mapped": lambda: classic.mapped(np.random.default_rng(5))}
# Members that these read must be there; the others know how to treat missing numbers.
WHOLE = {"support", "support_votes", "support_poly", "codes", "forest", "forest_of_two",
         "softmax_zero", "neighbours", "neighbours_by_blocks"}


@pytest.mark.parametrize("name", sorted(classic.all_models()))
def test_answers_are_those_of_onnxruntime(daemon, paths, rng, name):
    client = daemon.client()
    for count in (1, 2, 7, 8, 33, 100):
        inputs = {"X": classic.rows(rng, count, missing=name not in WHOLE)}
        answer = infer(client, name, inputs)
        assert_same_answer(answer.outputs, reference(paths[name], inputs), f"{name}, {count} rows")


@pytest.mark.parametrize("name", ["forest", "boosted", "pipeline", "support", "codes",
                                  "neighbours", "neighbours_by_blocks"])
def test_rows_of_many_clients_share_replays_and_change_nothing(daemon, paths, rng, name):
    client = daemon.client()
    inputs = [{"X": classic.rows(rng, 1 + i % 3, missing=name not in WHOLE)} for i in range(96)]
    alone = [infer(client, name, one).outputs for one in inputs]
    answers = together(lambda one: infer(client, name, one), inputs, clients=24)
    for before, answer in zip(alone, answers):
        for output, expected in before.items():
            assert np.allclose(answer.outputs[output], expected, rtol=1e-5, atol=1e-6), output
    assert max(a.parameters["reprise.batch_size"] for a in answers) > 3, "nothing was batched"


def test_maps_from_labels_are_rows_of_probabilities(daemon, rng):
    inputs = {"X": classic.rows(rng, 5)}
    answer = infer(daemon.client(), "mapped", inputs)
    assert answer.outputs["probabilities"].shape == (5, 3)
    assert np.allclose(answer.outputs["probabilities"].sum(axis=1), 1, atol=1e-5)
    largest = answer.outputs["probabilities"].argmax(axis=1)
    assert np.array_equal(answer.outputs["label"], np.array([0, 10, 20])[largest])
