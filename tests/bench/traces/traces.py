"""Replays seeded traces of lengths through the real daemon: what its own buckets waste beside others.

See tests/bench/traces/run. For each trace a daemon that finds its own buckets (`auto`), and daemons whose
boundaries are fixed: the offline optimum of the measured requests, powers of two, multiples of 128.
Measured are the last 1000 requests of a trace, after as many as it took to get there; of a trace that
drifts, those from the 1001st after the drift on. `elements` is what was computed over what the
offline optimum computes when every request is alone; `time` is the time of replays over that of the
daemon that has the optimum as its boundaries.
"""

import argparse
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
from testing.daemon import Daemon  # noqa: E402
from testing.inference import infer, text_inputs  # noqa: E402
from testing.metrics import Scrape  # noqa: E402
from testing.repository import MINILM, Repository  # noqa: E402

BUCKETS = 8
LONGEST = 512
MEASURED = 1000


def lognormal(rng, count, median, sigma, low, high):
    return np.clip(np.rint(rng.lognormal(np.log(median), sigma, count)), low, high).astype(int)


def lumps(rng, count, centres, spread):
    return np.clip(rng.choice(centres, count) + rng.integers(-spread, spread + 1, count), 1, LONGEST)


def make_traces(seed):
    """Name -> lengths in order of arrival, and how many of them are not measured."""
    rng = np.random.default_rng(seed)
    chat = lambda count: np.where(rng.random(count) < 0.5, lognormal(rng, count, 20, 0.6, 8, 512),
                                  lognormal(rng, count, 300, 0.4, 8, 512))
    first = lumps(rng, 1500, [40, 70, 140, 300], 2)
    then = lumps(rng, 2000, [25, 100, 200, 410], 2)
    return {
        "squad": lognormal(rng, 2000, 150, 0.5, 16, 512),
        "chat": chat(2000),
        "lumpy": lumps(rng, 2000, [18, 45, 77, 140, 270, 410], 3),
        "short": lognormal(rng, 2000, 14, 0.6, 4, 64),
        "drift": np.concatenate([first, then]),
    }


def optimum(lengths, most):
    """The boundaries of least padding, by dynamic programming."""
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


class Side:
    def __init__(self, name, parameters):
        self.name = name
        self.config = "".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                              for key, value in parameters.items())


def run_requests(daemon, names, lengths, clients):
    """Seconds that each request took, in no order."""
    took, errors = [], []
    position = iter(range(len(lengths)))
    lock = threading.Lock()

    def work():
        client, rng = daemon.client(), np.random.default_rng(1)
        try:
            while True:
                with lock:
                    i = next(position, None)
                if i is None:
                    return
                inputs = text_inputs(names, 1, int(lengths[i]), rng, 200)
                start = time.monotonic()
                infer(client, "model", inputs)
                took.append(time.monotonic() - start)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return took


def counters(daemon):
    scrape = Scrape(daemon.metrics_url)
    elements = scrape.by("reprise_elements_total", "kind", model="model", axis="sequence")
    return {
        "valid": elements.get("valid", 0),
        "padded": elements.get("padded", 0),
        "seconds": scrape.total("reprise_replay_duration_seconds_sum", model="model"),
        "replays": scrape.total("reprise_replay_duration_seconds_count", model="model"),
        "compiles": scrape.total("reprise_compiles_total", model="model"),
        "changes": scrape.total("reprise_bucket_changes_total", model="model"),
    }


def measure(side, model, names, lengths, clients):
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(folder)
        repository.add("model", model, config=side.config or None)
        with Daemon(repository) as daemon:
            run_requests(daemon, names, lengths[:-MEASURED], clients)
            before = counters(daemon)
            took = run_requests(daemon, names, lengths[-MEASURED:], clients)
            after = counters(daemon)
    result = {key: after[key] - before[key] for key in after}
    result["all_changes"] = after["changes"]
    result["p99_ms"] = 1e3 * statistics.quantiles(took, n=100)[98]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(MINILM), help="model.onnx, or `tiny`: a made-up one")
    parser.add_argument("--traces", default="squad,chat,lumpy,short,drift")
    parser.add_argument("--sides", default="auto,optimum,powers,linear")
    parser.add_argument("--concurrency", default="1,8")
    parser.add_argument("--packing", default="off", choices=["off", "auto"])
    parser.add_argument("--seed", type=int, default=2024)
    arguments = parser.parse_args()

    tiny = arguments.model == "tiny"
    model = models.bert() if tiny else pathlib.Path(arguments.model)
    names = ["input_ids", "attention_mask"] + ([] if tiny else ["token_type_ids"])
    print(f"{'trace':6} {'clients':>7} {'boundaries':10} {'padding':>8} {'elements':>8} {'time':>6} "
          f"{'rows':>5} {'p99 ms':>7} {'captures':>8} {'changes':>7}")
    for trace, lengths in make_traces(arguments.seed).items():
        if trace not in arguments.traces.split(","):
            continue
        measured = lengths[-MEASURED:]
        best = optimum(measured, BUCKETS)
        fixed = {
            "auto": {},
            "optimum": {"sequence_buckets": ",".join(map(str, best))},
            "powers": {"sequence_buckets": "16,32,64,128,256,512"},
            "linear": {"sequence_buckets": "128,256,384,512"},
        }
        offline = computed(measured, best)
        print(f"{trace:6} {'':7} {'offline':10} {1 - measured.sum() / offline:8.1%}")
        for clients in map(int, arguments.concurrency.split(",")):
            optimum_seconds = None
            results = {}
            sides = arguments.sides.split(",")
            for name in sorted(sides, key=lambda side: side != "optimum"):
                parameters = {"packing": arguments.packing, **fixed[name]}
                results[name] = measure(Side(name, parameters), model, names, lengths, clients)
            for name in sides:
                r = results[name]
                everything = r["valid"] + r["padded"]
                optimum_seconds = results.get("optimum", r)["seconds"]
                print(f"{trace:6} {clients:7} {name:10} {r['padded'] / everything:8.1%} "
                      f"{everything / offline:8.3f} {r['seconds'] / optimum_seconds:6.3f} "
                      f"{MEASURED / r['replays']:5.2f} {r['p99_ms']:7.1f} {r['compiles']:8.0f} "
                      f"{r['all_changes']:7.0f}", flush=True)


if __name__ == "__main__":
    main()
