"""Small models of pictures and recordings, as exporters write them: axes that count other things than
tokens do.
"""

import numpy as np
from onnx import TensorProto, helper

from testing.models import Graph

RECORDING_SMALLEST = 400  # samples: the convolutions of speech models move by 320 over windows of 400


STACK = [(10, 5)] + [(3, 2)] * 4 + [(2, 2)] * 2  # windows and steps of wav2vec 2.0


def _frames(g, rng):
    """[batch, samples] -> [batch, frames, 16]: seven convolutions as wav2vec 2.0 has them."""
    x = g.unsqueeze("samples", 1)
    channels = 1
    for i, (window, step) in enumerate(STACK):
        scale = 1 / np.sqrt(channels * window)
        x = g.node("Conv", x, g.const(rng.standard_normal((16, channels, window)) * scale),
                   kernel_shape=[window], strides=[step])
        if i == 0:
            x = g.node("InstanceNormalization", x, g.const(np.ones(16)), g.const(np.zeros(16)))
        half = g.node("Add", g.node("Erf", g.node("Div", x, g.scalar(np.sqrt(2)))), g.scalar(1))
        x = g.node("Mul", g.node("Mul", x, half), g.scalar(0.5))
        channels = 16
    return g.node("Transpose", x, perm=[0, 2, 1])


def recording(seed=0):
    """[batch, samples] -> [batch, frames, 24]: the frames of wav2vec 2.0."""
    g = Graph(17)
    rng = np.random.default_rng(seed)
    x = _frames(g, rng)
    g.rename(g.node("MatMul", x, g.const(rng.standard_normal((16, 24)))), "frames")
    return g.model([("samples", TensorProto.FLOAT, ["batch", "length"])],
                   [("frames", TensorProto.FLOAT, ["batch", None, 24])])


def masked_recording(newer=False, seed=0):
    """Samples and their mask, both [batch, samples] -> [batch, frames, 24]: attention over the frames that the
    mask leaves. Exporters count these by a one at the last of them, summed up from the end; a newer one
    computes the counts by floats and adds the mask up at once."""
    g = Graph(17)
    rng = np.random.default_rng(seed)
    x = _frames(g, rng)
    batch, frames = g.dim("mask", 0), g.dim(x, 1)
    integer = lambda value: g.scalar(value, np.int64)
    if newer:
        count = g.node("ReduceSum", "mask", g.ints(-1), keepdims=0)
    else:
        count = g.node("Gather", g.node("CumSum", "mask", integer(-1)), integer(-1), axis=1)
    for window, step in STACK:
        count = g.node("Sub", count, integer(window))
        if newer:
            count = g.node("Floor", g.node("Div", g.node("Cast", count, to=TensorProto.FLOAT), g.scalar(step)))
            count = g.node("Cast", count, to=TensorProto.INT64)
        else:
            quotient = g.node("Div", count, integer(step))
            rest = g.node("Not", g.node("Equal", g.node("Mod", count, integer(step)), integer(0)))
            below = g.node("And", g.node("Less", count, integer(0)), rest)
            count = g.node("Where", below, g.node("Sub", quotient, integer(1)), quotient)
        count = g.node("Add", count, integer(1))
    zeros = g.node("ConstantOfShape", g.node("Concat", batch, frames, axis=0),
                   value=helper.make_tensor("zero", TensorProto.INT64, [1], [0]))
    rows = g.node("Range", integer(0), g.node("Squeeze", g.dim(zeros, 0), g.ints(0)), integer(1))
    last = g.node("Sub", count, integer(1))
    places = g.node("Concat", g.unsqueeze(rows, 1), g.unsqueeze(last, 1), axis=-1)
    ones = g.node("Expand", g.ints(1), g.node("Shape", rows))
    turn = lambda value: g.node("Slice", value, g.ints(-1), g.ints(-2**63), g.ints(-1), g.ints(-1))
    kept = turn(g.node("CumSum", turn(g.node("ScatterND", zeros, places, ones)), integer(-1)))
    kept = g.node("Cast", kept, to=TensorProto.BOOL)
    x = g.node("Where", g.unsqueeze(kept, 2), x, g.scalar(0))
    keys = g.node("Expand", g.unsqueeze(kept, 1), g.node("Concat", batch, frames, frames, axis=0))
    scores = g.node("MatMul", x, g.node("Transpose", x, perm=[0, 2, 1]))
    scores = g.node("Add", scores, g.node("Where", keys, g.scalar(0), g.scalar(-3e38)))
    x = g.node("MatMul", g.node("Softmax", scores, axis=-1), x)
    g.rename(g.node("MatMul", x, g.const(rng.standard_normal((16, 24)))), "frames")
    return g.model([("samples", TensorProto.FLOAT, ["batch", "length"]),
                    ("mask", TensorProto.INT64, ["batch", "length"])],
                   [("frames", TensorProto.FLOAT, ["batch", None, 24])])


def strided_recording(seed=0):
    """[batch, samples] -> [batch, 24]: four convolutions that halve a recording, and the mean of it."""
    g = Graph(17)
    rng = np.random.default_rng(seed)
    x = g.unsqueeze("samples", 1)
    channels = 1
    for _ in range(4):
        scale = 1 / np.sqrt(4 * channels)
        x = g.node("Conv", x, g.const(rng.standard_normal((16, channels, 4)) * scale),
                   kernel_shape=[4], strides=[2])
        x = g.node("Relu", x)
        channels = 16
    x = g.node("ReduceMean", x, axes=[2], keepdims=0)
    g.rename(g.node("MatMul", x, g.const(rng.standard_normal((16, 24)))), "sound")
    return g.model([("samples", TensorProto.FLOAT, ["batch", "length"])],
                   [("sound", TensorProto.FLOAT, ["batch", 24])])


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


def text_end(seed=0):
    """[batch, length] ids -> [batch, 16] of the largest id of each text, as its end is marked: by two
    lists of places, which exporters make one of rows laid end to end."""
    g = Graph(17)
    rng = np.random.default_rng(seed)
    words = g.node("Gather", g.const(rng.standard_normal((100, 16))), "input_ids")
    end = g.node("ArgMax", g.node("Cast", "input_ids", to=TensorProto.INT32), axis=-1, keepdims=0)
    shape = g.node("Shape", words)
    rows, length = (g.node("Gather", shape, g.scalar(i, np.int64), axis=0) for i in range(2))
    starts = g.node("Mul", g.node("Range", g.scalar(0, np.int64), rows, g.scalar(1, np.int64)),
                    length)
    flat = g.node("Reshape", words, g.ints(-1, 16))
    g.rename(g.node("Gather", flat, g.node("Add", g.node("Cast", end, to=TensorProto.INT64), starts),
                    axis=0), "ends")
    return g.model([("input_ids", TensorProto.INT64, ["batch", "length"])],
                   [("ends", TensorProto.FLOAT, ["batch", 16])])


def picture_with_mask(seed=0):
    """Makes [batch, 3, height, width] -> [batch, 4, height / 8, width / 8]: the picture, and how much of a
    mask that the model makes itself and that is resized with the batch as its channels."""
    g = Graph(17)
    rng = np.random.default_rng(seed)
    x = g.node("Conv", "picture", g.const(rng.standard_normal((4, 3, 8, 8)) * 0.1),
               kernel_shape=[8, 8], strides=[8, 8])
    sides = g.node("Concat", g.dim("picture", 0), g.dim("picture", 2), g.dim("picture", 3), axis=0)
    ones = g.node("ConstantOfShape", sides,
                  value=helper.make_tensor("one", TensorProto.FLOAT, [1], [1]))
    to = g.node("Concat", g.ints(1), g.dim("picture", 0), g.dim(x, 2), g.dim(x, 3), axis=0)
    mask = g.node("Resize", g.unsqueeze(ones, 0), "", "", to, mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    rows = g.node("CumSum", g.node("Squeeze", mask, g.ints(0)), g.scalar(1, np.int64))
    last = g.node("Slice", rows, g.ints(-1), g.ints(2**63 - 1), g.ints(1), g.ints(1))
    waves = g.node("Sin", g.node("Div", rows, g.node("Add", last, g.scalar(1e-6))))
    # Expand to sizes of which -1 would mean as it is.
    sides = g.node("Concat", g.dim(x, 0), g.ints(1), g.dim(x, 2), g.dim(x, 3), axis=0)
    ones = g.node("ConstantOfShape", g.node("Shape", sides),
                  value=helper.make_tensor("one", TensorProto.INT64, [1], [1]))
    same = g.node("Equal", sides, g.node("Mul", ones, g.scalar(-1, np.int64)))
    waves = g.node("Expand", g.unsqueeze(waves, 1), g.node("Where", same, ones, sides))
    g.rename(g.node("Add", x, waves), "seen")
    return g.model([("picture", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
                   [("seen", TensorProto.FLOAT, ["batch", 4, None, None])])


def points_in_parts(seed=0):
    """[batch, points, 2] -> the same with its first coordinate divided: put back by places, as an
    assignment to a part of a tensor is exported."""
    g = Graph(17)
    first = g.node("Div", g.node("Slice", "points", g.ints(0), g.ints(1), g.ints(2)), g.scalar(64))
    rows, points = g.dim("points", 0), g.dim("points", 1)

    def places(count, shape):
        line = g.node("Range", g.scalar(0, np.int64), g.node("Squeeze", count, g.ints(0)),
                      g.scalar(1, np.int64))
        grid = g.node("Expand", g.node("Reshape", line, g.ints(*shape)),
                      g.node("Concat", rows, points, g.ints(1), axis=0))
        return g.unsqueeze(grid, 3)

    zero = g.node("Expand", g.const([[[[0]]]], np.int64),
                  g.node("Concat", rows, points, g.ints(1, 1), axis=0))
    at = g.node("Concat", places(rows, (-1, 1, 1)), places(points, (1, -1, 1)), zero, axis=-1)
    g.rename(g.node("ScatterND", "points", at, first), "scaled")
    return g.model([("points", TensorProto.FLOAT, ["batch", 7, 2])],
                   [("scaled", TensorProto.FLOAT, ["batch", 7, 2])])
