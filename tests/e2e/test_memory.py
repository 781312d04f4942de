"""Memory does not grow with the number of shapes that were seen."""

import numpy as np

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.repository import MINILM

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


def test_rss_after_500_lengths_is_that_of_all_buckets(repository, rng):
    repository.add("minilm", MINILM)
    with Daemon(repository) as daemon:
        client = daemon.client()
        for length in [16, 32, 64, 128, 256, 512]:
            for rows in [1, 2, 4, 8, 16, 32]:
                if rows * length <= 4096:
                    infer(client, "minilm", text_inputs(NAMES, rows, length, rng))
        captured = daemon.rss_bytes()
        lengths = rng.permutation(np.arange(1, 501))
        for length in lengths:
            infer(client, "minilm", text_inputs(NAMES, 1, int(length), rng))
        assert daemon.rss_bytes() < 1.05 * captured


def test_rss_settles_when_exact_shapes_come_and_go(repository, rng):
    """A model that may not be padded: its recipes are bounded in number, and so is the memory."""
    repository.add("mixes_sequence", models.mixes_sequence())
    with Daemon(repository) as daemon:
        client = daemon.client()

        def send(lengths):
            for length in lengths:
                x = rng.normal(size=(1, int(length))).astype(np.float32)
                infer(client, "mixes_sequence", {"x": x})

        send(range(1, 400))
        settled = daemon.rss_bytes()
        send(range(400, 1200))
        assert daemon.rss_bytes() < 1.05 * settled + (4 << 20)
