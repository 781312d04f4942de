"""The cost of loading, of a new length and of a capture, in time and memory: Reprise beside its peers.

See tests/bench/peers/run --costs. Each side is a process of its own that has served nothing before.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np

from peers import make_inputs
from side import Side, cpu_name, warn_if_busy

LONGEST = 512
RECIPES = 20


def rss(side):
    return side.ask(op="memory")["rss_kb"] / 1024


def new_lengths(side, folder, lengths):
    """First call over second, of each length; the largest bucket and its like are there before."""
    side.ask(op="time", inputs=make_inputs(folder, 1, LONGEST, 1))
    ratios, lost = [], []
    for length in lengths:
        inputs = make_inputs(folder, 1, int(length), int(length))
        first = side.ask(op="time", inputs=inputs)["ns"][0]
        second = statistics.median(side.ask(op="time", inputs=inputs, repeat=3)["ns"])
        ratios.append(first / second)
        lost.append((first - second) / 1e6)
    return statistics.median(ratios), max(lost)


def recipe_memory(engine, folder):
    """MiB of resident memory that one more recipe takes, the arena being there; captures' times."""
    side = Side("reprise padded", engine + ["--capture", "inline"])
    shapes = [(rows, length) for rows in (8, 4, 2, 1) for length in (128, 64, 32, 16, 256, 512)]
    shapes = [s for s in shapes if s[0] * s[1] <= 1024]
    for _ in range(2):
        side.ask(op="time", inputs=make_inputs(folder, *shapes[0], 1))
    before = rss(side)
    for shape in shapes[1:RECIPES + 1]:
        side.ask(op="time", inputs=make_inputs(folder, *shape, 1))
    after = rss(side)
    captures = side.ask(op="captures")["captures"]
    side.close()
    return (after - before) / (len(captures) - 1), captures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--lengths", type=int, default=40, help="new lengths of each side")
    parser.add_argument("--json", help="write the figures")
    arguments = parser.parse_args()
    warn_if_busy()
    worker = str(pathlib.Path(__file__).with_name("peer_worker.py"))
    engine = [arguments.engine, arguments.model]
    commands = {"reprise": engine + ["--packing", "auto"], "reprise padded": engine}
    for peer in ("onnxruntime", "openvino-dynamic", "openvino-static"):
        commands[peer] = [sys.executable, worker, peer, arguments.model, "1"]
    lengths = np.random.default_rng(3).permutation(np.arange(1, LONGEST))[:arguments.lengths]
    run = {"cpu": cpu_name(), "sides": {}}
    print(f"{len(lengths)} lengths not seen before, one row, one thread; {run['cpu']}")
    print(f"{'':20}{'load ms':>9}{'first/second call':>19}{'worst lost ms':>15}"
          f"{'MiB loaded':>12}{'MiB after':>11}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name, command in commands.items():
            side = Side(name, command)
            loaded = rss(side)
            if name == "reprise padded":
                # It captures buckets, not lengths: they are there first.
                for bucket in (16, 32, 64, 128, 256):
                    side.ask(op="time", inputs=make_inputs(folder, 1, bucket, 1))
            ratio, lost = new_lengths(side, folder, lengths)
            after = rss(side)
            side.close()
            print(f"{name:20}{side.load_ms:9.0f}{ratio:19.2f}{lost:15.2f}{loaded:12.0f}"
                  f"{after:11.0f}", flush=True)
            run["sides"][name] = {"load_ms": side.load_ms, "first_over_second": ratio,
                                  "worst_lost_ms": lost, "loaded_mb": loaded, "after_mb": after}
        memory, captures = recipe_memory(engine, folder)
        own = sorted(c["capture_us"] / 1e3 for c in captures)
        prime = sorted(c["prime_us"] / 1e3 for c in captures)
        print(f"\n{len(captures)} recipes: one more takes {memory * 1024:.0f} KiB beyond the arena; "
              f"a capture {statistics.median(own):.1f} ms (most {own[-1]:.1f}), priming "
              f"{statistics.median(prime):.1f} ms (most {prime[-1]:.1f})")
        run["recipe_kib"], run["captures"] = memory * 1024, captures
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(run, indent=1) + "\n")


main()
