"""Detectors whose second stage gathers regions by level, as torch exports them."""

import numpy as np
from onnx import TensorProto

from testing.windows import Net


def model(levels=3, maps=4, size=3, hidden=24, seed=0, opset=13):
    """Regions [regions, 4] of an image of 64 x 64 and the maps of `levels` levels, each half as large.

    Each region is aligned on the map of the level that its size says; regions of a level are found
    (NonZero), aligned, and put back where they were (ScatterElements) before the head sees all of
    them. At the end those with a score above one half are kept.
    """
    g = Net(seed, opset)

    def side(low, high):
        return g.node("Sub", g.node("Gather", "regions", g.scalar(high, np.int64), axis=1),
                      g.node("Gather", "regions", g.scalar(low, np.int64), axis=1))

    area = g.node("Mul", side(0, 2), side(1, 3))
    octave = g.node("Div", g.node("Log", g.node("Sqrt", area)), g.scalar(np.log(2)))
    level = g.node("Cast", g.node("Clip", g.node("Sub", g.node("Floor", octave), g.scalar(2)),
                                  g.scalar(0), g.scalar(levels - 1)), to=TensorProto.INT64)

    def found(number):
        where = g.node("NonZero", g.node("Equal", level, g.scalar(number, np.int64)))
        return g.node("Gather", g.node("Transpose", where, perm=[1, 0]), g.scalar(0, np.int64), axis=1)

    aligned = []
    for number in range(levels):
        places = found(number)
        own = g.node("Gather", "regions", places, axis=0)
        zeros = g.node("ConstantOfShape", g.node("Shape", places),
                       value=_tensor(np.zeros(1, np.int64)))
        aligned.append(g.node("RoiAlign", f"level{number}", own, zeros, output_height=size,
                              output_width=size, sampling_ratio=2, spatial_scale=0.25 / 2**number))
    merged = g.node("ConstantOfShape",
                    g.node("Concat", g.dim("regions", 0), g.ints(maps, size, size), axis=0),
                    value=_tensor(np.zeros(1, np.float32)))
    for number in range(levels):
        places = g.node("Reshape", found(number), g.ints(-1, 1, 1, 1))
        shape = g.node("Concat", g.dim(places, 0), g.ints(maps, size, size), axis=0)
        merged = g.node("ScatterElements", merged, g.node("Expand", places, shape),
                        aligned[number], axis=0)
    flat = g.node("Reshape", merged, g.ints(-1, maps * size * size))
    features = g.node("Relu", g.node("Gemm", flat, g.weight(hidden, maps * size * size),
                                     g.weight(hidden), transB=1))
    scores = g.node("Sigmoid", g.node("Gemm", features, g.weight(1, hidden), transB=1))
    kept = g.node("Compress", features,
                  g.node("Greater", g.node("Reshape", scores, g.ints(-1)), g.scalar(0.5)), axis=0)
    g.rename(scores, "scores")
    g.rename(g.node("Gemm", kept, g.weight(5, hidden), transB=1), "boxes")
    maps_of = [(f"level{number}", TensorProto.FLOAT, [1, maps, 16 >> number, 16 >> number])
               for number in range(levels)]
    return g.model([("regions", TensorProto.FLOAT, ["regions", 4]), *maps_of],
                   [("scores", TensorProto.FLOAT, ["regions", 1]),
                    ("boxes", TensorProto.FLOAT, ["found", 5])])


def _tensor(array):
    from onnx import numpy_helper
    return numpy_helper.from_array(array)


def regions(rng, shares, count):
    """`count` regions, of which about `shares` lie on each level."""
    levels = rng.choice(len(shares), count, p=np.array(shares) / sum(shares))
    sides = 2.0 ** (levels + rng.uniform(2.1, 2.9, count))
    corners = rng.uniform(0, 64 - sides[:, None], (count, 2))
    return np.concatenate([corners, corners + sides[:, None]], axis=1).astype(np.float32)
