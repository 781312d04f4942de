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
    four_bits: bool = False  # weights of products, in blocks (nbits.py)
    fused: bool = False  # as onnxruntime's model builder writes them


MODELS = {
    "gpt2_like": Decoder(layers=4, heads=12, kv_heads=12, size=64, feed_forward=3072),
    "llama_like": Decoder(layers=6, heads=9, kv_heads=3, size=64, feed_forward=1536),
    "llama_like_4_bits": Decoder(layers=6, heads=9, kv_heads=3, size=64, feed_forward=1536,
                                 four_bits=True),
    "fused_4_bits": Decoder(layers=4, heads=32, kv_heads=8, size=64, feed_forward=8192,
                            four_bits=True, fused=True),
    "wide_4_bits": Decoder(layers=4, heads=32, kv_heads=8, size=64, feed_forward=8192,
                           four_bits=True),
}


def build(shape):
    import numpy as np
    from onnx import TensorProto

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from testing.models import CachedAttention, Graph

    g, rng, width = Graph(17), np.random.default_rng(1), shape.heads * shape.size

    def weight(rows, columns):
        return g.const(rng.normal(0, rows ** -0.5, (rows, columns)))

    def norm(x):
        return g.node("LayerNormalization", x, g.const(np.ones(width)), g.const(np.zeros(width)),
                      axis=-1)

    attention = CachedAttention(g, weight, shape.heads, shape.kv_heads, shape.size)
    bias = attention.bias(-1e9)
    x = g.node("Gather", g.const(rng.normal(0, 1, (shape.vocabulary, width))), "input_ids")
    past, present = [], []
    for layer in range(shape.layers):
        names = [[f"{when}_{kind}_{layer}" for kind in ("key", "value")]
                 for when in ("past", "present")]
        past += names[0]
        present += names[1]
        x = g.node("Add", x, attention(norm(x), width, bias, *names))
        y = g.node("MatMul", norm(x), weight(width, shape.feed_forward))
        y = g.node("Mul", y, g.node("Sigmoid", y))
        x = g.node("Add", x, g.node("MatMul", y, weight(shape.feed_forward, width)))
    g.rename(g.node("MatMul", norm(x), weight(width, shape.vocabulary)), "logits")
    return attention.model([("logits", TensorProto.FLOAT, ["batch", "sequence", shape.vocabulary])],
                           past, present)


def build_fused(shape):
    """With GroupQueryAttention, rotary positions, RMS norms that add, and a gated feed-forward."""
    import numpy as np
    from onnx import TensorProto, helper

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from testing.models import CachedAttention, Graph

    g, rng, width = Graph(21), np.random.default_rng(1), shape.heads * shape.size
    microsoft = {"domain": "com.microsoft"}

    def weight(rows, columns):
        return g.const(rng.normal(0, rows ** -0.5, (rows, columns)))

    def linear(x, rows, columns):
        return g.node("MatMul", x, weight(rows, columns))

    def norm(x, added):
        names = g.node("SkipSimplifiedLayerNormalization", x, added, g.const(np.ones(width)), outputs=4,
                       epsilon=1e-5, **microsoft)
        g.nodes[-1].output[1:3] = ["", ""]  # the mean and its like, which nothing reads
        return names[0], names[3]

    counted = g.node("Sub", g.reduce_sum("attention_mask", 1, keepdims=0), g.const(1, np.int64))
    last = g.node("Cast", counted, to=TensorProto.INT32)
    total = g.node("Cast", g.dim("attention_mask", 1), to=TensorProto.INT32)
    angles = np.arange(4096)[:, None] / 10000 ** (np.arange(shape.size // 2) * 2 / shape.size)
    cosine, sine = g.const(np.cos(angles)), g.const(np.sin(angles))
    x = g.node("Gather", g.const(rng.normal(0, 1, (shape.vocabulary, width))), "input_ids")
    y = g.node("SimplifiedLayerNormalization", x, g.const(np.ones(width)), axis=-1, epsilon=1e-5, stash_type=1)
    past, present = [], []
    for layer in range(shape.layers):
        names = [[f"{when}_{kind}_{layer}" for kind in ("key", "value")] for when in ("past", "present")]
        past += names[0]
        present += names[1]
        q, k, v = (linear(y, width, n * shape.size) for n in (shape.heads, shape.kv_heads, shape.kv_heads))
        attended = g.node("GroupQueryAttention", q, k, v, *names[0], last, total, cosine, sine, outputs=3,
                          num_heads=shape.heads, kv_num_heads=shape.kv_heads, do_rotary=1, **microsoft)
        for name, to in zip(attended[1:], names[1]):
            g.rename(name, to)
        y, x = norm(x, linear(attended[0], width, width))
        gate, up = (linear(y, width, shape.feed_forward) for _ in range(2))
        gated = g.node("Mul", g.node("Mul", gate, g.node("Sigmoid", gate)), up)
        y, x = norm(x, linear(gated, shape.feed_forward, width))
    g.rename(linear(y, width, shape.vocabulary), "logits")
    model = CachedAttention(g, weight, shape.heads, shape.kv_heads, shape.size).model(
        [("logits", TensorProto.FLOAT, ["batch", "sequence", shape.vocabulary])], past, present)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


if __name__ == "__main__":
    import nbits
    import onnx

    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, shape in MODELS.items():
        model = build_fused(shape) if shape.fused else build(shape)
        onnx.save(nbits.quantize(model) if shape.four_bits else model,
                  folder / f"{name}.onnx")
