"""Decoders with the nodes that exporters write for forms of decoders.py that they have no place in.

`make(form, ...)`, forms by their special features:

  cut_tables   torch's exporter, Llama (also Mistral, Phi, GPT-NeoX): tables of cosines cut to past + new
               and looked up at places that are counted from the past
  folded       torch's exporter, OPT: heads folded into the batch, scores bounded from below, places
               summed over the mask
  sincos       dynamo, GPT-J and CodeGen: one table of sines and cosines, split and repeated by twos;
               a mask that is scaled with the scores
  looped       torch's exporter up to 1.13, GPT-J: the same, looked up element by element, and repeated by a Loop
               over the pieces of a sequence
  one_head     dynamo, Falcon: queries share one head of keys that nothing repeats
  alibi_cut    MPT: slopes for the longest context, of which the last past + new are taken
  three_dims   Bloom up to optimum 1.16: heads in the batch, keys [batch * heads, size, past]
  one_cache    BigCode up to optimum 1.16: keys and values of one head next to each other, [batch, past, 2 * size]
"""

import numpy as np
from onnx import helper

from testing.decoders import BOOL, F32, I64, Decoder

FORMS = ("cut_tables", "folded", "sincos", "looped", "one_head", "alibi_cut", "three_dims", "one_cache")
# The caches of these have three dims.
IN_THREE = ("three_dims", "one_cache")


class Exported(Decoder):
    def __init__(self, form, **options):
        super().__init__(form, **options)
        if form in ("one_head", "one_cache"):
            self.kv_heads = 1
        elif form != "cut_tables":
            self.kv_heads = self.heads

    def past(self):
        name, axis = {"one_cache": ("key_value", 1)}.get(self.form, ("key", 2))
        return self.dim(f"past_key_values.0.{name}", axis)

    def after_past(self, layer, rows, kind, shape, axis):
        """Makes a cache of three dims with `rows` after it; -1 in `shape` is the past."""
        past, present = f"past_key_values.{layer}.{kind}", f"present.{layer}.{kind}"
        for values, name, length in ((self.inputs, past, "past"), (self.outputs, present, "total")):
            values.append((name, F32, [length if one == -1 else one for one in shape]))
        self.nodes.append(helper.make_node("Concat", [past, rows], [present], axis=axis, name=present))
        return present

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
        if self.form in ("folded", "alibi_cut", "three_dims"):
            return {}
        places = self.node("Unsqueeze", self.places(self.past(), self.total()), self.ints(0))
        return {"places": places}

    def positions(self):
        if self.form == "one_cache":
            places = self.node("Unsqueeze", self.places(self.past(), self.total()), self.ints(0))
            return self.node("Gather", self.weight(self.context, self.hidden, scale=0.5), places)
        if self.form != "folded":
            return ""
        # OPT counts the tokens that the mask shows, and begins at 2.
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
        if self.form == "looped":
            return self.repeated(self.node("Unsqueeze", table, self.ints(2)))
        wide = self.node("Expand", self.node("Unsqueeze", table, self.ints(3)), self.ints(1, 1, 1, 2))
        return self.node("Unsqueeze", self.node("Reshape", wide, self.ints(0, 0, width)), self.ints(2))

    def repeated(self, x):
        """[b, s, 1, d], each number twice, as repeat_interleave(2, dim=3)."""
        turns = self.node("Unsqueeze", self.node("Gather", self.node("Shape", x), self.const(3, np.int64), axis=0),
                          self.ints(0))
        counts = self.node("Expand", self.const(2, np.int64), turns)
        ones = self.node("ConstantOfShape", self.node("Shape", counts),
                         value=helper.make_tensor("one", I64, [1], [1]))
        by_count = self.node("SplitToSequence", counts, ones, axis=0)
        by_piece = self.node("SplitToSequence", x, ones, axis=3)
        goes_on = self.const(True, bool)
        outside, self.nodes = self.nodes, []
        turn, before, pieces = self.name("turn"), self.name("goes_on"), self.name("pieces")
        piece = self.node("Unsqueeze", self.node("SequenceAt", by_piece, turn), self.ints(4))
        shape = self.node("Concat", self.ints(-1, -1, 1, 1), self.node("SequenceAt", by_count, turn), self.ints(), axis=0)
        one = self.node("ConstantOfShape", self.node("Shape", shape), value=helper.make_tensor("one", I64, [1], [1]))
        keeps = self.node("Equal", shape, self.node("Mul", one, self.const(-1, np.int64)))
        wide = self.node("Expand", piece, self.node("Where", keeps, one, shape))
        longer = self.node("SequenceInsert", pieces, self.node("Reshape", wide, self.ints(0, 0, 1, -1)))
        after = self.node("Cast", goes_on, to=BOOL)
        inside, self.nodes = self.nodes, outside
        values = [helper.make_tensor_value_info(turn, I64, []), helper.make_tensor_value_info(before, BOOL, [])]
        body = helper.make_graph(
            inside, "body", values + [helper.make_tensor_sequence_value_info(pieces, F32, None)],
            [helper.make_tensor_value_info(after, BOOL, []), helper.make_tensor_sequence_value_info(longer, F32, None)])
        joined = self.node("Loop", turns, goes_on, self.node("SequenceEmpty", dtype=F32), body=body)
        return self.node("ConcatFromSequence", joined, axis=3)

    def at_places(self, table, places):
        """[b, s, width] of a table [context, width], by an index for each number."""
        width = table.shape[-1]
        table = self.node("Tile", self.const(table[None], np.float32), self.ints(1, 1, 1))
        index = self.node("Tile", self.node("Unsqueeze", places, self.ints(-1)), self.ints(1, 1, width))
        return self.node("GatherElements", table, index, axis=1)

    def rotate_rows(self, q, k, places):
        """GPT-J's, of rows whose heads are not apart yet, and of a part of each head."""
        cos, sin = self.tables(self.turned)
        table = np.concatenate([sin, cos], -1)
        if self.form == "looped":
            found = self.at_places(table, places)
        else:
            found = self.node("Gather", self.const(table, np.float32), places, axis=0)
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

    def heads_in_batch(self, layer, x, shared):
        heads, size = self.heads, self.size
        both = self.node("MatMul", x, self.weight(self.hidden, 3 * self.hidden))
        both = self.node("Reshape", both, self.ints(0, 0, heads, 3, size))
        q, k, v = (self.node("Gather", both, self.const(i, np.int64), axis=3) for i in range(3))
        turned = [[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]]
        rows = self.node("Mul", self.dim("input_ids", 0), self.ints(heads))
        length, total = self.dim("input_ids", 1), self.total()
        by_row = self.node("Concat", rows, length, self.ints(size), axis=0)
        by_column = self.node("Concat", rows, self.ints(size), length, axis=0)
        q, k, v = (self.node("Reshape", self.node("Transpose", one, perm=perm), shape)
                   for one, perm, shape in zip((q, k, v), turned, (by_row, by_column, by_row)))
        k = self.after_past(layer, k, "key", ["batch_x_heads", size, -1], 2)
        v = self.after_past(layer, v, "value", ["batch_x_heads", -1, size], 1)
        scores = self.node("Mul", self.node("MatMul", q, k), self.const(size ** -0.5, np.float32))
        # Slopes by head over the mask's counts, [batch * heads, 1, total].
        mask = self.node("Cast", "attention_mask", to=F32)
        counted = self.node("CumSum", mask, self.const(1, np.int64))
        counted = self.node("Mul", self.node("Sub", counted, self.const(1, np.float32)), mask)
        slopes = np.array([2.0 ** -(2 + i) for i in range(heads)], np.float32).reshape(heads, 1)
        line = self.node("Mul", self.const(slopes), self.node("Unsqueeze", counted, self.ints(1)))
        line = self.node("Reshape", line, self.node("Concat", rows, self.ints(1), total, axis=0))
        scores = self.node("Add", self.node("Mul", line, self.const(1, np.float32)), scores)
        batch = self.dim("input_ids", 0)
        apart = self.node("Concat", batch, self.ints(heads), length, total, axis=0)
        scores = self.node("Reshape", scores, apart)
        hidden = self.node("Less", shared["mask"], self.const(-1, np.float32))
        scores = self.node("Where", hidden, self.const(np.finfo(np.float32).min, np.float32), scores)
        weights = self.node("Reshape", self.node("Softmax", scores, axis=-1),
                            self.node("Concat", rows, length, total, axis=0))
        found = self.node("MatMul", weights, v)
        apart = self.node("Concat", batch, self.ints(heads), length, self.ints(size), axis=0)
        found = self.node("Transpose", self.node("Reshape", found, apart), perm=[0, 2, 1, 3])
        return self.node("Reshape", found, self.ints(0, 0, self.hidden))

    def keys_with_values(self, layer, x, shared):
        heads, size = self.heads, self.size
        both = self.node("MatMul", x, self.weight(self.hidden, self.hidden + 2 * size))
        q, rows = self.node("Split", both, self.ints(self.hidden, 2 * size), outputs=2, axis=2)
        cache = self.after_past(layer, rows, "key_value", ["batch", -1, 2 * size], -2)
        k, v = self.node("Split", cache, self.ints(size, size), outputs=2, axis=-1)
        batch, length, total = self.dim("input_ids", 0), self.dim("input_ids", 1), self.total()
        many = self.node("Mul", length, self.ints(heads))
        q = self.node("Reshape", q, self.node("Concat", batch, many, self.ints(size), axis=0))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 2, 1]))
        scores = self.node("Mul", scores, self.const(size ** -0.5, np.float32))
        apart = self.node("Concat", batch, length, self.ints(heads), total, axis=0)
        scores = self.node("Reshape", scores, apart)
        seen = self.node("Transpose", self.node("Greater", shared["mask"], self.const(-1, np.float32)),
                         perm=[0, 2, 1, 3])
        scores = self.node("Where", seen, scores, self.const(np.finfo(np.float32).min, np.float32))
        weights = self.node("Reshape", self.node("Softmax", scores, axis=-1),
                            self.node("Concat", batch, many, total, axis=0))
        found = self.node("MatMul", weights, v)
        whole = self.node("Concat", batch, length, self.ints(self.hidden), axis=0)
        return self.node("Reshape", found, whole)

    def attention(self, layer, x, shared):
        if self.form == "three_dims":
            return self.heads_in_batch(layer, x, shared)
        if self.form == "one_cache":
            return self.keys_with_values(layer, x, shared)
        past_k, present_k, past_v, present_v = self.cache(layer)
        width = self.kv_heads * self.size
        q = self.node("MatMul", x, self.weight(self.hidden, self.hidden))
        k = self.node("MatMul", x, self.weight(self.hidden, width))
        v = self.node("MatMul", x, self.weight(self.hidden, width))
        if self.form in ("sincos", "looped"):
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
        if self.form in ("sincos", "looped"):
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
