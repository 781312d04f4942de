"""Initialisers that are listed as inputs: a request may send its own, the others have the file's."""

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference

WEIGHTS = np.arange(64 * 8, dtype=np.float32).reshape(64, 8) / 100


def with_overridable_initialisers():
    """y = (x W) times scale, where W, large enough to be a weight, and scale may be overridden."""
    g = models.Graph(13)
    g.initializers = [numpy_helper.from_array(WEIGHTS, "weights"),
                      numpy_helper.from_array(np.array(2, np.float32), "scale")]
    g.rename(g.node("Mul", g.node("MatMul", "x", "weights"), "scale"), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 64]),
                    ("weights", TensorProto.FLOAT, [64, 8]), ("scale", TensorProto.FLOAT, [])],
                   [("y", TensorProto.FLOAT, ["batch", 8])])


@pytest.fixture(scope="module")
def path(module_repository):
    return module_repository.add("model", with_overridable_initialisers())


@pytest.fixture(scope="module")
def daemon(module_repository, path):
    with Daemon(module_repository) as running:
        yield running


@pytest.mark.parametrize("names", [[], ["scale"], ["weights"], ["weights", "scale"]])
def test_what_is_sent_counts_and_the_file_gives_the_rest(daemon, path, rng, names):
    own = {"weights": rng.standard_normal((64, 8), np.float32), "scale": np.array(-3, np.float32)}
    inputs = {"x": rng.standard_normal((3, 64), np.float32), **{name: own[name] for name in names}}
    client = daemon.client()
    answer = infer(client, "model", inputs)
    assert_same_answer(answer.outputs, reference(path, inputs))
    # Nothing is certified about the effect of such inputs.
    assert (answer.bucket == "exact") == bool(names)
    # No other request sees it.
    plain = {"x": inputs["x"]}
    assert_same_answer(infer(client, "model", plain).outputs, reference(path, plain))


def test_values_are_no_part_of_the_recipe(daemon, path, rng):
    client, x = daemon.client(), rng.standard_normal((2, 64), np.float32)
    answers = []
    for scale in (5, 7):
        inputs = {"x": x, "scale": np.array(scale, np.float32)}
        answers.append(infer(client, "model", inputs))
        assert_same_answer(answers[-1].outputs, reference(path, inputs))
    assert answers[0].recipe == answers[1].recipe
    assert answers[1].capture == "replayed"


@pytest.mark.parametrize("name,wrong", [
    ("weights", np.ones((8, 64), np.float32)), ("weights", np.ones((64, 8), np.float64)),
    ("scale", np.ones((2,), np.float32))])
def test_what_does_not_fit_is_refused_by_name(daemon, rng, name, wrong):
    inputs = {"x": rng.standard_normal((1, 64), np.float32), name: wrong}
    with pytest.raises(InferenceServerException) as caught:
        infer(daemon.client(), "model", inputs)
    assert "INVALID_ARGUMENT" in str(caught.value.status())
    assert name in caught.value.message()
