"""Compiles that a static graph would need again, and the forms of fixed size that avoid them."""

import csv
import json
import pathlib
import re

import numpy as np
import onnx
import pytest
import tritonclient.grpc as grpcclient
from onnx import TensorProto, helper

from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import infer, reference

FLOAT = TensorProto.FLOAT


def two_layers():
    """Makes two modules, the names of whose nodes have scopes."""
    g = models.Graph(17)
    rng = np.random.default_rng(0)
    first = g.node("Relu", g.node("MatMul", "x", g.const(rng.normal(0, 1, (16, 32)))))
    g.rename(g.node("MatMul", first, g.const(rng.normal(0, 1, (32, 4)))), "y")
    for node, name in zip(g.nodes, ["/fc1/MatMul", "/fc1/Relu", "/fc2/MatMul", "/out/Identity"]):
        node.name = name
    return g.model([("x", FLOAT, ["batch", 16])], [("y", FLOAT, ["batch", 4])])


def selection(reduction="ReduceSum", opset=17, rows=False, keepdims=0, square=True):
    """`x[x > 0]` (or the rows of x that a mask has), squared and reduced."""
    g = models.Graph(opset)
    mask = g.node("Greater", g.node("ReduceSum", "x", g.ints(1), keepdims=0) if rows else "x",
                  g.scalar(0.0))
    where = g.node("Transpose", g.node("NonZero", mask), perm=[1, 0])
    g.nodes[-2].name = "find"
    kept = g.node("GatherND", "x", where)
    if square:
        kept = g.node("Mul", g.node("Abs", kept), g.scalar(2.0))
    if reduction is None:
        g.rename(kept, "y")
        dims = ["found", 3] if rows else ["found"]
    else:
        axes = (g.ints(0),) if opset >= 18 or (reduction == "ReduceSum" and opset >= 13) else ()
        attributes = {} if axes else {"axes": [0]}
        g.rename(g.node(reduction, kept, *axes, keepdims=keepdims, **attributes), "y")
        dims = ([1] if keepdims else []) + ([3] if rows else [])
    return g.model([("x", FLOAT, ["batch", 3])], [("y", FLOAT, dims)])


def answer(path, x):
    return reference(path, {"x": x})["y"]


def save(folder, model, name="model.onnx"):
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return str(path)


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_only_modules_at_fault_have_rows_and_both_tables_are_written(tmp_path):
    model = two_layers()
    model.graph.node[0].metadata_props.add(
        key="pkg.torch.onnx.stack_trace",
        value='File "/src/net.py", line 25, in forward\n    x = self.fc1(x)')
    path = save(tmp_path, model)
    text = reprise("recompiles", path, "--sizes", "20,20,30,30", "--csv", tmp_path / "t")
    assert "4 steps; a static graph would recompile at 1 of them" in text
    steps = rows_of(tmp_path / "t.steps.csv")
    assert [(row["step"], row["module"], row["cause"]) for row in steps] == [
        ("1", "(model)", "first step"), ("3", "fc1", "new input shape")]
    assert steps[1]["new_in"] == "x: f32[30, 16]" and steps[1]["op"] == "MatMul '/fc1/MatMul'"
    assert steps[1]["location"] == "net.py:25" and "here: " in steps[1]["comment"]
    modules = {row["module"]: row for row in rows_of(tmp_path / "t.modules.csv")}
    assert modules["fc1"]["recompilations"] == modules["fc1"]["at_fault"] == "1"
    assert modules["fc2"]["recompilations"] == "1" and modules["fc2"]["at_fault"] == "0"
    shown = json.loads(reprise("recompiles", path, "--sizes", "batch=20; batch=30", "--json"))
    assert shown["steps"] == 2 and shown["recompiled"] == 1
    file = tmp_path / "steps.csv"
    file.write_text("x\n20x16\n30x16\n20x16\n")
    assert "would recompile at 1 of them" in reprise("recompiles", path, "--steps", file)
    wrong = reprise("recompiles", path, "--sizes", "20,x", check=False)
    assert wrong.returncode == 1 and "'x' is not a size" in wrong.stderr


def test_data_that_decide_shapes_are_told_with_the_static_form(tmp_path):
    path = save(tmp_path, selection())
    shown = json.loads(reprise("recompiles", path, "--sizes", "40,40,40,40", "--json"))
    cut = [row for row in shown["rows"] if row["cause"] == "shapes that data decide inside"]
    # Each step at which data found another number of elements has a row, and is counted.
    assert len({row["new_out"] for row in cut}) == len(cut)
    again = sum(row["step"] > 1 for row in cut)
    assert again >= 1 and shown["recompiled"] >= again
    assert sum(module["at_fault"] for module in shown["modules"]) >= again
    assert cut and all(row["op"] == "NonZero 'find'" for row in cut)
    assert "would recompile in a static graph; here: cut, eager nodes" in cut[0]["comment"]
    assert "static form: Where and ReduceSum" in cut[0]["comment"]


def ask(daemon, model, inputs, request_id):
    sent = [grpcclient.InferInput(name, array.shape, "FP32") for name, array in inputs.items()]
    for tensor, array in zip(sent, inputs.values()):
        tensor.set_data_from_numpy(array)
    daemon.client().infer(model, sent, request_id=request_id)


def test_a_server_names_module_node_and_request_as_a_file_does(repository, tmp_path):
    model = two_layers()
    model.graph.node[0].metadata_props.add(
        key="pkg.torch.onnx.stack_trace", value='File "/src/net.py", line 25, in forward')
    path = repository.add("layers", model)
    by_file = json.loads(reprise("recompiles", path, "--sizes", "2,9,2,3", "--json"))
    with Daemon(repository) as daemon:
        for i, batch in enumerate((2, 9, 2, 3)):
            ask(daemon, "layers", {"x": np.ones((batch, 16), np.float32)}, f"request-{i}")
        shown = json.loads(daemon.reprise("recompiles", "layers", "--json"))
        text = daemon.reprise("recompiles", "layers")
    assert shown["steps"] == 4 and shown["recompiled"] == by_file["recompiled"] == 2
    facts = [[(row["step"], row["module"], row["op"], row["new_in"], row["cause"], row["location"])
              for row in table["rows"] if row["step"] > 1] for table in (shown, by_file)]
    assert facts[0] == facts[1]
    assert facts[0][0] == (2, "fc1", "MatMul '/fc1/MatMul'", "x: f32[9, 16]", "new input shape", "net.py:25")
    assert [row["request"] for row in shown["rows"]] == ["request-0", "request-1", "request-3"]
    assert shown["modules"] == by_file["modules"] and shown["sources"] == by_file["sources"]
    assert shown["sources"] == [{"source": "net.py:25", "recompilations": 2, "at_fault": 2}]
    assert "here: captured" in shown["rows"][0]["comment"] and "recipe " in shown["rows"][0]["comment"]
    assert "request-1" in text and "4 steps; a static graph would recompile at 2 of them" in text


def test_a_server_names_the_request_that_brought_sizes_that_data_decide(repository):
    repository.add("selection", selection())
    with Daemon(repository) as daemon:
        for i, kept in enumerate((5, 5, 7)):
            x = -np.ones((4, 3), np.float32)
            x.reshape(-1)[:kept] = 1
            ask(daemon, "selection", {"x": x}, f"keeps-{kept}-{i}")
        shown = json.loads(daemon.reprise("recompiles", "selection", "--json"))
    inside = [row for row in shown["rows"] if row["cause"] == "shapes that data decide inside"]
    assert [(row["step"], row["op"], row["request"]) for row in inside] == [
        (1, "NonZero 'find'", "keeps-5-0"), (3, "NonZero 'find'", "keeps-7-2")]
    assert inside[1]["new_out"].endswith("[2, 7]") and shown["recompiled"] == 1


# The forms that exporters write: torch's newer one, the namespaces of its function graphs, and its older one
# with verbose=True, whose stacks begin with the innermost frame.
STACK = """/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py(134): forward
/venv/lib/python3.11/site-packages/torch/nn/modules/module.py(1777): _slow_forward
/src/net.py(25): forward
"""
EXPORTERS = {
    "hierarchy": ({"pkg.torch.onnx.class_hierarchy":
                   "['__main__.Net', 'torch.nn.modules.linear.Linear', 'aten.linear.default']",
                   "pkg.torch.onnx.name_scopes": "['', 'fc1', 'linear']",
                   "pkg.torch.onnx.stack_trace": 'File "/src/net.py", line 25, in forward'}, "",
                  "torch.nn.modules.linear.Linear", "net.py:25"),
    "namespace": ({"namespace": ": __main__.Net/fc1: torch.nn.modules.linear.Linear/linear: aten.linear.default"},
                  "# /src/net.py:25:0", "torch.nn.modules.linear.Linear", "net.py:25"),
    "doc_string": ({}, STACK, "torch.nn.modules.linear", "linear.py:134"),
}


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_classes_and_lines_of_source_are_read_from_any_exporter(tmp_path, exporter):
    metadata, text, kind, location = EXPORTERS[exporter]
    model = two_layers()
    node = model.graph.node[0]
    node.doc_string = text
    if metadata:
        node.name = "node_MatMul_1"
    for key, value in metadata.items():
        node.metadata_props.add(key=key, value=value)
    path = save(tmp_path, model)
    shown = json.loads(reprise("recompiles", path, "--sizes", "20,30", "--json", "--csv", tmp_path / "t"))
    row = shown["rows"][1]
    assert (row["module"], row["class"], row["location"]) == ("fc1", kind, location)
    assert shown["classes"] == [{"class": kind, "recompilations": 1, "at_fault": 1}]
    assert rows_of(tmp_path / "t.sources.csv") == [
        {"source": location, "recompilations": "1", "at_fault": "1"}]
    assert [row["class"] for row in rows_of(tmp_path / "t.classes.csv")] == [kind]


@pytest.mark.parametrize("reduction", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                                       "ReduceProd", "ReduceL2"])
@pytest.mark.parametrize("opset", [12, 13, 18])
def test_selections_before_a_reduction_become_static(tmp_path, reduction, opset):
    if opset < 13 and reduction == "ReduceProd":
        pytest.skip("as at 13")
    model = selection(reduction, opset)
    path, out = save(tmp_path, model), tmp_path / "static.onnx"
    text = reprise("rewrite", path, out, "--static")
    assert "1 rewritten; compared with" in text
    rewritten = onnx.load(out)
    onnx.checker.check_model(rewritten)
    assert {"NonZero", "GatherND"} & {node.op_type for node in rewritten.graph.node} == set()
    x = np.random.default_rng(1).normal(0, 1, (6, 3)).astype(np.float32)
    np.testing.assert_allclose(answer(out, x), answer(path, x), rtol=1e-5, atol=1e-5)
    assert "would recompile at 0 of them" in reprise("recompiles", out, "--sizes", "5,5,5")


@pytest.mark.parametrize("keepdims", [0, 1])
def test_rows_that_a_mask_selects(tmp_path, keepdims):
    path = save(tmp_path, selection(rows=True, keepdims=keepdims))
    out = tmp_path / "static.onnx"
    reprise("rewrite", path, out, "--static")
    x = np.random.default_rng(1).normal(0, 1, (6, 3)).astype(np.float32)
    was, now = answer(path, x), answer(out, x)
    assert was.shape == now.shape
    np.testing.assert_allclose(now, was, rtol=1e-5, atol=1e-5)


def test_a_size_that_reaches_an_output_changes_only_where_that_is_allowed(tmp_path):
    path, out = save(tmp_path, selection(None)), tmp_path / "static.onnx"
    refused = reprise("rewrite", path, out, "--static", check=False)
    assert refused.returncode == 1 and "--allow-output-change" in refused.stdout
    assert not out.exists()
    reprise("rewrite", path, out, "--static", "--allow-output-change")
    x = np.random.default_rng(1).normal(0, 1, (6, 3)).astype(np.float32)
    changed = reference(out, {"x": x})
    np.testing.assert_allclose(changed["y"][changed["y.mask"]], answer(path, x), rtol=1e-5, atol=1e-5)


def best_scores(reduction, opset=17, axis=1):
    """Makes the best scores of each row of x, as many as the largest of all of x says; doubled."""
    g = models.Graph(opset)
    k = g.node("Clip", g.node("Cast", g.node("ReduceMax", "x", keepdims=0), to=TensorProto.INT64),
               g.const(np.int64(1), np.int64), g.const(np.int64(3), np.int64))
    values, places = g.node("TopK", "x", g.node("Reshape", k, g.ints(1)), outputs=2, axis=axis)
    doubled = g.node("Mul", values, g.scalar(2.0))
    if reduction is None:
        g.rename(doubled, "y")
        g.rename(places, "places")
        return g.model([("x", FLOAT, ["batch", 4])],
                       [("y", FLOAT, ["batch", "k"]), ("places", TensorProto.INT64, ["batch", "k"])])
    g.rename(g.node(reduction, doubled, keepdims=0,
                    **({"axes": [1]} if reduction != "ReduceSum" else {})), "y")
    return g.model([("x", FLOAT, ["batch", 4])],
                   [("y", FLOAT, [] if reduction == "ReduceSum" else ["batch"])])


X = np.random.default_rng(1).normal(1, 2, (6, 4)).astype(np.float32)


@pytest.mark.parametrize("reduction", ["ReduceSum", "ReduceMean", "ReduceMax"])
def test_topk_over_a_computed_k_becomes_static_before_a_reduction(tmp_path, reduction):
    path, out = save(tmp_path, best_scores(reduction)), tmp_path / "static.onnx"
    assert "1 rewritten; compared with" in reprise("rewrite", path, out, "--static")
    onnx.checker.check_model(onnx.load(out), full_check=True)
    np.testing.assert_allclose(answer(out, X), answer(path, X), rtol=1e-5, atol=1e-5)
    assert "would recompile at 0 of them" in reprise("recompiles", out, "--sizes", "5,5,5")


def test_topk_over_a_computed_k_keeps_all_before_outputs_where_that_is_allowed(tmp_path):
    path, out = save(tmp_path, best_scores(None)), tmp_path / "static.onnx"
    refused = reprise("rewrite", path, out, "--static", check=False)
    assert refused.returncode == 1 and "--allow-output-change" in refused.stdout
    reprise("rewrite", path, out, "--static", "--allow-output-change")
    was, now = reference(path, {"x": X}), reference(out, {"x": X})
    for name in ("y", "places"):
        assert now[name].shape == (6, 4)
        np.testing.assert_allclose(now[name][:, now[f"{name}.mask"]], was[name], rtol=1e-5)
        assert np.all(now[name][:, ~now[f"{name}.mask"]] == 0)


def test_a_k_that_shapes_decide_is_no_data(tmp_path):
    g = models.Graph(17)
    count = g.node("Gather", g.node("Shape", "x"), g.ints(1))
    values, _ = g.node("TopK", "x", g.node("Min", count, g.ints(2)), outputs=2, axis=1)
    g.rename(values, "y")
    path = save(tmp_path, g.model([("x", FLOAT, ["batch", "length"])], [("y", FLOAT, ["batch", "k"])]))
    told = reprise("rewrite", path, tmp_path / "out.onnx", "--static", check=False)
    assert "has no dynamic operator" in told.stdout


def suppression(most=5, center=0, scores_from=0.0, reads=True, opset=17):
    """Makes the boxes of a detector after NonMaxSuppression, and their names."""
    g = models.Graph(opset)
    corners = g.node("Abs", "boxes")
    found = g.node("NonMaxSuppression", corners, "scores", g.ints(most),
                   g.const(np.array([0.3], np.float32)), g.const(np.array([scores_from], np.float32)),
                   center_point_box=center)
    outputs = [("found", TensorProto.INT64, ["found", 3])]
    if reads:
        box = g.node("Squeeze", g.node("Gather", found, g.ints(2), axis=1), g.ints(1))
        rows = g.node("Gather", g.node("Squeeze", corners, g.ints(0)), box, axis=0)
        g.rename(g.node("Mul", rows, g.scalar(2.0)), "kept")
        g.rename(g.node("ReduceSum", rows, keepdims=0), "total")
        outputs += [("kept", FLOAT, ["found", 4]), ("total", FLOAT, [])]
    g.rename(found, "found")
    inputs = [("boxes", FLOAT, [1, "boxes", 4]), ("scores", FLOAT, [1, 2, "boxes"])]
    return g.model(inputs, outputs)


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_suppression_of_boxes_becomes_static(tmp_path, center, opset):
    reads = opset >= 13  # Squeeze takes its dims otherwise before
    path = save(tmp_path, suppression(center=center, reads=reads, opset=opset))
    out = tmp_path / "static.onnx"
    assert "--allow-output-change" in reprise("rewrite", path, out, "--static", check=False).stdout
    reprise("rewrite", path, out, "--static", "--allow-output-change")
    assert "NonMaxSuppression" not in {node.op_type for node in onnx.load(out).graph.node}
    rng = np.random.default_rng(3)
    for boxes in (1, 4, 40):
        inputs = {"boxes": rng.uniform(0, 1, (1, boxes, 4)).astype(np.float32),
                  "scores": rng.normal(0, 1, (1, 2, boxes)).astype(np.float32)}
        was, now = reference(path, inputs), reference(out, inputs)
        assert now["found"].shape == (10, 3)
        np.testing.assert_array_equal(now["found"][now["found.mask"]], was["found"])
        if reads:
            np.testing.assert_allclose(now["kept"][now["kept.mask"]], was["kept"], rtol=1e-5)
            np.testing.assert_allclose(now["total"], was["total"], rtol=1e-5)


def best_then_suppressed(best=40):
    """NonMaxSuppression of the boxes with the best scores: a model that takes no fewer boxes."""
    g = models.Graph(17)
    scores, places = g.node("TopK", "scores", g.ints(best), outputs=2, axis=1)
    corners = g.node("Unsqueeze", g.node("Gather", g.node("Abs", "boxes"), g.node("Squeeze", places, g.ints(0)),
                                         axis=0), g.ints(0))
    found = g.node("NonMaxSuppression", corners, g.node("Unsqueeze", scores, g.ints(0)), g.ints(4),
                   g.const(np.array([0.3], np.float32)))
    rows = g.node("Gather", g.node("Squeeze", corners, g.ints(0)),
                  g.node("Squeeze", g.node("Gather", found, g.ints(2), axis=1), g.ints(1)), axis=0)
    g.rename(g.node("ReduceSum", rows, keepdims=0), "total")
    return g.model([("boxes", FLOAT, ["boxes", 4]), ("scores", FLOAT, [1, "boxes"])], [("total", FLOAT, [])])


def test_a_suppression_behind_a_topk_is_tried_at_sizes_that_the_model_takes(tmp_path):
    path, out = save(tmp_path, best_then_suppressed()), tmp_path / "static.onnx"
    assert "1 rewritten; compared with" in reprise("rewrite", path, out, "--static")
    rng = np.random.default_rng(3)
    for boxes in (40, 100):
        inputs = {"boxes": rng.uniform(0, 1, (boxes, 4)).astype(np.float32),
                  "scores": rng.normal(0, 1, (1, boxes)).astype(np.float32)}
        np.testing.assert_allclose(reference(out, inputs)["total"], reference(path, inputs)["total"], rtol=1e-5)


def test_nodes_of_unknown_forms_are_listed_with_the_others(tmp_path):
    """A repetition by data, next to a selection that becomes static."""
    g = models.Graph(17)
    g.rename(g.node("ReduceSum", g.node("Compress", "x", g.node("Greater", "x", g.scalar(0.0)), axis=0),
                    keepdims=0), "total")
    count = g.node("Cast", g.node("ReduceMax", g.node("Abs", "x")), to=TensorProto.INT64)
    g.rename(g.node("Tile", "x", count), "repeated")
    path = save(tmp_path, g.model([("x", FLOAT, ["n"])], [("total", FLOAT, []), ("repeated", FLOAT, ["m"])]))
    told = reprise("rewrite", path, tmp_path / "static.onnx", "--static")
    assert "1 rewritten" in told
    assert re.search(r"Tile '.*' +no: .*no form of fixed size is known", told), told


def test_a_suppression_without_a_bound_wants_one(tmp_path):
    path, out = save(tmp_path, suppression(most=1 << 40, reads=False)), tmp_path / "static.onnx"
    told = reprise("rewrite", path, out, "--static", "--allow-output-change", check=False)
    assert told.returncode == 1 and "--most-boxes" in told.stdout and not out.exists()
    reprise("rewrite", path, out, "--static", "--allow-output-change", "--most-boxes", "8")
    # One box fewer than the made-up inputs have is one too few.
    few = reprise("rewrite", path, tmp_path / "few.onnx", "--static", "--allow-output-change",
                  "--most-boxes", "1", check=False)
    assert few.returncode == 1 and "is not kept" in few.stderr


def test_what_is_not_known_is_left_and_told(tmp_path):
    g = models.Graph(17)
    g.rename(g.node("Unique", g.node("Reshape", "x", g.ints(-1))), "y")
    path = save(tmp_path, g.model([("x", FLOAT, ["batch", 3])], [("y", FLOAT, ["found"])]))
    refused = reprise("rewrite", path, tmp_path / "out.onnx", "--static", check=False)
    assert refused.returncode == 1 and "sorting, and a mask" in refused.stdout
    told = reprise("rewrite", path, tmp_path / "out.onnx", "--static", "--json", check=False)
    (node,) = json.loads(told.stdout)["nodes"]
    assert not node["rewritten"] and "sorting, and a mask" in node["why_not"] + node["form"]


@pytest.mark.parametrize("reader, told", [
    (lambda g, chosen: g.node("TopK", chosen, g.ints(1), outputs=2, axis=0)[0], "TopK 'topk"),
    (lambda g, chosen: g.node("Mul", g.node("Neg", chosen), g.node("Abs", chosen)), "2 readers need"),
])
def test_the_reader_that_no_form_follows_is_told(tmp_path, reader, told):
    g = models.Graph(17)
    places = g.node("Transpose", g.node("NonZero", g.node("Greater", "x", g.scalar(0.0))), perm=[1, 0])
    g.rename(reader(g, g.node("GatherND", "x", places)), "y")
    path = save(tmp_path, g.model([("x", FLOAT, ["batch", 3])], [("y", FLOAT, ["found"])]))
    refused = reprise("rewrite", path, tmp_path / "out.onnx", "--static", check=False)
    assert refused.returncode == 1 and "no rewrite is known where " + told in refused.stdout


def test_a_model_stays_where_its_new_form_is_not_kept(tmp_path):
    path, inputs = pathlib.Path(save(tmp_path, selection())), tmp_path / "inputs.json"
    was = path.read_bytes()
    inputs.write_text('{"no_input": [1]}')
    refused = reprise("rewrite", path, path, "--static", "--inputs", inputs, check=False)
    assert refused.returncode == 1 and "is not kept" in refused.stderr
    assert path.read_bytes() == was
    assert {each.name for each in tmp_path.iterdir()} == {path.name, inputs.name}
    reprise("rewrite", path, path, "--static")
    assert path.read_bytes() != was


def test_a_mask_whose_name_is_taken_has_another(tmp_path):
    model = selection(None)
    (greater,) = [node for node in model.graph.node if node.op_type == "Greater"]
    old = greater.output[0]
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["y.mask" if name == old else name for name in names]
    path, out = save(tmp_path, model), tmp_path / "static.onnx"
    text = reprise("rewrite", path, out, "--static", "--allow-output-change")
    assert "1 rewritten; compared with" in text
