"""Small transformers written the way different exporters and model families write them.

Each function returns an ONNX model of two layers over [batch, sequence]. They differ in the form:
where the scale is, how the mask is made, how heads are moved, how normalisations are spelt. A
runtime that fuses one form only is slow on the others. `ALL` lists them.
"""

import numpy as np
from onnx import TensorProto

from testing.models import Graph

HIDDEN, HEADS, LAYERS, VOCABULARY, POSITIONS = 32, 4, 2, 100, 64
SIZE = HIDDEN // HEADS
LOWEST = np.finfo(np.float32).min
REACH = 5  # of a window


class Transformer(Graph):
    """The parts that the models share: weights, norms, activations, heads."""

    def __init__(self, opset, seed=0):
        super().__init__(opset)
        self.random = np.random.default_rng(seed)

    def weight(self, *shape, scale=None, hint="weight"):
        return self.const(self.random.normal(0, scale or shape[0] ** -0.5, shape), hint=hint)

    def linear(self, x, rows, columns, bias=True):
        product = self.node("MatMul", x, self.weight(rows, columns))
        return self.node("Add", self.weight(columns, scale=0.1), product) if bias else product

    def layer_norm(self, x):
        gamma = self.const(self.random.normal(1, 0.1, HIDDEN))
        return self.node("LayerNormalization", x, gamma, self.weight(HIDDEN, scale=0.1), axis=-1,
                         epsilon=1e-5)

    def decomposed_layer_norm(self, x):
        centred = self.node("Sub", x, self.reduce_mean(x, -1))
        variance = self.reduce_mean(self.node("Pow", centred, self.scalar(2.0)), -1)
        deviation = self.node("Sqrt", self.node("Add", variance, self.scalar(1e-12)))
        scaled = self.node("Mul", self.node("Div", centred, deviation),
                           self.const(self.random.normal(1, 0.1, HIDDEN)))
        return self.node("Add", scaled, self.weight(HIDDEN, scale=0.1))

    def rms_norm(self, x):
        mean = self.reduce_mean(self.node("Pow", x, self.scalar(2.0)), -1)
        deviation = self.node("Sqrt", self.node("Add", mean, self.scalar(1e-6)))
        normal = self.node("Mul", x, self.node("Div", self.scalar(1.0), deviation))
        return self.node("Mul", self.const(self.random.normal(1, 0.1, HIDDEN)), normal)

    def erf_gelu(self, x):
        gate = self.node("Add", self.node("Erf", self.node("Div", x, self.scalar(2 ** 0.5))),
                         self.scalar(1.0))
        return self.node("Mul", self.node("Mul", x, gate), self.scalar(0.5))

    def tanh_gelu(self, x):
        cube = self.node("Mul", self.node("Pow", x, self.scalar(3.0)), self.scalar(0.044715))
        inner = self.node("Mul", self.node("Add", x, cube), self.scalar((2 / np.pi) ** 0.5))
        gate = self.node("Add", self.node("Tanh", inner), self.scalar(1.0))
        return self.node("Mul", self.node("Mul", x, self.scalar(0.5)), gate)

    def shape_of(self, x, *sizes):
        """[dim 0 of x, dim 1 of x, *sizes] as the graph computes it."""
        return self.node("Concat", self.dim(x, 0), self.dim(x, 1), self.ints(*sizes), axis=0)

    def heads(self, x, perm=(0, 2, 1, 3), heads=HEADS):
        view = self.node("Reshape", x, self.shape_of(x, heads, SIZE))
        return self.node("Transpose", view, perm=list(perm))

    def join(self, x):
        tokens = self.node("Transpose", x, perm=[0, 2, 1, 3])
        return self.node("Reshape", tokens, self.shape_of(tokens, HIDDEN))

    def embed(self, ids, positions=True):
        words = self.node("Gather", self.weight(VOCABULARY, HIDDEN, scale=1.0), ids)
        if not positions:
            return words
        every = self.const(np.arange(POSITIONS)[None, :], np.int64, "positions")
        used = self.node("Slice", every, self.ints(0), self.dim(ids, 1), self.ints(1))
        table = self.weight(POSITIONS, HIDDEN, scale=0.3)
        return self.node("Add", words, self.node("Gather", table, used))

    def rotary_tables(self, ids):
        """Cosine and sine of [1, 1, length, SIZE]."""
        angles = np.outer(np.arange(POSITIONS), 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE))
        angles = np.concatenate([angles, angles], -1)

        def table(values):
            every = self.const(values, hint="rotary")
            rows = self.node("Slice", every, self.ints(0), self.dim(ids, 1), self.ints(0))
            return self.unsqueeze(self.unsqueeze(rows, 0), 1)

        return table(np.cos(angles)), table(np.sin(angles))

    def rotate(self, x, cosine, sine):
        half = SIZE // 2
        low = self.node("Slice", x, self.ints(0), self.ints(half), self.ints(3))
        high = self.node("Slice", x, self.ints(half), self.ints(SIZE), self.ints(3))
        turned = self.node("Concat", self.node("Neg", high), low, axis=-1)
        return self.node("Add", self.node("Mul", x, cosine), self.node("Mul", turned, sine))

    def additive_mask(self, mask, low=-10000.0):
        wide = self.unsqueeze(self.unsqueeze(mask, 1), 2)
        off = self.node("Sub", self.scalar(1.0), self.node("Cast", wide, to=TensorProto.FLOAT))
        return self.node("Mul", off, self.scalar(low))

    def filled_mask(self, mask, low):
        """Puts `low` in the place of hidden scores, 0 elsewhere."""
        wide = self.unsqueeze(self.unsqueeze(mask, 1), 2)
        off = self.node("Sub", self.scalar(1.0), self.node("Cast", wide, to=TensorProto.FLOAT))
        hidden = self.node("Cast", off, to=TensorProto.BOOL)
        return self.node("Where", hidden, self.scalar(low), off)

    def finish(self, x, name, inputs=("input_ids", "attention_mask")):
        self.rename(x, "last_hidden_state")
        return self.model([(i, TensorProto.INT64, ["batch", "sequence"]) for i in inputs],
                          [("last_hidden_state", TensorProto.FLOAT,
                            ["batch", "sequence", HIDDEN])], name)


def distilbert():
    """Scales the query before its product; the mask replaces scores, spread to their shape."""
    g = Transformer(14)
    x = g.decomposed_layer_norm(g.embed("input_ids"))
    hidden = g.node("Equal", "attention_mask", g.scalar(0, np.int64))
    for _ in range(LAYERS):
        query = g.node("Div", g.heads(g.linear(x, HIDDEN, HIDDEN)), g.scalar(SIZE ** 0.5))
        key = g.node("Transpose", g.heads(g.linear(x, HIDDEN, HIDDEN)), perm=[0, 1, 3, 2])
        value = g.heads(g.linear(x, HIDDEN, HIDDEN))
        scores = g.node("MatMul", query, key)
        view = g.node("Reshape", hidden, g.node("Concat", g.dim("input_ids", 0), g.ints(1, 1),
                                                g.dim("input_ids", 1), axis=0))
        spread = g.node("Expand", view, g.node("Shape", scores))
        masked = g.node("Where", spread, g.scalar(LOWEST), scores)
        context = g.join(g.node("MatMul", g.node("Softmax", masked, axis=-1), value))
        x = g.decomposed_layer_norm(g.node("Add", g.linear(context, HIDDEN, HIDDEN), x))
        inner = g.erf_gelu(g.linear(x, HIDDEN, 4 * HIDDEN))
        x = g.decomposed_layer_norm(g.node("Add", g.linear(inner, 4 * HIDDEN, HIDDEN), x))
    return g.finish(x, "distilbert")


def gpt2():
    """Rows flattened around Gemm, one split projection, a causal buffer, normalised before."""
    g = Transformer(13)

    def conv1d(x, rows, columns):
        shape = g.shape_of(x, columns)
        flat = g.node("Reshape", x, g.ints(-1, rows))
        product = g.node("Gemm", flat, g.weight(rows, columns), g.weight(columns, scale=0.1))
        return g.node("Reshape", product, shape)

    x = g.embed("input_ids")
    mask = g.additive_mask("attention_mask", LOWEST)
    buffer = g.const(np.tril(np.ones((POSITIONS, POSITIONS)))[None, None], np.bool_, "causal")
    for _ in range(LAYERS):
        rows = conv1d(g.decomposed_layer_norm(x), HIDDEN, 3 * HIDDEN)
        parts = g.node("Split", rows, g.ints(HIDDEN, HIDDEN, HIDDEN), outputs=3, axis=2)
        query, key, value = g.heads(parts[0]), g.heads(parts[1], (0, 2, 3, 1)), g.heads(parts[2])
        scores = g.node("Div", g.node("MatMul", query, key), g.scalar(SIZE ** 0.5))
        length = g.dim("input_ids", 1)
        causal = g.node("Slice", g.node("Slice", buffer, g.ints(0), length, g.ints(2)), g.ints(0),
                        length, g.ints(3))
        scores = g.node("Where", causal, scores, g.scalar(LOWEST))
        weights = g.node("Softmax", g.node("Add", scores, mask), axis=-1)
        context = conv1d(g.join(g.node("MatMul", weights, value)), HIDDEN, HIDDEN)
        x = g.node("Add", context, x)
        inner = g.tanh_gelu(conv1d(g.decomposed_layer_norm(x), HIDDEN, 4 * HIDDEN))
        x = g.node("Add", x, conv1d(inner, 4 * HIDDEN, HIDDEN))
    return g.finish(g.decomposed_layer_norm(x), "gpt2")


def t5():
    """Root mean square norms, no scale, a learnt bias per pair of positions, no other biases."""
    g = Transformer(13)
    x = g.embed("input_ids", positions=False)
    buckets = g.const(np.abs(np.subtract.outer(np.arange(POSITIONS), np.arange(POSITIONS))) // 4,
                      np.int64, "buckets")
    length = g.dim("input_ids", 1)
    used = g.node("Slice", g.node("Slice", buckets, g.ints(0), length, g.ints(0)), g.ints(0),
                  length, g.ints(1))
    bias = g.node("Gather", g.weight(POSITIONS, HEADS, scale=0.5), used)
    bias = g.unsqueeze(g.node("Transpose", bias, perm=[2, 0, 1]), 0)
    bias = g.node("Add", bias, g.additive_mask("attention_mask", LOWEST))
    for _ in range(LAYERS):
        normal = g.rms_norm(x)
        query = g.heads(g.linear(normal, HIDDEN, HIDDEN, bias=False))
        key = g.heads(g.linear(normal, HIDDEN, HIDDEN, bias=False), (0, 2, 3, 1))
        value = g.heads(g.linear(normal, HIDDEN, HIDDEN, bias=False))
        weights = g.node("Softmax", g.node("Add", g.node("MatMul", query, key), bias), axis=-1)
        context = g.linear(g.join(g.node("MatMul", weights, value)), HIDDEN, HIDDEN, bias=False)
        x = g.node("Add", x, context)
        inner = g.node("Relu", g.linear(g.rms_norm(x), HIDDEN, 4 * HIDDEN, bias=False))
        x = g.node("Add", x, g.linear(inner, 4 * HIDDEN, HIDDEN, bias=False))
    return g.finish(g.rms_norm(x), "t5")


def vision():
    """Makes one projection cut by index in five dims, no mask, the scale on the query."""
    g = Transformer(17)
    x = g.embed("input_ids")
    for _ in range(LAYERS):
        rows = g.linear(g.layer_norm(x), HIDDEN, 3 * HIDDEN)
        view = g.node("Reshape", rows, g.shape_of(rows, 3, HEADS, SIZE))
        parts = g.node("Transpose", view, perm=[2, 0, 3, 1, 4])
        query, key, value = (g.node("Gather", parts, g.scalar(i, np.int64), axis=0)
                             for i in range(3))
        query = g.node("Mul", query, g.scalar(SIZE ** -0.5))
        scores = g.node("MatMul", query, g.node("Transpose", key, perm=[0, 1, 3, 2]))
        context = g.join(g.node("MatMul", g.node("Softmax", scores, axis=-1), value))
        x = g.node("Add", x, g.linear(context, HIDDEN, HIDDEN))
        inner = g.erf_gelu(g.linear(g.layer_norm(x), HIDDEN, 4 * HIDDEN))
        x = g.node("Add", x, g.linear(inner, 4 * HIDDEN, HIDDEN))
    return g.finish(g.layer_norm(x), "vision", inputs=("input_ids",))


def llama():
    """Rotary positions, two key heads for four query heads, a gated feed forward, causal."""
    g = Transformer(17)
    kv_heads = HEADS // 2
    x = g.embed("input_ids", positions=False)
    length = g.dim("input_ids", 1)
    cosine, sine = g.rotary_tables("input_ids")

    def repeat(x):
        shape = g.node("Concat", g.dim("input_ids", 0), g.ints(kv_heads, 2), length, g.ints(SIZE),
                       axis=0)
        wide = g.node("Expand", g.unsqueeze(x, 2), shape)
        flat = g.node("Concat", g.dim("input_ids", 0), g.ints(HEADS), length, g.ints(SIZE), axis=0)
        return g.node("Reshape", wide, flat)

    square = g.node("Concat", length, length, axis=0)
    low = g.node("Trilu", g.node("Expand", g.scalar(LOWEST), square), g.scalar(1, np.int64),
                 upper=1)
    causal = g.unsqueeze(g.unsqueeze(low, 0), 1)
    for _ in range(LAYERS):
        normal = g.rms_norm(x)
        query = g.rotate(g.heads(g.linear(normal, HIDDEN, HIDDEN, bias=False)), cosine, sine)
        key = g.heads(g.linear(normal, HIDDEN, HIDDEN // 2, bias=False), heads=kv_heads)
        key = g.rotate(key, cosine, sine)
        value = g.heads(g.linear(normal, HIDDEN, HIDDEN // 2, bias=False), heads=kv_heads)
        key = g.node("Transpose", repeat(key), perm=[0, 1, 3, 2])
        scores = g.node("Mul", g.node("MatMul", query, key), g.scalar(SIZE ** -0.5))
        weights = g.node("Softmax", g.node("Add", scores, causal), axis=-1)
        context = g.join(g.node("MatMul", weights, repeat(value)))
        x = g.node("Add", x, g.linear(context, HIDDEN, HIDDEN, bias=False))
        normal = g.rms_norm(x)
        gate = g.linear(normal, HIDDEN, 2 * HIDDEN, bias=False)
        gate = g.node("Mul", gate, g.node("Sigmoid", gate))
        inner = g.node("Mul", gate, g.linear(normal, HIDDEN, 2 * HIDDEN, bias=False))
        x = g.node("Add", x, g.linear(inner, 2 * HIDDEN, HIDDEN, bias=False))
    return g.finish(g.rms_norm(x), "llama", inputs=("input_ids",))


def modern_bert():
    """Makes one projection for queries, keys and values, rotary positions, a gated feed forward, norms
    before the nodes they feed."""
    g = Transformer(17)
    return gated_bert(g, [g.additive_mask("attention_mask")], "modern_bert")


def window_bert():
    """Makes the same, but every other layer sees no further than REACH: a row that ends in more zeros has
    positions that see nothing."""
    g = Transformer(17)
    everywhere = g.filled_mask("attention_mask", LOWEST)
    places = g.node("Range", g.scalar(0, np.int64), g.node("Squeeze", g.dim("input_ids", 1)),
                    g.scalar(1, np.int64))
    apart = g.node("Abs", g.node("Sub", g.unsqueeze(places, 0), g.unsqueeze(places, 1)))
    outside = g.node("Not", g.node("LessOrEqual", apart, g.scalar(REACH, np.int64)))
    near = g.node("Where", g.unsqueeze(g.unsqueeze(outside, 0), 1), g.scalar(LOWEST), everywhere)
    return gated_bert(g, [everywhere, near], "window_bert")


def gated_bert(g, masks, name):
    """`masks` take turns, layer by layer."""
    cosine, sine = g.rotary_tables("input_ids")
    x = g.layer_norm(g.embed("input_ids", positions=False))
    for layer in range(LAYERS):
        mask = masks[layer % len(masks)]
        projected = g.linear(g.layer_norm(x), HIDDEN, 3 * HIDDEN, bias=False)
        apart = g.node("Reshape", projected, g.shape_of("input_ids", 3, HEADS, SIZE))
        apart = g.node("Transpose", apart, perm=[0, 3, 2, 1, 4])
        query, key, value = (g.node("Gather", apart, g.scalar(i, np.int64), axis=2)
                             for i in range(3))
        query, key = g.rotate(query, cosine, sine), g.rotate(key, cosine, sine)
        scores = g.node("MatMul", query, g.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = g.node("Mul", scores, g.scalar(SIZE ** -0.5))
        weights = g.node("Softmax", g.node("Add", scores, mask), axis=-1)
        context = g.join(g.node("MatMul", weights, value))
        x = g.node("Add", x, g.linear(context, HIDDEN, HIDDEN, bias=False))
        wide = g.linear(g.layer_norm(x), HIDDEN, 4 * HIDDEN, bias=False)
        inner, gate = g.node("Split", wide, outputs=2, axis=-1)
        inner = g.node("Mul", g.erf_gelu(inner), gate)
        x = g.node("Add", x, g.linear(inner, 2 * HIDDEN, HIDDEN, bias=False))
    return g.finish(g.layer_norm(x), name)


def deberta():
    """Adds the values that queries and keys find in tables by distance, in buckets, to their scores; the
    batch repeats the tables, and the mask hides queries as well as keys."""
    g = Transformer(17)
    span = 6
    x = g.layer_norm(g.embed("input_ids", positions=False))
    counts = g.node("Cast", g.unsqueeze("attention_mask", 2), to=TensorProto.FLOAT)
    x = g.node("Mul", x, counts)
    wide = g.unsqueeze(g.unsqueeze("attention_mask", 1), 2)
    tall = g.unsqueeze(g.node("Squeeze", wide, g.ints(-2)), -1)
    seen = g.node("Cast", g.node("Mul", wide, tall), to=TensorProto.BOOL)
    hidden = g.node("Not", seen)
    batch, length = g.dim("input_ids", 0), g.dim("input_ids", 1)
    places = g.node("Range", g.scalar(0, np.int64), g.node("Squeeze", length),
                    g.scalar(1, np.int64))
    apart = g.node("Sub", g.unsqueeze(places, 1), g.unsqueeze(places, 0))
    far = g.node("Cast", apart, to=TensorProto.FLOAT)
    reach = g.node("Ceil", g.node("Log", g.node("Max", g.node("Abs", far), g.scalar(1.0))))
    bucket = g.node("Mul", g.node("Sign", far), g.node("Add", reach, g.scalar(2.0)))
    near = g.node("LessOrEqual", g.node("Abs", apart), g.scalar(3, np.int64))
    bucket = g.node("Cast", g.node("Where", near, far, bucket), to=TensorProto.INT64)

    def index(sign):
        moved = g.node("Add", g.node("Mul", bucket, g.scalar(sign, np.int64)),
                       g.scalar(span, np.int64))
        return g.node("Clip", moved, g.scalar(0, np.int64), g.scalar(2 * span - 1, np.int64))

    rows = g.node("Mul", batch, g.ints(HEADS))
    square = g.node("Concat", rows, length, length, axis=0)
    four = g.node("Concat", batch, g.ints(HEADS), length, length, axis=0)
    table = g.layer_norm(g.unsqueeze(g.weight(2 * span, HIDDEN, scale=1.0), 0))

    def fold(x):
        heads = g.node("Transpose", g.node("Reshape", x, g.shape_of(x, HEADS, SIZE)),
                       perm=[0, 2, 1, 3])
        return g.node("Reshape", heads, g.node("Concat", g.ints(-1), g.dim(x, 1), g.ints(SIZE),
                                               axis=0))

    def repeated(projected):
        times = g.node("Concat", batch, g.ints(1, 1), axis=0)
        return g.node("Transpose", g.node("Tile", fold(projected), times), perm=[0, 2, 1])

    root = g.scalar((3 * SIZE) ** 0.5)
    for _ in range(LAYERS):
        wq, wk = g.weight(HIDDEN, HIDDEN), g.weight(HIDDEN, HIDDEN)
        query, key = fold(g.node("MatMul", x, wq)), fold(g.node("MatMul", x, wk))
        value = fold(g.linear(x, HIDDEN, HIDDEN))
        scores = g.node("MatMul", query,
                        g.node("Div", g.node("Transpose", key, perm=[0, 2, 1]), root))
        products = g.node("MatMul", query, repeated(g.node("MatMul", table, wk)))
        of_query = g.node("GatherElements", products, g.node("Expand", index(1), square), axis=-1)
        products = g.node("MatMul", key, repeated(g.node("MatMul", table, wq)))
        of_key = g.node("GatherElements", products, g.node("Expand", index(-1), square), axis=-1)
        of_key = g.node("Transpose", of_key, perm=[0, 2, 1])
        relative = g.node("Add", g.node("Div", of_query, root), g.node("Div", of_key, root))
        scores = g.node("Reshape", g.node("Add", scores, relative), four)
        scores = g.node("Where", hidden, g.scalar(LOWEST), scores)
        weights = g.node("Reshape", g.node("Softmax", scores, axis=-1), square)
        context = g.node("Reshape", g.node("MatMul", weights, value),
                         g.node("Concat", batch, g.ints(HEADS), length, g.ints(SIZE), axis=0))
        x = g.layer_norm(g.node("Add", x, g.linear(g.join(context), HIDDEN, HIDDEN)))
        inner = g.erf_gelu(g.linear(x, HIDDEN, 4 * HIDDEN))
        x = g.layer_norm(g.node("Add", x, g.linear(inner, 4 * HIDDEN, HIDDEN)))
    return g.finish(x, "deberta")


def keras_bert():
    """Norms folded into one product and one sum, scores scaled by a factor, rows flattened."""
    g = Transformer(12)

    def norm(x):
        mean = g.reduce_mean(x, -1)
        centred = g.node("Sub", x, mean)
        variance = g.reduce_mean(g.node("Mul", centred, centred), -1)
        inverse = g.node("Reciprocal", g.node("Sqrt", g.node("Add", variance, g.scalar(1e-3))))
        factor = g.node("Mul", inverse, g.const(g.random.normal(1, 0.1, HIDDEN)))
        shift = g.node("Sub", g.weight(HIDDEN, scale=0.1), g.node("Mul", mean, factor))
        return g.node("Add", g.node("Mul", x, factor), shift)

    def dense(x, rows, columns):
        flat = g.node("Reshape", x, g.ints(-1, rows))
        product = g.node("MatMul", flat, g.weight(rows, columns))
        back = g.node("Reshape", product, g.shape_of(x, columns))
        return g.node("Add", back, g.weight(columns, scale=0.1))

    x = norm(g.embed("input_ids"))
    mask = g.additive_mask("attention_mask")
    for _ in range(LAYERS):
        query = g.heads(dense(x, HIDDEN, HIDDEN))
        key = g.heads(dense(x, HIDDEN, HIDDEN), (0, 2, 3, 1))
        value = g.heads(dense(x, HIDDEN, HIDDEN))
        scores = g.node("Mul", g.node("MatMul", query, key), g.scalar(SIZE ** -0.5))
        weights = g.node("Softmax", g.node("Add", scores, mask), axis=3)
        context = g.join(g.node("MatMul", weights, value))
        x = norm(g.node("Add", dense(context, HIDDEN, HIDDEN), x))
        inner = g.erf_gelu(dense(x, HIDDEN, 4 * HIDDEN))
        x = norm(g.node("Add", dense(inner, 4 * HIDDEN, HIDDEN), x))
    return g.finish(x, "keras_bert")


def einsum_bert():
    """Projections to and from heads as Einsum with weights of three dims, biases of two."""
    g = Transformer(13)

    def project(x):
        heads = g.node("Einsum", x, g.weight(HIDDEN, HEADS, SIZE), equation="abc,cde->abde")
        return g.node("Add", heads, g.weight(HEADS, SIZE, scale=0.1))

    x = g.decomposed_layer_norm(g.embed("input_ids"))
    mask = g.additive_mask("attention_mask", -1e9)
    for _ in range(LAYERS):
        query = g.node("Mul", project(x), g.scalar(SIZE ** -0.5))
        scores = g.node("Einsum", project(x), query, equation="aecd,abcd->acbe")
        weights = g.node("Softmax", g.node("Add", scores, mask), axis=-1)
        mixed = g.node("Einsum", weights, project(x), equation="acbe,aecd->abcd")
        context = g.node("Einsum", mixed, g.weight(HEADS, SIZE, HIDDEN, scale=0.2),
                         equation="abcd,cde->abe")
        context = g.node("Add", context, g.weight(HIDDEN, scale=0.1))
        x = g.decomposed_layer_norm(g.node("Add", x, context))
        inner = g.erf_gelu(g.linear(x, HIDDEN, 4 * HIDDEN))
        x = g.decomposed_layer_norm(g.node("Add", x, g.linear(inner, 4 * HIDDEN, HIDDEN)))
    return g.finish(x, "einsum_bert")


def bart():
    """Batch and heads in one dim, the query scaled before its heads part, batched products."""
    g = Transformer(13)
    x = g.decomposed_layer_norm(g.embed("input_ids"))
    mask = g.additive_mask("attention_mask", LOWEST)
    length = g.dim("input_ids", 1)
    batch = g.dim("input_ids", 0)
    folded = g.ints(-1)

    def fold(x):
        shape = g.node("Concat", g.node("Mul", batch, g.ints(HEADS)), folded, g.ints(SIZE), axis=0)
        return g.node("Reshape", x, shape)

    four = g.node("Concat", batch, g.ints(HEADS), length, length, axis=0)
    three = g.node("Concat", g.node("Mul", batch, g.ints(HEADS)), length, length, axis=0)
    back = g.node("Concat", batch, g.ints(HEADS), length, g.ints(SIZE), axis=0)
    for _ in range(LAYERS):
        query = g.node("Mul", g.linear(x, HIDDEN, HIDDEN), g.scalar(SIZE ** -0.5))
        key, value = (fold(g.heads(g.linear(x, HIDDEN, HIDDEN))) for _ in range(2))
        scores = g.node("MatMul", fold(g.heads(query)), g.node("Transpose", key, perm=[0, 2, 1]))
        scores = g.node("Add", g.node("Reshape", scores, four), mask)
        weights = g.node("Softmax", g.node("Reshape", scores, three), axis=-1)
        context = g.join(g.node("Reshape", g.node("MatMul", weights, value), back))
        x = g.decomposed_layer_norm(g.node("Add", x, g.linear(context, HIDDEN, HIDDEN)))
        inner = g.erf_gelu(g.linear(x, HIDDEN, 4 * HIDDEN))
        x = g.decomposed_layer_norm(g.node("Add", x, g.linear(inner, 4 * HIDDEN, HIDDEN)))
    return g.finish(x, "bart")


ALL = {"distilbert": distilbert, "gpt2": gpt2, "t5": t5, "vision": vision, "llama": llama,
       "modern_bert": modern_bert, "window_bert": window_bert, "deberta": deberta,
       "keras_bert": keras_bert, "einsum_bert": einsum_bert, "bart": bart}

# Those whose inputs are not ids and mask.
INPUTS = {"vision": ["input_ids"], "llama": ["input_ids"]}
