"""Models one after another as one file: answers are the same as the models' own, and one recipe serves them."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import assert_same_answer, infer, reference
from testing.metrics import Scrape

FLOAT = TensorProto.FLOAT


def encoder(opset=17, features=8):
    g, rng = models.Graph(opset), np.random.default_rng(0)
    g.rename(g.node("Relu", g.node("MatMul", "x", g.const(rng.normal(0, 1, (4, features))))), "features")
    g.rename(g.node("ReduceSum", "features", g.ints(1), keepdims=0), "norm")
    return g.model([("x", FLOAT, ["batch", 4])],
                   [("features", FLOAT, ["batch", features]), ("norm", FLOAT, ["batch"])])


def head(opset=17, name="x"):
    """Reads another value called x, and has a branch that reads values around it."""
    g, rng = models.Graph(opset), np.random.default_rng(1)
    product = g.node("MatMul", name, g.const(rng.normal(0, 1, (8, 3))))
    always = g.const(np.array(True), bool)

    def branch(op):
        return helper.make_graph([helper.make_node(op, [product], [f"{op}_made"])], op, [],
                                 [helper.make_tensor_value_info(f"{op}_made", FLOAT, None)])
    g.rename(g.node("If", always, then_branch=branch("Tanh"), else_branch=branch("Neg")), "y")
    return g.model([(name, FLOAT, ["batch", 8])], [("y", FLOAT, ["batch", 3])])


@pytest.fixture
def files(tmp_path):
    def save(name, model, **external):
        path = tmp_path / f"{name}.onnx"
        onnx.save(model, path, **external)
        return path
    return save


def merge(*arguments, check=True):
    return reprise("merge", *map(str, arguments), check=check)


def test_the_merged_model_answers_as_its_parts_and_is_one_recipe(repository, files, tmp_path, rng):
    first, second = files("encoder", encoder()), files("head", head())
    out = tmp_path / "both.onnx"
    said = merge(first, second, "--map", "features:x", "--out", out)
    assert "2 models as one, inputs x, outputs norm, y" in said
    told = json.loads(merge(first, second, "--map", "features:x", "--out", out, "--json"))
    assert told == {"file": str(out), "models": [str(first), str(second)], "inputs": ["x"],
                    "outputs": ["norm", "y"]}
    onnx.checker.check_model(onnx.load(out), full_check=True)
    x = rng.normal(0, 1, (5, 4)).astype(np.float32)
    middle = reference(first, {"x": x})
    expected = {"norm": middle["norm"], **reference(second, {"x": middle["features"]})}
    assert_same_answer(reference(out, {"x": x}), expected)
    repository.add("both", onnx.load(out))
    with Daemon(repository) as daemon:
        assert_same_answer(infer(daemon.client(), "both", {"x": x}).outputs, expected)
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total", model="both") == 1
    row = reprise("recompiles", out, "--sizes", "2,3")
    assert "encoder" in row and "x: f32[3, 4]" in row


def test_weights_in_other_files_are_taken_in_and_outputs_chosen(files, tmp_path, rng):
    first = files("encoder", encoder(features=8), save_as_external_data=True, location="weights.bin",
                  size_threshold=0)
    out = tmp_path / "elsewhere" / "both.onnx"
    out.parent.mkdir()
    merge(first, files("head", head(name="features")), "--out", out, "--output", "y", "--output", "features")
    merged = onnx.load(out, load_external_data=False)
    assert [output.name for output in merged.graph.output] == ["features", "y"]
    assert set(reference(out, {"x": rng.normal(0, 1, (2, 4)).astype(np.float32)})) == {"features", "y"}


@pytest.mark.parametrize("second, arguments, words", [
    (head(opset=16), ["--map", "features:x"], ["version 17", "'head' has 16"]),
    (encoder(), [], ["both make"]),
    (head(), ["--map", "norm:x"], ["'norm' is FLOAT[batch]", "'x' of 'head' is FLOAT[batch,8]"]),
    (head(), ["--map", "features:z"], ["no model after the first has an input 'z'"]),
    (head(), ["--map", "features"], ["must be OUTPUT:INPUT"]),
    (head(), ["--map", "features:x", "--output", "z"], ["no part makes the output 'z'"])])
def test_what_cannot_be_joined_is_refused_with_both_sides(files, tmp_path, second, arguments, words):
    out = tmp_path / "both.onnx"
    done = merge(files("encoder", encoder()), files("head", second), *arguments, "--out", out,
                 check=False)
    assert done.returncode == 1 and not out.exists()
    for word in words:
        assert word in done.stderr, done.stderr
