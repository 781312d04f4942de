"""Detectors that resize their picture before their layers, as torchvision's do when torch exports them."""

import numpy as np
from onnx import TensorProto, numpy_helper

from testing.windows import Net


def model(shortest=96, longest=160, channels=8, best=20, size=2, seed=5, opset=13):
    """Makes one picture [3, height, width], resized so that its shorter side is `shortest` and its longer
    one at most `longest`, and padded to multiples of 8; two maps of strides 4 and 8, the coarse
    one doubled and added to the fine one, whose channels have shares of their own; a score and a box at each place of the fine one, the
    best of which are aligned on it and go through a layer, where no better one lies over them;
    boxes that the layer moves, within the resized picture, in places of the picture itself."""
    g = Net(seed, opset)
    shape = g.node("Shape", "image")
    sides = g.node("Slice", shape, g.ints(1), g.ints(3), g.ints(0))
    as_float = g.node("Cast", sides, to=TensorProto.FLOAT)
    least = g.node("ReduceMin", as_float, keepdims=0)
    most = g.node("ReduceMax", as_float, keepdims=0)
    scale = g.node("Min", g.node("Div", g.scalar(shortest), least), g.node("Div", g.scalar(longest), most))
    to = g.node("Cast", g.node("Floor", g.node("Mul", as_float, scale)), to=TensorProto.INT64)
    normal = g.node("Div", g.node("Sub", "image", g.const(np.full((3, 1, 1), 0.45))),
                    g.const(np.full((3, 1, 1), 0.22)))
    resized = g.node("Resize", g.unsqueeze(normal, 0), "", "", g.node("Concat", g.ints(1, 3), to, axis=0),
                     mode="linear", coordinate_transformation_mode="half_pixel")
    rest = g.node("Mod", g.node("Sub", g.ints(8), g.node("Mod", to, g.ints(8))), g.ints(8))
    padded = g.node("Pad", resized, g.node("Concat", g.ints(0, 0, 0, 0, 0, 0), rest, axis=0), g.scalar(0))

    x = g.node("Relu", g.conv(padded, 3, channels, [3, 3], [2, 2], [1] * 4))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    fine = g.node("Relu", g.conv(x, channels, channels, [3, 3], [1, 1], [1] * 4))
    share = g.node("Sigmoid", g.conv(g.node("GlobalAveragePool", fine), channels, channels, [1, 1]))
    fine = g.node("Mul", fine, share)
    coarse = g.node("Relu", g.conv(fine, channels, channels, [3, 3], [2, 2], [1] * 4))
    fine_sides = g.node("Slice", g.node("Shape", fine), g.ints(2), g.ints(4), g.ints(0))
    doubled = g.node("Resize", coarse, "", "", g.node("Concat", g.ints(1, channels), fine_sides, axis=0),
                     mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    fine = g.node("Add", fine, doubled)
    head = g.node("Relu", g.conv(fine, channels, channels, [3, 3], [1, 1], [1] * 4))
    objects = g.conv(head, channels, 1, [1, 1])
    deltas = g.conv(head, channels, 2, [1, 1])

    scores = g.node("Reshape", objects, g.ints(-1))
    rows, columns = g.dim(fine, 2), g.dim(fine, 3)

    def places(count):
        return g.node("Range", g.scalar(0, np.int64), g.node("Squeeze", count, g.ints(0)), g.scalar(1, np.int64))

    grid = g.node("Concat", rows, columns, axis=0)
    y = g.node("Expand", g.node("Unsqueeze", places(rows), g.ints(1)), grid)
    x = g.node("Expand", g.node("Unsqueeze", places(columns), g.ints(0)), grid)
    centers = [g.node("Mul", g.node("Cast", g.node("Reshape", c, g.ints(-1)), to=TensorProto.FLOAT), g.scalar(4.0))
               for c in (x, y)]
    centers = [g.node("Add", c, g.weight(1)) for c in centers]
    halves = g.node("Add", g.node("Mul", g.node("Sigmoid", g.node("Reshape", deltas, g.ints(2, -1))),
                                  g.scalar(12.0)), g.scalar(6.0))
    half = [g.node("Gather", halves, g.scalar(i, np.int64), axis=0) for i in range(2)]
    corners = [g.node(op, centers[i], half[i]) for op in ("Sub", "Add") for i in range(2)]
    boxes = g.node("Concat", *(g.node("Unsqueeze", c, g.ints(1)) for c in corners), axis=1)
    k = g.node("Min", g.ints(best), g.dim(scores, 0))
    values, at = g.node("TopK", scores, k, outputs=2, axis=0)
    chosen = g.node("Gather", boxes, at, axis=0)
    kept = g.node("NonMaxSuppression", g.unsqueeze(chosen, 0), g.node("Unsqueeze", values, g.ints(0, 1)),
                  g.ints(best), g.const([0.4]), g.const([-100.0]))
    where = g.node("Squeeze", g.node("Gather", kept, g.ints(2), axis=1), g.ints(1))
    regions = g.node("Gather", chosen, where, axis=0)
    zeros = g.node("ConstantOfShape", g.node("Shape", where), value=numpy_helper.from_array(np.zeros(1, np.int64)))
    aligned = g.node("RoiAlign", fine, regions, zeros, output_height=size, output_width=size,
                     sampling_ratio=2, spatial_scale=0.25)
    flat = g.node("Reshape", aligned, g.ints(-1, channels * size * size))
    hidden = g.node("Relu", g.node("Gemm", flat, g.weight(16, channels * size * size), g.weight(16), transB=1))
    moved = g.node("Add", regions, g.node("Gemm", hidden, g.weight(4, 16), g.weight(4), transB=1))
    limits = g.node("Cast", g.node("Gather", to, g.ints(1, 0, 1, 0), axis=0), to=TensorProto.FLOAT)
    within = g.node("Max", g.node("Min", moved, limits), g.scalar(0))
    back = g.node("Div", g.node("Gather", as_float, g.ints(1, 0, 1, 0), axis=0), limits)
    g.rename(g.node("Mul", within, back), "boxes")
    g.rename(g.node("Softmax", g.node("Gemm", hidden, g.weight(4, 16), g.weight(4), transB=1), axis=1), "classes")
    return g.model([("image", TensorProto.FLOAT, [3, "height", "width"])],
                   [("boxes", TensorProto.FLOAT, ["found", 4]), ("classes", TensorProto.FLOAT, ["found", 4])])
