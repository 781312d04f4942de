"""Traffic of mixed lengths: tokens a second of Reprise and its peers, cold and warm, engine only.

See tests/bench/peers/run --traces. Every line of the table is a process of its own, so that each
pays for new lengths itself; whatever lies within a window of 32 requests may share a call.
"""

import argparse
import json
import pathlib
import statistics
import sys

import numpy as np

from side import Side, cpu_name, warn_if_busy

POWERS = [16, 32, 64, 128, 256, 512]
WAYS = {
    "onnxruntime one by one": ("onnxruntime", {"batch": 1}),
    "onnxruntime in 8s": ("onnxruntime", {"batch": 8}),
    "onnxruntime in 32s": ("onnxruntime", {"batch": 32}),
    "openvino one by one": ("openvino-dynamic", {"batch": 1}),
    "openvino in 8s": ("openvino-dynamic", {"batch": 8}),
    "openvino in 32s": ("openvino-dynamic", {"batch": 32}),
    "openvino static, powers of two": ("openvino-static", {"batch": 1, "buckets": POWERS}),
}


def traces(requests):
    rng = np.random.default_rng(2024)

    def lognormal(median, sigma, low, high, count):
        return np.clip(np.rint(rng.lognormal(np.log(median), sigma, count)), low, high).astype(int)

    half = lognormal(20, 0.6, 8, 512, requests)
    chat = np.where(rng.random(requests) < 0.5, half, lognormal(300, 0.4, 8, 512, requests))
    return {"short": lognormal(14, 0.6, 4, 64, requests),
            "squad": lognormal(150, 0.5, 16, 512, requests), "chat": chat}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3, help="warm passes of each side, in turns")
    parser.add_argument("--only", default="", help="short, squad or chat")
    parser.add_argument("--max-isa", default="", help="of Reprise")
    parser.add_argument("--json", help="write the figures")
    arguments = parser.parse_args()
    warn_if_busy()
    worker = str(pathlib.Path(__file__).with_name("peer_worker.py"))
    engine = [arguments.engine, arguments.model, "--threads", str(arguments.threads),
              "--packing", "auto"]
    if arguments.max_isa:
        engine += ["--max-isa", arguments.max_isa]
    run = {"cpu": cpu_name(), "requests": arguments.requests, "traces": {}}
    for trace, lengths in traces(arguments.requests).items():
        if arguments.only and arguments.only != trace:
            continue
        tokens = int(lengths.sum())
        command = {"op": "trace", "lengths": lengths.tolist(), "window": 32}
        sides = [(Side("reprise", engine), command)]
        for name, (peer, how) in WAYS.items():
            sides.append((Side(name, [sys.executable, worker, peer, arguments.model,
                                      str(arguments.threads)]), command | how))
        cold, warm = {}, {}
        for side, ask in sides:
            cold[side.name] = tokens * 1e9 / side.ask(**ask)["ns"][0]
        for _ in range(arguments.rounds):
            for side, ask in sides:
                warm.setdefault(side.name, []).append(tokens * 1e9 / side.ask(**ask)["ns"][0])
        warm = {name: statistics.median(rates) for name, rates in warm.items()}
        print(f"\n{trace}: {arguments.requests} requests, {tokens} tokens; tokens a second, "
              f"{arguments.threads} thread{'s' if arguments.threads > 1 else ''}")
        print(f"{'':32}{'cold':>10}{'warm':>10}{'ours / it, cold':>17}{'warm':>8}")
        for side, _ in sides:
            print(f"{side.name:32}{cold[side.name]:10.0f}{warm[side.name]:10.0f}"
                  f"{cold['reprise'] / cold[side.name]:17.2f}"
                  f"{warm['reprise'] / warm[side.name]:8.2f}")
        for kind in ("onnxruntime", "openvino"):
            names = [n for n in cold if n.startswith(kind)]
            print(f"{'best of ' + kind:32}{max(cold[n] for n in names):10.0f}"
                  f"{max(warm[n] for n in names):10.0f}"
                  f"{cold['reprise'] / max(cold[n] for n in names):17.2f}"
                  f"{warm['reprise'] / max(warm[n] for n in names):8.2f}", flush=True)
        run["traces"][trace] = {"tokens": tokens, "cold": cold, "warm": warm}
        for side, _ in sides:
            side.close()
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(run, indent=1) + "\n")


main()
