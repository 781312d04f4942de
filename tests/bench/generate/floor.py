"""Measures the limits of this machine, and the least time that a row's work takes on it."""

import dataclasses
import pathlib
import tempfile

import numpy as np

from side import Side


@dataclasses.dataclass
class Rates:
    """Of one core, measured: operations of float32 multiply-adds, bytes read in order."""
    gflops: float
    gbytes: float


@dataclasses.dataclass
class Work:
    operations: float
    bytes: float

    def floor_s(self, rates, threads=1):
        """Divides operations among threads; memory's bandwidth is taken to grow with them as well,
        which favours the floor."""
        return max(self.operations / (rates.gflops * 1e9 * threads),
                   self.bytes / (rates.gbytes * 1e9 * threads))


def measure(build, model, shape):
    """bench_engine's own figures, for as many bytes as this decoder's weights have."""
    engine = Side("bench_engine", [str(build / "bench_engine"), str(model)])
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        past = 16

        def put(name, array):
            array.tofile(folder / name)
            return {"shape": list(array.shape), "file": str(folder / name),
                    "dtype": str(array.dtype)}

        cache = put("cache", np.zeros((1, shape["kv_heads"], past, shape["size"]), np.float32))
        inputs = [put("ids", np.ones((1, 1), np.int64)), put("mask", np.ones((1, past + 1), np.int64)),
                  *[cache] * (2 * shape["layers"])]
        # The best of a few: others may have the core in one of them.
        gflops = max(engine.ask(op="profile", inputs=inputs, repeat=1)["gflops"] for _ in range(3))
    read = engine.ask(op="read", bytes=shape["weight_bytes"], repeat=9)
    engine.close()
    return Rates(gflops, read["bytes"] / min(read["ns"]))


def step_work(shape, pasts, scored=None):
    """Returns the work of one step of a new token at each of `pasts` positions; `scored` of them go through the head.

    The weights are read once, each cache once; scores and weighted sums are two operations for each
    number of a key and a value."""
    scored = len(pasts) if scored is None else scored
    parameters = shape["parameters"]
    width = shape["heads"] * shape["size"]
    operations = (2 * len(pasts) * parameters["layers"] + 2 * scored * parameters["head"]
                  + 4 * shape["layers"] * width * sum(past + 1 for past in pasts))
    cached = 2 * 4 * shape["layers"] * shape["kv_heads"] * shape["size"]
    return Work(operations, shape["weight_bytes"] + cached * sum(pasts))


def prompt_work(shape, length):
    """Returns the work of a whole prompt in one step: its cache is written, and read where it lies near."""
    work = step_work(shape, list(range(length)), 1)
    cached = 2 * 4 * shape["layers"] * shape["kv_heads"] * shape["size"]
    return Work(work.operations, shape["weight_bytes"] + cached * length)


def batch_floor_s(shape, lengths, tokens, rates, threads):
    """Prompts, then `tokens` - 1 steps of all: the first token comes with the prompt."""
    seconds = sum(prompt_work(shape, n).floor_s(rates, threads) for n in lengths)
    return seconds + sum(step_work(shape, [n + i for n in lengths]).floor_s(rates, threads)
                         for i in range(tokens - 1))
