"""Ops from a library, models that run op by op, and precision by op, in the daemon."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import SOURCE, Daemon, reprise
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape
from testing.repository import MINILM

BERT_INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Builds the example's library of ops, by nothing but a C compiler."""
    path = tmp_path_factory.mktemp("ops") / "libexample_ops.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-I", SOURCE,
                    SOURCE / "examples/custom_op/ops.c", "-o", path], check=True)
    return path


def reversing():
    """Makes 2 * reverse(x + 1), where only the library knows the op `example.Reverse`."""
    nodes = [helper.make_node("Add", ["x", "one"], ["a"]),
             helper.make_node("Reverse", ["a"], ["r"], name="backwards", domain="example"),
             helper.make_node("Mul", ["r", "two"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor("one", TensorProto.FLOAT, [], [1.0]),
         helper.make_tensor("two", TensorProto.FLOAT, [], [2.0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                    helper.make_opsetid("example", 1)])
    model.ir_version = 8
    return model


BOTH = """
#include "runtime/ops/custom/reprise_op.h"
/* Sets all its outputs, whichever a node has: the input, twice the input. */
static int Shape(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
                 const reprise_tensor* input) {
  int64_t beyond = 0;
  (void)inputs;
  if (api->set_output(call, 0, input[0].dtype, input[0].rank, input[0].dims)) return 1;
  if (api->set_output(call, 1, input[0].dtype, input[0].rank, input[0].dims)) return 1;
  if (!api->attribute_int(call, "beyond", &beyond)) return 0;
  return api->set_output(call, (int32_t)beyond, input[0].dtype, input[0].rank, input[0].dims);
}
static int Compute(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
                   const reprise_tensor* input, int32_t outputs, const reprise_tensor* output) {
  (void)api, (void)call, (void)inputs;
  for (int32_t o = 0; o < outputs; ++o) {
    if (output[o].dtype == REPRISE_LEFT_OUT) continue;
    for (int64_t i = 0; i < input[0].dims[0]; ++i) {
      ((float*)output[o].data)[i] = (float)(o + 1) * ((const float*)input[0].data)[i];
    }
  }
  return 0;
}
static const reprise_op kBoth = {sizeof(reprise_op), "example", "Both", 1, 1, 1, 2, 0, Shape, Compute};
static const reprise_op* const kOps[] = {&kBoth, NULL};
const reprise_op* const* reprise_op_library(uint32_t version) {
  return version == REPRISE_OP_VERSION ? kOps : NULL;
}
"""


def both(outputs, **attributes):
    nodes = [helper.make_node("Both", ["x"], outputs, domain="example", **attributes)]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in outputs if name])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                    helper.make_opsetid("example", 1)])
    model.ir_version = 8
    return model


def test_a_shape_rule_may_set_outputs_that_a_node_leaves_out(repository, tmp_path):
    (tmp_path / "both.c").write_text(BOTH)
    path = tmp_path / "libboth.so"
    subprocess.run([shutil.which("cc") or shutil.which("gcc"), "-shared", "-fPIC", "-Wall",
                    "-Werror", "-I", SOURCE, tmp_path / "both.c", "-o", path], check=True)
    repository.add("all", both(["one", "two"]))
    repository.add("first", both(["one"]))
    repository.add("second", both(["", "two"]))
    repository.add("beyond", both(["one"], beyond=2))
    x = np.arange(5, dtype=np.float32)
    with Daemon(repository, "--op-library", str(path)) as daemon:
        for name, outputs in (("all", {"one", "two"}), ("first", {"one"}), ("second", {"two"})):
            answer = infer(daemon.client(), name, {"x": x})
            assert set(answer.outputs) == outputs
            for output, value in answer.outputs.items():
                np.testing.assert_array_equal(value, x * (1 if output == "one" else 2))
        with pytest.raises(InferenceServerException, match="sets an output that does not exist"):
            infer(daemon.client(), "beyond", {"x": x})


def test_a_library_brings_its_ops(repository, library):
    repository.add("reversing", reversing())
    with Daemon(repository, "--op-library", str(library)) as daemon:
        assert f"op library {library} brings example.Reverse" in daemon.log()
        for count in (1, 5, 30):
            x = np.arange(count, dtype=np.float32)
            answer = infer(daemon.client(), "reversing", {"x": x})
            np.testing.assert_array_equal(answer.outputs["y"], 2 * (x + 1)[::-1])
        explained = daemon.reprise("explain", "reversing")
        assert "Reverse" in explained and "cannot be cut" in explained
        assert Scrape(daemon.metrics_url).total("reprise_eager_nodes_total", model="reversing",
                                                op="example.Reverse") == 3
    checked = reprise("check", repository.path("reversing"), "--op-library", library)
    assert "can be served" in checked


CENTRE = """
#include "runtime/ops/custom/reprise_op.h"
/* Takes the mean of each last line away. */
static int Shape(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
                 const reprise_tensor* input) {
  (void)inputs;
  return api->set_output(call, 0, input[0].dtype, input[0].rank, input[0].dims);
}
static int Compute(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
                   const reprise_tensor* input, int32_t outputs, const reprise_tensor* output) {
  const float* from = (const float*)input[0].data;
  float* to = (float*)output[0].data;
  int64_t lines = 1, size = input[0].dims[input[0].rank - 1];
  (void)api, (void)call, (void)inputs, (void)outputs;
  for (int32_t d = 0; d + 1 < input[0].rank; ++d) lines *= input[0].dims[d];
  for (int64_t line = 0; line < lines; ++line) {
    float sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += from[line * size + i];
    for (int64_t i = 0; i < size; ++i) to[line * size + i] = from[line * size + i] - sum / (float)size;
  }
  return 0;
}
static const reprise_op kCentre = {sizeof(reprise_op), "example", "Centre", 1, 1, 1, 1, 0, Shape, Compute, MAP};
static const reprise_op* const kOps[] = {&kCentre, NULL};
const reprise_op* const* reprise_op_library(uint32_t version) {
  return version == REPRISE_OP_VERSION ? kOps : NULL;
}
"""


def centring():
    """Makes relu(centre(x)) of x [batch, sequence, 4]: the op sees the lines of four, and nothing else."""
    nodes = [helper.make_node("Centre", ["x"], ["c"], domain="example"), helper.make_node("Relu", ["c"], ["y"])]
    dims = ["batch", "sequence", 4]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                    helper.make_opsetid("example", 1)])
    model.ir_version = 8
    return model


def compiled(text, path, *flags):
    path.with_suffix(".c").write_text(text)
    subprocess.run([shutil.which("cc") or shutil.which("gcc"), "-shared", "-fPIC", "-Wall", "-Werror", "-I", SOURCE,
                    *flags, path.with_suffix(".c"), "-o", path], check=True)
    return path


def test_an_op_with_a_map_is_padded_and_batched_along_its_parallel_dims(repository, tmp_path, rng):
    path = compiled(CENTRE, tmp_path / "libcentre.so", '-DMAP="...h->...h|h"')
    repository.add("centring", centring())
    with Daemon(repository, "--op-library", str(path)) as daemon:
        for rows, length in [(1, 1), (1, 3), (2, 5), (1, 7), (3, 11), (1, 13), (1, 14), (2, 15), (1, 29), (1, 30)]:
            x = rng.standard_normal((rows, length, 4), dtype=np.float32)
            answer = infer(daemon.client(), "centring", {"x": x})
            expected = np.maximum(x - x.mean(axis=-1, keepdims=True), 0)
            np.testing.assert_allclose(answer.outputs["y"], expected, atol=1e-6)
        scrape = Scrape(daemon.metrics_url)
        assert not scrape.find("reprise_eager_nodes_total", model="centring")
        assert 1 <= scrape.total("reprise_compiles_total", model="centring") <= 5
        assert scrape.by("reprise_elements_total", "kind", model="centring")["padded"] > 0
    checked = reprise("check", repository.path("centring"), "--op-library", path)
    assert "can be served" in checked


def test_a_map_that_cannot_be_read_ends_the_start_with_its_reason(repository, tmp_path):
    path = compiled(CENTRE, tmp_path / "libbad.so", '-DMAP="...h"')
    repository.add("centring", centring())
    with pytest.raises(Exception, match="op 'example.Centre': its map '...h' has no single '->'"):
        with Daemon(repository, "--op-library", str(path), ready_within_s=10):
            pass


def test_without_the_library_the_refusal_says_how_to_bring_it(repository):
    repository.add("reversing", reversing())
    repository.add("bert", models.bert())
    with Daemon(repository) as daemon:
        assert not daemon.client().is_model_ready("reversing")
        assert re.search(r"op 'Reverse' .*domain 'example'.*'backwards'.*--op-library FILE.so",
                         daemon.log())


def test_a_file_that_is_no_library_ends_the_start(repository, tmp_path):
    repository.add("bert", models.bert())
    (tmp_path / "no.so").write_text("no library")
    with pytest.raises(Exception):
        with Daemon(repository, "--op-library", str(tmp_path / "no.so"), ready_within_s=10):
            pass


def test_op_by_op_agrees_with_captured_recipes_and_captures_nothing(repository, rng):
    repository.add("captured", MINILM)
    repository.add("eager", MINILM, config=parameter("reprise.capture", "off"))
    with Daemon(repository) as daemon:
        for rows, length in [(1, 5), (2, 17)]:
            request = text_inputs(BERT_INPUTS, rows, length, rng)
            expected = reference(MINILM, request)
            for served in ("captured", "eager"):
                assert_same_answer(infer(daemon.client(), served, request).outputs, expected)
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_cache_recipes", model="eager") == 0
        assert "runs op by op" in daemon.log()
        held = daemon.reprise("recipes", "--eager").splitlines()
        assert held[0].split()[:3] == ["key", "op", "shapes"] and len(held) > 10
        assert any("MatMul" in row and "weight i8[384,384]" in row and " -> f32[1,5,384]" in row
                   for row in held)
        listed = json.loads(daemon.reprise("recipes", "--eager", "--json"))["recipes"]
        product = next(recipe for recipe in listed if recipe["op"].startswith("MatMul "))
        assert [tensor["dtype"] for tensor in product["inputs"]] == ["f32"] * 2
        assert product["outputs"][0]["shape"][0] in (1, 2)


def test_the_flag_eager_holds_for_every_model(repository, rng):
    repository.add("bert", models.bert())
    with Daemon(repository, "--eager") as daemon:
        request = text_inputs(BERT_INPUTS[:2], 1, 9, rng, 200)
        first, again = (infer(daemon.client(), "bert", request).outputs for _ in range(2))
        for name, array in first.items():
            np.testing.assert_array_equal(array, again[name])
        assert "no recipes yet" in daemon.reprise("recipes")


def test_precision_by_op_is_counted_and_its_file_read(repository, rng):
    config = parameter("reprise.precision_ops", "bf16: @rounded.txt; exact: node_MatMul_1*")
    path = repository.add("ruled", MINILM, config=config)
    (path.parents[1] / "rounded.txt").write_text("# products\nMatMul\n")
    # A version may have a list of its own, with the file that the model is, which is no link here.
    own = repository.add("own", MINILM, config=config)
    own.unlink()
    shutil.copy(MINILM, own)
    (own.parents[1] / "rounded.txt").write_text("Gemm\n")
    (own.parent / "rounded.txt").write_text("MatMul\n")
    repository.add("lost", models.bert(),
                   config=parameter("reprise.precision_ops", "bf16: @absent.txt"))
    repository.add("wrong", models.bert(), config=parameter("reprise.precision_ops", "fp8: MatMul"))
    with Daemon(repository) as daemon:
        assert daemon.client().is_model_ready("ruled")
        for name in ("ruled", "own"):
            rounded, products = map(int, re.search(
                rf"model {name}: bf16 applies to (\d+) of (\d+) products", daemon.log()).groups())
            assert 0 < rounded < products
        assert "absent.txt" in daemon.log()
        assert "precisions are exact, bf16 and int8" in daemon.log()
        infer(daemon.client(), "ruled", text_inputs(BERT_INPUTS, 1, 12, rng))


def test_check_measures_each_choice_of_precision():
    checked = reprise("check", MINILM, "--precision", "--bucket", "batch=1,sequence=16",
                      "--precision-ops", "bf16: node_MatMul_1*")
    choices = dict(re.findall(r"^(bf16.*?) {2,}(\d+) of \d+", checked, re.M))
    assert int(choices["bf16 (all)"]) == int(choices["bf16: MatMul"]) > 0
    assert 0 < int(choices["bf16: node_MatMul_1*"]) < int(choices["bf16 (all)"])
    # A rule decides, and nothing is measured; a goal decides of the other nodes.
    assert re.search(r"^node_MatMul_1\d\d .* bf16 +- ", checked, re.M)
    assert not re.search(r"^node_MatMul_2\d\d .* bf16 +- ", checked, re.M)
