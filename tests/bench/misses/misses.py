"""Counts the requests that wait for a capture, through the real daemon and seeded traces of lengths.

See tests/bench/misses/run. Each trace goes to a fresh daemon, which learns from the first half of the
requests; the second half is called settled. The daemon has limits of memory, and is sampled four times a
second.

  waited     answers that say `captured` or `waited`
  unexcused  of these, requests that were sent after an answer had named a ready recipe that is large
             enough; of `exact`, a model that may not be padded, one of that very size
  captures   in all, and of the settled half: it is to be 0
  worst ms   of the requests that did not wait, in the settled half, beside their p50 and p99
  MB         the most at any sample: recipes, arenas, the ops prepared by eager runs, and how much the process
             had grown since it was ready; beside the sum of the limits
"""

import argparse
import os
import pathlib
import re
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests/bench/traces"))

import traces as lengths_of  # noqa: E402  (sets the environment of the tests' modules)
from testing import models  # noqa: E402
from testing.clients import together  # noqa: E402
from testing.daemon import Daemon  # noqa: E402
from testing.inference import infer, text_inputs  # noqa: E402
from testing.metrics import Scrape  # noqa: E402
from testing.repository import MINILM, Repository  # noqa: E402

LIMITS_MB = {"recipe-cache": 64, "arena": 512, "eager-cache": 16}
# Other memory of a process: buffers of requests, the allocator's slack.
SLACK_MB = 48
TRACES = ["squad", "chat", "lumpy", "drift", "new", "exact"]


def make_trace(name, seed, count):
    rng = np.random.default_rng(seed)
    if name == "new":  # every length that there is, in one order and then in another
        return np.concatenate([rng.permutation(512) + 1 for _ in range(count // 512 + 1)])[:count]
    if name == "exact":  # none comes twice
        return rng.permutation(count) + 1
    lengths = lengths_of.make_traces(seed)[name]
    start = lengths_of.DRIFT_AT - count // 4 if name == "drift" else 0
    return lengths[start:start + count]


class Sampler:
    """The most that each kind of memory took at any sample."""

    def __init__(self, daemon):
        self._daemon, self._stop = daemon, threading.Event()
        self._ready_rss = daemon.rss_bytes()
        self.most, self.samples = {}, 0
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self):
        last = False
        while not last:
            last = self._stop.wait(0.25)
            scrape = Scrape(self._daemon.metrics_url)
            now = {"recipe-cache": scrape.total("reprise_cache_bytes"),
                   "arena": scrape.total("reprise_memory_bytes", kind="arena"),
                   "eager-cache": scrape.total("reprise_eager_cache_bytes"),
                   "rss": self._daemon.rss_bytes() - self._ready_rss}
            self.samples += 1
            for kind, value in now.items():
                self.most[kind] = max(self.most.get(kind, 0), value / 2**20)

    def end(self):
        self._stop.set()
        self._thread.join()


class Run:
    """The requests of one trace, and the answers about each."""

    def __init__(self, daemon, inputs_of, exact):
        self._daemon, self._inputs_of, self._exact = daemon, inputs_of, exact
        self._lock = threading.Lock()
        self._named = []  # (time of the answer, bucket, length)
        self.answers = []  # (sent, took, length, capture)

    def send(self, lengths, clients):
        position = iter(range(len(lengths)))

        def work(_):
            client, rng = self._daemon.client(), np.random.default_rng(1)
            while True:
                with self._lock:
                    i = next(position, None)
                if i is None:
                    return
                length = int(lengths[i])
                inputs = self._inputs_of(length, rng)
                sent = time.monotonic()
                answer = infer(client, "model", inputs)
                end = time.monotonic()
                with self._lock:
                    self.answers.append((sent, end - sent, length, answer.capture))
                    if answer.capture != "eager":
                        self._named.append((end, answer.bucket, length))

        together(work, range(clients))

    def _holds(self, bucket, length_of_it, length):
        if self._exact:
            return length_of_it == length
        padded, packed = re.fullmatch(r"b\d+_s(\d+)", bucket), re.fullmatch(r"t(\d+)", bucket)
        size = padded or packed
        return size is not None and int(size.group(1)) >= length

    def waited(self):
        return [one for one in self.answers if one[3] in ("captured", "waited")]

    def unexcused(self):
        return [(length, capture) for sent, _, length, capture in self.waited()
                if any(at < sent and self._holds(bucket, had, length)
                       for at, bucket, had in self._named)]


def measure(trace, packing, clients, arguments):
    cores = sorted(os.sched_getaffinity(0))
    tiny = arguments.model == "tiny"
    names = ["input_ids", "attention_mask"] + ([] if tiny else ["token_type_ids"])
    exact = trace == "exact"
    if exact:
        model = models.mixes_sequence()

        def inputs_of(length, rng):
            return {"x": rng.normal(size=(1, length)).astype(np.float32)}
    else:
        model = models.bert() if tiny else pathlib.Path(arguments.model)

        def inputs_of(length, rng):
            return text_inputs(names, 1, length, rng, 200)
    lengths = make_trace(trace, arguments.seed, arguments.requests)
    flags = [word for kind, mb in LIMITS_MB.items() for word in (f"--{kind}-memory-mb", str(mb))]
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(folder)
        repository.add("model", model, config=None if packing == "auto" else
                       'parameters { key: "reprise.packing" value { string_value: "off" } }')
        daemon = Daemon(repository, *flags)
        os.sched_setaffinity(0, {cores[0]})  # the daemon inherits it
        daemon.start()
        os.sched_setaffinity(0, {cores[-1]})
        try:
            daemon.wait_ready()
            sampler = Sampler(daemon)
            run = Run(daemon, inputs_of, exact)
            compiles = []
            halves = np.array_split(lengths, 2)
            for half in halves:
                run.send(half, clients)
                compiles.append(Scrape(daemon.metrics_url).total("reprise_compiles_total"))
            sampler.end()
        finally:
            daemon.__exit__(None, None, None)
            os.sched_setaffinity(0, set(cores))
    settled = [1e3 * took for _, took, _, capture in run.answers[len(halves[0]):]
               if capture not in ("captured", "waited")]
    cuts = statistics.quantiles(settled, n=100)
    kinds = [capture for *_, capture in run.answers]
    return {"waited": len(run.waited()), "unexcused": len(run.unexcused()), "larger": kinds.count("larger"),
            "eager": kinds.count("eager"), "captures": compiles[1], "settled": compiles[1] - compiles[0],
            "p50": cuts[49], "p99": cuts[98], "worst": max(settled), "most": sampler.most,
            "samples": sampler.samples}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(MINILM), help="model.onnx, or `tiny`: a made-up one")
    parser.add_argument("--traces", default=",".join(TRACES))
    parser.add_argument("--packing", default="auto,off")
    parser.add_argument("--clients", default="1,8")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=2024)
    arguments = parser.parse_args()
    growth = sum(LIMITS_MB.values()) + SLACK_MB
    print(f"{'trace':6} {'packing':7} {'clients':>7} {'waited':>6} {'unexcused':>9} {'larger':>6} {'eager':>5} "
          f"{'captures':>8} {'settled':>7} {'p50 ms':>7} {'p99 ms':>7} {'worst':>7}  MB: recipes of "
          f"{LIMITS_MB['recipe-cache']}, arenas of {LIMITS_MB['arena']}, eager of "
          f"{LIMITS_MB['eager-cache']}, growth of {growth}")
    missed = 0
    for trace in arguments.traces.split(","):
        for packing in arguments.packing.split(","):
            if trace == "exact" and packing == "off":
                continue  # it is never packed
            for clients in map(int, arguments.clients.split(",")):
                r = measure(trace, packing, clients, arguments)
                within = (r["most"]["rss"] <= growth and
                          all(r["most"][kind] <= mb for kind, mb in LIMITS_MB.items()))
                held = not r["unexcused"] and within and not r["settled"]
                missed += not held
                print(f"{trace:6} {packing:7} {clients:7} {r['waited']:6} {r['unexcused']:9} {r['larger']:6} "
                      f"{r['eager']:5} {r['captures']:8.0f} {r['settled']:7.0f} {r['p50']:7.2f} {r['p99']:7.2f} "
                      f"{r['worst']:7.1f}  {r['most']['recipe-cache']:.1f}, {r['most']['arena']:.1f}, "
                      f"{r['most']['eager-cache']:.1f}, {r['most']['rss']:.1f} ({r['samples']} samples)"
                      f"{'' if held else ' MISSED'}", flush=True)
    print("every bar holds" if not missed else f"{missed} rows miss a bar")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
