"""Decoders as exporters write them make tokens: pages, onnxruntime's tokens, no capture a token."""

import json

import numpy as np
import pytest

from testing import decoders, exported
from testing.daemon import Daemon, reprise
from testing.metrics import Scrape
from testing.tokens import generate

CONTEXT, TOKENS = 128, 20
OPTIONS = {"sincos": dict(turned=8), "looped": dict(turned=8)}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Starts a daemon with a model of each form, and onnxruntime beside each."""
    root = tmp_path_factory.mktemp("exported")
    steppers = {}
    for form in exported.FORMS:
        model = exported.make(form, context=CONTEXT, **OPTIONS.get(form, {}))
        folder = root / form / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        steppers[form] = decoders.Stepper(model, batch_x_heads=4)
    with Daemon(root) as daemon:
        yield daemon, steppers


@pytest.mark.parametrize("form", exported.FORMS)
def test_tokens_are_those_of_onnxruntime_and_capture_nothing(served, rng, form):
    daemon, steppers = served
    before = Scrape(daemon.metrics_url).total("reprise_compiles_total")
    for length in (1, 2, 17, 60):
        ids = [int(one) for one in rng.integers(0, 97, length)]
        expected, rows = steppers[form].greedy(ids, TOKENS)
        answer = generate(daemon, form, ids, max_tokens=TOKENS, logprobs=0)
        assert answer["token_ids"] == expected, (form, length, answer)
        shifted = rows - rows.max(-1, keepdims=True)
        best = (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))[np.arange(TOKENS), expected]
        np.testing.assert_allclose(answer["logprobs"], best, atol=2e-4)
    assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == before


# The tables of the others are as long as the context, and cut or looked up by position.
@pytest.mark.parametrize("form", [form for form in exported.FORMS if form not in ("one_head", "three_dims")])
def test_the_context_is_the_length_of_tables_that_are_cut(served, rng, form):
    daemon, _ = served
    ids = [int(one) for one in rng.integers(0, 97, CONTEXT - 5)]
    answer = generate(daemon, form, ids, max_tokens=1000)
    assert len(answer["token_ids"]) == 5 and answer["finish_reason"] == "length"


@pytest.mark.parametrize("form,files,context", [
    ("one_head", {"config.json": {"max_position_embeddings": 160}}, 160),
    ("one_head", {"config.json": {"n_positions": 6000}}, 6000),
    ("one_head", {"genai_config.json": {"model": {"context_length": 96}}, "config.json": {"seq_length": 160}}, 96),
    ("one_head", {}, 4096),
    ("cut_tables", {"config.json": {"max_position_embeddings": 160}}, CONTEXT)])
def test_the_context_without_tables_is_the_one_that_a_file_states(tmp_path, rng, form, files, context):
    (tmp_path / "m" / "1").mkdir(parents=True)
    path = tmp_path / "m" / "1" / "model.onnx"
    path.write_bytes(exported.make(form, context=CONTEXT).SerializeToString())
    for name, members in files.items():
        (tmp_path / "m" / "1" / name).write_text(json.dumps(members))
    assert f"for up to {context} positions" in reprise("check", path)
    if context > 1000:
        return
    ids = [int(one) for one in rng.integers(0, 97, context - 5)]
    with Daemon(tmp_path) as daemon:
        answer = generate(daemon, "m", ids, max_tokens=1000)
        assert len(answer["token_ids"]) == 5 and answer["finish_reason"] == "length"
        assert f"context of {context}" in generate(daemon, "m", ids * 2)["error"]


def test_check_tells_that_they_make_tokens(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(exported.make("cut_tables", context=CONTEXT).SerializeToString())
    told = reprise("check", path)
    assert "makes tokens: the server keeps 4 caches" in told and f"for up to {CONTEXT} positions" in told
