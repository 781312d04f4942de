"""Models in which data decides shapes: cut there, and every answer is onnxruntime's."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.clients import together
from testing.daemon import Daemon, reprise
from testing.exported import resized, two_stages
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def encoder():
    """Makes the hidden states of the tokens that are not masked, [tokens, hidden], and where they are."""
    model = models.bert(outputs=("last_hidden_state",))
    model.graph.node.extend([
        helper.make_node("NonZero", ["attention_mask"], ["where"], name="find_tokens"),
        helper.make_node("Transpose", ["where"], ["places"], perm=[1, 0]),
        helper.make_node("GatherND", ["last_hidden_state", "places"], ["tokens"]),
    ])
    model.graph.output.extend([
        helper.make_tensor_value_info("tokens", FLOAT, ["found", 32]),
        helper.make_tensor_value_info("places", INT64, ["found", 2])])
    # GatherND came with opset 11; the encoder is of that.
    return model


def longest():
    """x cut to the longest of the lengths, its rows summed, and positions counted up to there."""
    g = models.Graph(13)
    most = g.node("ReduceMax", "lengths", keepdims=1)
    cut = g.node("Slice", "x", g.ints(0), most, g.ints(1))
    g.rename(g.node("Relu", cut), "cut")
    end = g.node("ReduceMax", "lengths", keepdims=0)
    g.rename(g.node("Range", g.scalar(0, np.int64), end, g.scalar(1, np.int64)), "positions")
    return g.model([("x", FLOAT, ["batch", "sequence", 4]), ("lengths", INT64, ["batch"])],
                   [("cut", FLOAT, ["batch", "longest", 4]), ("positions", INT64, ["longest"])])


def best():
    """Makes as many of the best scores of each row as the mask has ones in its first row, doubled."""
    g = models.Graph(13)
    first = g.node("Slice", "mask", g.ints(0), g.ints(1), g.ints(0))
    k = g.node("ReduceSum", first, g.ints(0, 1), keepdims=0)
    values, places = g.node("TopK", g.node("Mul", "x", g.scalar(2.0)), g.unsqueeze(k, 0),
                            outputs=2, axis=1)
    g.rename(g.node("Tanh", values), "values")
    g.rename(places, "places")
    return g.model([("x", FLOAT, ["batch", "sequence"]), ("mask", INT64, ["batch", "sequence"])],
                   [("values", FLOAT, ["batch", "k"]), ("places", INT64, ["batch", "k"])])


def words():
    """Makes, of the words kept, the distinct ones, their vectors times a matrix; of these the positive."""
    g = models.Graph(13)
    rng = np.random.default_rng(3)
    kept = g.node("Compress", "ids", "keep", axis=0)
    distinct, _, inverse, counts = g.node("Unique", kept, outputs=4, sorted=1)
    rows = g.node("Gather", g.const(rng.normal(0, 1, (40, 16)), hint="table"), distinct, axis=0)
    product = g.node("MatMul", rows, g.const(rng.normal(0, 1, (16, 20)), hint="weight"))
    score = g.node("ReduceMean", product, axes=[1], keepdims=0)
    g.rename(g.node("Compress", product, g.node("Greater", score, g.scalar(0.0)), axis=0), "good")
    g.rename(inverse, "inverse")
    g.rename(counts, "counts")
    g.rename(g.node("Size", "ids"), "all")
    return g.model([("ids", INT64, ["n"]), ("keep", BOOL, ["n"])],
                   [("good", FLOAT, ["good", 20]), ("inverse", INT64, ["kept"]),
                    ("counts", INT64, ["distinct"]), ("all", INT64, [])])


def boxes():
    """Boxes that do not overlap, with their coordinates."""
    g = models.Graph(13)
    selected = g.node("NonMaxSuppression", "boxes", "scores", g.ints(5),
                      g.const([0.5]), g.const([0.2]))
    where = g.node("Gather", selected, g.ints(0, 2), axis=1)
    g.rename(selected, "selected")
    g.rename(g.node("GatherND", "boxes", where), "chosen")
    return g.model([("boxes", FLOAT, ["batch", "n", 4]), ("scores", FLOAT, ["batch", 3, "n"])],
                   [("selected", INT64, ["found", 3]), ("chosen", FLOAT, ["found", 4])])


def choice():
    """Makes a row at a time where the sum is positive, else something of another shape."""
    g = models.Graph(13)
    total = g.node("ReduceSum", "x", keepdims=0)
    then = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["then_y"])], "then", [],
        [helper.make_tensor_value_info("then_y", FLOAT, None)])
    flat = numpy_helper.from_array(np.array([-1], np.int64), "flat")
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["negative"]),
         helper.make_node("Reshape", ["negative", "flat"], ["else_y"])], "else", [],
        [helper.make_tensor_value_info("else_y", FLOAT, None)], [flat])
    g.nodes.append(helper.make_node("If", [g.node("Greater", total, g.scalar(0.0))], ["y"],
                                    name="choose", then_branch=then, else_branch=other))
    g.rename(total, "total")
    return g.model([("x", FLOAT, ["batch", "n"])],
                   [("y", FLOAT, None), ("total", FLOAT, [])])


def draw(name, batch, length, rng):
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    if name == "encoder":
        return text_inputs(["input_ids", "attention_mask"], batch, length, rng, 200, ragged=True)
    if name == "longest":
        return {"x": normal(batch, length, 4), "lengths": rng.integers(1, length + 1, batch)}
    if name == "best":
        mask = rng.integers(0, 2, (batch, length))
        mask[0, 0] = 1
        return {"x": normal(batch, length), "mask": mask}
    if name == "words":
        return {"ids": rng.integers(0, 40, batch * length),
                "keep": rng.integers(0, 2, batch * length).astype(bool)}
    if name == "boxes":
        corner = rng.random((batch, length, 2)).astype(np.float32)
        size = rng.random((batch, length, 2)).astype(np.float32)
        return {"boxes": np.concatenate([corner, corner + size], 2),
                "scores": rng.random((batch, 3, length)).astype(np.float32)}
    return {"x": normal(batch, length)}


MODELS = {"encoder": encoder, "longest": longest, "best": best, "words": words, "boxes": boxes,
          "choice": choice}
CUTS = {"encoder": ["NonZero"], "longest": ["Slice", "Range"], "best": ["TopK"],
        "words": ["Compress", "Unique", "Compress"], "boxes": ["NonMaxSuppression"],
        "choice": ["If"]}
SIZES = [(1, 5), (3, 17), (2, 17), (1, 33), (4, 8), (1, 1), (3, 17)]


@pytest.mark.parametrize("name", MODELS)
def test_every_answer_is_that_of_onnxruntime(daemon, paths, rng, name):
    client = daemon.client()
    for batch, length in SIZES:
        inputs = draw(name, batch, length, rng)
        answer = infer(client, name, inputs)
        assert_same_answer(answer.outputs, reference(paths[name], inputs), f"{name} {batch}x{length}")


@pytest.mark.parametrize("name", MODELS)
def test_a_request_seen_before_captures_nothing(daemon, paths, rng, name):
    client, inputs = daemon.client(), draw(name, 2, 9, rng)
    infer(client, name, inputs)
    before = Scrape(daemon.metrics_url)
    again = infer(client, name, inputs)
    assert_same_answer(again.outputs, reference(paths[name], inputs))
    assert again.capture == "replayed"
    after = Scrape(daemon.metrics_url)
    compiles = "reprise_compiles_total"
    assert after.total(compiles, model=name) == before.total(compiles, model=name)
    # Branches in which nothing is computed from data are no eager node of their own.
    ran = {op: after.total("reprise_eager_nodes_total", model=name, op=op)
           - before.total("reprise_eager_nodes_total", model=name, op=op) for op in CUTS[name]}
    assert ran == {op: CUTS[name].count(op) for op in CUTS[name]}


def test_the_part_before_a_cut_has_buckets(daemon, rng):
    client = daemon.client()
    bucket = infer(client, "encoder", draw("encoder", 1, 27, rng)).bucket
    assert bucket != "exact"
    before = Scrape(daemon.metrics_url)
    assert infer(client, "encoder", draw("encoder", 1, 28, rng)).bucket == bucket
    after, replays = Scrape(daemon.metrics_url), "reprise_replays_total"
    assert after.total(replays, model="encoder", bucket=bucket) == before.total(
        replays, model="encoder", bucket=bucket) + 1


def test_the_dynamicity_report_names_the_nodes_whose_shapes_are_data(daemon, rng):
    infer(daemon.client(), "encoder", draw("encoder", 1, 27, rng))
    text = daemon.reprise("dynamicity", "encoder")
    for op in CUTS["encoder"]:
        assert f"{op} '" in text
    assert "the nodes after it run at the sizes that it finds" in text


@pytest.mark.parametrize("name", ["encoder", "longest", "words"])
def test_requests_at_once_do_not_mix(daemon, paths, name):
    def ask(seed):
        rng = np.random.default_rng(seed)
        inputs = draw(name, int(rng.integers(1, 4)), int(rng.integers(1, 40)), rng)
        answer = infer(daemon.client(), name, inputs)
        return answer.outputs, reference(paths[name], inputs)

    for ours, theirs in together(ask, range(40), clients=8):
        assert_same_answer(ours, theirs, name)


def test_data_that_does_not_fit_is_the_clients_error(daemon):
    inputs = {"ids": np.array([3, 77, 5]), "keep": np.array([True, True, False])}
    with pytest.raises(InferenceServerException) as caught:
        infer(daemon.client(), "words", inputs)
    assert "INVALID_ARGUMENT" in str(caught.value.status())
    assert "77" in caught.value.message() and "Unique" in caught.value.message()
    # It harmed no other request.
    inputs["keep"] = np.array([True, False, False])
    assert infer(daemon.client(), "words", inputs).outputs["counts"].tolist() == [1]


def test_one_output_alone_may_be_asked_for(daemon, paths, rng):
    inputs = draw("words", 1, 12, rng)
    answer = infer(daemon.client(), "words", inputs, outputs=["all"])
    assert {k: v.tolist() for k, v in answer.outputs.items()} == {"all": 12}


def test_counts_behind_a_cut_share_few_recipes_where_padding_is_proved(daemon, paths, rng):
    client = daemon.client()
    compiles = lambda: Scrape(daemon.metrics_url).total("reprise_compiles_total", model="words")
    before = compiles()
    for count in range(2, 32):
        ids = rng.permutation(40)[:count]
        inputs = {"ids": ids, "keep": np.ones(count, bool)}
        assert_same_answer(infer(client, "words", inputs).outputs, reference(paths["words"], inputs), count)
    # Five buckets of the part before; 16, 24 and 32 after it, and the sizes that came first.
    assert compiles() - before <= 10
    text = daemon.reprise("explain", "words")
    assert "section after" in text
    assert "padded, which the ops prove safe" in text


def test_what_runs_eagerly_is_prepared_once_for_a_size(daemon, paths, rng):
    client = daemon.client()
    inputs = {"x": rng.standard_normal((3, 9000, 4)).astype(np.float32), "lengths": np.array([3, 8, 2])}
    requests = lambda outcome: Scrape(daemon.metrics_url).total(
        "reprise_eager_cache_requests_total", model="longest", outcome=outcome)
    hits, misses = requests("hit"), requests("miss")
    for _ in range(3):
        assert_same_answer(infer(client, "longest", inputs).outputs, reference(paths["longest"], inputs))
    assert requests("miss") == misses + 1
    assert requests("hit") == hits + 2
    metrics = Scrape(daemon.metrics_url)
    assert metrics.total("reprise_eager_cache_ops", model="longest") >= 1
    assert metrics.total("reprise_eager_cache_bytes", model="longest") > 0
    assert "eager runs:" in daemon.reprise("explain", "longest")


def test_metadata_and_words_for_people(daemon, paths):
    metadata = daemon.client().get_model_metadata("encoder", as_json=True)
    assert {o["name"]: [int(d) for d in o["shape"]] for o in metadata["outputs"]} == {
        "last_hidden_state": [-1, -1, 32], "tokens": [-1, 32], "places": [-1, 2]}
    explained = daemon.reprise("explain", "encoder")
    checked = reprise("check", paths["encoder"])
    for text in explained, checked, daemon.log():
        assert "NonZero 'find_tokens'" in text
        assert "the size of its result depends on the elements of 'attention_mask'" in text


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


def scoped():
    """Makes two layers whose nodes have names."""
    g, rng = models.Graph(17), np.random.default_rng(0)
    hidden = g.node("Relu", g.node("MatMul", "x", g.const(rng.normal(0, 1, (16, 32)))))
    g.rename(g.node("Tanh", g.node("MatMul", hidden, g.const(rng.normal(0, 1, (32, 4))))), "y")
    for node, name in zip(g.nodes, ["/fc1/MatMul", "/fc1/Relu", "/fc2/MatMul", "/fc2/Tanh"]):
        node.name = name
    return g.model([("x", FLOAT, ["batch", 16])], [("y", FLOAT, ["batch", 4])])


@pytest.mark.parametrize("config, ops", [
    (parameter("reprise.cut", "/fc1/*"), {"MatMul": 1, "Relu": 1}),
    (parameter("reprise.cut", "/fc2/MatMul, /fc2/Tanh"), {"MatMul": 1, "Tanh": 1}),
    (parameter("reprise.eager_ops", "Relu"), {"Relu": 1}),
    (parameter("reprise.cut", "/fc1/MatMul") + parameter("reprise.eager_ops", "Tanh"),
     {"MatMul": 1, "Tanh": 1})])
def test_nodes_that_the_config_names_run_by_themselves(repository, rng, config, ops):
    path = repository.add("scoped", scoped(), config=config)
    x = {"x": rng.normal(0, 1, (3, 16)).astype(np.float32)}
    with Daemon(repository) as daemon:
        assert_same_answer(infer(daemon.client(), "scoped", x).outputs, reference(path, x))
        scrape = Scrape(daemon.metrics_url)
        counted = {op: scrape.total("reprise_eager_nodes_total", model="scoped", op=op) for op in ops}
        assert counted == ops
        assert scrape.total("reprise_eager_nodes_total", model="scoped") == sum(ops.values())
        assert "reprise.cut or reprise.eager_ops names it" in daemon.reprise("explain", "scoped")


@pytest.mark.parametrize("name, value", [("reprise.cut", "/fc3/*"), ("reprise.eager_ops", "Rellu")])
def test_a_name_that_no_node_has_fails_the_load_and_says_so(repository, name, value):
    repository.add("scoped", scoped(), config=parameter(name, value))
    with Daemon(repository) as daemon:
        assert not daemon.client().is_model_ready("scoped")
        assert f"is called '{value}'" in daemon.log() and "MatMul '/fc1/MatMul'" in daemon.log()


def compiles(daemon, model):
    return Scrape(daemon.metrics_url).total("reprise_compiles_total", model=model)


def detect(client, path, inputs):
    assert_same_answer(infer(client, "detector", inputs).outputs, reference(path, inputs))


def test_regions_gathered_by_level_and_put_back_cost_few_captures(repository, rng):
    """As torchvision's two-stage detectors have them: how many regions lie on a level, data decide."""
    path = repository.add("detector", two_stages.model())
    maps = {f"level{i}": rng.normal(0, 1, (1, 4, 16 >> i, 16 >> i)).astype(np.float32)
            for i in range(3)}
    pictures = [{"regions": two_stages.regions(rng, rng.dirichlet(np.ones(3)), 100), **maps}
                for _ in range(36)]
    with Daemon(repository) as daemon:
        for picture in pictures:
            detect(daemon.client(), path, picture)
        # Their shares of the levels are as different as can be: each picture would be captured by itself.
        assert compiles(daemon, "detector") <= 12
        assert "padded, which the ops prove safe" in daemon.reprise("explain", "detector")
        # Numbers of regions that were not met, and levels without any.
        for count, shares in (90, [1, 1, 1]), (300, [1, 4, 1]), (60, [0, 1, 1]), (40, [0, 0, 1]):
            detect(daemon.client(), path,
                   {"regions": two_stages.regions(rng, shares, count), **maps})
        # That their number moves as well is news to the sections; then nothing is.
        for picture in pictures:
            detect(daemon.client(), path, picture)
        before = compiles(daemon, "detector")
        for picture in pictures:
            detect(daemon.client(), path, picture)
        assert compiles(daemon, "detector") == before


def test_pictures_of_any_size_cost_few_captures_where_a_detector_resizes_them(repository, rng):
    """The layers between the Resize and the boxes are padded along both sides; the rest runs at each picture's own."""
    path = repository.add("detector", resized.model())
    sizes = sorted({(int(rng.integers(40, 200)), int(rng.integers(40, 200))) for _ in range(80)})
    sizes = [sizes[i] for i in rng.permutation(len(sizes))[:60]]
    with Daemon(repository) as daemon:
        for count, size in enumerate(sizes):
            detect(daemon.client(), path, {"image": rng.normal(0, 1, (3, *size)).astype(np.float32)})
            if count == 35:
                before = compiles(daemon, "detector")
        assert compiles(daemon, "detector") <= 14
        assert compiles(daemon, "detector") - before <= 3
        explained = daemon.reprise("explain", "detector")
        assert "section of the first layers" in explained
        assert "padded, which the ops prove safe" in explained
