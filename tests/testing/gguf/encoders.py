"""A small encoder as a GGUF file with random weights, and the same for onnxruntime."""

import gguf
import numpy as np
from onnx import TensorProto, helper

from testing.gguf.models import Model


class Encoder(Model):
    """BERT, or nomic's form of it."""

    def __init__(self, arch, types=("F32",), seed=5, vocabulary=96):
        super().__init__(types, seed)
        self.arch, self.nomic = arch, arch == "nomic-bert"
        self.hidden, self.heads, self.inner, self.layers, self.context = 256, 4, 512, 2, 64
        self.size = self.hidden // self.heads
        self.matrix("token_embd", vocabulary, bias=False, scale=1)
        self.matrix("token_types", 2, bias=False)
        if not self.nomic:
            self.matrix("position_embd", self.context, bias=False, scale=0.3)
        self.both("token_embd_norm")
        for layer in range(self.layers):
            at = f"blk.{layer}."
            if self.nomic:
                self.matrix(at + "attn_qkv", 3 * self.hidden, bias=False)
                self.matrix(at + "ffn_gate", self.inner, bias=False)
            else:
                for kind in "qkv":
                    self.matrix(at + "attn_" + kind, self.hidden)
            self.matrix(at + "attn_output", self.hidden, bias=not self.nomic)
            self.both(at + "attn_output_norm")
            self.matrix(at + "ffn_up", self.inner, bias=not self.nomic)
            self.matrix(at + "ffn_down", self.hidden, self.inner, bias=not self.nomic)
            self.both(at + "layer_output_norm")

    def matrix(self, name, rows, columns=None, bias=True, scale=None):
        self.add(name + ".weight", rows, columns or self.hidden, type=next(self.types), scale=scale)
        if bias:
            self.add(name + ".bias", rows, around=0)

    def both(self, name):
        self.add(name + ".weight", self.hidden, around=1)
        self.add(name + ".bias", self.hidden, around=0)

    def write(self, path, members=None, pooling=gguf.PoolingType.MEAN):
        w = gguf.GGUFWriter(path, self.arch)
        w.add_block_count(self.layers)
        w.add_context_length(self.context)
        w.add_embedding_length(self.hidden)
        w.add_feed_forward_length(self.inner)
        w.add_head_count(self.heads)
        w.add_layer_norm_eps(1e-12)
        w.add_causal_attention(False)
        w.add_pooling_type(pooling)
        if self.nomic:
            w.add_rope_freq_base(1000.0)
        self.finish(w, members)

    def norm(self, x, name):
        return self.node("LayerNormalization", x, self.const(self.weights[name + ".weight"]),
                         self.const(self.weights[name + ".bias"]), axis=-1, epsilon=1e-12)

    def turn(self, x):
        half = self.size // 2
        angles = np.outer(np.arange(self.context), 1000.0 ** (-np.arange(half) / half))
        cos, sin = (self.node("Gather", self.const(f(angles).astype(np.float32)), self.positions)
                    for f in (np.cos, np.sin))
        a, b = self.node("Split", x, self.const([half] * 2), outputs=2, axis=-1)
        return self.node("Concat", self.node("Sub", self.node("Mul", a, cos), self.node("Mul", b, sin)),
                         self.node("Add", self.node("Mul", b, cos), self.node("Mul", a, sin)), axis=-1)

    def table(self, name, ids):
        return self.node("Gather", self.const(self.weights[name + ".weight"]), ids)

    def attention(self, at, x, mask):
        if self.nomic:
            q, k, v = self.node("Split", self.linear(x, at + "attn_qkv"), self.const([self.hidden] * 3),
                                outputs=3, axis=-1)
        else:
            q, k, v = (self.linear(x, at + "attn_" + kind) for kind in "qkv")
        q, k, v = (self.by_head(one, self.heads) for one in (q, k, v))
        if self.nomic:
            q, k = self.turn(q), self.turn(k)
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.node("Add", self.node("Mul", scores, self.const(self.size ** -0.5, np.float32)), mask)
        y = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        y = self.node("Reshape", self.node("Transpose", y, perm=[0, 2, 1, 3]), self.const([0, 0, self.hidden]))
        return self.linear(y, at + "attn_output")

    def oracle(self):
        self.nodes, self.initializers, self.names = [], [], 0
        inputs = [(name, TensorProto.INT64, ["batch", "tokens"])
                  for name in ("input_ids", "attention_mask", "token_type_ids")]
        length = self.node("Gather", self.node("Shape", "input_ids"), self.const(1, np.int64))
        self.positions = self.node("Range", self.const(0, np.int64), length, self.const(1, np.int64))
        x = self.node("Add", self.table("token_embd", "input_ids"), self.table("token_types", "token_type_ids"))
        if not self.nomic:
            x = self.node("Add", x, self.table("position_embd", self.positions))
        x = self.norm(x, "token_embd_norm")
        seen = self.node("Unsqueeze", self.node("Cast", "attention_mask", to=TensorProto.BOOL), self.const([1, 2]))
        mask = self.node("Where", seen, self.const(0, np.float32), self.const(-1e30, np.float32))
        for layer in range(self.layers):
            at = f"blk.{layer}."
            x = self.norm(self.node("Add", x, self.attention(at, x, mask)), at + "attn_output_norm")
            y = self.linear(x, at + "ffn_up")
            if self.nomic:
                gate = self.linear(x, at + "ffn_gate")
                y = self.node("Mul", self.node("Mul", gate, self.node("Sigmoid", gate)), y)
            else:
                y = self.node("Gelu", y)
            x = self.norm(self.node("Add", x, self.linear(y, at + "ffn_down")), at + "layer_output_norm")
        self.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
        return self.model(inputs, [("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", self.hidden])])
