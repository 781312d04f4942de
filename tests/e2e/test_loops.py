"""Loop and Scan: every answer is onnxruntime's, and iterations replay the captures of the first one."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.clients import together
from testing.daemon import reprise
from testing.inference import assert_same_answer, infer, reference
from testing.metrics import Scrape

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WIDTH = 8


def body(nodes, inputs, outputs):
    """Makes a subgraph from lists of (op, inputs, outputs, attributes), (name, type) and names."""
    return helper.make_graph(
        [helper.make_node(op, given, made, **attributes) for op, given, made, attributes in nodes],
        "body", [value(name, kind) for name, kind in inputs], [value(name, kind) for name, kind in outputs])


def value(name, kind):
    """Conditions and iterations are scalars; the file leaves the shape of floats open."""
    return helper.make_tensor_value_info(name, kind, None if kind == FLOAT else [])


def loop_body(nodes, carried, results, condition="condition_in"):
    """Makes the body of a Loop that carries floats; the condition is handed on unless it is named."""
    return body(nodes + [("Identity", [condition], ["condition_out"], {})],
                [("i", INT64), ("condition_in", BOOL)] + [(name, FLOAT) for name in carried],
                [("condition_out", BOOL)] + [(name, FLOAT) for name in results])


def weight(g):
    return g.const(np.random.default_rng(0).normal(0, 0.3, (WIDTH, WIDTH)), hint="weight")


def counted():
    """Makes as many steps as the request says; weights and the input are shared, sums are scanned."""
    g = models.Graph(17)
    g.nodes.append(helper.make_node("Loop", ["steps", "", "x"], ["y", "sums"], name="count", body=loop_body(
        [("MatMul", ["a", weight(g)], ["p"], {}), ("Tanh", ["p"], ["t"], {}),
         ("Add", ["t", "x"], ["next"], {}), ("ReduceSum", ["next"], ["sum"], {"keepdims": 0})],
        ["a"], ["next", "sum"])))
    return g.model([("x", FLOAT, ["batch", WIDTH]), ("steps", INT64, [])],
                   [("y", FLOAT, ["batch", WIDTH]), ("sums", FLOAT, ["steps"])])


def until():
    """Doubled until the sum is large; the weight is carried along, as some exporters have it."""
    g = models.Graph(17)
    g.nodes.append(helper.make_node(
        "Loop", ["", g.const(True, bool), "x", weight(g)], ["y", "same"], name="until", body=loop_body(
            [("Add", ["a", "a"], ["next"], {}), ("MatMul", ["next", "w"], ["p"], {}),
             ("Abs", ["next"], ["size"], {}), ("ReduceSum", ["size"], ["sum"], {"keepdims": 0}),
             ("Less", ["sum", g.scalar(1e4)], ["more"], {}), ("Identity", ["w"], ["w_out"], {})],
            ["a", "w"], ["next", "w_out"], "more")))
    return g.model([("x", FLOAT, ["batch", WIDTH])],
                   [("y", FLOAT, ["batch", WIDTH]), ("same", FLOAT, [WIDTH, WIDTH])])


def nested():
    """Makes a loop and an If in a loop; the inner loop takes the number of the outer iteration."""
    g = models.Graph(17)
    inner = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["number"], to=FLOAT), helper.make_node("Add", ["v", "number"], ["v2"]),
         helper.make_node("Mul", ["v2", "x"], ["v3"]), helper.make_node("Identity", ["go"], ["go_on"])],
        "inner", [helper.make_tensor_value_info("j", INT64, []), helper.make_tensor_value_info("go", BOOL, []),
                  helper.make_tensor_value_info("v", FLOAT, None)],
        [helper.make_tensor_value_info("go_on", BOOL, []), helper.make_tensor_value_info("v3", FLOAT, None)])
    branches = {f"{which}_branch": helper.make_graph(
        [helper.make_node(op, ["u"], [f"{which}_y"])], which, [],
        [helper.make_tensor_value_info(f"{which}_y", FLOAT, None)])
        for which, op in (("then", "Neg"), ("else", "Tanh"))}
    g.nodes.append(helper.make_node("Loop", [g.scalar(3, np.int64), "", "x"], ["y"], name="outer", body=loop_body(
        [("Loop", [g.scalar(2, np.int64), "", "a"], ["u"], {"body": inner}),
         ("ReduceSum", ["u"], ["sum"], {"keepdims": 0}), ("Greater", ["sum", g.scalar(0.0)], ["large"], {}),
         ("If", ["large"], ["next"], branches)], ["a"], ["next"])))
    return g.model([("x", FLOAT, ["batch", WIDTH])], [("y", FLOAT, ["batch", WIDTH])])


def growing():
    """Makes a loop whose carried values grow; each iteration takes as much of x as its number says."""
    g = models.Graph(17)
    g.nodes.append(helper.make_node("Loop", ["steps", "", "x"], ["y", "parts"], name="grow", body=loop_body(
        [("Concat", ["a", "x"], ["next"], {"axis": 0}), ("Add", ["i", g.scalar(1, np.int64)], ["end"], {}),
         ("Unsqueeze", ["end", g.ints(0)], ["ends"], {}),
         ("Slice", ["x", g.ints(0), "ends", g.ints(1)], ["part"], {}),
         ("ReduceSum", ["part"], ["sum"], {"keepdims": 0})], ["a"], ["next", "sum"])))
    return g.model([("x", FLOAT, ["batch", WIDTH]), ("steps", INT64, [])],
                   [("y", FLOAT, ["rows", WIDTH]), ("parts", FLOAT, ["steps"])])


def listed(new_axis=0):
    """Puts as many rows into a list in each iteration as its number says (or x), and joins the list."""
    def make():
        g = models.Graph(17)
        last = "part" if not new_axis else "x"
        cell = loop_body(
            [("Add", ["i", g.scalar(1, np.int64)], ["end"], {}), ("Unsqueeze", ["end", g.ints(0)], ["ends"], {}),
             ("Slice", ["x", g.ints(0), "ends", g.ints(0)], ["part"], {}),
             ("SequenceInsert", ["list", "x"], ["longer"], {}), ("SequenceInsert", ["longer", last], ["next"], {})],
            [], [])
        lists = [helper.make_tensor_sequence_value_info(name, FLOAT, None) for name in ("list", "next")]
        cell.input.append(lists[0])
        cell.output.append(lists[1])
        begin = g.node("SequenceEmpty") if not new_axis else g.node("SequenceConstruct", "x")
        g.nodes.append(helper.make_node("Loop", ["steps", "", begin], ["all"], name="list", body=cell))
        g.nodes.append(helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=-1 if new_axis else 0,
                                        new_axis=new_axis))
        return g.model([("x", FLOAT, ["batch", WIDTH]), ("steps", INT64, [])], [("y", FLOAT, None)])
    return make


def scan(**attributes):
    def make():
        g = models.Graph(17)
        cell = body([("MatMul", ["s", weight(g)], ["p"], {}), ("Add", ["p", "e"], ["q"], {}),
                     ("Tanh", ["q"], ["next"], {}), ("Mul", ["next", "e2"], ["out"], {})],
                    [("s", FLOAT), ("e", FLOAT), ("e2", FLOAT)], [("next", FLOAT), ("out", FLOAT)])
        squares = g.node("Mul", "x", "x")
        g.nodes.append(helper.make_node("Scan", ["s0", "x", squares], ["y", "all"], name="walk", body=cell,
                                        num_scan_inputs=2, **attributes))
        return g.model([("s0", FLOAT, ["n", WIDTH]), ("x", FLOAT, ["n", "n", WIDTH])],
                       [("y", FLOAT, None), ("all", FLOAT, None)])
    return make


def capacity(form):
    """Keeps the first ten of all odd ids, as experts with a capacity keep tokens. The count runs in a
    body: over rows that are scanned, or over all positions each time."""
    def make():
        g = models.Graph(17)
        odd = g.node("Cast", g.node("Mod", "ids", g.const(2, np.int64)), to=FLOAT)
        first = g.const(0, np.int64)
        kept = [("LessOrEqual", ["count", g.scalar(10.0)], ["few"], {}),
                ("Where", ["few", "row", g.scalar(0.0)], ["out"], {})]
        if form == "rows":
            cell = body([("CumSum", ["row", first], ["own"], {}), ("Add", ["own", "s"], ["count"], {}),
                         ("ReduceSum", ["row"], ["sum"], {"keepdims": 0}), ("Add", ["s", "sum"], ["next"], {}),
                         *kept], [("s", FLOAT), ("row", FLOAT)], [("next", FLOAT), ("out", FLOAT)])
            g.nodes.append(helper.make_node("Scan", [g.scalar(0.0), odd], ["all", "y"], name="walk", body=cell,
                                            num_scan_inputs=1))
        else:
            flat = g.const([-1], np.int64)
            cell = [("Reshape", ["a", flat], ["row"], {}), ("CumSum", ["row", first], ["count"], {}), *kept,
                    ("Shape", ["a"], ["shape"], {}), ("Reshape", ["out", "shape"], ["next"], {})]
            g.nodes.append(helper.make_node("Loop", [g.const(2, np.int64), "", odd], ["y"], name="count",
                                            body=loop_body(cell, ["a"], ["next"])))
        return g.model([("ids", INT64, ["batch", "sequence"])], [("y", FLOAT, ["batch", "sequence"])])
    return make


MODELS = {"capacity_rows": capacity("rows"), "capacity_all": capacity("all"), "counted": counted, "until": until, "nested": nested, "growing": growing, "listed": listed(),
          "stacked": listed(new_axis=1), "scan": scan(),
          "scan_backwards": scan(scan_input_directions=[1, 0], scan_output_directions=[1]),
          "scan_axes": scan(scan_input_axes=[1, -2], scan_output_axes=[-1])}


def draw(name, size, rng):
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    if name.startswith("capacity"):
        return {"ids": rng.integers(0, 9, (size, 3 + 5 * size))}
    if name.startswith("scan"):
        return {"s0": normal(size, WIDTH), "x": normal(size, size, WIDTH)}
    inputs = {"x": normal(size, WIDTH)}
    if name in ("counted", "growing", "listed", "stacked"):
        inputs["steps"] = np.array(rng.integers(0 if name == "counted" else 1, 12), np.int64)
    return inputs


@pytest.mark.parametrize("name", MODELS)
def test_every_answer_is_that_of_onnxruntime(daemon, paths, rng, name):
    client = daemon.client()
    for size in (1, 3, 7, 2, 3):
        inputs = draw(name, size, rng)
        answer = infer(client, name, inputs)
        assert_same_answer(answer.outputs, reference(paths[name], inputs), f"{name} {size}")


def test_no_iteration_at_all(daemon, paths, rng):
    inputs = {"x": rng.standard_normal((2, WIDTH)).astype(np.float32), "steps": np.array(0)}
    answer = infer(daemon.client(), "counted", inputs)
    np.testing.assert_array_equal(answer.outputs["y"], inputs["x"])
    assert answer.outputs["sums"].shape == (0,)


def test_iterations_replay_what_the_first_one_captured(daemon, rng):
    client = daemon.client()
    compiles = lambda: Scrape(daemon.metrics_url).total("reprise_compiles_total", model="counted")
    inputs = {"x": rng.standard_normal((5, WIDTH)).astype(np.float32), "steps": np.array(2)}
    infer(client, "counted", inputs)
    before = compiles()
    inputs["steps"] = np.array(300)
    answer = infer(client, "counted", inputs)
    assert answer.outputs["sums"].shape == (300,) and answer.capture == "replayed"
    assert compiles() == before


@pytest.mark.parametrize("name", ["counted", "capacity_rows", "capacity_all"])
def test_requests_at_once_do_not_mix(daemon, paths, name):
    def ask(seed):
        rng = np.random.default_rng(seed)
        inputs = draw(name, int(rng.integers(1, 6)), rng)
        return infer(daemon.client(), name, inputs).outputs, reference(paths[name], inputs)

    for ours, theirs in together(ask, range(40), clients=8):
        assert_same_answer(ours, theirs)


def test_a_loop_that_does_not_end_is_an_error_and_harms_nobody(daemon, paths, rng):
    zeros = {"x": np.zeros((1, WIDTH), np.float32)}
    with pytest.raises(InferenceServerException) as caught:
        infer(daemon.client(), "until", zeros)
    assert "Loop 'until'" in caught.value.message() and "1048576 iterations" in caught.value.message()
    inputs = draw("until", 2, rng)
    assert_same_answer(infer(daemon.client(), "until", inputs).outputs, reference(paths["until"], inputs))


def test_words_for_people(daemon, paths):
    for text in daemon.reprise("explain", "counted"), reprise("check", paths["counted"]), daemon.log():
        assert "Loop 'count'" in text and "its body runs once for each iteration" in text
