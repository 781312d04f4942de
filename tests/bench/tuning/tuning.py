"""How much tuning costs the requests that arrive meanwhile, through the real daemon.

See tests/bench/tuning/run. The daemon has one core and the load another. Requests of one length keep
coming while 20 other buckets are captured in the background and tuned. Three sides, taken in turns: nothing
happens; the buckets are captured and not tuned (reprise.tune: off); they are captured and tuned. Of each:
latencies from the moment when the buckets are asked for until the last is done (of the first side: as
long), the time until then, and the ratio of the p99 to the first side's.
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

from testing.daemon import Daemon  # noqa: E402
from testing.inference import infer, text_inputs  # noqa: E402
from testing.metrics import Scrape  # noqa: E402
from testing.repository import MINILM, PADDED, PARAPHRASE, Repository  # noqa: E402

LENGTHS = list(range(16, 337, 16))
MEASURED_S = 2  # at least, also where everything is done before
SERVED = 128  # the length of the requests; the other 20 are captured and tuned


def config(tune):
    values = {"sequence_buckets": ",".join(map(str, LENGTHS)), "batch_buckets": "1", "tune": tune}
    return PADDED + "".join(
        f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in values.items())


class Load:
    """Clients that send one request after the other; `rate` a second in all, or as fast as it goes."""

    def __init__(self, daemon, clients, rate):
        self._daemon, self._rate, self._clients = daemon, rate, clients
        self._took, self._errors, self._stop = [], [], threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(i,)) for i in range(clients)]
        for thread in self._threads:
            thread.start()

    def _work(self, seed):
        rng = np.random.default_rng(seed)
        client = self._daemon.client()
        names = [one.name for one in client.get_model_metadata("model").inputs]
        inputs = text_inputs(names, 1, SERVED, rng, 200)
        try:
            while not self._stop.is_set():
                start = time.monotonic()
                infer(client, "model", inputs)
                end = time.monotonic()
                self._took.append((start, end - start))
                if self._rate:
                    pause = rng.exponential(self._clients / self._rate)
                    self._stop.wait(max(0.0, pause - (end - start)))
        except Exception as error:
            self._errors.append(error)

    def since(self, start):
        if self._errors:
            raise self._errors[0]
        return [took for began, took in self._took if began >= start]

    def end(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def count(daemon, name):
    return Scrape(daemon.metrics_url).total(name, model="model")


def measure(side, model, clients, rate, seconds):
    """Latencies, and how long it took; `seconds` to wait where nothing is to be done."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(folder)
        repository.add("model", model, config=config("auto" if side == "tuned" else "off"))
        os.sched_setaffinity(0, {cores[0]})  # the daemon inherits it
        daemon = Daemon(repository)
        daemon.start()
        os.sched_setaffinity(0, {cores[-1]})
        try:
            daemon.wait_ready()
            daemon.reprise("warmup", "model", "--buckets", f"b1_s{SERVED}")
            while side == "tuned" and count(daemon, "reprise_tunes_total") < 1:
                time.sleep(0.1)
            load = Load(daemon, clients, rate)
            time.sleep(2)
            start = time.monotonic()
            if side == "nothing":
                time.sleep(seconds)
                elapsed = seconds
            else:
                buckets = ",".join(f"b1_s{length}" for length in LENGTHS if length != SERVED)
                daemon.reprise("warmup", "model", "--buckets", buckets)
                what = "reprise_tunes_total" if side == "tuned" else "reprise_compiles_total"
                while count(daemon, what) < len(LENGTHS):
                    if time.monotonic() - start > 120:
                        raise SystemExit(f"{side}: not done after 120 s\n{daemon.log()}")
                    time.sleep(0.1)
                elapsed = time.monotonic() - start
                time.sleep(max(0.0, MEASURED_S - elapsed))
            took = load.since(start)
            load.end()
        finally:
            daemon.__exit__(None, None, None)
            os.sched_setaffinity(0, set(cores))
    return took, elapsed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="f32", help="f32, int8 (two MiniLMs), or model.onnx")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0, help="requests a second; 0: as fast as it goes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="of the side on which nothing happens")
    arguments = parser.parse_args()
    model = {"f32": PARAPHRASE, "int8": MINILM}.get(arguments.model, pathlib.Path(arguments.model))
    results = {"nothing": [], "captured": [], "tuned": []}
    for _ in range(arguments.rounds):
        for side, rounds in results.items():
            took, elapsed = measure(side, model, arguments.clients, arguments.rate, arguments.seconds)
            cuts = statistics.quantiles(took, n=100)
            rounds.append({"p50": 1e3 * cuts[49], "p99": 1e3 * cuts[98], "seconds": elapsed,
                           "requests": len(took)})
    print(f"{'side':10} {'requests':>8} {'p50 ms':>8} {'p99 ms':>8} {'ratio':>6} {'seconds':>8}")
    median = {side: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
              for side, rounds in results.items()}
    for side, row in median.items():
        ratio = row["p99"] / median["nothing"]["p99"]
        print(f"{side:10} {row['requests']:8.0f} {row['p50']:8.2f} {row['p99']:8.2f} {ratio:6.2f} "
              f"{row['seconds']:8.1f}")


if __name__ == "__main__":
    main()
