"""Alternates Reprise's engine with its peers over the same inputs and prints ratios.

See tests/bench/peers/run. Each side is a process of its own that answers line by line; the sides
take turns within every round, so that a busy machine hurts all of them alike.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

import chart
from side import Side, cpu_name, warn_if_busy

LINES = "1x8 1x16 1x32 1x64 1x128 1x256 1x512 8x32 8x128"
PEERS = ["onnxruntime", "openvino-dynamic", "openvino-static"]
# Shown beside them, and no part of the best: it does not compute in float32.
EXTRA = "openvino-static-as-shipped"
# Ours with `reprise.precision: bf16`, or int8, which are to be compared with that.
ROUNDED = "reprise-bf16"
BYTES = "reprise-int8"
# Reads as many bytes as a replay reads weights, in its turn, and nothing else.
READER = "reader"


def make_inputs(folder, rows, length, seed):
    """Token ids of real-looking sentences, all of full length; files and shapes of one request."""
    random = np.random.default_rng(seed)
    arrays = [random.integers(1000, 30000, (rows, length)), np.ones((rows, length)),
              np.zeros((rows, length))]
    inputs = []
    for i, array in enumerate(arrays):
        path = folder / f"{rows}x{length}.{i}.raw"
        array.astype(np.int64).tofile(path)
        inputs.append({"shape": [rows, length], "file": str(path)})
    return inputs


def compare(folder, sides, inputs, quantized):
    """Returns the largest |x - onnxruntime| of the first output, over 1e-4 + 1e-4 |onnxruntime|, by side: at
    most 1 is float32. Of a quantised model |x - onnxruntime| over |onnxruntime|, of whole outputs:
    either nearly 0, or a number fell to the other side when it was rounded, and all that follow it too."""
    answers = {}
    for side in sides:
        prefix = str(folder / f"out.{side.name}")
        side.ask(op="time", inputs=inputs, outputs=prefix)
        answers[side.name] = np.fromfile(prefix + ".0", dtype=np.float32)
    truth = answers["onnxruntime"]
    if quantized:
        return {name: float(np.linalg.norm(x - truth) / np.linalg.norm(truth))
                for name, x in answers.items()}
    bound = 1e-4 + 1e-4 * np.abs(truth)
    return {name: float(np.max(np.abs(x - truth) / bound)) for name, x in answers.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeat", type=int, default=5, help="calls of a side in one turn")
    parser.add_argument("--lines", default=LINES, help="ROWSxLENGTH ...")
    parser.add_argument("--peers", default=" ".join(PEERS + [EXTRA]))
    parser.add_argument("--max-isa", default="")
    parser.add_argument("--packing", default="auto", choices=["auto", "off"],
                        help="auto: as the server does by default; off: rows padded to buckets")
    parser.add_argument("--bf16", action="store_true",
                        help="also ours with reprise.precision: bf16, beside the peer as shipped")
    parser.add_argument("--int8", action="store_true",
                        help="also ours with reprise.precision: int8, beside the peer as shipped")
    parser.add_argument("--quantized", action="store_true",
                        help="the model is: answers differ by roundings, which are shown, not judged")
    parser.add_argument("--json", help="write the figures")
    parser.add_argument("--svg", help="write a picture")
    arguments = parser.parse_args()

    busy = warn_if_busy()
    worker = str(pathlib.Path(__file__).with_name("peer_worker.py"))
    engine = [arguments.engine, arguments.model, "--threads", str(arguments.threads),
              "--packing", arguments.packing]
    if arguments.max_isa:
        engine += ["--max-isa", arguments.max_isa]
    sides = [Side("reprise", engine)]
    for peer in arguments.peers.split():
        sides.append(Side(peer, [sys.executable, worker, peer, arguments.model,
                                 str(arguments.threads)]))
    reader = Side(READER, engine)
    if arguments.bf16:
        sides.append(Side(ROUNDED, engine + ["--precision", "bf16"]))
    if arguments.int8:
        sides.append(Side(BYTES, engine + ["--precision", "int8"]))
    print("load, ms: " + ", ".join(f"{s.name} {s.load_ms:.0f}" for s in sides))
    names = [s.name for s in sides]
    float32 = [n for n in names[1:] if n not in (EXTRA, ROUNDED, BYTES)]
    roundings = [(n, n.removeprefix("reprise-")) for n in (ROUNDED, BYTES) if n in names]
    error_words = ("distance over onnxruntime's length" if arguments.quantized
                   else "in units of 1e-4 + 1e-4 |onnxruntime|")
    print(f"\nmedian ms, {arguments.threads} thread{'s' if arguments.threads > 1 else ''}; error: "
          f"{error_words}; vs best: of the float32 peers; roofline: the share "
          "of our time that this machine needs at its measured bandwidth and its peak rate of float32 "
          "multiply-adds, which a tile unit exceeds; in turn: the same where the weights are read as "
          "fast as a plain reader of as many bytes reads in turns of its own, between the others, and "
          "not again and again")
    titles = {EXTRA: "(as shipped)"}
    print(f"{'rows x length':>14}" + "".join(f"{titles.get(n, n):>18}" for n in names) +
          f"{'vs ' + names[1]:>16}{'vs best':>9}{'roofline':>10}{'in turn':>9}{'error':>8}" +
          (f"{'as shipped':>12}" if EXTRA in names else "") +
          "".join(f"{short:>8}" for _, short in roundings) +
          "".join(f"{short + ' vs as shipped':>20}" for _, short in roundings if EXTRA in names))
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for line in arguments.lines.split():
            rows, length = (int(x) for x in line.split("x"))
            inputs = make_inputs(folder, rows, length, seed=rows * 1000 + length)
            error = compare(folder, sides, inputs, arguments.quantized)
            profile = dict(op="profile", inputs=inputs, repeat=arguments.repeat)
            roofline = sides[0].ask(**profile)
            read = dict(op="read", bytes=int(roofline["weight_bytes"]), repeat=arguments.repeat)
            times = {s.name: [] for s in sides}
            read_gbytes = []
            for _ in range(arguments.rounds):
                for side in sides:
                    ns = side.ask(op="time", inputs=inputs, repeat=arguments.repeat)["ns"]
                    times[side.name].append(statistics.median(ns) / 1e6)
                answer = reader.ask(**read)
                read_gbytes.append(answer["bytes"] / statistics.median(answer["ns"]))
            median = {n: statistics.median(t) for n, t in times.items()}
            gbytes = statistics.median(read_gbytes)
            in_turn = sides[0].ask(**profile, gflops=roofline["gflops"], weight_gbytes=gbytes)
            # Of one thread; more of them can at best share it evenly.
            floor, turn_floor = (x["floor_ns"] / 1e6 / arguments.threads for x in (roofline, in_turn))
            ours = median["reprise"]
            best = min(median[n] for n in float32)
            print(f"{line:>14}" + "".join(f"{median[n]:18.2f}" for n in names) +
                  f"{median[names[1]] / ours:16.2f}{best / ours:9.2f}{floor / ours:10.0%}"
                  f"{turn_floor / ours:9.0%}{error['reprise']:8.3f}" +
                  (f"{error[EXTRA]:12.1f}" if EXTRA in names else "") +
                  "".join(f"{error[n]:8.1f}" for n, _ in roundings) +
                  "".join(f"{median[EXTRA] / median[n]:20.2f}" for n, _ in roundings
                          if EXTRA in names), flush=True)
            results.append({"line": line, "median_ms": median, "floor_ms": floor,
                            "turn_floor_ms": turn_floor, "gflops": roofline["gflops"],
                            "gbytes": roofline["gbytes"], "turn_gbytes": gbytes,
                            "vs_best": best / ours, "share_of_roofline": floor / ours,
                            "share_in_turn": turn_floor / ours,
                            "error": error})
            for name in ["reprise"] + float32:
                if error[name] > 1 and not arguments.quantized:
                    sys.exit(f"{name} differs at {line}: {error[name]:.2f} times the bound")
        memory = {s.name: s.ask(op="memory")["rss_kb"] / 1024 for s in sides}
    print("\nmemory, MB: " + ", ".join(f"{n} {m:.0f}" for n, m in memory.items()))
    run = {"date": datetime.date.today().isoformat(), "cpu": cpu_name(),
           "model": pathlib.Path(arguments.model).parent.name, "threads": arguments.threads,
           "rounds": arguments.rounds, "busy": busy, "cpus": os.cpu_count(),
           "load_ms": {s.name: s.load_ms for s in sides}, "memory_mb": memory, "lines": results}
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(run, indent=1) + "\n")
    if arguments.svg:
        pathlib.Path(arguments.svg).write_text(chart.svg(run))


if __name__ == "__main__":
    main()
