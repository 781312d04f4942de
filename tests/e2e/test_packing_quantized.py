"""Models of onnxruntime's dynamic quantiser: never padded, but packed, each request by its own range.

Their answers are, bit for bit, the same as the same model's without packing, where every request runs
alone at its own sizes.
"""

import re

import numpy as np
import onnxruntime
import pytest

from testing import quantized
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape

INPUTS = ["input_ids", "attention_mask"]


def config(packing):
    return f'parameters {{ key: "reprise.packing" value {{ string_value: "{packing}" }} }}\n'


@pytest.fixture(scope="module")
def served(module_repository, tmp_path_factory):
    path = quantized.dynamic(tmp_path_factory.mktemp("dynamic"))
    module_repository.add("packed", path, config=config("auto"))
    module_repository.add("alone", path, config=config("off"))
    with Daemon(module_repository) as daemon:
        yield daemon, path


def requests_of(count, rng):
    return [text_inputs(INPUTS, int(rng.integers(1, 4)), int(np.clip(rng.lognormal(3, 1), 1, 128)),
                        rng, quantized.VOCABULARY, ragged=i % 2 == 0) for i in range(count)]


def test_concurrent_requests_get_the_bits_that_they_get_alone(served, rng):
    daemon, path = served
    client = daemon.client()
    requests = requests_of(64, rng)
    answers = together(lambda inputs: infer(client, "packed", inputs), requests, clients=8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    moved = rows = 0
    for inputs, answer in zip(requests, answers):
        assert re.fullmatch(r"t\d+", answer.bucket), answer.bucket
        alone = infer(client, "alone", inputs)
        assert alone.bucket == "exact"
        for output, expected in zip(session.get_outputs(), session.run(None, inputs)):
            got = answer.outputs[output.name]
            assert np.array_equal(got, alone.outputs[output.name]), (output.name, got.shape)
            rows += got[..., 0].size
            moved += int((np.abs(got - expected) > 1e-4 + 1e-4 * np.abs(expected)).any(-1).sum())
    # Where onnxruntime's floats round a value to the next step, all that is made of it moves.
    assert moved <= 0.05 * rows, f"{moved} of {rows} rows moved"
    assert max(a.parameters["reprise.batch_size"] for a in answers) > 3, "nobody shared a replay"


def test_new_lengths_are_not_captured_and_nothing_is_padded(served, rng):
    daemon, _ = served
    client = daemon.client()
    for length in (1, 20, 40, 100, 200, 400):
        infer(client, "packed", text_inputs(INPUTS, 1, length, rng, quantized.VOCABULARY))
    before = Scrape(daemon.metrics_url)
    requests = requests_of(48, rng)
    together(lambda inputs: infer(client, "packed", inputs), requests, clients=8)
    after = Scrape(daemon.metrics_url)

    def grown(name, **labels):
        return (after.total(name, model="packed", **labels)
                - before.total(name, model="packed", **labels))

    assert after.total("reprise_compiles_total", model="packed") <= 9  # numbers of tokens
    assert grown("reprise_replays_total", bucket="exact") == 0
    assert grown("reprise_elements_total", kind="padded") == 0
    assert grown("reprise_elements_total", kind="valid", axis="sequence") == sum(
        r["input_ids"].size for r in requests)


def test_it_says_that_nothing_is_padded_and_why_requests_are_packed(served):
    daemon, _ = served
    said = daemon.reprise("explain", "packed")
    for part in ("never padded, but packed", "DynamicQuantizeLinear", "requests share replays"):
        assert part in said, said
    assert re.search(r"model packed: requests are packed: \d+ nodes",
                     daemon.log())
