"""Why two graphs, and so two recipes, are not the same: `diff`, `dump --graph`, graph_changed."""

import json
import re

import numpy as np
import pytest
from onnx import TensorProto

from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import infer

FLOAT = TensorProto.FLOAT
X = {"x": np.ones((2, 32), np.float32)}


def clipped(high=0.7, columns=32, opset=17, seed=0):
    """Makes a product, cut to a range whose upper end is a constant."""
    g = models.Graph(opset)
    weights = np.random.default_rng(seed).normal(0, 1, (32, columns))
    product = g.node("MatMul", "x", g.const(weights))
    g.nodes[-1].name = "fc"
    g.rename(g.node("Clip", product, g.scalar(0.0), g.scalar(high)), "y")
    g.nodes[-2].name = "clip"
    return g.model([("x", FLOAT, ["batch", 32])], [("y", FLOAT, ["batch", columns])])


def save(folder, name, model):
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return str(path)


def first_line(text):
    return text.splitlines()[0]


def test_the_first_cause_of_two_models_stands_on_top(tmp_path):
    was = save(tmp_path, "a.onnx", clipped(high=0.7))
    assert first_line(reprise("diff", was, save(tmp_path, "b.onnx", clipped(high=0.5)))) == (
        "constant 2 of Clip 'clip': 0.5, was 0.7")
    assert first_line(reprise("diff", was, save(tmp_path, "c.onnx", clipped(columns=33)))) == (
        "MatMul 'fc' has 33 columns, was 32")
    assert first_line(reprise("diff", was, save(tmp_path, "d.onnx", clipped(opset=16)))) == (
        "opset 16, was 17")
    same = reprise("diff", was, save(tmp_path, "e.onnx", clipped(seed=1)))
    assert first_line(same).startswith("the same")
    both = reprise("diff", was, str(tmp_path / "b.onnx"))
    assert re.search(r"Clip\(.* \| .*Clip\(.*\{0\.7\} .*\| .*\{0\.5\}", both, re.S)
    shown = json.loads(reprise("diff", was, str(tmp_path / "b.onnx"), "--json"))
    assert shown["causes"] == ["constant 2 of Clip 'clip': 0.5, was 0.7"] and len(shown["rows"]) == 1
    wrong = reprise("diff", was, str(tmp_path / "nothing"), check=False)
    assert wrong.returncode == 1 and "is neither a file nor a key" in wrong.stderr


def test_a_key_is_the_same_everywhere(repository, tmp_path):
    repository.add("clipped", clipped())
    store, dumps = tmp_path / "store", tmp_path / "graphs"
    with Daemon(repository, "--recipe-cache", str(store), "--dump-graphs", str(dumps)) as daemon:
        answer = infer(daemon.client(), "clipped", X)
        infer(daemon.client(), "clipped", {"x": np.ones((7, 32), np.float32)})
        key = answer.recipe
        assert key in daemon.reprise("recipes") and key in daemon.reprise("explain", "clipped")
        assert re.search(rf"captured .* as recipe {key} because of first_request", daemon.log())
        graph = daemon.reprise("dump", "--recipe", key, "--graph")
        assert "Clip(" in graph and "@fc" in graph and "f32[2, 32]" in graph
        texts = [tmp_path / "was.txt", tmp_path / "now.txt"]
        for text in texts:
            text.write_text(graph)
        assert first_line(daemon.reprise("diff", *map(str, texts))).startswith("the same")
        other = [row["key"] for row in json.loads(daemon.reprise("recipes", "--json"))["recipes"]
                 if row["key"] != key]
        assert first_line(daemon.reprise("diff", key, other[0])).startswith("binding batch=")
        dumped = dumps / f"{key}.graph"
        assert f"// recipe {key}" in dumped.read_text()
        assert first_line(daemon.reprise("diff", str(dumped), key)).startswith("the same")
    assert list(store.glob(f"recipe-{key}-*"))
    assert key in reprise("store", "list", store)
    shown = reprise("store", "show", store, key)
    assert "// the graph before it got its sizes" in shown and "kernel" in shown
    assert first_line(reprise("diff", key, other[0], "--store", store)).startswith("binding batch=")
    reprise("store", "prune", store, "--key", key)
    assert not list(store.glob(f"recipe-{key}-*"))
    assert reprise("store", "show", store, key, check=False).returncode == 1


CHANGED = "constant 2 of Clip 'clip': 0.5, was 0.7"


def test_a_changed_constant_is_named_after_a_restart(repository, tmp_path):
    store = tmp_path / "store"
    path = repository.add("clipped", clipped(high=0.7))
    with Daemon(repository, "--recipe-cache", str(store)) as daemon:
        infer(daemon.client(), "clipped", X)
    path.write_bytes(clipped(high=0.5).SerializeToString())
    with Daemon(repository, "--recipe-cache", str(store)) as daemon:
        infer(daemon.client(), "clipped", X)
        assert f"because of graph_changed ({CHANGED})" in daemon.log()
        explained = daemon.reprise("explain", "clipped")
        assert f"changed  {CHANGED}" in explained


@pytest.mark.parametrize("unload_first", [False, True])
def test_a_changed_constant_is_named_after_a_reload(repository, unload_first):
    path = repository.add("clipped", clipped(high=0.7))
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        client = daemon.client()
        infer(client, "clipped", X)
        path.write_bytes(clipped(high=0.5).SerializeToString())
        if unload_first:
            client.unload_model("clipped")
        client.load_model("clipped")
        infer(client, "clipped", X)
        assert f"because of graph_changed ({CHANGED})" in daemon.log()
        captures = json.loads(daemon.reprise("explain", "clipped", "--json"))["captures"]["misses"]
        assert captures[-1]["reason"] == "graph_changed" and captures[-1]["cause"] == CHANGED


def test_new_weights_change_nothing(repository):
    path = repository.add("clipped", clipped(seed=1))
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        client = daemon.client()
        before = infer(client, "clipped", X)
        path.write_bytes(clipped(seed=2).SerializeToString())
        client.load_model("clipped")
        after = infer(client, "clipped", X)
        assert after.capture == "replayed" and after.recipe == before.recipe
