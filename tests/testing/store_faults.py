"""Daemons that are killed while they write to a recipe store, and the state that later starts find."""

import os
import random
import signal
import time

import numpy

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape

NAMES = ["input_ids", "attention_mask"]
# Padded: that makes more recipes.
CONFIG = """
parameters { key: "reprise.warmup" value { string_value: "all" } }
parameters { key: "reprise.packing" value { string_value: "off" } }
"""
# No test waits longer for a file to appear: then the daemons are killed while they do nothing.
PATIENCE_S = 3


def wait_for_writes(folder, count):
    """Until the folder, temporary files included, has changed `count` times."""
    end = time.monotonic() + PATIENCE_S
    seen = set()
    while len(seen) < count and time.monotonic() < end:
        seen.update(entry.name for entry in folder.iterdir())


def kill_two_daemons_while_they_write(repository, folder, chance):
    flags = ["--recipe-cache", str(folder), "--log-level", "warning"]
    daemons = [Daemon(repository, *flags) for _ in range(2)]
    known = {path.name for path in folder.iterdir()}
    try:
        for daemon in daemons:
            daemon.start()
        wait_for_writes(folder, len(known) + chance.randrange(1, 24))
    finally:
        for daemon in daemons:
            daemon.process.send_signal(signal.SIGKILL)
        for daemon in daemons:
            daemon.process.wait()
    return len({path.name for path in folder.iterdir()} - known)


def run(repository, folder, rounds, seed=1):
    """`rounds` times: two daemons on one folder killed; then a start that must answer right."""
    chance = random.Random(seed)
    rng = numpy.random.default_rng(seed)
    repository.add("bert", models.bert(), config=CONFIG)
    inputs = [text_inputs(NAMES, rows, length, rng, 200) for rows, length in [(1, 5), (3, 70)]]
    with Daemon(repository) as daemon:
        expected = [infer(daemon.client(), "bert", one).outputs for one in inputs]
    folder.mkdir()
    interrupted = 0
    for _ in range(rounds):
        # So that there is something to write: as if it had been pruned.
        for path in folder.glob("*.rps"):
            if chance.random() < 0.5:
                path.unlink()
        interrupted += kill_two_daemons_while_they_write(repository, folder, chance) > 0
        with Daemon(repository, "--recipe-cache", str(folder)) as daemon:
            client = daemon.client()
            for one, right in zip(inputs, expected):
                answer = infer(client, "bert", one).outputs
                for name, value in right.items():
                    # Tuning goes on: other kernels round differently.
                    numpy.testing.assert_allclose(answer[name], value, rtol=0, atol=1e-5)
            assert Scrape(daemon.metrics_url).total("reprise_store_corrupt_total") == 0
    # The leftovers of killed writers go at a later start, when no writer can be at them any more.
    left = set(folder.glob(".tmp-*"))
    for path in left:
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 120))
    with Daemon(repository, "--recipe-cache", str(folder)):
        assert not left & set(folder.glob(".tmp-*"))  # others are its own, of this moment
    assert interrupted > rounds // 2, f"only {interrupted} of {rounds} kills hit a writer"
