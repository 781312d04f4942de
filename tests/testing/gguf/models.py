"""Small GGUF files with random weights, as `gguf` writes them, and the same models for onnxruntime.

    model = Decoder("qwen3", types=["Q8_0", "Q6_K"])
    model.write(path)                       # the GGUF file
    stepper = Stepper(model.oracle())       # the weights dequantised by gguf.quants, written out op by op

The oracle knows nothing of GroupQueryAttention: positions are turned, repeated, masked and summed in plain ops,
from the same numbers that the file's members hold.
"""

import itertools
import math

import gguf
import numpy as np
from gguf import GGMLQuantizationType
from onnx import TensorProto, helper, numpy_helper

VOCABULARY = 96

# The members that each architecture has besides a llama's; `file`: members, without the architecture's name.
FAMILIES = {
    "llama": dict(neighbours=True),
    "mistral": dict(arch="llama", neighbours=True, window=7),
    "llama3": dict(arch="llama", neighbours=True, freqs=True, tied=True),
    "linear": dict(arch="llama", neighbours=True, linear=4.0),
    "yarn": dict(arch="qwen2", bias=True, yarn=(4.0, 32)),
    "granite": dict(neighbours=True, scales=(12.0, 0.22, 0.0156, 8.0), tied=True),
    "qwen2": dict(bias=True),
    "qwen3": dict(norms=True, size=128),
    "phi3": dict(fused=True, part=0.75, window=9),
    "phi3long": dict(arch="phi3", fused=True, long=True),
    "gemma2": dict(gemma=True, post=True, window=6, period=2, caps=(50.0, 30.0), size=64, tied=True),
    "gemma3": dict(gemma=True, post=True, window=6, period=6, norms=True, size=64, layers=7,
                   local=10000.0, tied=True),
}


class Model:
    """Weights as the file has them, and as floats; nodes of the oracle."""

    def __init__(self, types, seed):
        self.random = np.random.default_rng(seed)
        self.types = itertools.cycle(GGMLQuantizationType[one] for one in types)
        self.stored, self.weights = {}, {}
        self.nodes, self.initializers, self.names = [], [], 0

    def add(self, name, *shape, type=GGMLQuantizationType.F32, around=None, scale=None):
        if around is not None:
            value = around + self.random.normal(0, 0.1, shape)
        else:
            value = self.random.normal(0, scale or 1 / math.sqrt(shape[-1]), shape)
        value = value.astype(np.float32)
        data = store(value, type, self.random)
        self.stored[name] = (data, type)
        self.weights[name] = gguf.dequantize(data, type).astype(np.float32).reshape(shape)

    def finish(self, writer, members):
        if members is not None:
            members(writer)
        for name, (data, type) in self.stored.items():
            writer.add_tensor(name, data, raw_dtype=type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def const(self, value, dtype=None):
        self.names += 1
        array = np.asarray(value, dtype)
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape),
                                                         f"c{self.names}"))
        return f"c{self.names}"

    def node(self, op, *inputs, outputs=1, **attributes):
        self.names += 1
        names = [f"v{self.names}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x, name):
        y = self.node("MatMul", x, self.const(self.weights[name + ".weight"].T))
        if name + ".bias" in self.weights:
            y = self.node("Add", y, self.const(self.weights[name + ".bias"]))
        return y

    def by_head(self, x, heads):
        split = self.node("Reshape", x, self.const([0, 0, heads, self.size]))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def model(self, inputs, outputs):
        def values(infos):
            return [helper.make_tensor_value_info(*info) for info in infos]
        graph = helper.make_graph(self.nodes, "oracle", values(inputs), values(outputs), self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model.ir_version = 9
        return model


class Decoder(Model):
    def __init__(self, name, types=("F32",), seed=3, vocabulary=VOCABULARY, layers=None):
        super().__init__(types, seed)
        f = FAMILIES[name]
        self.f, self.arch = f, f.get("arch", name)
        self.hidden, self.heads, self.kv, self.inner = 256, 4, 2, 512
        self.size = f.get("size", 64)
        self.layers = layers or f.get("layers", 2)
        self.context, self.vocabulary = 64, vocabulary
        self.base, self.epsilon = 10000.0, 1e-5
        self.rotary = int(self.size * f.get("part", 1))
        self.make_weights()

    def matrix(self, name, rows, columns, scale=None):
        self.add(name + ".weight", rows, columns, type=next(self.types), scale=scale)
        if self.f.get("bias") and name.split(".")[-1] in ("attn_q", "attn_k", "attn_v"):
            self.add(name + ".bias", rows, around=0)

    def make_weights(self):
        f, hidden = self.f, self.hidden
        self.matrix("token_embd", self.vocabulary, hidden, scale=0.5 if f.get("gemma") else 1)
        self.add("output_norm.weight", hidden, around=1)
        if not f.get("tied"):
            self.matrix("output", self.vocabulary, hidden, scale=0.3)
        if f.get("freqs"):
            self.add("rope_freqs.weight", self.rotary // 2, around=3)
        if f.get("long"):
            self.add("rope_factors_short.weight", self.rotary // 2, around=2)
            self.add("rope_factors_long.weight", self.rotary // 2, around=4)
        for layer in range(self.layers):
            at = f"blk.{layer}."
            self.add(at + "attn_norm.weight", hidden, around=1)
            self.add(at + "ffn_norm.weight", hidden, around=1)
            q, kv = self.heads * self.size, self.kv * self.size
            if f.get("fused"):
                self.matrix(at + "attn_qkv", q + 2 * kv, hidden)
                self.matrix(at + "ffn_up", 2 * self.inner, hidden)
            else:
                self.matrix(at + "attn_q", q, hidden)
                self.matrix(at + "attn_k", kv, hidden)
                self.matrix(at + "attn_v", kv, hidden)
                self.matrix(at + "ffn_gate", self.inner, hidden)
                self.matrix(at + "ffn_up", self.inner, hidden)
            self.matrix(at + "attn_output", hidden, q)
            self.matrix(at + "ffn_down", hidden, self.inner)
            if f.get("norms"):
                self.add(at + "attn_q_norm.weight", self.size, around=1)
                self.add(at + "attn_k_norm.weight", self.size, around=1)
            if f.get("post"):
                self.add(at + "post_attention_norm.weight", hidden, around=1)
                self.add(at + "post_ffw_norm.weight", hidden, around=1)

    # The file.

    def write(self, path, members=None, split=0):
        w = gguf.GGUFWriter(path, self.arch, split_max_tensors=split)
        f = self.f
        w.add_block_count(self.layers)
        w.add_context_length(self.context if not f.get("long") else 4 * self.context)
        w.add_embedding_length(self.hidden)
        w.add_feed_forward_length(self.inner)
        w.add_head_count(self.heads)
        w.add_head_count_kv(self.kv)
        w.add_layer_norm_rms_eps(self.epsilon)
        w.add_rope_freq_base(self.base)
        w.add_rope_dimension_count(self.rotary)
        if self.size * self.heads != self.hidden:
            w.add_key_length(self.size)
            w.add_value_length(self.size)
        if f.get("window"):
            w.add_sliding_window(f["window"])
        if f.get("linear"):
            w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            w.add_rope_scaling_factor(f["linear"])
        if f.get("yarn"):
            w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
            w.add_rope_scaling_factor(f["yarn"][0])
            w.add_rope_scaling_orig_ctx_len(f["yarn"][1])
        if f.get("long"):
            w.add_rope_scaling_orig_ctx_len(self.context)
            w.add_rope_scaling_attn_factors(1.19)
        if f.get("caps"):
            w.add_attn_logit_softcapping(f["caps"][0])
            w.add_final_logit_softcapping(f["caps"][1])
        if f.get("scales"):
            embedding, residual, attention, logits = f["scales"]
            w.add_embedding_scale(embedding)
            w.add_residual_scale(residual)
            w.add_attention_scale(attention)
            w.add_logit_scale(logits)
        self.finish(w, members)

    # The same for onnxruntime.

    def norm(self, x, weight):
        square = self.node("ReduceMean", self.node("Mul", x, x), self.const([-1], np.int64))
        root = self.node("Sqrt", self.node("Add", square, self.const(self.epsilon, np.float32)))
        return self.node("Mul", self.node("Div", x, root), self.const(self.weights[weight]))

    def tables(self, local):
        """cos and sin, [context, rotary / 2]."""
        half = self.rotary // 2
        base = self.f["local"] if local else self.base
        frequencies = base ** (-np.arange(half) / half)
        magnitude = 1.0
        if self.f.get("freqs"):
            frequencies = frequencies / self.weights["rope_freqs.weight"].astype(np.float64)
        if self.f.get("long"):
            frequencies = frequencies / self.weights["rope_factors_short.weight"].astype(np.float64)
            magnitude = 1.19
        if self.f.get("linear"):
            frequencies = frequencies / self.f["linear"]
        if self.f.get("yarn"):  # transformers.modeling_rope_utils._compute_yarn_parameters
            factor, context = self.f["yarn"]

            def place(turns):
                return self.rotary * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(base))
            low, high = max(math.floor(place(32)), 0), min(math.ceil(place(1)), self.rotary - 1)
            ramp = np.clip((np.arange(half) - low) / max(high - low, 0.001), 0, 1)
            frequencies = frequencies / factor * ramp + frequencies * (1 - ramp)
            magnitude = 0.1 * math.log(factor) + 1
        angles = np.outer(np.arange(self.context), frequencies)
        return [self.const((magnitude * turn(angles)).astype(np.float32)) for turn in (np.cos, np.sin)]

    def turn(self, x, tables):
        """Rows by head [1, heads, new, size], turned by the positions of the new tokens."""
        cos, sin = (self.node("Gather", table, self.positions) for table in tables)
        part = x
        rest = None
        if self.rotary < self.size:
            part, rest = self.node("Split", x, self.const([self.rotary, self.size - self.rotary]),
                                   outputs=2, axis=-1)
        if self.f.get("neighbours"):
            pairs = self.node("Reshape", part, self.const([0, 0, -1, self.rotary // 2, 2]))
            a, b = self.node("Split", pairs, self.const([1, 1]), outputs=2, axis=-1)
            cos, sin = (self.node("Unsqueeze", t, self.const([-1])) for t in (cos, sin))
        else:
            a, b = self.node("Split", part, self.const([self.rotary // 2] * 2), outputs=2, axis=-1)
        first = self.node("Sub", self.node("Mul", a, cos), self.node("Mul", b, sin))
        second = self.node("Add", self.node("Mul", b, cos), self.node("Mul", a, sin))
        turned = self.node("Concat", first, second, axis=-1)
        if self.f.get("neighbours"):
            turned = self.node("Reshape", turned, self.const([0, 0, -1, self.rotary]))
        return turned if rest is None else self.node("Concat", turned, rest, axis=-1)

    def mask(self, window):
        """Makes the bias that is added to scores [new, total]."""
        query = self.node("Unsqueeze", self.positions, self.const([1]))
        key = self.node("Unsqueeze", self.node("Range", self.const(0, np.int64), self.total,
                                               self.const(1, np.int64)), self.const([0]))
        hidden = self.node("Greater", key, query)
        if window:
            behind = self.node("GreaterOrEqual", self.node("Sub", query, key), self.const(window, np.int64))
            hidden = self.node("Or", hidden, behind)
        return self.node("Where", hidden, self.const(-1e30, np.float32), self.const(0, np.float32))

    def attention(self, layer, x, tables, window):
        at = f"blk.{layer}."
        if self.f.get("fused"):
            q, kv = self.heads * self.size, self.kv * self.size
            q, k, v = self.node("Split", self.linear(x, at + "attn_qkv"), self.const([q, kv, kv]),
                                outputs=3, axis=-1)
        else:
            q, k, v = (self.linear(x, at + "attn_" + kind) for kind in "qkv")
        q, k, v = self.by_head(q, self.heads), self.by_head(k, self.kv), self.by_head(v, self.kv)
        if self.f.get("norms"):
            q = self.norm(q, at + "attn_q_norm.weight")
            k = self.norm(k, at + "attn_k_norm.weight")
        q, k = self.turn(q, tables), self.turn(k, tables)
        rows = []
        for kind, new in (("key", k), ("value", v)):
            past, present = f"past_key_values.{layer}.{kind}", f"present.{layer}.{kind}"
            dims = ["batch", self.kv, "past", self.size]
            self.inputs.append((past, TensorProto.FLOAT, dims))
            self.outputs.append((present, TensorProto.FLOAT, ["batch", self.kv, "total", self.size]))
            self.nodes.append(helper.make_node("Concat", [past, new], [present], axis=2))
            wide = self.node("Unsqueeze", present, self.const([2]))
            wide = self.node("Tile", wide, self.const([1, 1, self.heads // self.kv, 1, 1]))
            rows.append(self.node("Reshape", wide, self.const([0, self.heads, -1, self.size])))
        scores = self.node("MatMul", q, self.node("Transpose", rows[0], perm=[0, 1, 3, 2]))
        scale = self.f["scales"][2] if self.f.get("scales") else self.size ** -0.5
        scores = self.node("Mul", scores, self.const(scale, np.float32))
        scores = self.capped(scores, 0)
        scores = self.node("Add", scores, self.mask(window))
        y = self.node("MatMul", self.node("Softmax", scores, axis=-1), rows[1])
        y = self.node("Reshape", self.node("Transpose", y, perm=[0, 2, 1, 3]),
                      self.const([0, 0, self.heads * self.size]))
        return self.linear(y, at + "attn_output")

    def capped(self, x, which):
        if not self.f.get("caps"):
            return x
        cap = self.const(self.f["caps"][which], np.float32)
        return self.node("Mul", self.node("Tanh", self.node("Div", x, cap)), cap)

    def feed_forward(self, layer, x):
        at = f"blk.{layer}."
        if self.f.get("fused"):
            gate, up = self.node("Split", self.linear(x, at + "ffn_up"), self.const([self.inner] * 2),
                                 outputs=2, axis=-1)
        else:
            gate, up = self.linear(x, at + "ffn_gate"), self.linear(x, at + "ffn_up")
        gate = (self.node("Gelu", gate, approximate="tanh") if self.f.get("gemma")
                else self.node("Mul", gate, self.node("Sigmoid", gate)))
        return self.linear(self.node("Mul", gate, up), at + "ffn_down")

    def windows(self):
        """Returns the window of each layer; 0: none."""
        window, period = self.f.get("window", 0), self.f.get("period")
        if period is None:
            return [window] * self.layers
        return [0 if i % period == period - 1 else window for i in range(self.layers)]

    def oracle(self):
        self.nodes, self.initializers, self.names = [], [], 0
        self.inputs = [("input_ids", TensorProto.INT64, ["batch", "new"]),
                       ("attention_mask", TensorProto.INT64, ["batch", "total"])]
        self.outputs = [("logits", TensorProto.FLOAT, ["batch", "new", self.vocabulary])]
        embedding, residual, _, logits = self.f.get("scales", (1.0, 1.0, 0, 1.0))
        if self.f.get("gemma"):
            embedding = math.sqrt(self.hidden)
        sizes = [self.node("Gather", self.node("Shape", name), self.const(1, np.int64))
                 for name in ("input_ids", "attention_mask")]
        new, self.total = sizes
        self.positions = self.node("Range", self.node("Sub", self.total, new), self.total,
                                   self.const(1, np.int64))
        tables = self.tables(local=False)
        local = self.tables(local=True) if self.f.get("local") else tables
        x = self.node("Gather", self.const(self.weights["token_embd.weight"]), "input_ids")
        x = self.node("Mul", x, self.const(embedding, np.float32))
        for layer, window in enumerate(self.windows()):
            at = f"blk.{layer}."
            y = self.attention(layer, self.norm(x, at + "attn_norm.weight"), local if window else tables,
                               window)
            if self.f.get("post"):
                y = self.norm(y, at + "post_attention_norm.weight")
            x = self.node("Add", x, self.node("Mul", y, self.const(residual, np.float32)))
            y = self.feed_forward(layer, self.norm(x, at + "ffn_norm.weight"))
            if self.f.get("post"):
                y = self.norm(y, at + "post_ffw_norm.weight")
            x = self.node("Add", x, self.node("Mul", y, self.const(residual, np.float32)))
        head = "token_embd" if self.f.get("tied") else "output"
        scores = self.linear(self.norm(x, "output_norm.weight"), head)
        scores = self.capped(self.node("Div", scores, self.const(logits, np.float32)), 1)
        self.nodes.append(helper.make_node("Identity", [scores], ["logits"]))

        return self.model(self.inputs, self.outputs)


def store(value, type, random):
    """`value` as blocks of `type`; those that gguf cannot make are random bytes with usual factors."""
    try:
        return gguf.quantize(value, type)
    except NotImplementedError:
        pass
    numbers, size = gguf.GGML_QUANT_SIZES[type]
    blocks = random.integers(0, 256, (value.size // numbers, size), dtype=np.uint8)
    name = type.name
    largest = np.abs(value).max() * 2

    def put(at, numbers):
        blocks[:, at:at + 2] = np.asarray(numbers, np.float16).reshape(-1, 1).view(np.uint8)
    count = len(blocks)
    if name in ("Q4_K", "Q5_K"):
        levels = 15 if name == "Q4_K" else 31
        put(0, random.uniform(0.2, 1, count) * largest / levels / 63)
        put(2, random.uniform(0.2, 1, count) * largest / 2 / 63)
    elif name == "Q6_K":
        put(208, random.uniform(0.2, 1, count) * largest / 32 / 128)
    elif name == "IQ4_NL":
        put(0, random.uniform(0.2, 1, count) * largest / 2 / 127)
    else:
        raise AssertionError(name)
    return blocks.reshape(*value.shape[:-1], -1)
