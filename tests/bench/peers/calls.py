"""Calls of one model beside the peers: median milliseconds, sides in turns, answers compared."""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

from side import Side, warn_if_busy

PEERS = ["onnxruntime", "openvino-static"]
PAUSE = 0.2  # seconds: threads of the side before spin for a while when its call has ended


def options(description, models):
    """Parses the flags that the programs of models with random weights share; `models`: names, by default all."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True, help="the folder of the models")
    parser.add_argument("--threads", default="1", help="1,2: one table line for each")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default=models, help="names of models")
    parser.add_argument("--max-isa", default="", help="of Reprise")
    return parser


def compare(arguments, cases, peers=lambda model: PEERS):
    """Prints a table line for each call. `cases(model)`: labels and inputs (arrays, in the model's order);
    `peers(model)`: the PEERS that run it."""
    warn_if_busy()
    worker = str(pathlib.Path(__file__).with_name("peer_worker.py"))
    cap = ["--max-isa", arguments.max_isa] if arguments.max_isa else []
    print("median ms of a call; error: largest difference from onnxruntime over its largest answer")
    print(f"{'model':>14}{'threads':>9}{'call':>18}" + "".join(f"{n:>18}" for n in ["reprise", *PEERS])
          + f"{'vs best':>9}{'error':>10}")
    with tempfile.TemporaryDirectory() as scratch:
        for model in arguments.only.split():
            path = str(pathlib.Path(arguments.model) / f"{model}.onnx")
            names = ["reprise", *peers(model)]
            for threads in arguments.threads.split(","):
                sides = {n: Side(n, [sys.executable, worker, n, path, threads]) for n in names[1:]}
                sides["reprise"] = Side("reprise",
                                        [arguments.engine, path, "--threads", threads, *cap])
                for label, arrays in cases(model):
                    median, error = _time(sides, names, arrays, arguments.rounds,
                                          pathlib.Path(scratch))
                    print(f"{model:>14}{threads:>9}{label:>18}"
                          + "".join(f"{median[n]:18.2f}" if n in median else f"{'-':>18}"
                                    for n in ["reprise", *PEERS])
                          + f"{min(median[n] for n in names[1:]) / median['reprise']:9.2f}"
                          + f"{error:10.1e}", flush=True)
                for side in sides.values():
                    side.close()


def _time(sides, names, arrays, rounds, scratch):
    inputs = []
    for i, array in enumerate(arrays):
        file = scratch / f"input.{i}"
        array.tofile(file)
        inputs.append({"shape": array.shape, "file": str(file), "dtype": str(array.dtype)})
    answers, times = {}, {n: [] for n in names}
    for name in names:
        prefix = str(scratch / name)
        sides[name].ask(op="time", inputs=inputs, repeat=2, outputs=prefix)
        answers[name] = np.fromfile(prefix + ".0", dtype=np.float32)
    for _ in range(rounds):
        for name in names:
            time.sleep(PAUSE)
            ns = sides[name].ask(op="time", inputs=inputs, repeat=3)["ns"]
            times[name].append(statistics.median(ns) / 1e6)
    truth = answers["onnxruntime"]
    error = np.abs(answers["reprise"] - truth).max() / np.abs(truth).max()
    return {n: statistics.median(t) for n, t in times.items()}, error
