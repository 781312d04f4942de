"""Which models share a recipe: equal graphs with other weights do, any other difference does not."""

import numpy as np
import pytest
from onnx import TensorProto

from testing import models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape
from testing.repository import Repository

FLOAT = TensorProto.FLOAT
NAMES = ["input_ids", "attention_mask"]
ALL_VERSIONS = "version_policy { all { } }\n"


def test_versions_that_differ_only_in_weights_capture_once(repository, rng):
    repository.add("bert", models.bert(seed=1), version=1, config=ALL_VERSIONS)
    repository.add("bert", models.bert(seed=2), version=2)
    inputs = text_inputs(NAMES, 1, 20, rng, 200)
    with Daemon(repository) as daemon:
        client = daemon.client()
        first = infer(client, "bert", inputs, version="1")
        second = infer(client, "bert", inputs, version="2")
        assert (first.model_version, second.model_version) == ("1", "2")
        assert first.capture == "captured" and second.capture == "replayed"
        assert first.recipe == second.recipe
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total", model="bert") == 1
    for version, answer in ((1, first), (2, second)):
        assert_same_answer(answer.outputs, reference(repository.path("bert", version), inputs))
    assert not np.allclose(first.outputs["last_hidden_state"], second.outputs["last_hidden_state"])


def clip(seed):
    """Pictures beside texts: mean and spread, class token, positions, slopes, and a learnt scale."""
    g, rng = models.Graph(17), np.random.default_rng(seed)
    centred = g.node("Div", g.node("Sub", "picture", g.const(rng.normal(0.5, 0.1, (1, 3, 1, 1)))),
                     g.const(rng.uniform(0.2, 0.4, (1, 3, 1, 1))))
    planes = g.node("Conv", centred, g.const(rng.normal(0, 0.1, (8, 3, 4, 4))), strides=[4, 4])
    flat = g.node("Reshape", planes, g.ints(0, 8, -1))
    patches = g.node("Transpose", flat, perm=[0, 2, 1])
    token = g.node("Expand", g.const(rng.normal(0, 1, (1, 1, 8))),
                   g.node("Concat", g.dim("picture", 0), g.ints(1), g.ints(8), axis=0))
    tokens = g.node("Add", g.node("Concat", token, patches, axis=1), g.const(rng.normal(0, 1, (1, 5, 8))))
    x = g.node("PRelu", g.node("MatMul", tokens, g.const(rng.normal(0, 1, (8, 8)))),
               g.const(rng.uniform(0.1, 0.3, (1,))))
    pooled = g.node("ReduceMean", x, axes=[1], keepdims=0)
    scores = g.node("MatMul", pooled, g.node("Transpose", "text", perm=[1, 0]))
    scale = g.node("Exp", g.const(np.array(rng.uniform(0, 1)), hint="logit_scale"))
    g.rename(g.node("Mul", scores, scale), "logits")
    return g.model([("picture", FLOAT, ["batch", 3, 8, 8]), ("text", FLOAT, ["texts", 8])],
                   [("logits", FLOAT, ["batch", "texts"])])


def typed_bert(seed):
    return models.bert(seed=seed, hidden=64, types=2)


def clip_inputs(rng):
    return {"picture": rng.uniform(0, 1, (2, 3, 8, 8)).astype(np.float32),
            "text": rng.normal(0, 1, (3, 8)).astype(np.float32)}


@pytest.mark.parametrize("make, make_inputs", [
    (typed_bert, lambda rng: {**text_inputs(NAMES, 2, 20, rng, 200),
                              "token_type_ids": rng.integers(0, 2, (2, 20))}),
    (clip, clip_inputs)], ids=["bert", "clip"])
def test_a_retrained_model_is_ready_frozen_with_the_store_of_the_older_weights(
        repository, tmp_path, rng, make, make_inputs):
    inputs = make_inputs(rng)
    flags = ["--recipe-cache", str(tmp_path / "store")]
    repository.add("model", make(1))
    with Daemon(repository, *flags) as daemon:
        before = infer(daemon.client(), "model", inputs)
    retrained = Repository(tmp_path / "retrained")
    path = retrained.add("model", make(2))
    with Daemon(retrained, *flags, "--frozen") as daemon:
        assert daemon.readiness()["ready"], daemon.log()
        after = infer(daemon.client(), "model", inputs)
        assert after.capture == "replayed" and after.recipe == before.recipe
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 0
    assert_same_answer(after.outputs, reference(path, inputs))
    name = next(iter(before.outputs))
    assert not np.allclose(before.outputs[name], after.outputs[name])


def test_models_that_differ_only_in_an_epsilon_never_share(repository, rng):
    repository.add("small", models.bert(epsilon=1e-12))
    repository.add("large", models.bert(epsilon=1e-1))
    inputs = text_inputs(NAMES, 1, 20, rng, 200)
    with Daemon(repository) as daemon:
        client = daemon.client()
        answers = {name: infer(client, name, inputs) for name in ("small", "large")}
        assert answers["small"].recipe != answers["large"].recipe
        assert [a.capture for a in answers.values()] == ["captured", "captured"]
        scrape = Scrape(daemon.metrics_url)
        for name in answers:
            assert scrape.total("reprise_compiles_total", model=name) == 1
    for name, answer in answers.items():
        assert_same_answer(answer.outputs, reference(repository.path(name), inputs), name)
