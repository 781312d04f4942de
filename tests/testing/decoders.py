"""Random decoders with a cache, as exporters write them, and onnxruntime stepping with one.

`make(form, ...)` builds a model of two layers; forms:

  gqa       onnxruntime's model builder: GroupQueryAttention with rotary inside, an attention mask
  mha       com.microsoft.MultiHeadAttention with past and present, learnt positions
  concat    torch and optimum: a past joined by Concat, rotary outside, mask and position ids
  range     the same with positions counted from the length of the past, learnt; no position ids
  alibi     the same with slopes by head in place of positions
  onnx      ONNX's Attention of opset 23 with past_key and past_value, rotary outside
"""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F32, I64, I32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
FORMS = ("gqa", "mha", "concat", "range", "alibi", "onnx")
# Forms of attention beside the plain one.
VARIANTS = {
    "gqa_sinks": ("gqa", dict(sinks=True, window=9)),
    "gqa_smooth": ("gqa", dict(smooth=True)),
    "gqa_cap": ("gqa", dict(cap=2.0, window=20)),
    "gqa_joined": ("gqa", dict(joined=True)),
    "gqa_turned": ("gqa", dict(size=32, turned=16, interleaved=True)),
    "gqa_norms": ("gqa", dict(norms=True)),
    "gqa_all": ("gqa", dict(size=32, turned=16, interleaved=True, joined=True, cap=2.0, sinks=True,
                            norms=True, window=12)),
    "mha_joined": ("mha", dict(joined=True)),
    "concat_sinks": ("concat", dict(sinks=True, window=7)),
    "concat_cap": ("concat", dict(cap=2.0, kv_heads=1)),
    "onnx_cap": ("onnx", dict(cap=2.0)),
}


class Decoder:
    def __init__(self, form, heads=4, kv_heads=2, size=16, layers=2, vocabulary=97, context=128,
                 window=0, norms=False, sinks=False, smooth=False, cap=0.0, joined=False,
                 interleaved=False, turned=0, plain=False, seed=0):
        """`sinks`: a learnt score of each head that has no value; `smooth`: one of 0. `cap`: of
        scores. `joined`: q, k and v are one operand. `turned`: of a head, by rotary; 0: all.
        `plain`: the same where onnxruntime's CPU kernels do not take the form."""
        self.form, self.heads, self.size, self.layers = form, heads, size, layers
        self.kv_heads = heads if form == "mha" else kv_heads
        self.vocabulary, self.context, self.window, self.norms = vocabulary, context, window, norms
        self.sinks, self.smooth, self.cap, self.joined = sinks, smooth, cap, joined
        self.interleaved, self.turned, self.plain = interleaved, turned or size, plain
        self.hidden = heads * size
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0
        self.inputs = [("input_ids", I64, ["batch", "sequence"])]
        self.outputs = [("logits", F32, ["batch", "sequence", vocabulary])]

    def name(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    def const(self, value, dtype=None):
        array = np.asarray(value, dtype=dtype)
        name = self.name("c")
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def weight(self, *shape, scale=None):
        scale = scale or 1.0 / np.sqrt(shape[0])
        return self.const(self.random.normal(0, scale, shape), np.float32)

    def node(self, op, *inputs, outputs=1, domain="", **attributes):
        names = [self.name(op) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], domain=domain,
                                           **attributes))
        return names[0] if outputs == 1 else names

    def micro(self, op, *inputs, **attributes):
        return self.node(op, *inputs, domain="com.microsoft", **attributes)

    def norm(self, x, width=None):
        gamma = self.const(self.random.normal(1, 0.1, width or self.hidden), np.float32)
        square = self.node("Mul", x, x)
        mean = self.node("ReduceMean", square, self.ints(-1), keepdims=1)
        root = self.node("Sqrt", self.node("Add", mean, self.const(1e-5, np.float32)))
        return self.node("Mul", self.node("Div", x, root), gamma)

    def normed(self, x, heads):
        rows = self.node("Reshape", x, self.ints(0, 0, heads, self.size))
        return self.node("Reshape", self.norm(rows, self.size), self.ints(0, 0, -1))

    def heads_of(self, x, heads):
        rows = self.node("Reshape", x, self.ints(0, 0, heads, self.size))
        return self.node("Transpose", rows, perm=[0, 2, 1, 3])

    def rotate(self, x, cos, sin):
        """x [b, h, s, d]; cos and sin [b, 1, s, d]."""
        half = self.size // 2
        low = self.node("Slice", x, self.ints(0), self.ints(half), self.ints(3))
        high = self.node("Slice", x, self.ints(half), self.ints(self.size), self.ints(3))
        turned = self.node("Concat", self.node("Neg", high), low, axis=3)
        return self.node("Add", self.node("Mul", x, cos), self.node("Mul", turned, sin))

    def rotary(self, positions):
        half = self.size // 2
        inverse = (1.0 / 10000 ** (np.arange(half) / half)).astype(np.float32)
        column = self.node("Unsqueeze", self.node("Cast", positions, to=F32), self.ints(2))
        angles = self.node("Mul", column, self.const(inverse.reshape(1, 1, half)))
        both = self.node("Unsqueeze", self.node("Concat", angles, angles, axis=2), self.ints(1))
        return self.node("Cos", both), self.node("Sin", both)

    def dim(self, value, axis):
        return self.node("Gather", self.node("Shape", value), self.ints(axis), axis=0)

    def past(self):
        return self.dim("past_key_values.0.key", 2)

    def total(self):
        return self.node("Add", self.past(), self.dim("input_ids", 1))

    def places(self, first, last):
        """i64 [last - first]"""
        def scalar(value):
            return self.node("Squeeze", value, self.ints(0))
        return self.node("Range", scalar(first), scalar(last), self.const(1, np.int64))

    def causal(self):
        """Float [1, 1, s, total], 0 or lowest; with the window, and the mask where there is one."""
        past, total = self.past(), self.total()
        query = self.node("Unsqueeze", self.places(past, total), self.ints(1))
        key = self.node("Unsqueeze", self.places(self.ints(0), total), self.ints(0))
        seen = self.node("LessOrEqual", key, query)
        if self.window:
            first = self.node("Sub", query, self.ints(self.window - 1))
            seen = self.node("And", seen, self.node("GreaterOrEqual", key, first))
        seen = self.node("Unsqueeze", self.node("Unsqueeze", seen, self.ints(0)), self.ints(0))
        if any(name == "attention_mask" for name, _, _ in self.inputs):
            mask = self.node("Cast", "attention_mask", to=BOOL)
            mask = self.node("Unsqueeze", self.node("Unsqueeze", mask, self.ints(1)), self.ints(2))
            seen = self.node("And", seen, mask)
        zero, lowest = self.const(0.0, np.float32), self.const(-3.4e38, np.float32)
        return self.node("Where", seen, zero, lowest)

    def attend(self, q, k, v, mask):
        """In pieces, heads of keys repeated."""
        group = self.heads // self.kv_heads
        if group > 1:
            k, v = self.repeat(k, group), self.repeat(v, group)
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.node("Mul", scores, self.const(1 / np.sqrt(self.size), np.float32))
        if self.cap:
            cap = self.const(self.cap, np.float32)
            scores = self.node("Mul", self.node("Tanh", self.node("Div", scores, cap)), cap)
        scores = self.node("Add", scores, mask)
        weights = self.with_sinks(scores) if self.sinks else self.node("Softmax", scores, axis=-1)
        rows = self.node("Transpose", self.node("MatMul", weights, v), perm=[0, 2, 1, 3])
        return self.node("Reshape", rows, self.ints(0, 0, self.hidden))

    def sink(self):
        return self.const(self.random.normal(1, 1, self.heads), np.float32)

    def with_sinks(self, scores):
        """Adds sinks as gpt-oss is exported: a column of its own, of which no value is taken."""
        column = self.node("Reshape", self.sink(), self.ints(1, -1, 1, 1))
        shape = self.node("Concat", self.dim(scores, 0), self.ints(self.heads),
                          self.dim(scores, 2), self.ints(1), axis=0)
        scores = self.node("Concat", scores, self.node("Expand", column, shape), axis=-1)
        highest = self.node("ReduceMax", scores, self.ints(-1), keepdims=1)
        weights = self.node("Softmax", self.node("Sub", scores, highest), axis=-1)
        return self.node("Slice", weights, self.ints(0), self.ints(-1), self.ints(-1))

    def repeat(self, x, group):
        wide = self.node("Unsqueeze", x, self.ints(2))
        shape = self.node("Concat", self.dim(x, 0), self.ints(self.kv_heads, group),
                          self.dim(x, 2), self.ints(self.size), axis=0)
        wide = self.node("Expand", wide, shape)
        flat = self.node("Concat", self.dim(x, 0), self.ints(self.heads), self.dim(x, 2),
                         self.ints(self.size), axis=0)
        return self.node("Reshape", wide, flat)

    def cache(self, layer):
        names = []
        for kind in ("key", "value"):
            past, present = f"past_key_values.{layer}.{kind}", f"present.{layer}.{kind}"
            shape = ["batch", self.kv_heads, "past", self.size]
            self.inputs.append((past, F32, shape))
            self.outputs.append((present, F32, ["batch", self.kv_heads, "total", self.size]))
            names += [past, present]
        return names

    def in_one(self, q, k, v):
        """[b, s, heads, 3, size]; onnxruntime takes that on GPUs alone."""
        rows = [self.node("Reshape", one, self.ints(0, 0, self.heads, 1, self.size))
                for one in (q, k, v)]
        return [self.node("Concat", *rows, axis=3), "", ""]

    def attention(self, layer, x, shared):
        past_k, present_k, past_v, present_v = self.cache(layer)
        q = self.node("MatMul", x, self.weight(self.hidden, self.hidden))
        width = self.kv_heads * self.size
        k = self.node("MatMul", x, self.weight(self.hidden, width))
        v = self.node("MatMul", x, self.weight(self.hidden, width))
        if self.form == "gqa":
            out = self.name("gqa")
            behind, more = ["", "", self.sink() if self.sinks else "", "", ""], {}
            if self.norms and self.plain:
                q, k = self.normed(q, self.heads), self.normed(k, self.kv_heads)
            elif self.norms:
                behind += [self.const(self.random.normal(1, 0.1, self.size), np.float32)
                           for _ in range(2)]
                more["qk_norm_epsilon"] = 1e-5
            operands = [self.node("Concat", q, k, v, axis=-1), "", ""] if self.joined else [q, k, v]
            self.nodes.append(helper.make_node(
                "GroupQueryAttention",
                [*operands, past_k, past_v, *shared["lengths"], *shared["tables"], *behind],
                [out, present_k, present_v], name=out, domain="com.microsoft",
                num_heads=self.heads, kv_num_heads=self.kv_heads, do_rotary=1,
                rotary_interleaved=int(self.interleaved), smooth_softmax=int(self.smooth),
                softcap=self.cap, local_window_size=self.window or -1, **more))
            return out
        if self.form == "mha":
            out = self.name("mha")
            joined = self.joined and not self.plain
            operands = self.in_one(q, k, v) if joined else [q, k, v]
            self.nodes.append(helper.make_node(
                "MultiHeadAttention", [*operands, "", "", shared["mask"], past_k, past_v],
                [out, present_k, present_v], name=out, domain="com.microsoft",
                num_heads=self.heads))
            return out
        q, k, v = (self.heads_of(q, self.heads), self.heads_of(k, self.kv_heads),
                   self.heads_of(v, self.kv_heads))
        if self.norms:
            q, k = self.norm(q, self.size), self.norm(k, self.size)
        if "cos" in shared:
            q, k = (self.rotate(one, shared["cos"], shared["sin"]) for one in (q, k))
        if self.form == "onnx":
            out = self.name("attention")
            self.nodes.append(helper.make_node(
                "Attention", [q, k, v, shared["mask"], past_k, past_v],
                [out, present_k, present_v], name=out, softcap=self.cap))
            rows = self.node("Transpose", out, perm=[0, 2, 1, 3])
            return self.node("Reshape", rows, self.ints(0, 0, self.hidden))
        for rows, past, present in ((k, past_k, present_k), (v, past_v, present_v)):
            self.nodes.append(helper.make_node("Concat", [past, rows], [present], axis=2,
                                               name=present))
        return self.attend(q, present_k, present_v, shared["mask"])

    def shared(self):
        """Makes the tensors that all layers read, and the embedded tokens' share of positions."""
        shared = {}
        if self.form in ("gqa", "concat", "onnx"):
            self.inputs.append(("attention_mask", I64, ["batch", "total"]))
        if self.form in ("mha", "concat", "onnx"):
            self.inputs.append(("position_ids", I64, ["batch", "sequence"]))
        if self.form == "gqa":
            counts = self.node("ReduceSum", "attention_mask", self.ints(1), keepdims=0)
            last = self.node("Cast", self.node("Sub", counts, self.ints(1)), to=I32)
            length = self.node("Gather", self.node("Shape", "attention_mask"),
                               self.const(1, np.int64), axis=0)
            shared["lengths"] = [last, self.node("Cast", length, to=I32)]
            half = self.turned // 2
            angles = np.outer(np.arange(self.context), 10000.0 ** (-np.arange(half) / half))
            shared["tables"] = [self.const(np.cos(angles), np.float32),
                                self.const(np.sin(angles), np.float32)]
        elif self.form in ("concat", "onnx"):
            shared["cos"], shared["sin"] = self.rotary("position_ids")
        return shared

    def positions(self):
        """Learnt, [b, s, hidden]; empty where tokens have none."""
        if self.form == "mha":
            places = "position_ids"
        elif self.form == "range":
            past, total = self.past(), self.total()
            places = self.node("Unsqueeze", self.places(past, total), self.ints(0))
        else:
            return ""
        return self.node("Gather", self.weight(self.context, self.hidden, scale=0.5), places)

    def slopes(self, mask):
        total = self.total()
        key = self.node("Cast", self.places(self.ints(0), total), to=F32)
        slopes = np.array([2.0 ** -(2 + i) for i in range(self.heads)], np.float32)
        line = self.node("Mul", key, self.const(slopes.reshape(1, self.heads, 1, 1)))
        return self.node("Add", mask, line)

    def build(self):
        x = self.node("Gather", self.weight(self.vocabulary, self.hidden, scale=1.0), "input_ids")
        shared = self.shared()
        if places := self.positions():
            x = self.node("Add", x, places)
        if self.form != "gqa":
            shared["mask"] = self.causal()
        if self.form == "alibi":
            shared["mask"] = self.slopes(shared["mask"])
        for layer in range(self.layers):
            attended = self.attention(layer, self.norm(x), shared)
            x = self.node("Add", x, self.node("MatMul", attended,
                                              self.weight(self.hidden, self.hidden)))
            inner = self.norm(x)
            gate = self.node("MatMul", inner, self.weight(self.hidden, 2 * self.hidden))
            up = self.node("MatMul", inner, self.weight(self.hidden, 2 * self.hidden))
            gate = self.node("Mul", gate, self.node("Sigmoid", gate))
            down = self.weight(2 * self.hidden, self.hidden)
            x = self.node("Add", x, self.node("MatMul", self.node("Mul", gate, up), down))
        head = self.weight(self.hidden, self.vocabulary, scale=0.3)
        self.nodes.append(helper.make_node("MatMul", [self.norm(x), head], ["logits"],
                                           name="head"))

        def values(infos):
            return [helper.make_tensor_value_info(*info) for info in infos]
        graph = helper.make_graph(self.nodes, "decoder", values(self.inputs), values(self.outputs),
                                  self.weights)
        opset = 23 if self.form == "onnx" else 18
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                        helper.make_opsetid("com.microsoft", 1)])
        model.ir_version = 10
        return model


def make(form, **options):
    return Decoder(form, **options).build()


def with_followers(model, followers):
    """`model` with scores that make one id follow another, {id: the next}; -1 stands for all others."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    logits = next(one for one in model.graph.output if one.name == "logits")
    width = logits.type.tensor_type.shape.dim[-1].dim_value
    table = np.zeros((width, width), np.float32)
    for row in range(width):
        table[row, followers.get(row, followers[-1])] = 1e6
    for node in model.graph.node:
        node.output[:] = ["own_logits" if name == "logits" else name for name in node.output]
    model.graph.initializer.append(numpy_helper.from_array(table, "followers"))
    model.graph.node.extend([helper.make_node("Gather", ["followers", "input_ids"], ["follow"]),
                             helper.make_node("Add", ["own_logits", "follow"], ["logits"])])
    return model


class Stepper:
    """onnxruntime with an explicit cache, one sequence.

    `rows`: of a cache whose batch has another name."""

    def __init__(self, model, **rows):
        data = model if isinstance(model, (str, bytes)) else model.SerializeToString()
        self.session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        self.caches = [one for one in self.session.get_inputs() if "past" in one.name]
        self.names = [one.name for one in self.session.get_inputs()]
        self.rows = rows
        self.reset()

    def reset(self):
        self.length = 0
        self.past = {one.name: np.zeros([self.size_of(dim) for dim in one.shape], np.float32)
                     for one in self.caches}

    def size_of(self, dim):
        if isinstance(dim, int):
            return dim
        return 0 if dim.startswith("past") else self.rows.get(dim, 1)

    def step(self, ids):
        """Returns the scores of each of `ids`, which follow the ids that were there before."""
        count = len(ids)
        feeds = {"input_ids": np.array([ids], np.int64), **self.past}
        if "attention_mask" in self.names:
            feeds["attention_mask"] = np.ones((1, self.length + count), np.int64)
        if "position_ids" in self.names:
            feeds["position_ids"] = np.arange(self.length, self.length + count)[None]
        outputs = [one.name for one in self.session.get_outputs()]
        results = dict(zip(outputs, self.session.run(outputs, feeds)))
        for cache in self.caches:
            self.past[cache.name] = results[cache.name.replace("past_key_values", "present")]
        self.length += count
        return results["logits"][0]

    def greedy(self, prompt, tokens):
        """Returns the new ids, and the scores that each was chosen by."""
        self.reset()
        ids, rows = [], []
        logits = self.step(prompt)[-1]
        for _ in range(tokens):
            rows.append(logits)
            ids.append(int(logits.argmax()))
            if len(ids) < tokens:
                logits = self.step(ids[-1:])[-1]
        return ids, np.array(rows)
