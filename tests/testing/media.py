"""Small models of pictures and recordings, as exporters write them: axes that count other things than
tokens do.
"""

import numpy as np
from onnx import TensorProto

from testing.models import Graph

RECORDING_SMALLEST = 400  # samples: the convolutions of speech models move by 320 over windows of 400


def recording(seed=0):
    """[batch, samples] -> [batch, frames, 24]: seven convolutions as wav2vec 2.0 has them."""
    g = Graph(17)
    rng = np.random.default_rng(seed)
    x = g.unsqueeze("samples", 1)
    channels = 1
    for i, (window, step) in enumerate([(10, 5)] + [(3, 2)] * 4 + [(2, 2)] * 2):
        scale = 1 / np.sqrt(channels * window)
        x = g.node("Conv", x, g.const(rng.standard_normal((16, channels, window)) * scale),
                   kernel_shape=[window], strides=[step])
        if i == 0:
            x = g.node("InstanceNormalization", x, g.const(np.ones(16)), g.const(np.zeros(16)))
        half = g.node("Add", g.node("Erf", g.node("Div", x, g.scalar(np.sqrt(2)))), g.scalar(1))
        x = g.node("Mul", g.node("Mul", x, half), g.scalar(0.5))
        channels = 16
    x = g.node("Transpose", x, perm=[0, 2, 1])
    g.rename(g.node("MatMul", x, g.const(rng.standard_normal((16, 24)))), "frames")
    return g.model([("samples", TensorProto.FLOAT, ["batch", "length"])],
                   [("frames", TensorProto.FLOAT, ["batch", None, 24])])


def picture_of_one_side(seed=0):
    """[batch, 3, side, side] -> [batch, 17, 8]: a position for each patch of a side of 224 to 279."""
    g = Graph(17)
    rng = np.random.default_rng(seed)
    x = g.node("Conv", "picture", g.const(rng.standard_normal((8, 3, 56, 56)) * 0.01),
               kernel_shape=[56, 56], strides=[56, 56])
    x = g.node("Transpose", g.node("Reshape", x, g.ints(0, 8, -1)), perm=[0, 2, 1])
    first = g.node("Expand", g.const(rng.standard_normal((1, 1, 8))),
                   g.node("Concat", g.dim("picture", 0), g.ints(1, 8), axis=0))
    x = g.node("Concat", first, x, axis=1)
    g.rename(g.node("Add", x, g.const(rng.standard_normal((1, 17, 8)))), "patches")
    return g.model([("picture", TensorProto.FLOAT, ["batch", 3, "side", "side"])],
                   [("patches", TensorProto.FLOAT, ["batch", 17, 8])])


def texts_and_pictures(seed=0):
    """Texts [texts, length] and pictures [pictures, 3, 32, 32] -> how alike [pictures, texts] they
    are, as models of both compare each with each."""
    g = Graph(17)
    rng = np.random.default_rng(seed)

    def unit(x):
        return g.node("Div", x, g.node("ReduceL2", x, axes=[-1], keepdims=1))

    words = g.node("Gather", g.const(rng.standard_normal((100, 16))), "input_ids")
    text = unit(g.node("Squeeze", g.node("Slice", words, g.ints(0), g.ints(1), g.ints(1)),
                       g.ints(1)))
    x = g.node("Conv", "pixel_values", g.const(rng.standard_normal((16, 3, 16, 16)) * 0.1),
               kernel_shape=[16, 16], strides=[16, 16])
    picture = unit(g.node("Flatten", g.node("GlobalAveragePool", x)))
    g.rename(g.node("MatMul", picture, g.node("Transpose", text, perm=[1, 0])), "logits")
    g.rename(text, "text_embeds")
    return g.model([("input_ids", TensorProto.INT64, ["texts", "length"]),
                    ("pixel_values", TensorProto.FLOAT, ["pictures", 3, 32, 32])],
                   [("logits", TensorProto.FLOAT, ["pictures", "texts"]),
                    ("text_embeds", TensorProto.FLOAT, ["texts", 16])])
