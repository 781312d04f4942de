"""Random encoder-decoders in files as optimum lays them out, and onnxruntime stepping with their caches.

`EncoderDecoder(form).write(folder, merged=...)` writes encoder_model.onnx beside decoder_model_merged.onnx,
or beside decoder_model.onnx and decoder_with_past_model.onnx. Forms:

  t5       relative positions by buckets of distance, RMS norm, no scale; `places` of queries counted
           from 0 and cut ("cut"), or from the length of the past ("counted")
  bart     learnt positions after an offset of 2, layer norm after each sum
  whisper  convolutions over a spectrum, no mask of the encoder's result; the file of later steps has an
           input `cache_position`
"""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
FORMS = ("t5", "bart", "whisper")
MEL, FRAMES = 6, 40
BUCKETS, FAR = 32, 128
POSITIONS = 160


class Graph:
    """The nodes of one file, or of one branch; weights belong to the model and are shared."""

    def __init__(self, model, prefix):
        self.model, self.prefix = model, prefix
        self.nodes, self.inputs, self.outputs, self.count = [], [], [], 0

    def name(self, hint):
        self.count += 1
        return f"{self.prefix}{hint}_{self.count}"

    def const(self, value, dtype=None):
        name = self.name("c")
        self.model.constants[name] = np.asarray(value, dtype=dtype)
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def node(self, op, *inputs, result=None, **attributes):
        result = result or self.name(op)
        self.nodes.append(helper.make_node(op, list(inputs), [result], name=result, **attributes))
        return result

    def dim(self, value, axis):
        return self.node("Gather", self.node("Shape", value), self.ints(axis), axis=0)

    def range(self, first, last):
        def scalar(value):
            return self.node("Squeeze", value, self.ints(0))
        return self.node("Range", scalar(first), scalar(last), self.const(1, np.int64))

    def linear(self, x, name, width, bias=True):
        y = self.node("MatMul", x, self.model.weight(f"{name}.w", self.model.hidden, width))
        return self.node("Add", y, self.model.weight(f"{name}.b", width, scale=0.1)) if bias else y

    def heads(self, x, rows_of=None):
        """`rows_of`: a value whose first dim is the number of rows; None: `x`."""
        sizes = self.ints(0, 0, self.model.heads, self.model.size)
        if rows_of:
            sizes = self.node("Concat", self.dim(rows_of, 0), self.ints(-1, self.model.heads, self.model.size), axis=0)
        rows = self.node("Reshape", x, sizes)
        return self.node("Transpose", rows, perm=[0, 2, 1, 3])


class EncoderDecoder:
    def __init__(self, form, heads=8, size=8, layers=2, vocabulary=97, places="cut", seed=0, mel=MEL, frames=FRAMES,
                 rows_of_states=False):
        """`rows_of_states`: the caches of the encoder's result have as many rows as the decoder's own states, as
        transformers from 4.48 on writes it."""
        self.form, self.heads, self.size, self.layers = form, heads, size, layers
        self.vocabulary, self.places, self.hidden = vocabulary, places, heads * size
        self.mel, self.frames, self.rows_of_states = mel, frames, rows_of_states
        self.random = np.random.default_rng(seed)
        self.weights, self.constants = {}, {}
        self.mask = "" if form == "whisper" else "encoder_attention_mask"

    def weight(self, name, *shape, scale=None):
        if name not in self.weights:
            scale = scale or 1.0 / np.sqrt(shape[0])
            self.weights[name] = self.random.normal(0, scale, shape).astype(np.float32)
        return name

    # Pieces.

    def norm(self, g, x, name):
        gamma = self.weight(f"{name}.gamma", self.hidden, scale=1.0)
        if self.form == "t5":
            mean = g.node("ReduceMean", g.node("Pow", x, g.const(2.0, np.float32)), g.ints(-1), keepdims=1)
            root = g.node("Sqrt", g.node("Add", mean, g.const(1e-6, np.float32)))
            return g.node("Mul", gamma, g.node("Div", x, root))
        return g.node("LayerNormalization", x, gamma, self.weight(f"{name}.beta", self.hidden, scale=0.1),
                      axis=-1, epsilon=1e-5)

    def sublayer(self, g, x, name, compute):
        """Normalises the input as T5 and Whisper do, or the output as BART does."""
        if self.form == "bart":
            return self.norm(g, g.node("Add", x, compute(x)), name)
        return g.node("Add", x, compute(self.norm(g, x, name)))

    def feed_forward(self, g, x, name):
        wide = g.node("MatMul", x, self.weight(f"{name}.up", self.hidden, 2 * self.hidden))
        if self.form == "t5":
            wide = g.node("Relu", wide)
        else:
            erf = g.node("Erf", g.node("Div", wide, g.const(np.sqrt(2.0), np.float32)))
            wide = g.node("Mul", g.node("Mul", wide, g.node("Add", erf, g.const(1.0, np.float32))),
                          g.const(0.5, np.float32))
        return g.node("MatMul", wide, self.weight(f"{name}.down", 2 * self.hidden, self.hidden))

    def project(self, g, x, name):
        return g.linear(x, name, self.hidden, bias=self.form != "t5" and not name.endswith(".k"))

    def attend(self, g, x, k, v, bias, name):
        q = self.project(g, x, f"{name}.q")
        if self.form != "t5":
            q = g.node("Mul", q, g.const(self.size ** -0.5, np.float32))
        scores = g.node("MatMul", g.heads(q), g.node("Transpose", k, perm=[0, 1, 3, 2]))
        if bias:
            scores = g.node("Add", scores, bias)
        rows = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
        rows = g.node("Reshape", g.node("Transpose", rows, perm=[0, 2, 1, 3]), g.ints(0, 0, self.hidden))
        return self.project(g, rows, f"{name}.o")

    def keys(self, g, x, name, rows_of=None):
        return [g.heads(self.project(g, x, f"{name}.{one}"), rows_of) for one in ("k", "v")]

    def hidden_by(self, g, mask):
        """[b, 1, 1, keys]: 0, or lowest where the mask has 0."""
        wide = g.node("Unsqueeze", g.node("Unsqueeze", mask, g.ints(1)), g.ints(1))
        left = g.node("Sub", g.const(1.0, np.float32), g.node("Cast", wide, to=F32))
        return g.node("Mul", left, g.const(-3.4e38, np.float32))

    def buckets(self, g, query, key, name, both_ways):
        """T5's bias [1, heads, q, k] of places [q] and [k]."""
        table = self.weight(f"{name}.bias", BUCKETS, self.heads, scale=1.0)
        distance = g.node("Sub", g.node("Unsqueeze", key, g.ints(0)), g.node("Unsqueeze", query, g.ints(1)))
        count = BUCKETS
        if both_ways:
            count //= 2
            later = g.node("Cast", g.node("Greater", distance, g.ints(0)), to=I64)
            start = g.node("Mul", later, g.ints(count))
            distance = g.node("Abs", distance)
        else:
            start = ""
            distance = g.node("Neg", g.node("Min", distance, g.ints(0)))
        exact = count // 2
        ratio = g.node("Div", g.node("Cast", distance, to=F32), g.const(float(exact), np.float32))
        share = g.node("Div", g.node("Log", ratio), g.const(np.log(FAR / exact), np.float32))
        far = g.node("Cast", g.node("Mul", share, g.const(float(count - exact), np.float32)), to=I64)
        far = g.node("Min", g.node("Add", far, g.ints(exact)), g.ints(count - 1))
        bucket = g.node("Where", g.node("Less", distance, g.ints(exact)), distance, far)
        if start:
            bucket = g.node("Add", start, bucket)
        values = g.node("Transpose", g.node("Gather", table, bucket), perm=[2, 0, 1])
        return g.node("Unsqueeze", values, g.ints(0))

    # The encoder.

    def spectrum(self, g):
        g.inputs.append(("input_features", F32, ["batch_size", self.mel, self.frames]))
        x = "input_features"
        for i, (width, stride) in enumerate(((self.mel, 1), (self.hidden, 2))):
            kernel = self.weight(f"conv{i}", self.hidden, width, 3, scale=0.3)
            x = g.node("Conv", x, kernel, kernel_shape=[3], pads=[1, 1], strides=[stride])
            x = g.node("Tanh", x)
        x = g.node("Transpose", x, perm=[0, 2, 1])
        return g.node("Add", x, self.weight("enc.positions", self.frames // 2, self.hidden, scale=0.3))

    def encoder(self):
        g = Graph(self, "enc/")
        bias = ""
        if self.form == "whisper":
            x, length = self.spectrum(g), "encoder_sequence_length"
        else:
            length = "encoder_sequence_length"
            g.inputs += [("input_ids", I64, ["batch_size", length]),
                         ("attention_mask", I64, ["batch_size", length])]
            x = g.node("Gather", self.weight("shared", self.vocabulary, self.hidden, scale=1.0), "input_ids")
            bias = self.hidden_by(g, "attention_mask")
            places = g.range(g.ints(0), g.dim("input_ids", 1))
            if self.form == "t5":
                bias = g.node("Add", self.buckets(g, places, places, "enc", True), bias)
            else:
                table = self.weight("enc.positions", POSITIONS + 2, self.hidden, scale=0.5)
                x = self.norm(g, g.node("Add", x, g.node("Gather", table, g.node("Add", places, g.ints(2)))),
                              "enc.first")
        for layer in range(self.layers):
            name = f"enc.{layer}"

            def attention(y):
                return self.attend(g, y, *self.keys(g, y, f"{name}.self"), bias, f"{name}.self")
            x = self.sublayer(g, x, f"{name}.n1", attention)
            x = self.sublayer(g, x, f"{name}.n2", lambda y: self.feed_forward(g, y, f"{name}.ff"))
        if self.form == "bart":
            g.node("Identity", x, result="last_hidden_state")
        else:
            g.node("Identity", self.norm(g, x, "enc.last"), result="last_hidden_state")
        g.outputs.append(("last_hidden_state", F32, ["batch_size", "states", self.hidden]))
        return g

    # The decoder.

    def cache_info(self, name, length):
        return (name, F32, ["batch_size", self.heads, length, self.size])

    def decoder(self, past, prefix="", branch=False):
        """Makes a step with the caches (`past`) or without. A branch has the outputs of both."""
        g = Graph(self, prefix)
        end = "_branch" if branch else ""
        if self.mask:
            g.inputs.append((self.mask, I64, ["batch_size", "encoder_sequence_length"]))
        g.inputs.append(("input_ids", I64, ["batch_size", 1 if past and not branch else "decoder_sequence_length"]))
        if not past or branch:
            g.inputs.append(("encoder_hidden_states", F32, ["batch_size", "encoder_sequence_length", self.hidden]))
        own = "past_key_values.0.decoder.key"
        new = g.dim("input_ids", 1)
        before = g.dim(own, 2) if past else g.ints(0)
        total = g.node("Add", before, new)
        query, key = g.range(before, total), g.range(g.ints(0), total)
        if self.form == "whisper" and past and not branch:
            query = "cache_position"
            g.inputs.append((query, I64, ["decoder_sequence_length"]))
        seen = g.node("LessOrEqual", g.node("Unsqueeze", key, g.ints(0)), g.node("Unsqueeze", query, g.ints(1)))
        mask = g.node("Where", seen, g.const(0.0, np.float32), g.const(-3.4e38, np.float32))
        mask = g.node("Unsqueeze", g.node("Unsqueeze", mask, g.ints(0)), g.ints(0))
        x = g.node("Gather", self.weight("shared", self.vocabulary, self.hidden, scale=1.0), "input_ids")
        if self.form == "t5":
            if self.places == "cut":
                bias = self.buckets(g, key, key, "dec", False)
                bias = g.node("Slice", bias, g.node("Neg", new), g.ints(2 ** 62), g.ints(2))
            else:
                bias = self.buckets(g, query, key, "dec", False)
            mask = g.node("Add", bias, mask)
        else:
            table = self.weight("dec.positions", POSITIONS + 2, self.hidden, scale=0.5)
            x = g.node("Add", x, g.node("Gather", table, g.node("Add", query, g.ints(2))))
            if self.form == "bart":
                x = self.norm(g, x, "dec.first")
        cross_mask = self.hidden_by(g, self.mask) if self.mask else ""
        for layer in range(self.layers):
            x = self.decoder_layer(g, x, layer, past, mask, cross_mask, branch, end)
        if self.form != "bart":
            x = self.norm(g, x, "dec.last")
        g.node("MatMul", x, self.weight("head", self.hidden, self.vocabulary, scale=0.3), result=f"logits{end}")
        g.outputs.insert(0, (f"logits{end}", F32, ["batch_size", "decoder_sequence_length", self.vocabulary]))
        return g

    def decoder_layer(self, g, x, layer, past, mask, cross_mask, branch, end):
        name = f"dec.{layer}"

        def present(kind, one):
            g.outputs.append(self.cache_info(f"present.{layer}.{kind}.{one}{end}", f"{kind}_length"))
            return g.outputs[-1][0]

        def own(y):
            caches = []
            for one, rows in zip(("key", "value"), self.keys(g, y, f"{name}.self")):
                before = f"past_key_values.{layer}.decoder.{one}"
                if past:
                    g.inputs.append(self.cache_info(before, "past_decoder_sequence_length"))
                    caches.append(g.node("Concat", before, rows, axis=2, result=present("decoder", one)))
                else:
                    caches.append(g.node("Identity", rows, result=present("decoder", one)))
            return self.attend(g, y, *caches, mask, f"{name}.self")

        def cross(y):
            if not past:
                caches = [g.node("Identity", rows, result=present("encoder", one)) for one, rows in
                          zip(("key", "value"), self.keys(g, "encoder_hidden_states", f"{name}.cross",
                                                          y if self.rows_of_states else None))]
                return self.attend(g, y, *caches, cross_mask, f"{name}.cross")
            caches = [f"past_key_values.{layer}.encoder.{one}" for one in ("key", "value")]
            g.inputs += [self.cache_info(one, "encoder_sequence_length_out") for one in caches]
            if branch:  # The outputs of both branches are the same; nothing reads these.
                for one in ("key", "value"):
                    empty = np.zeros((0, self.heads, 1, self.size), np.float32)
                    g.node("Identity", g.const(empty), result=present("encoder", one))
            return self.attend(g, y, *caches, cross_mask, f"{name}.cross")
        x = self.sublayer(g, x, f"{name}.n1", own)
        x = self.sublayer(g, x, f"{name}.n2", cross)
        return self.sublayer(g, x, f"{name}.n3", lambda y: self.feed_forward(g, y, f"{name}.ff"))

    def merged(self):
        g = Graph(self, "merged/")
        branches = {key: self.decoder(past, f"{key}/", branch=True)
                    for key, past in (("else_branch", False), ("then_branch", True))}
        order = [name for name, _, _ in branches["else_branch"].outputs]
        for branch in branches.values():
            for one in branch.inputs:
                if one not in g.inputs:
                    g.inputs.append(one)
            branch.outputs.sort(key=lambda one: order.index(one[0]))
        bodies = {key: helper.make_graph(one.nodes, key, [], infos(one.outputs)) for key, one in branches.items()}
        g.outputs = [(name.removesuffix("_branch"), kind, dims)
                     for name, kind, dims in branches["else_branch"].outputs]
        g.inputs.append(("use_cache_branch", BOOL, [1]))
        g.nodes = [helper.make_node("If", ["use_cache_branch"], [name for name, _, _ in g.outputs], name="branch",
                                    **bodies)]
        return g

    # Files.

    def model(self, make):
        self.constants = {}
        g = make()
        text = "".join(str(node) for node in g.nodes)
        weights = [numpy_helper.from_array(value, name) for name, value in {**self.weights, **self.constants}.items()
                   if f'"{name}"' in text]
        graph = helper.make_graph(g.nodes, "main", infos(g.inputs), infos(g.outputs), weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        made.ir_version = 9
        return made

    def write(self, folder, merged=True):
        folder.mkdir(parents=True, exist_ok=True)
        files = {"encoder_model": self.encoder}
        if merged:
            files["decoder_model_merged"] = self.merged
        else:
            files["decoder_model"] = lambda: self.decoder(False)
            files["decoder_with_past_model"] = lambda: self.decoder(True)
        for name, make in files.items():
            (folder / f"{name}.onnx").write_bytes(self.model(make).SerializeToString())
        return folder


def infos(values):
    return [helper.make_tensor_value_info(*one) for one in values]


class Stepper:
    """onnxruntime with explicit caches, one prompt at a time."""

    def __init__(self, folder):
        def session(name):
            path = folder / f"{name}.onnx"
            return onnxruntime.InferenceSession(str(path)) if path.exists() else None
        self.encoder = session("encoder_model")
        self.merged = session("decoder_model_merged")
        self.first = self.merged or session("decoder_model")
        self.next = self.merged or session("decoder_with_past_model")

    def encode(self, prompt):
        prompt = np.asarray(prompt)
        if prompt.ndim == 1:
            feeds = {"input_ids": prompt[None].astype(np.int64), "attention_mask": np.ones((1, len(prompt)), np.int64)}
        else:
            feeds = {"input_features": prompt.astype(np.float32)}
        self.states = self.encoder.run(["last_hidden_state"], feeds)[0]

    def step(self, ids, past):
        """Returns the scores after the last of `ids`, and the caches with them."""
        run = self.next if past else self.first
        feeds = {"input_ids": np.array([ids], np.int64), "encoder_hidden_states": self.states,
                 "encoder_attention_mask": np.ones(self.states.shape[:2], np.int64),
                 "use_cache_branch": np.array([bool(past)])}
        own = past.get("past_key_values.0.decoder.key")
        feeds["cache_position"] = np.array([0 if own is None else own.shape[2]], np.int64)
        for one in run.get_inputs():
            if one.name.startswith("past"):
                empty = np.zeros((1, one.shape[1], 0, one.shape[3]), np.float32)
                feeds[one.name] = past.get(one.name, empty)
        feeds = {one.name: feeds[one.name] for one in run.get_inputs()}
        names = [one.name for one in run.get_outputs()]
        results = dict(zip(names, run.run(names, feeds)))
        made = {name.replace("present", "past_key_values"): value for name, value in results.items()
                if name.startswith("present") and (not past or ".decoder." in name)}
        return results["logits"][0, -1].astype(np.float64), {**past, **made}

    def greedy(self, prompt, tokens, start=(0,), eos=None):
        self.encode(prompt)
        ids, past, made = list(start), {}, []
        while len(made) < tokens:
            scores, past = self.step(ids, past)
            ids = [int(np.argmax(scores))]
            made += ids
            if ids[0] == eos:
                break
        return made

    def beams(self, prompt, beams, tokens, start=(0,), eos=None, length_penalty=1.0, early_stopping=False, n=1):
        """Beam search as transformers does it; the answers, best first."""
        self.encode(prompt)
        live = [(0.0, list(start), {}, list(start))]  # sum, all ids, caches, ids that these lack
        done = []

        def finish(total, ids, length):
            done.append((total / length ** length_penalty, ids))
            done.sort(key=lambda one: -one[0])
            del done[beams:]
        for length in range(1, tokens + 1):
            candidates = []
            for total, ids, past, lacks in live:
                scores, past = self.step(lacks, past)
                top = scores.max()
                logs = scores - top - np.log(np.exp(scores - top).sum())
                best = np.argsort(-logs, kind="stable")[:2 * beams]
                candidates += [(total + logs[one], ids, past, int(one)) for one in best]
            candidates.sort(key=lambda one: -one[0])
            candidates, live = candidates[:2 * beams], []
            for rank, (total, ids, past, one) in enumerate(candidates):
                if one == eos:
                    if rank < beams:
                        finish(total, ids + [one], length)
                elif len(live) < beams:
                    live.append((total, ids + [one], past, [one]))
            if len(done) == beams:
                best = candidates[0][0]
                if early_stopping is True:
                    break
                longest = tokens if early_stopping == "never" and length_penalty > 0 else length
                if done[-1][0] >= best / longest ** length_penalty:
                    break
        else:
            for total, ids, _, _ in live:
                finish(total, ids, tokens)
        return [ids[len(start):] for _, ids in done[:n]]
