"""Constants that requests may send: padded and batched as ever, and nothing is compiled for a value."""

import json
import threading

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.clients import together
from testing.daemon import Daemon, reprise
from testing.inference import assert_same_answer, infer
from testing.metrics import Scrape

WEIGHTS = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)


def clipped(most=0.7, listed=False):
    """y = x W between floor and ceiling."""
    g = models.Graph(17)
    g.initializers += [numpy_helper.from_array(WEIGHTS, "w"),
                       numpy_helper.from_array(np.array(0, np.float32), "floor"),
                       numpy_helper.from_array(np.array(most, np.float32), "ceiling")]
    g.rename(g.node("Clip", g.node("MatMul", "x", "w"), "floor", "ceiling"), "y")
    inputs = [("x", TensorProto.FLOAT, ["batch", 16])]
    if listed:
        inputs.append(("ceiling", TensorProto.FLOAT, []))
    return g.model(inputs, [("y", TensorProto.FLOAT, ["batch", 16])])


def config(value):
    return f'parameters {{ key: "reprise.promote" value {{ string_value: "{value}" }} }}'


def wanted(x, most, least=0.0):
    return {"y": np.clip(x @ WEIGHTS, np.float32(least), np.float32(most))}


def rows(count, seed=1):
    return np.random.default_rng(seed).normal(size=(count, 16)).astype(np.float32)


def compiles(daemon):
    return sum(Scrape(daemon.metrics_url).by("reprise_compiles_total", "reason",
                                             model="model").values())


def scalar(value):
    return np.array(value, np.float32)


def test_a_value_of_its_own_is_padded_and_compiles_nothing(repository):
    repository.add("model", clipped(), config=config("ceiling, floor"))
    with Daemon(repository) as daemon:
        client, x = daemon.client(), rows(3)
        inputs = client.get_model_config("model", as_json=True)["config"]["input"]
        assert {one["name"]: one.get("optional", False) for one in inputs} == {
            "x": False, "ceiling": True, "floor": True}
        first = infer(client, "model", {"x": x})
        assert_same_answer(first.outputs, wanted(x, 0.7))
        before = compiles(daemon)
        for most, least in ((0.2, 0.0), (2.0, -1.0), (0.7, 0.0)):
            answer = infer(client, "model", {"x": x, "ceiling": scalar(most), "floor": scalar(least)})
            assert_same_answer(answer.outputs, wanted(x, most, least))
            assert (answer.capture, answer.recipe, answer.bucket) == ("replayed", first.recipe, "b4")
        assert_same_answer(infer(client, "model", {"x": x}).outputs, wanted(x, 0.7))
        assert compiles(daemon) == before
        # A request that is split by its rows has its value in every part.
        many = rows(9000)
        assert_same_answer(infer(client, "model", {"x": many, "ceiling": scalar(0.3)}).outputs,
                           wanted(many, 0.3))
        # Made-up requests leave it to the file.
        assert json.loads(daemon.reprise("infer", "model", "--json"))["answers"]
        for wrong in (np.ones(2, np.float32), np.array(1, np.float64)):
            with pytest.raises(InferenceServerException, match="ceiling"):
                infer(client, "model", {"x": x, "ceiling": wrong})


def test_weights_that_hang_on_a_value_are_made_of_it(repository):
    """Makes y = x (W factor): the product of weights is prepared once, but for clients that send a factor."""
    g = models.Graph(17)
    g.initializers += [numpy_helper.from_array(WEIGHTS, "w"),
                       numpy_helper.from_array(np.array(2, np.float32), "factor")]
    g.rename(g.node("MatMul", "x", g.node("Mul", "w", "factor")), "y")
    repository.add("model", g.model([("x", TensorProto.FLOAT, ["batch", 16])],
                                    [("y", TensorProto.FLOAT, ["batch", 16])]),
                   config=config("factor"))
    with Daemon(repository) as daemon:
        client, x = daemon.client(), rows(3)
        for factor in (None, 0.5, None, -3.0):
            sent = {} if factor is None else {"factor": scalar(factor)}
            answer = infer(client, "model", {"x": x, **sent})
            assert_same_answer(answer.outputs, {"y": x @ (WEIGHTS * np.float32(factor or 2))})
        assert compiles(daemon) == 1


def selected():
    """Makes the sum of the elements above a bound: the bound is read after data decide it."""
    g = models.Graph(17)
    g.initializers.append(numpy_helper.from_array(np.array(2, np.float32), "factor"))
    found = g.node("GatherND", "x", g.node("Transpose", g.node("NonZero", g.node(
        "Greater", "x", g.scalar(0.0))), perm=[1, 0]))
    g.rename(g.node("ReduceSum", g.node("Mul", found, "factor"), keepdims=0), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch"])], [("y", TensorProto.FLOAT, [])])


def test_behind_what_data_decide_values_count_as_well(repository):
    repository.add("model", selected(), config=config("factor"))
    with Daemon(repository) as daemon:
        for size in (40, 40_000):
            x = np.random.default_rng(size).normal(size=size).astype(np.float32)
            for factor in (2.0, 0.25):
                sent = {} if factor == 2.0 else {"factor": scalar(factor)}
                answer = infer(daemon.client(), "model", {"x": x, **sent})
                want = np.float32(factor) * x[x > 0]
                assert abs(answer.outputs["y"] - want.sum(dtype=np.float64)) < 1e-2 * len(want) ** 0.5


def test_mates_have_the_same_value(repository):
    repository.add("model", clipped(), config=config("ceiling")
                   + "\ndynamic_batching { max_queue_delay_microseconds: 2000 }")
    with Daemon(repository) as daemon:
        def one(number):
            most, x = (0.1, 0.5, 0.9)[number % 3], rows(1 + number % 4, number)
            answer = infer(clients.client, "model", {"x": x, "ceiling": scalar(most)})
            assert_same_answer(answer.outputs, wanted(x, most))
            return most, answer.batch, answer.parameters["reprise.batch_size"]

        clients = threading.local()

        def ask(number):
            if not hasattr(clients, "client"):
                clients.client = daemon.client()
            return one(number)

        ask(0)
        answers = together(ask, list(range(96)))
        values = {}
        for most, batch, _ in answers:
            values.setdefault(batch, set()).add(most)
        assert all(len(of_batch) == 1 for of_batch in values.values())
        assert max(size for _, _, size in answers) > 4


def test_a_new_value_in_the_file_compiles_nothing(repository):
    path = repository.add("model", clipped(0.7), config=config("ceiling"))
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        client, x = daemon.client(), rows(3)
        first = infer(client, "model", {"x": x})
        path.write_bytes(clipped(0.5).SerializeToString())
        client.load_model("model")
        answer = infer(client, "model", {"x": x})
        assert (answer.capture, answer.recipe) == ("replayed", first.recipe)
        assert_same_answer(answer.outputs, wanted(x, 0.5))


def test_auto_promotes_what_versions_have_differently(repository):
    path = repository.add("model", clipped(0.7), config=config("auto"))
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        client, x = daemon.client(), rows(3)
        infer(client, "model", {"x": x})
        recipes = []
        for most in (0.5, 0.4, 0.3):
            path.write_bytes(clipped(most).SerializeToString())
            client.load_model("model")
            answer = infer(client, "model", {"x": x})
            assert_same_answer(answer.outputs, wanted(x, most))
            recipes.append(answer)
        # The first change shows its effect.
        assert [answer.capture for answer in recipes[1:]] == ["replayed", "replayed"]
        assert len({answer.recipe for answer in recipes}) == 1
    # Beside another version nothing has to be served before.
    repository.add("model", clipped(0.9), version=2, config=config("auto"))
    with Daemon(repository) as daemon:
        answer = infer(daemon.client(), "model", {"x": x, "ceiling": scalar(0.1)})
        assert_same_answer(answer.outputs, wanted(x, 0.1))
        assert answer.bucket == "b4"


def test_auto_promotes_initialisers_that_are_listed_as_inputs(repository):
    repository.add("model", clipped(listed=True), config=config("auto"))
    with Daemon(repository) as daemon:
        client, x = daemon.client(), rows(3)
        for inputs, most in (({}, 0.7), ({"ceiling": scalar(0.2)}, 0.2)):
            answer = infer(client, "model", {"x": x, **inputs})
            assert_same_answer(answer.outputs, wanted(x, most))
            assert answer.bucket == "b4"


def layer_norm():
    """Layer norm written out, with its epsilon; then rows of a shape that a constant says."""
    g = models.Graph(13)
    g.initializers += [numpy_helper.from_array(np.array(1e-5, np.float32), "epsilon"),
                       numpy_helper.from_array(np.array([-1, 8], np.int64), "shape"),
                       numpy_helper.from_array(np.ones(16, np.float32), "scale"),
                       numpy_helper.from_array(np.zeros(16, np.float32), "shift")]
    centred = g.node("Sub", "x", g.node("ReduceMean", "x", axes=[-1], keepdims=1))
    squares = g.node("Pow", centred, g.scalar(2.0))
    spread = g.node("Sqrt", g.node("Add", g.node("ReduceMean", squares, axes=[-1], keepdims=1),
                                   "epsilon"))
    normal = g.node("Add", g.node("Mul", g.node("Div", centred, spread), "scale"), "shift")
    g.rename(g.node("Reshape", normal, "shape"), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 16])],
                   [("y", TensorProto.FLOAT, ["halves", 8])])


@pytest.mark.parametrize("model, name, why", [
    (layer_norm, "shape", "decides a shape: Reshape"),
    (layer_norm, "epsilon", "is read by passes that join nodes"),
    (clipped, "celing", "did you mean 'ceiling'"),
    (clipped, "y", "has no constant")])
def test_what_cannot_be_promoted_is_refused_by_name(tmp_path, model, name, why):
    path = tmp_path / "model.onnx"
    path.write_bytes(model().SerializeToString())
    refused = reprise("check", path, "--promote", name, check=False)
    assert refused.returncode == 1
    assert f"'{name}'" in refused.stdout and why.replace("'", "") in refused.stdout.replace("'", "")


def test_check_lists_what_is_part_of_the_key(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(clipped().SerializeToString())
    key = json.loads(reprise("check", path, "--json"))["key"]
    assert [(one["constant"], one["value"]) for one in key] == [("floor", "0"), ("ceiling", "0.7")]
    assert all(one["read_by"].startswith("Clip ") for one in key)
    report = json.loads(reprise("check", path, "--promote", "ceiling", "--json"))
    assert [one["constant"] for one in report["key"]] == ["floor"]
    assert {one["name"]: one["optional"] for one in report["inputs"]} == {"x": False, "ceiling": True}
