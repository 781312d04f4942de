"""Ensembles of ONNX models are one model: captured as one graph, answers as of the steps."""

import numpy as np
import pytest
from onnx import TensorProto

from testing import models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference
from testing.metrics import Scrape

FLOAT = TensorProto.FLOAT


def layer(rows, columns, seed, last="Relu"):
    g, rng = models.Graph(17), np.random.default_rng(seed)
    g.rename(g.node(last, g.node("MatMul", "x", g.const(rng.normal(0, 1, (rows, columns))))), "y")
    g.rename(g.node("ReduceSum", "y", g.ints(1), keepdims=0), "sum")
    return g.model([("x", FLOAT, ["batch", rows])],
                   [("y", FLOAT, ["batch", columns]), ("sum", FLOAT, ["batch"])])


def step(name, inputs, outputs, version=-1):
    def maps(kind, pairs):
        return "".join(f'{kind} {{ key: "{k}" value: "{v}" }} ' for k, v in pairs.items())
    return (f'step {{ model_name: "{name}" model_version: {version} '
            f'{maps("input_map", inputs)} {maps("output_map", outputs)} }}')


def ensemble(*steps):
    return f"""platform: "ensemble"
        input {{ name: "picture" data_type: TYPE_FP32 dims: [ -1, 4 ] }}
        output {{ name: "scores" data_type: TYPE_FP32 dims: [ -1, 3 ] }}
        output {{ name: "middle" data_type: TYPE_FP32 dims: [ -1, 8 ] }}
        ensemble_scheduling {{ {" ".join(steps)} }}"""


ENCODE = step("encoder", {"x": "picture"}, {"y": "middle"})
HEAD = step("head", {"x": "middle"}, {"y": "scores"})


@pytest.fixture
def steps(repository):
    return [repository.add("encoder", layer(4, 8, 0)), repository.add("head", layer(8, 3, 1, "Tanh"))]


def add(repository, config):
    folder = repository.root / "pipe"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    return folder


# Steps may stand in any order, as elsewhere.
@pytest.mark.parametrize("order", [(ENCODE, HEAD), (HEAD, ENCODE)])
def test_an_ensemble_answers_as_its_steps_and_is_one_recipe(repository, steps, rng, order):
    add(repository, ensemble(*order))
    x = rng.normal(0, 1, (5, 4)).astype(np.float32)
    middle = reference(steps[0], {"x": x})["y"]
    expected = {"middle": middle, "scores": reference(steps[1], {"x": middle})["y"]}
    with Daemon(repository) as daemon:
        assert_same_answer(infer(daemon.client(), "pipe", {"picture": x}).outputs, expected)
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_compiles_total", model="pipe") == 1
        assert scrape.total("reprise_compiles_total") == 1
        # The steps are models of their own as well.
        assert_same_answer(infer(daemon.client(), "encoder", {"x": x}).outputs,
                           reference(steps[0], {"x": x}))


@pytest.mark.parametrize("config, words", [
    (ensemble(ENCODE), "no part makes the output 'scores'"),
    (ensemble(HEAD, step("encoder", {"x": "pictures"}, {"y": "middle"})), "'pictures'"),
    (ensemble(HEAD, step("encoder", {"x": "scores"}, {"y": "middle"})), "no step before it makes"),
    (ensemble(ENCODE, step("tail", {"x": "middle"}, {"y": "scores"})), 'no model repository has "tail"'),
    (ensemble(ENCODE, step("head", {"x": "middle"}, {"y": "scores"}, version=7)), "has no version 7"),
    (ensemble(ENCODE, step("head", {"x": "middle"}, {"z": "scores"})), "output 'z'"),
    (ensemble(step("encoder", {"x": "picture"}, {"y": "scores"}), HEAD.replace("middle", "scores")),
     "scores"),
    (ensemble(step("encoder", {}, {"y": "middle"}), HEAD), "has no input_map"),
    (ensemble(step("pipe", {"x": "picture"}, {"y": "middle"}), HEAD), "is an ensemble itself"),
    ('platform: "ensemble"', "ensemble_scheduling names no step")])
def test_an_ensemble_that_cannot_be_is_refused_with_the_cause(repository, steps, config, words):
    add(repository, config)
    with Daemon(repository) as daemon:
        assert not daemon.client().is_model_ready("pipe")
        assert words in daemon.log(), daemon.log()
        assert daemon.client().is_model_ready("encoder")
