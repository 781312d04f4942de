"""Requests whose own data hide every key of a query, or reach below a weak mask, get the answers of onnxruntime
where their bucket is larger than they are."""

import functools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from testing import models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer
from testing.models import Graph

LOWEST = float(np.finfo(np.float32).min)
CLS, SEP, WORD = 101, 102, 103
VOCABULARY, WIDTH = 1000, 4
LOUD = 1024
BUCKETS = "".join(f'parameters {{ key: "reprise.{axis}_buckets" value {{ string_value: "{sizes}" }} }}\n'
                  for axis, sizes in [("batch", "1,4"), ("sequence", "16,64")])
BUCKETS += 'parameters { key: "reprise.warmup" value { string_value: "all" } }\n'
IDS, MASK = ("input_ids", TensorProto.INT64), ("attention_mask", TensorProto.INT64)


class Pooling(Graph):
    """Numbers are whole, and few: sums of them are exact in any order."""

    def __init__(self, opset):
        super().__init__(opset)
        self.rng = np.random.default_rng(opset)

    def table(self, rows, columns=WIDTH):
        return self.const(self.rng.integers(-3, 4, (rows, columns)))

    def embed(self):
        return self.node("Gather", self.table(VOCABULARY), "input_ids")

    def more(self, x, bound):
        return self.node("Greater", x, self.scalar(bound, np.int64 if x == "input_ids" else np.float32))

    def counts(self, mask="attention_mask"):
        return self.node("Cast", mask, to=TensorProto.BOOL)

    def hide(self, scores, keep, low, way):
        """Scores of keys that `keep` is false for become low."""
        if way == "where":
            return self.node("Where", keep, scores, self.scalar(low))
        off = self.node("Sub", self.scalar(1.0), self.node("Cast", keep, to=TensorProto.FLOAT))
        return self.node("Add", scores, self.node("Mul", off, self.scalar(low)))

    def pool(self, x, keep, low, way):
        """Weights of each token by a product, over the row: [batch, WIDTH]."""
        scores = self.hide(self.node("MatMul", x, self.table(WIDTH, 1)), self.unsqueeze(keep, 2), low, way)
        weighted = self.node("Mul", self.node("Softmax", scores, axis=1), x)
        return self.reduce_sum(weighted, 1, keepdims=0)

    def attend(self, x, keep, low, way):
        """`keep`: [batch, queries or 1, keys]; two heads: [batch, sequence, WIDTH]."""
        def heads(y, *perm):
            apart = self.node("Reshape", self.node("MatMul", y, self.table(WIDTH)), self.ints(0, 0, 2, WIDTH // 2))
            return self.node("Transpose", apart, perm=list(perm))

        scores = self.node("MatMul", heads(x, 0, 2, 1, 3), heads(x, 0, 2, 3, 1))
        hidden = self.hide(self.node("Mul", scores, self.scalar(0.5)), self.unsqueeze(keep, 1), low, way)
        mixed = self.node("MatMul", self.node("Softmax", hidden, axis=-1), heads(x, 0, 2, 1, 3))
        return self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), self.ints(0, 0, WIDTH))

    def finish(self, y, inputs, dims):
        self.rename(y, "y")
        sizes = ["batch", "sequence"]
        wide = [(name, kind, sizes + [WIDTH] if name == "x" else sizes) for name, kind in inputs]
        return self.model(wide, [("y", TensorProto.FLOAT, dims)])


POOLED, TOKENS, X = ["batch", WIDTH], ["batch", "sequence", WIDTH], ("x", TensorProto.FLOAT)


def words_alone(opset, low, way):
    """Attention pooling over all but special tokens, as sentence encoders of BERT do."""
    g = Pooling(opset)
    keep = g.node("And", g.more("input_ids", SEP), g.counts())
    return g.finish(g.pool(g.embed(), keep, low, way), [IDS, MASK], POOLED)


def words_attended(opset, low, way):
    """Makes attention in which every token attends to words alone."""
    g = Pooling(opset)
    keep = g.unsqueeze(g.node("And", g.counts(), g.more("input_ids", SEP)), 1)
    return g.finish(g.attend(g.embed(), keep, low, way), [IDS, MASK], TOKENS)


def ids_and_mask(opset, low, way):
    g = Pooling(opset)
    real = g.node("Not", g.node("Equal", "input_ids", g.scalar(0, np.int64)))
    keep = g.unsqueeze(g.node("And", real, g.counts()), 1)
    return g.finish(g.attend(g.embed(), keep, low, way), [IDS, MASK], TOKENS)


def segments(opset, low, way):
    """Tokens attend within their segment, which a separator begins; 0 is padding."""
    g = Pooling(opset)
    begins = g.node("Cast", g.node("Equal", "input_ids", g.scalar(SEP, np.int64)), to=TensorProto.INT64)
    segment = g.node("CumSum", begins, g.scalar(1, np.int64))
    same = g.node("Equal", g.unsqueeze(segment, 1), g.unsqueeze(segment, 2))
    real = g.node("Not", g.node("Equal", "input_ids", g.scalar(0, np.int64)))
    keep = g.node("And", same, g.unsqueeze(real, 1))
    return g.finish(g.attend(g.embed(), keep, low, way), [IDS], TOKENS)


def silence(opset, low, way):
    """Frames below a threshold of energy are left out."""
    g = Pooling(opset)
    energy = g.reduce_sum(g.node("Mul", "x", "x"), 2, keepdims=0)
    return g.finish(g.pool("x", g.more(energy, 5.0), low, way), [X], POOLED)


def silence_under_a_mask(opset, low, way):
    g = Pooling(opset)
    energy = g.reduce_sum(g.node("Mul", "x", "x"), 2, keepdims=0)
    keep = g.unsqueeze(g.node("And", g.more(energy, 5.0), g.counts()), 1)
    return g.finish(g.attend("x", keep, low, way), [X, MASK], TOKENS)


def largest(opset, low, way):
    g = Pooling(opset)
    hidden = g.hide("x", g.unsqueeze(g.counts(), 2), low, way)
    return g.finish(g.node("ReduceMax", hidden, axes=[1], keepdims=0), [X, MASK], POOLED)


def attention(opset, low, way):
    g = Pooling(opset)
    return g.finish(g.attend("x", g.unsqueeze(g.counts(), 1), low, way), [X, MASK], TOKENS)


def pooled(opset, low, way):
    g = Pooling(opset)
    return g.finish(g.pool("x", g.counts(), low, way), [X, MASK], POOLED)


def shares(opset, low, way):
    """Makes the shares of the client's own scores, which may lie far below a mask of -1e9."""
    g = Pooling(opset)
    scores = g.node("Mul", g.reduce_sum("x", 2, keepdims=0), g.scalar(2.0**24))
    return g.finish(g.node("Softmax", g.hide(scores, g.counts(), low, way), axis=1), [X, MASK], ["batch", "sequence"])


def causal(opset, low, way):
    """Later keys are hidden by a table of the model."""
    g = Pooling(opset)
    table = g.const(np.tril(np.ones((64, 64)))[None], np.bool_)
    length = g.dim("x", 1)
    for dim in (1, 2):
        table = g.node("Slice", table, g.ints(0), length, g.ints(dim))
    return g.finish(g.attend("x", table, low, way), [X], TOKENS)


def mean(opset, low, way):
    """Averages of a mask of ones and zeros, which are padded as they always were."""
    g = Pooling(opset)
    counts = g.unsqueeze(g.node("Cast", "attention_mask", to=TensorProto.FLOAT), 2)
    total = g.reduce_sum(g.node("Mul", "x", counts), 1, keepdims=0)
    return g.finish(g.node("Div", total, g.node("Clip", g.reduce_sum(counts, 1, keepdims=0), g.scalar(1e-9))),
                    [X, MASK], POOLED)


# Maker, the number that hides, how; data that hide first, then weak masks.
VARIANTS = {
    **{f"{make.__name__}_{way}": (make, low, way) for make, low in [
        (words_alone, -1e9), (words_attended, LOWEST), (ids_and_mask, -1e9), (segments, -1e9),
        (silence, -1e9), (silence_under_a_mask, LOWEST)] for way in ("where", "add")},
    **{f"{make.__name__}_{way}_{-low:.0f}": (make, low, way) for make in (largest, attention, pooled, causal)
       for low in (-1000.0, -10000.0) for way in ("where", "add")},
    **{f"shares_{way}_{-low:.0e}": (shares, low, way) for low in (-1e9, LOWEST) for way in ("where", "add")},
    "mean": (mean, 0, ""),
}
OPSETS = dict(zip(VARIANTS, [13, 14, 15, 16, 17] * len(VARIANTS)))


def requests_of(model, rng, count=15):
    """Makes requests of all sizes: ordinary ones, and ones whose data hide all they have or lie below every mask."""
    names = {value.name for value in model.graph.input}
    for i in range(count):
        rows, length = int(rng.integers(1, 4)), int(rng.integers(1, 40))
        ids = rng.integers(WORD, VOCABULARY, (rows, length))
        if i % 2:
            ids[0] = rng.choice([CLS, SEP], length)  # no word at all
        if i % 3 == 0:
            ids[:, length // 3:][:, :1] = SEP
            ids[:, : length // 3] = 0  # padded on the left
        mask = np.ones((rows, length), np.int64)
        mask[-1, length - length // 4:] = i % 4 != 0  # padded by the client
        if i % 5 == 4:  # ids hide the rows that the mask leaves
            ids[0, length // 2:], mask[0, : length // 2] = 0, 0
        loud = (1, 0, LOUD)[i % 3]  # as usual; silent; all far below any mask
        x = (rng.integers(-3, 4, (rows, length, WIDTH)) * loud - 15 * (loud > 1) * loud).astype(np.float32)
        yield {name: value for name, value in
               {"input_ids": ids, "attention_mask": mask, "x": x}.items() if name in names}


def unoptimised(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, inputs)))


@pytest.fixture(scope="module")
def served(module_repository):
    made = {name: make(OPSETS[name], low, way) for name, (make, low, way) in VARIANTS.items()}
    paths = {}
    for name, model in made.items():
        paths[name] = module_repository.add(name, model)
        module_repository.add(f"{name}_in_buckets", model, config=BUCKETS)
    paths["bert"] = module_repository.add("bert", models.bert(opset=13), config=BUCKETS)
    with Daemon(module_repository) as daemon:
        yield daemon, made, paths


@pytest.mark.parametrize("buckets", ["", "_in_buckets"])
@pytest.mark.parametrize("name", VARIANTS)
def test_what_hides_padding_hides_it_below_whatever_a_request_holds(served, rng, name, buckets):
    daemon, made, paths = served
    oracle, client = unoptimised(paths[name]), daemon.client()
    requests = list(requests_of(made[name], rng))
    answers = together(functools.partial(infer, client, name + buckets), requests, clients=4)
    for inputs, answer in zip(requests, answers, strict=True):
        shapes = {key: value.shape for key, value in inputs.items()}
        # Means of loud values cancel each other: their rounding is the values' own, not the mean's.
        scale = LOUD if np.abs(inputs.get("x", 0)).max() >= LOUD else 1
        ours, theirs = ({key: value / scale for key, value in of.items()} for of in (answer.outputs, oracle(inputs)))
        assert_same_answer(ours, theirs, f"{name}, {shapes}, {answer.bucket}")


# A request of ordinary data is padded still: where a mask does not do, the model knows the ends of its rows.
# (Silence without any mask was never told from a client's own zeros.)
@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in ("silence_where", "silence_add")])
def test_ordinary_requests_are_padded_all_the_same(served, rng, name):
    daemon, made, paths = served
    rows, length = 2, 11
    ordinary = {"input_ids": rng.integers(WORD, VOCABULARY, (rows, length)),
                "attention_mask": np.ones((rows, length), np.int64),
                "x": rng.integers(-3, 4, (rows, length, WIDTH)).astype(np.float32)}
    inputs = {value.name: ordinary[value.name] for value in made[name].graph.input}
    answer = infer(daemon.client(), f"{name}_in_buckets", inputs)
    assert_same_answer(answer.outputs, unoptimised(paths[name])(inputs), name)
    assert answer.bucket == "b4_s16", daemon.reprise("explain", f"{name}_in_buckets")


def test_a_bert_with_a_mask_of_minus_ten_thousand_is_padded_to_its_buckets(served, rng):
    daemon, _, paths = served
    oracle = unoptimised(paths["bert"])
    for rows, length in [(1, 3), (3, 17), (2, 40)]:
        mask = np.ones((rows, length), np.int64)
        mask[-1, length // 2:] = 0
        inputs = {"input_ids": rng.integers(0, 200, (rows, length)), "attention_mask": mask}
        answer = infer(daemon.client(), "bert", inputs)
        assert_same_answer(answer.outputs, oracle(inputs), f"{rows, length}")
        assert answer.bucket == f"b{1 if rows == 1 else 4}_s{16 if length <= 16 else 64}"
    text = daemon.reprise("explain", "bert")
    assert "no node lets a position see the padding after it" in text


# Keys of a cache may be as loud as a weak mask is low.
def test_a_decoder_with_loud_keys_gets_its_answers(repository, rng):
    path = repository.add("decoder", models.cached_decoder(kv_heads=2))
    oracle = unoptimised(path)
    with Daemon(repository) as daemon:
        for rows, sequence, past in [(1, 5, 9), (2, 6, 9), (2, 17, 3), (1, 2, 31)]:
            inputs = {"input_ids": rng.integers(0, 50, (rows, sequence)),
                      "attention_mask": np.ones((rows, past + sequence), np.int64),
                      "past_keys": rng.choice([-1e4, 1e4], (rows, 2, past, 16)).astype(np.float32),
                      "past_values": rng.standard_normal((rows, 2, past, 16), np.float32)}
            answer = infer(daemon.client(), "decoder", inputs)
            assert_same_answer(answer.outputs, oracle(inputs), f"{rows, sequence, past}, {answer.bucket}")


AGES = {"neg": lambda g: g.node("Neg", "t"),
        "since": lambda g: g.node("Sub", g.scalar(0, g.kind), "t"),
        "scaled": lambda g: g.node("Mul", "t", g.scalar(-1, g.kind))}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("way", AGES)
def test_times_that_are_turned_before_the_largest_is_looked_for_are_no_mask(module_repository, way, dtype):
    """The youngest age, with -1e9 in the place of those that do not count."""
    name = f"age_{way}_{np.dtype(dtype).name}"
    g = Pooling(17)
    g.kind = dtype
    kept = g.node("Where", g.counts(), AGES[way](g), g.scalar(-10**9, dtype))
    g.rename(g.node("ReduceMax", kept, axes=[1], keepdims=0), "y")
    kind = TensorProto.INT32 if dtype == np.int32 else TensorProto.INT64
    module_repository.add(name, g.model([("t", kind, ["batch", "sequence"]), (*MASK, ["batch", "sequence"])],
                                        [("y", kind, ["batch"])]), config=BUCKETS)
    inputs = {"t": np.full((1, 5), 1_700_000_000, dtype), "attention_mask": np.ones((1, 5), np.int64)}
    with Daemon(module_repository) as daemon:
        answer = infer(daemon.client(), name, inputs)
    assert answer.outputs["y"].tolist() == [-1_700_000_000], answer.bucket


@pytest.mark.parametrize("scale", [-1.0, -2.0])
def test_a_clients_own_floats_below_a_mask_do_not_leave_all_weight_to_the_padding(module_repository, scale):
    """Weights by recency: scores lie below the -1e9 of keys that do not count."""
    name = f"recency_{int(-scale)}"
    g = Pooling(17)
    scores = g.node("Where", g.counts(), g.node("Mul", "t", g.scalar(scale)), g.scalar(-1e9))
    weighted = g.node("Mul", g.unsqueeze(g.node("Softmax", scores, axis=1), 2), g.embed())
    sizes = ["batch", "sequence"]
    g.rename(g.reduce_sum(weighted, 1, keepdims=0), "y")
    oracle = unoptimised(module_repository.add(
        name, g.model([(*IDS, sizes), ("t", TensorProto.FLOAT, sizes), (*MASK, sizes)],
                      [("y", TensorProto.FLOAT, POOLED)]), config=BUCKETS))
    inputs = {"input_ids": np.full((1, 5), WORD), "t": np.full((1, 5), 1.7e9, np.float32),
              "attention_mask": np.ones((1, 5), np.int64)}
    with Daemon(module_repository) as daemon:
        answer = infer(daemon.client(), name, inputs)
    assert_same_answer(answer.outputs, oracle(inputs), answer.bucket)


def test_squares_that_wrap_hide_every_key(module_repository):
    g = Pooling(17)
    keep = g.node("Greater", g.node("Mul", "t", "t"), g.scalar(0, np.int32))
    g.rename(g.pool(g.embed(), keep, -1e9, "where"), "y")
    sizes = ["batch", "sequence"]
    oracle = unoptimised(module_repository.add(
        "squares", g.model([(*IDS, sizes), ("t", TensorProto.INT32, sizes)], [("y", TensorProto.FLOAT, POOLED)]),
        config=BUCKETS))
    inputs = {"input_ids": np.arange(5)[None] + WORD, "t": np.full((1, 5), 50_000, np.int32)}
    with Daemon(module_repository) as daemon:
        answer = infer(daemon.client(), "squares", inputs)
    assert_same_answer(answer.outputs, oracle(inputs), answer.bucket)
