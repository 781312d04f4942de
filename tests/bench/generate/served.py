"""The daemon that makes tokens: file to ready, memory, and a load of clients over gRPC."""

import json
import tempfile
import time

import numpy as np

from testing.daemon import Daemon
from testing.repository import Repository

MEDIAN, SIGMA, LOW, HIGH = 200, 0.5, 16, 1000  # of prompts
STALL_MS = 20  # reprise.max_stall_ms


def lengths_of(count, seed):
    drawn = np.random.default_rng(seed).lognormal(np.log(MEDIAN), SIGMA, count)
    return [int(x) for x in np.clip(drawn, LOW, HIGH)]


def start(folder, root, threads):
    repository = Repository(root)
    repository.add("decoder", folder / "model.onnx")
    return Daemon(repository, "--streams", "1", "--threads-per-stream", str(threads))


def ready_ms(daemon):
    """From the start of the process until the model answers."""
    begin = time.perf_counter()
    daemon.start()
    while daemon.readiness().get("state", "starting") == "starting":
        if daemon.process.poll() is not None:
            raise RuntimeError(daemon.log())
        time.sleep(0.002)
    return (time.perf_counter() - begin) * 1e3


def end(daemon):
    daemon.__exit__(None, None, None)


def time_to_ready(folder, threads, rounds):
    """Milliseconds of `rounds` starts, each in a folder that is new, and the memory after one."""
    times, memory = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as root:
            daemon = start(folder, root, threads)
            times.append(ready_ms(daemon))
            memory.append(daemon.rss_bytes() / 1e6)
            end(daemon)
    return times, memory


class Served:
    """A daemon for the length of the block, a side of its own; idle while others have their turn."""

    name = "served"

    def __init__(self, folder, threads):
        self.loads = []
        self.root = tempfile.TemporaryDirectory()
        self.daemon = start(folder, self.root.name, threads)

    def __enter__(self):
        self.daemon.__enter__()
        return self

    def __exit__(self, kind, error, trace):
        self.daemon.__exit__(kind, error, trace)
        self.root.cleanup()

    def load(self, clients, requests, tokens, seed):
        """Returns the report of `reprise bench --generate`; no two requests of a run have a prompt in common."""
        out = self.daemon.reprise(
            "bench", "decoder", "--generate", "--json", "--concurrency", clients, "--requests", requests,
            "--warmup", 1, "--lengths", f"lognormal:{MEDIAN},{SIGMA},{LOW},{HIGH}",
            "--output-lengths", tokens, "--max-id", 49000, "--seed", seed)
        self.loads.append(json.loads(out))
        return self.loads[-1]

    def memory_mb(self):
        return self.daemon.rss_bytes() / 1e6
