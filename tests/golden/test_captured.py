"""Whole models, captured, are the texts in captured/ and have the properties that speed depends on."""

import os
import pathlib
import re
import subprocess

import onnx
import onnxruntime
import pytest

from testing import exporters, models
from testing.repository import MINILM, PARAPHRASE

HERE = pathlib.Path(__file__).parent
DUMP = pathlib.Path(os.environ["REPRISE_BUILD_DIR"]) / "capture_dump"
SHAPE_OPS = {"Shape", "Size", "Gather", "Unsqueeze", "Squeeze", "Concat", "Slice", "Range", "Expand",
             "ConstantOfShape", "Identity", "GatherND"}

# name -> (model, axes); batch 3 and sequence 7 appear in no other size.
BERT = {"batch": 3, "sequence": 7}
REAL = {
    "minilm": (MINILM, BERT),
    "paraphrase": (PARAPHRASE, {"batch_size": 3, "sequence_length": 7}),
}
MADE = {f"bert_opset{opset}": (lambda opset=opset: models.bert(opset=opset), BERT)
        for opset in (11, 17)}
MADE |= {name: (make, BERT) for name, make in exporters.ALL.items()}


class Captured:
    def __init__(self, path, axes):
        arguments = [f"{axis}={size}" for axis, size in axes.items()]
        run = subprocess.run([DUMP, path, *arguments], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        self.text = run.stdout
        header = re.match(r"// (\d+) nodes -> (\d+) ", self.text)
        self.imported, self.nodes = int(header[1]), int(header[2])
        # [(type of the result, op)] in order.
        self.results = re.findall(r"^  %\d+: (\w+\[[\d, ]*\]).* = ([\w.]+)\(", self.text, re.M)
        self.ops = [op for _, op in self.results]


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """name -> Captured, each captured once."""
    done = {}

    def get(name):
        if name in done:
            return done[name]
        if name in REAL:
            path, axes = REAL[name]
        else:
            make, axes = MADE[name]
            path = tmp_path_factory.mktemp("models") / f"{name}.onnx"
            onnx.save(make(), path)
        done[name] = Captured(path, axes)
        return done[name]

    return get


@pytest.mark.parametrize("name", [*REAL, *MADE])
def test_the_captured_graph_is_the_golden_text(captured, name):
    golden = HERE / "captured" / f"{name}.graph"
    text = captured(name).text
    if os.environ.get("REPRISE_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize("name", [*REAL, *MADE])
def test_no_value_of_scores_is_ever_made(captured, name):
    """Attention is one node: nothing of [batch, heads, sequence, sequence] but a learnt bias."""
    wide = [kind for kind, op in captured(name).results
            if re.search(r"\[3, (4|12), 7, 7\]|\[(12|36), 7, 7\]", kind)]
    assert not wide or name == "t5"  # T5 adds its bias to the mask, once for all layers.
    assert len(wide) <= 1
    assert "Softmax" not in captured(name).ops


@pytest.mark.parametrize("name", [*REAL, "bert_opset11", "bert_opset17", "distilbert", "bart",
                                  "keras_bert", "einsum_bert"])
def test_an_encoder_layer_is_seven_nodes(captured, name):
    """Q-K-V, attention, projection, norm, product with GELU, product, norm; beside the layers are
    the embeddings, the mask and the pooling."""
    layers = {"minilm": 6, "paraphrase": 3}.get(name, 2)
    result = captured(name)
    assert result.ops.count("reprise.Attention") == layers
    pooler = name.startswith("bert_")
    assert result.ops.count("reprise.Linear") == 4 * layers + pooler
    assert result.ops.count("reprise.AddLayerNorm") == 2 * layers
    assert result.nodes - 7 * layers <= 16
    assert result.nodes <= 0.4 * result.imported


@pytest.mark.parametrize("name", ["minilm", "keras_bert", "einsum_bert", "bart", "distilbert", "vision"])
def test_no_shape_op_is_left(captured, name):
    assert not SHAPE_OPS & set(captured(name).ops)


@pytest.mark.parametrize("name", ["distilbert", "gpt2", "vision", "bart", "keras_bert"])
def test_what_onnxruntime_has_optimised_captures_alike(captured, name, tmp_path):
    plain, optimised = tmp_path / "plain.onnx", tmp_path / "optimised.onnx"
    onnx.save(exporters.ALL[name](), plain)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(optimised)
    onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])
    assert sorted(Captured(optimised, BERT).ops) == sorted(captured(name).ops)
