"""A model that sleeps has no weights in memory; a request wakes it, and captures nothing."""

import numpy as np
import requests

from testing import decoders, models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape

NAMES = ["input_ids", "attention_mask"]
MB = 1 << 20


def asleep(daemon, model):
    return Scrape(daemon.metrics_url).total("reprise_model_asleep", model=model)


def compiles(daemon):
    return Scrape(daemon.metrics_url).total("reprise_compiles_total")


def test_weights_leave_memory_and_a_request_reads_them_again(repository, rng):
    # 38 MB of weights, in the file's form and in the kernels' form.
    repository.add("bert", models.bert(hidden=256, layers=12),
                   config='parameters { key: "reprise.tune" value { string_value: "off" } }')
    inputs = text_inputs(NAMES, 2, 40, rng, 200)
    with Daemon(repository) as daemon:
        client = daemon.client()
        before = infer(client, "bert", inputs)
        captured, full = compiles(daemon), daemon.rss_bytes()
        assert asleep(daemon, "bert") == 0

        assert daemon.reprise("sleep", "bert") == "model 'bert' version 1 is asleep\n"
        assert asleep(daemon, "bert") == 1
        assert "asleep" in daemon.reprise("models")
        assert daemon.readiness()["ready"]
        small = daemon.rss_bytes()
        assert small < full - 30 * MB, (small, full)
        assert before.bucket in daemon.reprise("recipes")

        again = infer(client, "bert", inputs)
        assert again.capture == "replayed" and asleep(daemon, "bert") == 0
        for name, value in before.outputs.items():
            assert np.array_equal(again.outputs[name], value)
        assert daemon.rss_bytes() > small + 30 * MB

        daemon.reprise("sleep", "--all")
        woken = requests.post(daemon.http_url + "/v2/repository/models/bert/wake", timeout=60).json()
        assert woken == {"models": [{"model": "bert", "version": "1", "frozen": False, "asleep": False}]}
        assert daemon.rss_bytes() > small + 30 * MB
        assert infer(client, "bert", inputs).capture == "replayed"
        assert compiles(daemon) == captured


def test_a_decoder_sleeps_between_sequences(repository):
    repository.add("decoder", decoders.make("gqa"))
    body = {"input_ids": [3, 1, 4, 1, 5], "parameters": {"max_tokens": 8, "temperature": 0}}
    with Daemon(repository) as daemon:
        def generate():
            answer = requests.post(daemon.http_url + "/v2/models/decoder/generate", json=body, timeout=60)
            assert answer.status_code == 200, answer.text
            return answer.json()["token_ids"]

        tokens, captured = generate(), compiles(daemon)
        assert daemon.reprise("sleep", "decoder").endswith("is asleep\n")
        assert asleep(daemon, "decoder") == 1
        assert generate() == tokens
        assert asleep(daemon, "decoder") == 0 and compiles(daemon) == captured
