"""The encoder families that text services run, each in the style of each exporter.

`ALL` maps "<family>_<style>" to a function that makes the model: two layers, random weights. A style
is how an exporter spells attention, norms, activations and masks:

  legacy   torch.onnx.export before dynamo: everything in pieces, opset 11
  optimum  opset 17: LayerNormalization; scaled_dot_product_attention in pieces, its scale on q and k
  dynamo   opset 20: Gelu, bool masks spread to the scores' shape, a guard against rows without keys
  opset23  Attention as one op
  ort      as onnxruntime's transformer optimiser writes: com.microsoft
"""

import functools

import numpy as np
import onnx
from onnx import TensorProto, helper

from testing.exporters import HEADS, HIDDEN, LAYERS, LOWEST, POSITIONS, SIZE, VOCABULARY, Transformer

OPSETS = {"legacy": 11, "optimum": 17, "dynamo": 20, "opset23": 23, "ort": 17}
NARROW = 16  # width of embeddings that are projected to the hidden size
LABELS = 9


class Style(Transformer):
    def __init__(self, style):
        super().__init__(OPSETS[style], seed=3)
        self.style = style
        self.microsoft = style == "ort"

    def contrib(self, op, *inputs, outputs=1, **attributes):
        names = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0],
                                           domain="com.microsoft", **attributes))
        return names[0] if outputs == 1 else names

    def norm(self, x, width=HIDDEN):
        gamma = self.const(self.random.normal(1, 0.1, width))
        beta = self.weight(width, scale=0.1)
        if self.style != "legacy":
            return self.node("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-12)
        centred = self.node("Sub", x, self.reduce_mean(x, -1))
        variance = self.reduce_mean(self.node("Pow", centred, self.scalar(2.0)), -1)
        deviation = self.node("Sqrt", self.node("Add", variance, self.scalar(1e-12)))
        return self.node("Add", self.node("Mul", self.node("Div", centred, deviation), gamma), beta)

    def add_norm(self, x, skip):
        if not self.microsoft:
            return self.norm(self.node("Add", x, skip))
        return self.contrib("SkipLayerNormalization", x, skip,
                            self.const(self.random.normal(1, 0.1, HIDDEN)),
                            self.weight(HIDDEN, scale=0.1), epsilon=1e-12)

    def gelu(self, x, tanh=False):
        if self.style in ("dynamo", "opset23"):
            return self.node("Gelu", x, approximate="tanh" if tanh else "none")
        return self.tanh_gelu(x) if tanh else self.erf_gelu(x)

    def inner(self, x, tanh=False):
        if self.microsoft and not tanh:
            product = self.node("MatMul", x, self.weight(HIDDEN, 4 * HIDDEN))
            return self.contrib("BiasGelu", product, self.weight(4 * HIDDEN, scale=0.1))
        return self.gelu(self.linear(x, HIDDEN, 4 * HIDDEN), tanh)

    def mask(self, mask):
        """Makes the mask as the style's attention wants it."""
        if self.microsoft:
            return self.node("Cast", mask, to=TensorProto.INT32)
        if self.style in ("legacy", "optimum"):
            return self.additive_mask(mask, LOWEST if self.style == "optimum" else -10000.0)
        wide = self.unsqueeze(self.unsqueeze(self.node("Cast", mask, to=TensorProto.BOOL), 1), 2)
        square = self.node("Concat", self.dim("input_ids", 0), self.ints(1),
                           self.dim("input_ids", 1), self.dim("input_ids", 1), axis=0)
        return self.node("Expand", wide, square)

    def attention(self, x, mask, bias=None):
        """Heads of x, attended and joined; `bias` is added to the scores."""
        if self.microsoft:
            return self.contrib("Attention", x, self.weight(HIDDEN, 3 * HIDDEN),
                                self.weight(3 * HIDDEN, scale=0.1), mask, "", bias or "",
                                num_heads=HEADS)
        q, k, v = (self.linear(x, HIDDEN, HIDDEN) for _ in range(3))
        if self.style == "opset23":
            if bias is not None:
                low = self.node("Where", mask, self.scalar(0.0), self.scalar(LOWEST))
                mask = self.node("Add", bias, low)
            return self.node("Attention", q, k, v, mask, q_num_heads=HEADS, kv_num_heads=HEADS)
        q, v = self.heads(q), self.heads(v)
        if self.style == "legacy":
            scores = self.node("MatMul", q, self.heads(k, (0, 2, 3, 1)))
            scores = self.node("Div", scores, self.scalar(SIZE ** 0.5))
            if bias is not None:
                scores = self.node("Add", scores, bias)
            weights = self.node("Softmax", self.node("Add", scores, mask), axis=3)
            return self.join(self.node("MatMul", weights, v))
        root = self.scalar(SIZE ** -0.25)
        k = self.node("Transpose", self.heads(k), perm=[0, 1, 3, 2])
        scores = self.node("MatMul", self.node("Mul", q, root), self.node("Mul", k, root))
        if bias is not None:
            scores = self.node("Add", scores, bias)
        if self.style == "optimum":
            weights = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
            return self.join(self.node("MatMul", weights, v))
        low = self.node("Where", mask, self.scalar(0.0), self.scalar(-np.inf))
        weights = self.node("Softmax", self.node("Add", scores, low), axis=-1)
        weights = self.node("Where", self.node("IsNaN", weights), self.scalar(0.0), weights)
        return self.join(self.node("MatMul", weights, v))

    def layer(self, x, mask, bias=None, tanh=False):
        context = self.linear(self.attention(x, mask, bias), HIDDEN, HIDDEN)
        x = self.add_norm(context, x)
        return self.add_norm(self.linear(self.inner(x, tanh), 4 * HIDDEN, HIDDEN), x)

    # Embeddings.

    def tables(self, types=True, width=HIDDEN):
        if self.microsoft and width == HIDDEN:
            norm = [self.const(self.random.normal(1, 0.1, width)), self.weight(width, scale=0.1)]
            ids = [self.node("Cast", i, to=TensorProto.INT32)
                   for i in ["input_ids"] + (["token_type_ids"] if types else [])]
            return self.contrib(
                "EmbedLayerNormalization", ids[0], ids[1] if types else "",
                self.weight(VOCABULARY, width, scale=1.0), self.weight(POSITIONS, width, scale=0.3),
                self.weight(2, width, scale=0.3) if types else "", *norm, outputs=2,
                epsilon=1e-12)[0]
        words = self.node("Gather", self.weight(VOCABULARY, width, scale=1.0), "input_ids")
        if types:
            kinds = self.node("Gather", self.weight(2, width, scale=0.3), "token_type_ids")
            words = self.node("Add", words, kinds)
        every = self.const(np.arange(POSITIONS)[None, :], np.int64, "positions")
        used = self.node("Slice", every, self.ints(0), self.dim("input_ids", 1), self.ints(1))
        places = self.node("Gather", self.weight(POSITIONS, width, scale=0.3), used)
        return self.norm(self.node("Add", words, places), width)

    def counted_positions(self):
        """Positions as RoBERTa counts them: tokens that are no padding (id 1), from 2 on."""
        real = self.node("Not", self.node("Equal", "input_ids", self.scalar(1, np.int64)))
        real = self.node("Cast", real, to=TensorProto.INT32)
        counts = self.node("CumSum", real, self.scalar(1, np.int64))
        counts = self.node("Cast", self.node("Mul", counts, real), to=TensorProto.INT64)
        places = self.node("Gather", self.weight(POSITIONS + 2, HIDDEN, scale=0.3),
                           self.node("Add", counts, self.scalar(1, np.int64)))
        words = self.node("Gather", self.weight(VOCABULARY, HIDDEN, scale=1.0), "input_ids")
        return self.norm(self.node("Add", words, places))

    def relative_bias(self):
        """[1, heads, sequence, sequence] looked up by the distance of two positions."""
        every = self.const(np.arange(POSITIONS), np.int64, "positions")
        used = self.node("Slice", every, self.ints(0), self.dim("input_ids", 1), self.ints(0))
        distance = self.node("Sub", self.unsqueeze(used, 0), self.unsqueeze(used, 1))
        far, length = self.scalar(7, np.int64), self.node("Abs", distance)
        near = self.node("Where", self.node("Less", length, far), length, far)
        behind = self.node("Cast", self.node("Less", distance, self.scalar(0, np.int64)),
                           to=TensorProto.INT64)
        bucket = self.node("Add", near, self.node("Mul", behind, self.scalar(8, np.int64)))
        bias = self.node("Gather", self.weight(16, HEADS, scale=0.5), bucket)
        return self.unsqueeze(self.node("Transpose", bias, perm=[2, 0, 1]), 0)

    # Heads.

    def first(self, x):
        return self.node("Gather", x, self.scalar(0, np.int64), axis=1)

    def picked(self, x, place):
        """Makes the token of each row at its place, int64 of [batch]."""
        dynamo = self.style in ("dynamo", "opset23")
        batch = self.node("Squeeze", self.dim("input_ids", 0))
        rows = self.node("Range", self.scalar(0, np.int64), batch, self.scalar(1, np.int64))
        if dynamo:
            at = self.node("Concat", self.unsqueeze(rows, -1), self.unsqueeze(place, -1), axis=-1)
            return self.node("GatherND", x, at)
        length = self.node("Gather", self.node("Shape", x), self.scalar(1, np.int64), axis=0)
        lines = self.node("Reshape", x, self.ints(-1, HIDDEN))
        at = self.node("Add", place, self.node("Mul", rows, length))
        return self.node("Gather", lines, at, axis=0)

    def gathered(self, x, place):
        """Makes the same by torch.gather, element by element."""
        at = self.unsqueeze(self.unsqueeze(place, -1), -1)
        shape = self.node("Concat", self.dim("input_ids", 0), self.ints(1), self.ints(HIDDEN),
                          axis=0)
        token = self.node("GatherElements", x, self.node("Expand", at, shape), axis=1)
        return self.node("Reshape", token, self.ints(-1, HIDDEN))

    def dense(self, x, rows, columns):
        return self.node("Gemm", x, self.weight(columns, rows, scale=rows ** -0.5),
                         self.weight(columns, scale=0.1), transB=1)

    def masked_mean(self, x):
        wide = self.unsqueeze(self.node("Cast", "attention_mask", to=TensorProto.FLOAT), 2)
        wide = self.node("Expand", wide, self.node("Shape", x))
        total = self.reduce_sum(self.node("Mul", x, wide), 1, keepdims=0)
        return self.node("Div", total, self.node("Clip", self.reduce_sum(wide, 1, keepdims=0),
                                                 self.scalar(1e-9)))

    def unit_length(self, x):
        if self.opset < 18:
            length = self.node("ReduceL2", x, axes=[1], keepdims=1)
        else:
            length = self.node("ReduceL2", x, self.ints(1), keepdims=1)
        length = self.node("Expand", self.node("Clip", length, self.scalar(1e-12)),
                           self.node("Shape", x))
        return self.node("Div", x, length)

    def save(self, x, name, shape, inputs):
        self.rename(x, name)
        model = self.model([(i, TensorProto.INT64, ["batch", "sequence"]) for i in inputs],
                           [(name, TensorProto.FLOAT, shape)], self.style)
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        model.ir_version = 10 if self.opset > 20 else 8
        return model


TWO = ["input_ids", "attention_mask"]
THREE = TWO + ["token_type_ids"]
TOKENS = ["batch", "sequence", HIDDEN]


def encoder(g, x, bias=None, layers=LAYERS, mask="attention_mask"):
    mask = g.mask(mask)
    for _ in range(layers):
        x = g.layer(x, mask, bias)
    return x


def bert(g):
    """Pooled: a product and tanh of the first token."""
    x = encoder(g, g.tables())
    return g.save(g.node("Tanh", g.dense(g.first(x), HIDDEN, HIDDEN)), "pooler_output",
                  ["batch", HIDDEN], THREE)


def looked_up_mask(g):
    """Looks up the mask of each row and key in one row of all of them, as transformers 4.57 exports masks."""
    zero, one = g.scalar(0, np.int64), g.scalar(1, np.int64)
    rows, length = (g.node("Gather", g.node("Shape", "input_ids"), g.scalar(dim, np.int64)) for dim in (0, 1))
    keys = g.unsqueeze(g.node("Range", zero, length, one), 0)
    begins = g.node("Mul", g.unsqueeze(g.node("Range", zero, rows, one), 1), length)
    places = g.node("Add", keys, begins)
    flat = g.node("Flatten", g.node("Cast", "attention_mask", to=TensorProto.BOOL), axis=2)
    found = g.node("Reshape", g.node("Gather", flat, places, axis=0), g.node("Shape", places))
    mask = g.node("Cast", found, to=TensorProto.INT64)
    return g.save(encoder(g, g.tables(types=False), mask=mask), "last_hidden_state", TOKENS, TWO)


def roberta(g):
    return g.save(encoder(g, g.counted_positions()), "last_hidden_state", TOKENS, TWO)


def mpnet(g):
    return g.save(encoder(g, g.counted_positions(), g.relative_bias()), "last_hidden_state",
                  TOKENS, TWO)


def albert(g):
    """Narrow embeddings, and every layer has the same weights."""
    x = g.linear(g.tables(width=NARROW), NARROW, HIDDEN)
    mask = g.mask("attention_mask")
    for _ in range(LAYERS):
        g.random = np.random.default_rng(17)
        x = g.layer(x, mask, tanh=True)
    return g.save(x, "last_hidden_state", TOKENS, THREE)


def electra(g):
    x = g.linear(g.tables(width=NARROW), NARROW, HIDDEN)
    return g.save(encoder(g, x), "last_hidden_state", TOKENS, THREE)


def e5(g):
    """Masked mean, of length one."""
    x = encoder(g, g.tables(types=False))
    return g.save(g.unit_length(g.masked_mean(x)), "sentence_embedding", ["batch", HIDDEN], TWO)


def bge(g):
    """Pools by the first token, of length one."""
    x = encoder(g, g.tables())
    return g.save(g.unit_length(g.first(x)), "sentence_embedding", ["batch", HIDDEN], THREE)


def last_token(g):
    """Pools by the last token that the mask counts, of length one; of a row of zeros the last of all."""
    x = encoder(g, g.tables(types=False))
    counted = g.reduce_sum("attention_mask", 1, keepdims=0)
    place = g.node("Sub", counted, g.scalar(1, np.int64))
    token = (g.picked if g.style in ("dynamo", "opset23") else g.gathered)(x, place)
    return g.save(g.unit_length(token), "sentence_embedding", ["batch", HIDDEN], TWO)


def last_position(g):
    """Pools by the token at the end of each row, whatever the mask says: texts are padded on the left."""
    x = encoder(g, g.tables(types=False))
    if g.style in ("dynamo", "opset23"):
        token = g.node("Gather", x, g.scalar(-1, np.int64), axis=1)
    else:
        cut = g.node("Slice", x, g.ints(-1), g.ints(2**63 - 1), g.ints(1))
        token = g.node("Reshape", cut, g.ints(-1, HIDDEN))
    return g.save(g.unit_length(token), "sentence_embedding", ["batch", HIDDEN], TWO)


def largest_id(g):
    """Pools by the token whose id is the largest, projected: where CLIP's text ends."""
    x = encoder(g, g.tables(types=False))
    place = g.node("ArgMax", g.node("Cast", "input_ids", to=TensorProto.INT32), axis=-1, keepdims=0)
    token = g.node("MatMul", g.picked(x, place), g.weight(HIDDEN, LABELS))
    return g.save(token, "text_embeds", ["batch", LABELS], TWO)


def cross_encoder(g):
    x = encoder(g, g.tables())
    pooled = g.node("Tanh", g.dense(g.first(x), HIDDEN, HIDDEN))
    return g.save(g.dense(pooled, HIDDEN, 1), "logits", ["batch", 1], THREE)


def token_classifier(g):
    x = encoder(g, g.tables(types=False))
    return g.save(g.linear(x, HIDDEN, LABELS), "logits", ["batch", "sequence", LABELS], TWO)


FAMILIES = [bert, looked_up_mask, roberta, mpnet, albert, electra, e5, bge, last_token, last_position, largest_id,
            cross_encoder, token_classifier]


def make(family, style):
    return family(Style(style))


ALL = {f"{family.__name__}_{style}": functools.partial(make, family, style)
       for family in FAMILIES for style in OPSETS}


def inputs_of(model: onnx.ModelProto):
    return [value.name for value in model.graph.input]
