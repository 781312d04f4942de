"""Sinks, smooth softmax, caps, joined operands and norms: paged, carried by clients, and as they are."""

import json
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
from onnx import helper

from testing import decoders
from testing.daemon import Daemon, reprise
from testing.metrics import Scrape

CONTEXT, TOKENS = 128, 24


def model_of(name, **more):
    form, options = decoders.VARIANTS[name]
    return decoders.make(form, **options, **more)


def config(**parameters):
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in parameters.items())


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A daemon with a model of each kind twice: with pages, and without."""
    root = tmp_path_factory.mktemp("attention")
    steppers = {}
    for name in decoders.VARIANTS:
        for suffix, parameters in (("", dict(context=CONTEXT)), ("_off", dict(generation="off"))):
            folder = root / f"{name}{suffix}" / "1"
            folder.mkdir(parents=True)
            (folder / "model.onnx").write_bytes(model_of(name).SerializeToString())
            (folder.parent / "config.pbtxt").write_text(config(**parameters))
        steppers[name] = decoders.Stepper(model_of(name, plain=True))
    with Daemon(root) as daemon:
        yield daemon, steppers


def generate(daemon, model, ids):
    body = {"input_ids": ids, "parameters": dict(temperature=0, max_tokens=TOKENS, logprobs=0)}
    request = urllib.request.Request(f"{daemon.http_url}/v2/models/{model}/generate",
                                     json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def step(client, model, stepper, ids):
    """The scores of `ids` behind what the stepper has seen, whose caches are sent."""
    total = stepper.length + len(ids)
    feeds = {"input_ids": np.array([ids], np.int64), **stepper.past}
    if "attention_mask" in stepper.names:
        feeds["attention_mask"] = np.ones((1, total), np.int64)
    if "position_ids" in stepper.names:
        feeds["position_ids"] = np.arange(stepper.length, total)[None]
    inputs = []
    for name, array in feeds.items():
        kind = "FP32" if array.dtype == np.float32 else "INT64"
        inputs.append(tritonclient.grpc.InferInput(name, array.shape, kind))
        inputs[-1].set_data_from_numpy(array)
    return client.infer(model, inputs)


@pytest.mark.parametrize("name", decoders.VARIANTS)
def test_tokens_are_those_of_onnxruntime_with_its_own_cache(served, rng, name):
    daemon, steppers = served
    for length in (1, 18, 40):
        ids = [int(one) for one in rng.integers(0, 97, length)]
        expected, rows = steppers[name].greedy(ids, TOKENS)
        answer = generate(daemon, name, ids)
        assert answer["token_ids"] == expected, (name, length, answer)
        shifted = rows - rows.max(-1, keepdims=True)
        best = (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))[np.arange(TOKENS), expected]
        np.testing.assert_allclose(answer["logprobs"], best, atol=2e-4)


@pytest.mark.parametrize("suffix", ["", "_off"])
@pytest.mark.parametrize("name", decoders.VARIANTS)
def test_caches_that_clients_carry_give_the_same(served, rng, name, suffix):
    daemon, steppers = served
    stepper = steppers[name]
    stepper.reset()
    before = Scrape(daemon.metrics_url).total("reprise_compiles_total", model=name)
    with tritonclient.grpc.InferenceServerClient(daemon.grpc_address) as client:
        for count in (19, 1, 3, 1):
            ids = [int(one) for one in rng.integers(0, 97, count)]
            answer = step(client, name + suffix, stepper, ids)
            np.testing.assert_allclose(answer.as_numpy("logits")[0], stepper.step(ids), rtol=1e-4,
                                       atol=1e-4)
            for past, rows in stepper.past.items():
                present = answer.as_numpy(past.replace("past_key_values", "present"))
                np.testing.assert_allclose(present, rows, rtol=1e-4, atol=1e-4)
    if not suffix:
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total", model=name) == before


@pytest.mark.parametrize("attribute, value, words", [
    ("causal", 0, "attribute 'causal' = 0 is not supported"),
    ("sliding_window_cache", 1, "attribute 'sliding_window_cache' = 1 is not supported"),
    ("qk_output", 1, "attribute 'qk_output' = 1 is not supported"),
    ("kv_cache_bit_width", 8, "attribute 'kv_cache_bit_width' = 8 is not supported"),
    ("k_quant_type", "PER_TENSOR", "attribute 'k_quant_type' = 'PER_TENSOR' is not supported"),
])
def test_what_has_no_steps_is_refused_by_name(tmp_path, attribute, value, words):
    model = decoders.make("gqa")
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention":
            node.attribute.append(helper.make_attribute(attribute, value))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    told = reprise("check", path, check=False)
    assert words in told.stdout + told.stderr
