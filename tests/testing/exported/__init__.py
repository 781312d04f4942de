"""Decoders with the nodes that exporters write for forms of decoders.py that they have no place in.

`make(form, ...)`, forms by what is special about them:

  cut_tables   torch's exporter, Llama (also Mistral, Phi, GPT-NeoX): tables of cosines cut to past + new
               and looked up at places that are counted from the past
  folded       torch's exporter, OPT: heads folded into the batch, scores bounded from below, places
               summed over the mask
  sincos       dynamo, GPT-J and CodeGen: one table of sines and cosines, split and repeated by twos;
               a mask that is scaled with the scores
  one_head     dynamo, Falcon: queries share one head of keys that nothing repeats
  alibi_cut    MPT: slopes for the longest context, of which the last past + new are taken
"""

import numpy as np
from onnx import helper

from testing.decoders import F32, I64, Decoder

FORMS = ("cut_tables", "folded", "sincos", "one_head", "alibi_cut")


class Exported(Decoder):
    def __init__(self, form, **options):
        super().__init__(form, **options)
        if form == "one_head":
            self.kv_heads = 1
        elif form != "cut_tables":
            self.kv_heads = self.heads

    def past(self):
        return self.dim("past_key_values.0.key", 2)

    def tables(self, width):
        """[context, width] of cosines and of sines."""
        half = width // 2
        angles = np.outer(np.arange(self.context), 10000.0 ** (-np.arange(half) / half))
        return np.cos(angles), np.sin(angles)

    def shared(self):
        self.inputs.append(("attention_mask", I64, ["batch", "total"]))
        if self.form == "one_head":
            self.inputs.append(("position_ids", I64, ["batch", "sequence"]))
            cos, sin = self.rotary("position_ids")
            return {"cos": cos, "sin": sin}
        if self.form in ("folded", "alibi_cut"):
            return {}
        places = self.node("Unsqueeze", self.places(self.past(), self.total()), self.ints(0))
        return {"places": places}

    def positions(self):
        if self.form != "folded":
            return ""
        # OPT counts what the mask shows, and begins at 2.
        mask = "attention_mask"
        counted = self.node("Mul", self.node("CumSum", mask, self.const(1, np.int64)), mask)
        places = self.node("Sub", counted, self.const(1, np.int64))
        places = self.node("Slice", places, self.past(), self.ints(2 ** 63 - 1), self.ints(1))
        places = self.node("Add", places, self.const(2, np.int64))
        return self.node("Gather", self.weight(self.context + 2, self.hidden, scale=0.5), places)

    def cut(self, table, length):
        return self.node("Slice", self.const(table, np.float32), self.ints(0), length, self.ints(0), self.ints(1))

    def cut_tables(self, k, places):
        length = self.node("Add", self.dim(k, 2), self.past())
        tables = []
        for table in self.tables(self.size):
            cut = self.node("Cast", self.cut(np.concatenate([table, table], -1), length), to=F32)
            tables.append(self.node("Unsqueeze", self.node("Gather", cut, places, axis=0), self.ints(1)))
        return tables

    def turn_by_twos(self, x, cos, sin):
        """x [b, s, h, d]; cos and sin [b, s, 1, d]."""
        last, end = self.ints(3), self.ints(2 ** 63 - 1)
        even = self.node("Slice", x, self.ints(0), end, last, self.ints(2))
        odd = self.node("Slice", x, self.ints(1), end, last, self.ints(2))
        pair = [self.node("Unsqueeze", one, self.ints(-1)) for one in (self.node("Neg", odd), even)]
        turned = self.node("Reshape", self.node("Concat", *pair, axis=-1), self.ints(0, 0, 0, -1))
        return self.node("Add", self.node("Mul", x, cos), self.node("Mul", turned, sin))

    def by_twos(self, table, width):
        """[b, s, width / 2] as [b, s, 1, width], each number twice."""
        wide = self.node("Expand", self.node("Unsqueeze", table, self.ints(3)), self.ints(1, 1, 1, 2))
        return self.node("Unsqueeze", self.node("Reshape", wide, self.ints(0, 0, width)), self.ints(2))

    def rotate_rows(self, q, k, places):
        """GPT-J's, of rows whose heads are not apart yet, and of a part of each head."""
        cos, sin = self.tables(self.turned)
        table = self.const(np.concatenate([sin, cos], -1), np.float32)
        found = self.node("Gather", table, places, axis=0)
        half = self.turned // 2
        sin, cos = self.node("Split", found, self.ints(half, half), outputs=2, axis=-1)
        cos, sin = self.by_twos(cos, self.turned), self.by_twos(sin, self.turned)
        result = []
        for rows in (q, k):
            x = self.node("Reshape", rows, self.ints(0, 0, self.heads, self.size))
            if self.turned < self.size:
                low = self.node("Slice", x, self.ints(0), self.ints(self.turned), self.ints(3))
                high = self.node("Slice", x, self.ints(self.turned), self.ints(self.size), self.ints(3))
                x = self.node("Concat", self.turn_by_twos(low, cos, sin), high, axis=-1)
            else:
                x = self.turn_by_twos(x, cos, sin)
            result.append(self.node("Transpose", x, perm=[0, 2, 1, 3]))
        return result

    def attention(self, layer, x, shared):
        past_k, present_k, past_v, present_v = self.cache(layer)
        width = self.kv_heads * self.size
        q = self.node("MatMul", x, self.weight(self.hidden, self.hidden))
        k = self.node("MatMul", x, self.weight(self.hidden, width))
        v = self.node("MatMul", x, self.weight(self.hidden, width))
        if self.form == "sincos":
            q, k = self.rotate_rows(q, k, shared["places"])
        else:
            if self.form == "folded":
                q = self.node("Mul", q, self.const(self.size ** -0.5, np.float32))
            q, k = self.heads_of(q, self.heads), self.heads_of(k, self.kv_heads)
        v = self.heads_of(v, self.kv_heads)
        if self.form == "cut_tables":
            cos, sin = self.cut_tables(k, shared["places"])
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        elif "cos" in shared:
            q, k = (self.rotate(one, shared["cos"], shared["sin"]) for one in (q, k))
        for rows, past, present in ((k, past_k, present_k), (v, past_v, present_v)):
            self.nodes.append(helper.make_node("Concat", [past, rows], [present], axis=-2, name=present))
        if self.form == "folded":
            return self.attend_folded(q, present_k, present_v, shared["mask"])
        if self.form == "cut_tables":
            return self.attend(q, present_k, present_v, shared["mask"])
        scores = self.node("MatMul", q, self.node("Transpose", present_k, perm=[0, 1, 3, 2]))
        scale = self.const(self.size ** 0.5, np.float32)
        if self.form == "sincos":
            scores = self.node("Div", self.node("Add", scores, shared["mask"]), scale)
        else:
            scores = self.node("Div", scores, scale)
            if self.form == "alibi_cut":
                scores = self.node("Add", scores, self.slopes_cut())
            scores = self.node("Add", scores, shared["mask"])
        weights = self.node("Softmax", scores, axis=-1)
        rows = self.node("Transpose", self.node("MatMul", weights, present_v), perm=[0, 2, 1, 3])
        return self.node("Reshape", rows, self.ints(0, 0, self.hidden))

    def slopes_cut(self):
        slopes = np.array([2.0 ** -(2 + i) for i in range(self.heads)]).reshape(-1, 1, 1)
        line = self.const(slopes * np.arange(1 - self.context, 1).reshape(1, 1, -1), np.float32)
        begin = self.node("Sub", self.ints(self.context), self.total())
        return self.node("Slice", line, begin, self.ints(2 ** 63 - 1), self.ints(2), self.ints(1))

    def attend_folded(self, q, k, v, mask):
        rows = self.node("Mul", self.dim("input_ids", 0), self.ints(self.heads))
        shape = self.node("Concat", rows, self.ints(-1, self.size), axis=0)
        q, k, v = (self.node("Reshape", one, shape) for one in (q, k, v))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 2, 1]))
        length, total = self.dim("input_ids", 1), self.total()
        apart = self.node("Concat", self.dim("input_ids", 0), self.ints(self.heads), length, total, axis=0)
        scores = self.node("Add", self.node("Reshape", scores, apart), mask)
        scores = self.node("Max", scores, self.const(np.finfo(np.float32).min, np.float32))
        scores = self.node("Reshape", scores, self.node("Concat", rows, length, total, axis=0))
        found = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        apart = self.node("Concat", self.dim("input_ids", 0), self.ints(self.heads), length, self.ints(self.size), axis=0)
        rows = self.node("Transpose", self.node("Reshape", found, apart), perm=[0, 2, 1, 3])
        return self.node("Reshape", rows, self.ints(0, 0, self.hidden))


def make(form, **options):
    return Exported(form, **options).build()
