"""Every encoder family in every exporter's style captures to the same few fused nodes.

No texts are held here: properties that speed depends on are counted, and they must not depend on who wrote
the model.
"""

import os
import pathlib
import re
import subprocess

import onnx
import pytest

from testing import exporters, families

DUMP = pathlib.Path(os.environ["REPRISE_BUILD_DIR"]) / "capture_dump"
# Products beside the four of a layer: pooler, labels of tokens, the cross-encoder's score,
# projection of narrow embeddings.
PRODUCTS = {"bert": 1, "cross_encoder": 2, "token_classifier": 1, "albert": 1, "electra": 1,
            "largest_id": 1}
# They read one token of each row, which is picked ahead of the last layer's products: its queries are
# one of their own, and so are keys and values.
PICKED = {"bert", "bge", "cross_encoder", "last_position"}
LEFT_OVER = {"Softmax", "MatMul", "Gemm", "LayerNormalization", "Gelu", "Erf", "Tanh", "IsNaN",
             "Attention", "Shape", "ConstantOfShape", "Expand", "Range", "Size"}


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """name -> ops of the captured graph."""
    folder, done = tmp_path_factory.mktemp("models"), {}

    def get(name):
        if name not in done:
            path = folder / f"{name}.onnx"
            onnx.save(families.ALL[name](), path)
            run = subprocess.run([DUMP, path, "batch=3", "sequence=7"], capture_output=True,
                                 text=True)
            assert run.returncode == 0, run.stderr
            done[name] = re.findall(r"^  %\d+: .* = ([\w.]+)\(", run.stdout, re.M)
        return done[name]

    return get


@pytest.mark.parametrize("name", families.ALL)
def test_a_layer_is_four_products_attention_and_two_norms(captured, name):
    ops = captured(name)
    layers, family = exporters.LAYERS, name.rsplit("_", 1)[0]
    assert ops.count("reprise.Attention") == layers
    norms = ops.count("reprise.AddLayerNorm") - 2 * layers
    assert norms in (0, 1)  # 1: the last of the embeddings' terms joins their norm
    apart = 2 if family in PICKED else 0
    assert ops.count("reprise.Linear") == 4 * layers + PRODUCTS.get(family, 0) + apart


@pytest.mark.parametrize("name", families.ALL)
def test_nothing_that_a_fused_node_does_is_left(captured, name):
    allowed = {"LayerNormalization"}  # the embeddings' own, which nothing is added to
    allowed |= {"Tanh"} if name.startswith(("bert_", "cross_encoder_")) else set()
    assert not (LEFT_OVER - allowed) & set(captured(name))
    assert not [op for op in captured(name) if op.startswith("com.microsoft.")]
