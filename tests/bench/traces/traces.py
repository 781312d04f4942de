"""Replays seeded traces of lengths through the real daemon: the waste of its own buckets beside others'.

See tests/bench/traces/run. For each trace there is a daemon whose buckets follow the traffic (`auto`),
daemons whose boundaries are fixed (the offline optimum of the measured requests, powers of two, multiples
of 128, percentiles of the requests before them), and one without any configuration (`packed`).

Measured are the last 1000 requests of a trace: the 1001st to the 2000th, of a trace that drifts those
from the 1001st after the drift on. The daemons take turns at 100 requests each, so that whatever else the
machine does meets all of them alike; `auto` has had all requests before, the fixed ones enough of them to
have their recipes.

  elements  computed, over the elements of the best 8 boundaries when every request is alone
  time      of replays, over the time of the daemon that has those boundaries
  p99 ms    of requests; `after drift`: of the 1000 requests that follow it
  compiles  in the measured requests
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

ROOT = pathlib.Path(__file__).parents[3]
os.environ.setdefault("REPRISE_BUILD_DIR", str(ROOT / "build/release"))
os.environ.setdefault("REPRISE_SOURCE_DIR", str(ROOT))
os.environ.setdefault("REPRISE_CACHE", str(pathlib.Path.home() / ".cache/reprise"))
sys.path.insert(0, str(ROOT / "tests"))

from testing import models  # noqa: E402
from testing.clients import together  # noqa: E402
from testing.daemon import Daemon  # noqa: E402
from testing.inference import infer, text_inputs  # noqa: E402
from testing.metrics import Scrape  # noqa: E402
from testing.repository import MINILM, Repository  # noqa: E402

BUCKETS = 8
LONGEST = 512
MEASURED = 1000
DRIFT_AT = 1500
TURN = 100
WARM_FIXED = 200
SIDES = ["auto", "optimum", "powers", "linear", "percentile", "packed"]
FIXED = ["powers", "linear", "percentile"]
# Two daemons with the same boundaries differ by as much in time.
NOISE = 1.02


def lognormal(rng, count, median, sigma, low, high):
    return np.clip(np.rint(rng.lognormal(np.log(median), sigma, count)), low, high).astype(int)


def lumps(rng, count, centres, spread):
    return np.clip(rng.choice(centres, count) + rng.integers(-spread, spread + 1, count), 1, LONGEST)


def make_traces(seed):
    """Name -> lengths in order of arrival."""
    rng = np.random.default_rng(seed)
    chat = np.where(rng.random(2000) < 0.5, lognormal(rng, 2000, 20, 0.6, 8, 512),
                    lognormal(rng, 2000, 300, 0.4, 8, 512))
    first = lumps(rng, DRIFT_AT, [40, 70, 140, 300], 2)
    then = lumps(rng, 2 * MEASURED, [25, 100, 200, 410], 2)
    return {
        "squad": lognormal(rng, 2000, 150, 0.5, 16, 512),
        "chat": chat,
        "lumpy": lumps(rng, 2000, [18, 45, 77, 140, 270, 410], 3),
        "short": lognormal(rng, 2000, 14, 0.6, 4, 64),
        "drift": np.concatenate([first, then]),
    }


def optimum(lengths, most):
    """Returns the boundaries of least padding, by dynamic programming."""
    sizes, counts = np.unique(lengths, return_counts=True)
    n = len(sizes)
    before = np.concatenate([[0], np.cumsum(counts)])
    cost = np.full((most + 1, n + 1), np.inf)
    cut = np.zeros((most + 1, n + 1), int)
    cost[:, 0] = 0
    for k in range(1, most + 1):
        for end in range(1, n + 1):
            total = cost[k - 1, :end] + sizes[end - 1] * (before[end] - before[:end])
            cut[k, end] = int(total.argmin())
            cost[k, end] = total[cut[k, end]]
    boundaries, end = [], n
    for k in range(most, 0, -1):
        if end == 0:
            break
        boundaries.append(int(sizes[end - 1]))
        end = cut[k, end]
    return sorted(boundaries)


def computed(lengths, boundaries):
    return int(np.asarray(boundaries)[np.searchsorted(boundaries, lengths)].sum())


def percentiles(lengths):
    steps = np.linspace(0, 100, BUCKETS + 1)[1:]
    return sorted({*np.percentile(lengths, steps, method="lower").astype(int)} | {LONGEST})


def parameters_of(side, lengths):
    """Returns the text of config.pbtxt; users without one get no more than this."""
    if side == "packed":
        return {}
    buckets = {
        "auto": None,
        "optimum": optimum(lengths[-MEASURED:], BUCKETS),
        "powers": [16, 32, 64, 128, 256, 512],
        "linear": [128, 256, 384, 512],
        "percentile": percentiles(lengths[:-MEASURED]),
    }[side]
    parameters = {"packing": "off"}
    if buckets is not None:
        parameters["sequence_buckets"] = ",".join(map(str, buckets))
    return parameters


class Side:
    """A daemon, and the requests sent to it."""

    def __init__(self, name, folder, model, parameters, names, clients):
        self.name, self._names, self._clients = name, names, clients
        repository = Repository(folder)
        repository.add("model", model, config="".join(
            f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}\n'
            for key, value in parameters.items()) or None)
        self.daemon = Daemon(repository)
        self.took = []
        self.p99_after_drift_ms = None
        self._before = None

    def send(self, lengths):
        """Seconds that each request took, in no order."""
        took = []
        position = iter(range(len(lengths)))
        lock = threading.Lock()

        def work(_):
            client, rng = self.daemon.client(), np.random.default_rng(1)
            while True:
                with lock:
                    i = next(position, None)
                if i is None:
                    return
                inputs = text_inputs(self._names, 1, int(lengths[i]), rng, 200)
                start = time.monotonic()
                infer(client, "model", inputs)
                took.append(time.monotonic() - start)

        together(work, range(self._clients))
        return took

    def learn(self, lengths, drifts):
        """Sends the requests before the measured ones."""
        if self.name not in ("auto", "packed"):
            self.send(lengths[-WARM_FIXED:])
        elif drifts:
            self.send(lengths[:DRIFT_AT])
            self.p99_after_drift_ms = p99_ms(self.send(lengths[DRIFT_AT:]))
        else:
            self.send(lengths)
        self._before = self._counters()

    def measure(self, lengths):
        self.took += self.send(lengths)

    def result(self):
        after = self._counters()
        result = {key: after[key] - self._before[key] for key in after}
        result["changes"] = after["changes"]
        result["elements"] = result["valid"] + result["padded"]
        result["padding"] = result["padded"] / result["elements"]
        result["p99_ms"] = p99_ms(self.took)
        result["p99_after_drift_ms"] = self.p99_after_drift_ms
        return result

    def _counters(self):
        scrape = Scrape(self.daemon.metrics_url)
        elements = scrape.by("reprise_elements_total", "kind", model="model", axis="sequence")
        return {
            "valid": elements.get("valid", 0),
            "padded": elements.get("padded", 0),
            "seconds": scrape.total("reprise_replay_duration_seconds_sum", model="model"),
            "replays": scrape.total("reprise_replay_duration_seconds_count", model="model"),
            "compiles": scrape.total("reprise_compiles_total", model="model"),
            "changes": scrape.total("reprise_bucket_changes_total", model="model"),
        }


def p99_ms(took):
    return 1e3 * statistics.quantiles(took, n=100)[98]


def replay(names, sides, model, lengths, clients, drifts):
    """Maps each side to its results for the measured requests."""
    with contextlib.ExitStack() as stack:
        running = []
        for name in sides:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            side = Side(name, folder, model, parameters_of(name, lengths), names, clients)
            stack.enter_context(side.daemon)
            side.learn(lengths[:-MEASURED], drifts)
            running.append(side)
        measured = lengths[-MEASURED:]
        for first in range(0, MEASURED, TURN):
            for side in running:
                side.measure(measured[first:first + TURN])
        return {side.name: side.result() for side in running}


class Bars:
    """Prints each promise and whether it was kept."""

    def __init__(self):
        self.rows = []

    def at_most(self, where, what, value, most):
        self.rows.append((where, what, value, most, value <= most))

    def judge(self, where, trace, offline, results):
        auto = results.get("auto")
        if "packed" in results:
            self.at_most(where, "padding, packed", results["packed"]["padding"], 0.03)
            self.at_most(where, "compiles, packed", results["packed"]["compiles"], 0)
        if auto is None:
            return
        self.at_most(where, "elements over the optimum", auto["elements"] / offline, 1.05)
        self.at_most(where, "compiles", auto["compiles"], 0)
        if "optimum" in results:
            ratio = auto["seconds"] / results["optimum"]["seconds"]
            self.at_most(where, "time over the optimum", ratio, 1.05)
        fixed = {name: results[name] for name in FIXED if name in results}
        if fixed:
            for what, noise in ("elements", 1), ("seconds", NOISE):
                best = min(fixed, key=lambda name: fixed[name][what])
                label = "time" if what == "seconds" else what
                self.at_most(where, f"{label} over the best fixed ({best})",
                             auto[what] / fixed[best][what], noise)
        if trace == "lumpy":
            self.at_most(where, "padding", auto["padding"], 0.05)
            for name in ("powers", "linear"):
                if name in results:
                    self.at_most(where, f"elements over {name}",
                                 auto["elements"] / results[name]["elements"], 2 / 3)
        if auto["p99_after_drift_ms"] is not None:
            self.at_most(where, "p99 after the drift over p99",
                         auto["p99_after_drift_ms"] / auto["p99_ms"], 1.5)

    def print(self):
        print(f"\n{'':22} {'':42} {'value':>7} {'bar':>6}")
        for where, what, value, most, held in self.rows:
            print(f"{where:22} {what:42} {value:7.3f} {most:6.3f} {'' if held else 'MISSED'}")
        missed = sum(not held for *_, held in self.rows)
        print(f"{len(self.rows) - missed} of {len(self.rows)} bars hold")
        return missed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(MINILM), help="model.onnx, or `tiny`: a made-up one")
    parser.add_argument("--traces", default="squad,chat,lumpy,short,drift")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--concurrency", default="1,8,16")
    parser.add_argument("--seed", type=int, default=2024)
    arguments = parser.parse_args()

    tiny = arguments.model == "tiny"
    model = models.bert() if tiny else pathlib.Path(arguments.model)
    names = ["input_ids", "attention_mask"] + ([] if tiny else ["token_type_ids"])
    traces = make_traces(arguments.seed)
    bars = Bars()
    print(f"{'trace':6} {'clients':>7} {'boundaries':10} {'padding':>8} {'elements':>8} {'time':>6} "
          f"{'rows':>5} {'p99 ms':>7} {'after drift':>11} {'compiles':>8} {'changes':>7}")
    for trace in arguments.traces.split(","):
        lengths = traces[trace]
        measured = lengths[-MEASURED:]
        offline = computed(measured, optimum(measured, BUCKETS))
        print(f"{trace:6} {'':7} {'offline':10} {1 - measured.sum() / offline:8.1%}")
        for clients in map(int, arguments.concurrency.split(",")):
            results = replay(names, arguments.sides.split(","), model, lengths, clients,
                             trace == "drift")
            for name, r in results.items():
                seconds = results.get("optimum", r)["seconds"]
                drift = r["p99_after_drift_ms"]
                print(f"{trace:6} {clients:7} {name:10} {r['padding']:8.1%} "
                      f"{r['elements'] / offline:8.3f} {r['seconds'] / seconds:6.3f} "
                      f"{MEASURED / r['replays']:5.2f} {r['p99_ms']:7.1f} "
                      f"{'' if drift is None else format(drift, '.1f'):>11} {r['compiles']:8.0f} "
                      f"{r['changes']:7.0f}", flush=True)
            bars.judge(f"{trace}, {clients} clients", trace, offline, results)
    sys.exit(0 if bars.print() else 1)


if __name__ == "__main__":
    main()
