"""Small ONNX models for tests, made with onnx.helper.

`bert` writes a transformer encoder the way the older torch exporter did: layer normalisation and
GELU in pieces, shapes computed in the graph, the mask added to the scores. The others are toys, each
with one property that a server must notice.
"""

import dataclasses
from typing import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Collects nodes and initialisers; every method that adds a node returns its output's name."""

    def __init__(self, opset):
        self.opset = opset
        self.nodes = []
        self.initializers = []
        self._count = 0

    def name(self, hint):
        self._count += 1
        return f"{hint}_{self._count}"

    def const(self, value, dtype=np.float32, hint="const"):
        name = self.name(hint)
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64, "ints")

    def scalar(self, value, dtype=np.float32):
        return self.const(np.array(value, dtype), dtype, "scalar")

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    # Attributes that became inputs at opset 13.
    def unsqueeze(self, x, axis):
        if self.opset < 13:
            return self.node("Unsqueeze", x, axes=[axis])
        return self.node("Unsqueeze", x, self.ints(axis))

    def reduce_sum(self, x, axis, keepdims=1):
        if self.opset < 13:
            return self.node("ReduceSum", x, axes=[axis], keepdims=keepdims)
        return self.node("ReduceSum", x, self.ints(axis), keepdims=keepdims)

    def reduce_mean(self, x, axis, keepdims=1):
        return self.node("ReduceMean", x, axes=[axis], keepdims=keepdims)

    def dim(self, x, index):
        """Size of one dim as an int64 of shape [1], by Shape, Gather, Unsqueeze."""
        size = self.node("Gather", self.node("Shape", x), self.scalar(index, np.int64), axis=0)
        return self.unsqueeze(size, 0)

    def rename(self, name, to):
        self.nodes.append(helper.make_node("Identity", [name], [to], name=f"{to}_identity"))

    def model(self, inputs, outputs, name="test"):
        """`inputs`, `outputs`: (name, element type, shape with names, numbers or None)."""
        def info(spec):
            return helper.make_tensor_value_info(*spec)
        graph = helper.make_graph(self.nodes, name, [info(i) for i in inputs],
                                  [info(o) for o in outputs], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 7
        return model


def bert(opset=11, hidden=32, heads=4, layers=2, vocabulary=200, positions=512, epsilon=1e-12,
         seed=0, tanh_gelu=False, outputs=("last_hidden_state", "pooler_output"), types=0):
    """[batch, sequence] ids and mask -> [batch, sequence, hidden] and, pooled, [batch, hidden]."""
    g = Graph(opset)
    rng = np.random.default_rng(seed)
    size = hidden // heads

    def weight(*shape, scale=None):
        scale = scale or 1.0 / np.sqrt(shape[0])
        return g.const(rng.normal(0, scale, shape), hint="weight")

    def linear(x, rows, columns):
        product = g.node("MatMul", x, weight(rows, columns))
        return g.node("Add", product, weight(columns, scale=0.1))

    def layer_norm(x):
        centred = g.node("Sub", x, g.reduce_mean(x, -1))
        variance = g.reduce_mean(g.node("Pow", centred, g.scalar(2.0)), -1)
        deviation = g.node("Sqrt", g.node("Add", variance, g.scalar(epsilon)))
        normal = g.node("Div", centred, deviation)
        scaled = g.node("Mul", normal, g.const(rng.normal(1, 0.1, hidden)))
        return g.node("Add", scaled, g.const(rng.normal(0, 0.1, hidden)))

    def gelu(x):
        if tanh_gelu:
            cube = g.node("Mul", g.scalar(0.044715), g.node("Pow", x, g.scalar(3.0)))
            inner = g.node("Mul", g.scalar(np.sqrt(2 / np.pi)), g.node("Add", x, cube))
            gate = g.node("Add", g.scalar(1.0), g.node("Tanh", inner))
        else:
            gate = g.node("Add", g.node("Erf", g.node("Div", x, g.scalar(np.sqrt(2.0)))),
                          g.scalar(1.0))
        return g.node("Mul", g.node("Mul", x, gate), g.scalar(0.5))

    def split_heads(x):
        shape = g.node("Concat", g.dim(x, 0), g.dim(x, 1), g.ints(heads), g.ints(size), axis=0)
        return g.node("Reshape", x, shape)

    def attention(x, mask):
        query = g.node("Transpose", split_heads(linear(x, hidden, hidden)), perm=[0, 2, 1, 3])
        key = g.node("Transpose", split_heads(linear(x, hidden, hidden)), perm=[0, 2, 3, 1])
        value = g.node("Transpose", split_heads(linear(x, hidden, hidden)), perm=[0, 2, 1, 3])
        scores = g.node("Div", g.node("MatMul", query, key), g.scalar(np.sqrt(size)))
        weights = g.node("Softmax", g.node("Add", scores, mask), axis=3 if opset < 13 else -1)
        mixed = g.node("Transpose", g.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        shape = g.node("Concat", g.dim(mixed, 0), g.dim(mixed, 1), g.ints(hidden), axis=0)
        return linear(g.node("Reshape", mixed, shape), hidden, hidden)

    # Embeddings: words, positions cut to the length, one type.
    words = g.node("Gather", g.const(rng.normal(0, 1, (vocabulary, hidden)), hint="words"),
                   "input_ids", axis=0)
    all_ids = g.const(np.arange(positions)[None, :], np.int64, "position_ids")
    ids = g.node("Slice", all_ids, g.ints(0), g.dim("input_ids", 1), g.ints(1), g.ints(1))
    places = g.node("Gather", g.const(rng.normal(0, 0.3, (positions, hidden)), hint="positions"),
                    ids, axis=0)
    sum_of_tables = g.node("Add", words, places)
    if types:
        kinds = g.node("Gather", g.const(rng.normal(0, 1, (types, hidden)), hint="types"),
                       "token_type_ids", axis=0)
        sum_of_tables = g.node("Add", sum_of_tables, kinds)
    x = layer_norm(sum_of_tables)

    # 0 where attended, -10000 elsewhere: [batch, 1, 1, sequence].
    wide = g.unsqueeze(g.unsqueeze("attention_mask", 1), 2)
    off = g.node("Sub", g.scalar(1.0), g.node("Cast", wide, to=TensorProto.FLOAT))
    mask = g.node("Mul", off, g.scalar(-10000.0))

    for _ in range(layers):
        x = layer_norm(g.node("Add", attention(x, mask), x))
        inner = gelu(linear(x, hidden, 4 * hidden))
        x = layer_norm(g.node("Add", linear(inner, 4 * hidden, hidden), x))

    declared = []
    if "last_hidden_state" in outputs:
        g.rename(x, "last_hidden_state")
        declared.append(("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", hidden]))
    if "pooler_output" in outputs:
        first = g.node("Gather", x, g.scalar(0, np.int64), axis=1)
        pooled = g.node("Tanh", g.node("Gemm", first, weight(hidden, hidden), weight(hidden),
                                       alpha=1.0, beta=1.0, transB=1))
        g.rename(pooled, "pooler_output")
        declared.append(("pooler_output", TensorProto.FLOAT, ["batch", hidden]))
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * bool(types)
    return g.model([(name, TensorProto.INT64, ["batch", "sequence"]) for name in names], declared,
                   "bert")


def elementwise(opset=13):
    """y = 2 x + 1, [batch, sequence]: nothing mixes, both axes are safe."""
    g = Graph(opset)
    g.rename(g.node("Add", g.node("Mul", "x", g.scalar(2.0)), g.scalar(1.0)), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", "sequence"])],
                   [("y", TensorProto.FLOAT, ["batch", "sequence"])])


def mixes_sequence(opset=13):
    """y = x minus the smallest of the sequence, by TopK: padding would change the answer."""
    g = Graph(opset)
    smallest, _ = g.node("TopK", "x", g.ints(1), outputs=2, axis=1, largest=0)
    g.rename(g.node("Sub", "x", smallest), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", "sequence"])],
                   [("y", TensorProto.FLOAT, ["batch", "sequence"])])


def softmax_sequence(opset=13):
    """y = softmax of x over the sequence, without a mask."""
    g = Graph(opset)
    g.rename(g.node("Softmax", "x", axis=1), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", "sequence"])],
                   [("y", TensorProto.FLOAT, ["batch", "sequence"])])


def mixes_batch(opset=13):
    """y = x minus the mean over the batch: the rows of others would change the answer."""
    g = Graph(opset)
    g.rename(g.node("Sub", "x", g.reduce_mean("x", 0)), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 4])],
                   [("y", TensorProto.FLOAT, ["batch", 4])])


def similarity(opset=13):
    """y = x x^T, [batch, batch]: each request may see only its own rows and columns."""
    g = Graph(opset)
    g.rename(g.node("MatMul", "x", g.node("Transpose", "x", perm=[1, 0])), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 8])],
                   [("y", TensorProto.FLOAT, ["batch", "batch"])])


def scalar_input(opset=13):
    """y = scale x with `scale` of shape []."""
    g = Graph(opset)
    g.rename(g.node("Mul", "x", "scale"), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 3]), ("scale", TensorProto.FLOAT, [])],
                   [("y", TensorProto.FLOAT, ["batch", 3])])


def cumulative(opset=17):
    """y = the sums of x along the axis that input `axis` says."""
    g = Graph(opset)
    g.rename(g.node("CumSum", "x", "axis"), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 4]), ("axis", TensorProto.INT64, [])],
                   [("y", TensorProto.FLOAT, ["batch", 4])])


def reversed_rows(opset=13):
    """y = the first places of each row of x in reverse, as many as input `lengths` says."""
    g = Graph(opset)
    g.rename(g.node("ReverseSequence", "x", "lengths", batch_axis=0, time_axis=1), "y")
    shape = ["batch", "sequence", 3]
    return g.model([("x", TensorProto.FLOAT, shape), ("lengths", TensorProto.INT64, ["batch"])],
                   [("y", TensorProto.FLOAT, shape)])


def elementwise_of_three_axes(opset=13):
    """y = |x|, of any sizes."""
    g = Graph(opset)
    g.rename(g.node("Abs", "x"), "y")
    shape = ["batch", "length", "width"]
    return g.model([("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)])


def shape_input(opset=13):
    """y = x reshaped to the value of `shape`: every value of it is a graph of its own."""
    g = Graph(opset)
    g.rename(g.node("Reshape", "x", "shape"), "y")
    return g.model([("x", TensorProto.FLOAT, ["count"]), ("shape", TensorProto.INT64, [2])],
                   [("y", TensorProto.FLOAT, [None, None])])


def no_batch_axis(opset=13):
    """y = x W of constant shape [4, 6]: no axis at all."""
    g = Graph(opset)
    g.rename(g.node("MatMul", "x", g.const(np.arange(12).reshape(6, 2))), "y")
    return g.model([("x", TensorProto.FLOAT, [4, 6])], [("y", TensorProto.FLOAT, [4, 2])])


def unnamed_axes(opset=13):
    """y = relu of x with three sizes that have no names."""
    g = Graph(opset)
    g.rename(g.node("Relu", "x"), "y")
    return g.model([("x", TensorProto.FLOAT, [None, None, None])],
                   [("y", TensorProto.FLOAT, [None, None, None])])


def masked_image(opset=13):
    """Makes two axes beside the batch: pixels and their mask -> a map of the pixels, the mean of those that count."""
    g = Graph(opset)
    g.rename(g.node("Sigmoid", "pixels"), "map")
    counted = g.node("Mul", g.node("Relu", "pixels"), "mask")
    total = g.node("ReduceSum", counted, g.ints(1, 2), keepdims=0)
    g.rename(g.node("Div", total, g.node("ReduceSum", "mask", g.ints(1, 2), keepdims=0)), "mean")
    sizes = ["batch", "height", "width"]
    return g.model([("pixels", TensorProto.FLOAT, sizes), ("mask", TensorProto.FLOAT, sizes)],
                   [("map", TensorProto.FLOAT, sizes), ("mean", TensorProto.FLOAT, ["batch"])])


def placeholder_names(opset=13):
    """Gives every dim of two inputs one name: softmax over the columns where a mask counts."""
    g = Graph(opset)
    hidden = g.node("Mul", g.node("Sub", g.scalar(1), "mask"), g.scalar(-1e4))
    g.rename(g.node("Softmax", g.node("Add", "x", hidden), axis=1), "y")
    sizes = ["dynamic", "dynamic"]
    return g.model([("x", TensorProto.FLOAT, sizes), ("mask", TensorProto.FLOAT, sizes)],
                   [("y", TensorProto.FLOAT, sizes)])


def masked_scores(opset=13):
    """Products of rows with each other and a mask that is declared with heads and queries."""
    g = Graph(opset)
    scores = g.unsqueeze(g.node("MatMul", "x", g.node("Transpose", "x", perm=[0, 2, 1])), 1)
    g.rename(g.node("Softmax", g.node("Add", scores, "mask"), axis=-1), "y")
    return g.model([("x", TensorProto.FLOAT, ["b", "s", 4]),
                    ("mask", TensorProto.FLOAT, ["b", "h", "q", "k"])],
                   [("y", TensorProto.FLOAT, [None, None, None, None])])


@dataclasses.dataclass
class CachedAttention:
    """Attention of a decoder with its cache: keys and values come and go head by head, and several heads of
    queries may share one. Adds to `graph`; `weight(rows, columns)` makes a matrix."""

    graph: Graph
    weight: Callable
    heads: int
    kv_heads: int
    size: int

    def bias(self, lowest):
        """Makes the values that the mask over cached and new positions adds to scores."""
        g = self.graph
        hidden = g.node("Sub", g.scalar(1), g.node("Cast", "attention_mask", to=TensorProto.FLOAT))
        return g.node("Mul", g.unsqueeze(g.unsqueeze(hidden, 1), 1), g.scalar(lowest))

    def _heads_of(self, x, width, count):
        g = self.graph
        apart = g.node("Reshape", g.node("MatMul", x, self.weight(width, count * self.size)),
                       g.ints(0, 0, count, self.size))
        return g.node("Transpose", apart, perm=[0, 2, 1, 3])

    def _repeated(self, value):
        g, times = self.graph, self.heads // self.kv_heads
        if times == 1:
            return value
        wide = g.node("Expand", g.unsqueeze(value, 2), g.ints(1, 1, times, 1, 1))
        return g.node("Reshape", wide, g.ints(0, self.heads, -1, self.size))

    def __call__(self, x, width, bias, past, present):
        """`x` [batch, sequence, width] -> the same; `past` and `present`: names of keys and values."""
        g = self.graph
        queries, both = self._heads_of(x, width, self.heads), []
        for before, after in zip(past, present):
            both.append(g.node("Concat", before, self._heads_of(x, width, self.kv_heads), axis=2))
            g.rename(both[-1], after)
        keys = g.node("Transpose", self._repeated(both[0]), perm=[0, 1, 3, 2])
        scores = g.node("Mul", g.node("MatMul", queries, keys), g.scalar(self.size ** -0.5))
        weights = g.node("Softmax", g.node("Add", scores, bias), axis=-1)
        context = g.node("Transpose", g.node("MatMul", weights, self._repeated(both[1])),
                         perm=[0, 2, 1, 3])
        joined = g.node("Reshape", context, g.ints(0, 0, self.heads * self.size))
        return g.node("MatMul", joined, self.weight(self.heads * self.size, width))

    def model(self, outputs, past, present, total="total"):
        """Makes the model of one step; `total`: the name of the mask's length."""
        cache = ["batch", self.kv_heads, "past", self.size]
        longer = ["batch", self.kv_heads, None, self.size]
        return self.graph.model([("input_ids", TensorProto.INT64, ["batch", "sequence"]),
                                 ("attention_mask", TensorProto.INT64, ["batch", total]),
                                 *((name, TensorProto.FLOAT, cache) for name in past)],
                                [*outputs, *((name, TensorProto.FLOAT, longer) for name in present)])


def cached_decoder(heads=4, kv_heads=2, size=16, total="total", opset=17, vocabulary=50, width=16):
    """Makes a step of a decoder of one layer, with its cache."""
    g, rng = Graph(opset), np.random.default_rng(5)

    def weight(*shape):
        return g.const(rng.standard_normal(shape) * 0.3)

    attention = CachedAttention(g, weight, heads, kv_heads, size)
    x = g.node("Gather", weight(vocabulary, width), "input_ids")
    past, present = [[f"{when}_{kind}" for kind in ("keys", "values")] for when in ("past", "present")]
    g.rename(attention(x, width, attention.bias(-1e4), past, present), "hidden")
    return attention.model([("hidden", TensorProto.FLOAT, ["batch", "sequence", width])],
                           past, present, total)


def masked_audio(opset=13, features=4):
    """Frames of features and their mask -> features at each frame, and the mean of the frames that count."""
    g = Graph(opset)
    g.rename(g.node("Tanh", "features"), "frames_out")
    counted = g.node("Mul", "features", g.unsqueeze("mask", 2))
    total = g.node("ReduceSum", counted, g.ints(1), keepdims=0)
    g.rename(g.node("Div", total, g.node("ReduceSum", "mask", g.ints(1), keepdims=1)), "mean")
    return g.model([("features", TensorProto.FLOAT, ["batch", "frames", features]),
                    ("mask", TensorProto.FLOAT, ["batch", "frames"])],
                   [("frames_out", TensorProto.FLOAT, ["batch", "frames", features]),
                    ("mean", TensorProto.FLOAT, ["batch", features])])


def windowed_audio(window, largest, opset=13):
    """Makes frames -> the value of each window of them, and the `largest` of the frames that count."""
    g = Graph(opset)
    weight = g.const(np.linspace(-1, 1, 5 * 3 * window).reshape(5, 3, window))
    g.rename(g.node("Conv", "features", weight), "windows")
    lifted = g.node("Where", g.node("Greater", "mask", g.scalar(0.5)), "score", g.scalar(-3e38))
    values, _ = g.node("TopK", lifted, g.ints(largest), outputs=2, axis=1)
    g.rename(values, "top")
    return g.model([("features", TensorProto.FLOAT, ["batch", 3, "frames"]),
                    ("score", TensorProto.FLOAT, ["batch", "frames"]),
                    ("mask", TensorProto.FLOAT, ["batch", "frames"])],
                   [("windows", TensorProto.FLOAT, ["batch", 5, None]),
                    ("top", TensorProto.FLOAT, ["batch", largest])])


def token_at(place):
    """Makes, of each row's tokens, doubled, the one at `place`."""
    g = Graph(13)
    doubled = g.node("Add", "tokens", "tokens")
    g.rename(g.node("Gather", doubled, g.scalar(place, np.int64), axis=1), "token")
    return g.model([("tokens", TensorProto.FLOAT, ["batch", "sequence", 4])],
                   [("token", TensorProto.FLOAT, ["batch", 4])])


def unknown_op():
    g = Graph(13)
    g.nodes.append(helper.make_node("Frobnicate", ["x"], ["y"], name="the_odd_one",
                                    domain="com.example"))
    model = g.model([("x", TensorProto.FLOAT, ["batch", 3])],
                    [("y", TensorProto.FLOAT, ["batch", 3])])
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    return model


def cyclic():
    """a needs b and b needs a."""
    g = Graph(13)
    g.nodes.append(helper.make_node("Add", ["x", "b"], ["a"], name="first"))
    g.nodes.append(helper.make_node("Relu", ["a"], ["b"], name="second"))
    g.rename("b", "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 3])],
                   [("y", TensorProto.FLOAT, ["batch", 3])])
