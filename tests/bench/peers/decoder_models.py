"""Writes steps of decoders with random weights: ids, a mask over past and new positions, and a cache.

python decoder_models.py FOLDER: a model for each of MODELS. Inputs input_ids [batch, sequence],
attention_mask [batch, total], then keys and values of each layer [batch, heads, past, size]; outputs
logits, then the cache with the new positions.
"""

import dataclasses
import pathlib
import sys


@dataclasses.dataclass
class Decoder:
    layers: int
    heads: int
    kv_heads: int  # fewer: several heads of queries share one
    size: int
    feed_forward: int
    vocabulary: int = 8000


MODELS = {
    "gpt2_like": Decoder(layers=4, heads=12, kv_heads=12, size=64, feed_forward=3072),
    "llama_like": Decoder(layers=6, heads=9, kv_heads=3, size=64, feed_forward=1536),
}


def build(shape):
    import numpy as np
    from onnx import TensorProto

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from testing.models import Graph

    g, rng, width = Graph(17), np.random.default_rng(1), shape.heads * shape.size

    def product(x, rows, columns):
        return g.node("MatMul", x, g.const(rng.normal(0, rows ** -0.5, (rows, columns))))

    def norm(x):
        return g.node("LayerNormalization", x, g.const(np.ones(width)), g.const(np.zeros(width)),
                      axis=-1)

    def heads_of(x, count):
        apart = g.node("Reshape", product(x, width, count * shape.size),
                       g.ints(0, 0, count, shape.size))
        return g.node("Transpose", apart, perm=[0, 2, 1, 3])

    def repeat(value):
        times = shape.heads // shape.kv_heads
        if times == 1:
            return value
        wide = g.node("Expand", g.unsqueeze(value, 2), g.ints(1, 1, times, 1, 1))
        return g.node("Reshape", wide, g.ints(0, shape.heads, -1, shape.size))

    hidden = g.node("Sub", g.scalar(1), g.node("Cast", "attention_mask", to=TensorProto.FLOAT))
    bias = g.node("Mul", g.unsqueeze(g.unsqueeze(hidden, 1), 1), g.scalar(-1e9))
    x = g.node("Gather", g.const(rng.normal(0, 1, (shape.vocabulary, width))), "input_ids")
    past, present = [], []
    for layer in range(shape.layers):
        y = norm(x)
        queries, both = heads_of(y, shape.heads), []
        for kind in ("key", "value"):
            past.append(f"past_{kind}_{layer}")
            both.append(g.node("Concat", past[-1], heads_of(y, shape.kv_heads), axis=2))
            present.append(f"present_{kind}_{layer}")
            g.rename(both[-1], present[-1])
        keys = g.node("Transpose", repeat(both[0]), perm=[0, 1, 3, 2])
        scores = g.node("Mul", g.node("MatMul", queries, keys), g.scalar(shape.size ** -0.5))
        weights = g.node("Softmax", g.node("Add", scores, bias), axis=-1)
        context = g.node("Transpose", g.node("MatMul", weights, repeat(both[1])), perm=[0, 2, 1, 3])
        joined = g.node("Reshape", context, g.ints(0, 0, width))
        x = g.node("Add", x, product(joined, width, width))
        y = product(norm(x), width, shape.feed_forward)
        y = g.node("Mul", y, g.node("Sigmoid", y))
        x = g.node("Add", x, product(y, shape.feed_forward, width))
    g.rename(product(norm(x), width, shape.vocabulary), "logits")
    cache = ["batch", shape.kv_heads, "past", shape.size]
    longer = ["batch", shape.kv_heads, None, shape.size]
    return g.model([("input_ids", TensorProto.INT64, ["batch", "sequence"]),
                    ("attention_mask", TensorProto.INT64, ["batch", "total"]),
                    *((name, TensorProto.FLOAT, cache) for name in past)],
                   [("logits", TensorProto.FLOAT, ["batch", "sequence", shape.vocabulary]),
                    *((name, TensorProto.FLOAT, longer) for name in present)])


if __name__ == "__main__":
    import onnx

    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, shape in MODELS.items():
        onnx.save(build(shape), folder / f"{name}.onnx")
