"""Everything at once, and whether the daemon stood it. See README.md."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from tritonclient.utils import InferenceServerException

from cases import answer_all, make_cases
from clients import REFUSALS, Client, Tally
from disturbances import Disturbances, mount_small
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer
from testing.metrics import Scrape
from testing.repository import Repository

PAUSE_S = 1.5  # between disturbances
LONGEST_SILENCE_S = 15
MOST_REFUSED = 0.05  # of the requests sent in peace: disturbances are short
GROWTH = 1.15  # of resident memory, from the first quarter on
SLACK_BYTES = 48 << 20
JUDGED_FROM_S = 300  # shorter runs end before every recipe is there


def add_models(repository, cases):
    """Adds the models; the second version of each waits beside the first one."""
    paths = {}
    for case in cases:
        for version, model in case.versions.items():
            path = repository.add(case.name, model, version, case.config)
            paths[case.name, version] = path
    return paths


def put_aside(repository, cases):
    for case in cases:
        if 2 in case.versions:
            folder = pathlib.Path(repository.root) / case.name
            (folder / "2").rename(folder / "aside")


def ask_all(daemon, cases):
    """Sends every request once, in peace; returns the faults in words."""
    client = daemon.client()
    for case in cases:
        if case.generates:
            continue
        for which, inputs in enumerate(case.asked):
            try:
                answer = infer(client, case.name, inputs)
                right = case.answers[int(answer.model_version)][which]
                assert_same_answer(answer.outputs, right, f"{case.name}, request {which}")
            except (InferenceServerException, AssertionError) as error:
                yield f"{case.name} in peace: {error}"


def watch(daemon, tally, stop):
    """Checks that the daemon is there, and says that it is live; without memory it may be silent for a while."""
    heard = time.monotonic()
    while not stop.wait(1):
        if daemon.process.poll() is not None:
            tally.fault(f"the daemon ended with {daemon.process.returncode}")
            return stop.set()
        status = daemon.http_status("/v2/health/live")
        if status == 200:
            heard = time.monotonic()
        elif status is not None or time.monotonic() - heard > LONGEST_SILENCE_S:
            tally.fault(f"the daemon is not live: {status}")


def run(arguments, folder):
    rng = np.random.default_rng(arguments.seed)
    repository = Repository(folder / "models")
    store = folder / "store"
    store.mkdir()
    mounted = mount_small(store)
    cases = make_cases()
    answer_all(cases, add_models(repository, cases), rng)
    put_aside(repository, cases)
    tally, stop = Tally(), threading.Event()
    memory = {}
    try:
        with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*",
                    "--recipe-cache", store, "--allow-admin") as daemon:
            done = Disturbances(daemon, repository, cases, store, tally, rng)
            clients = [Client(daemon, cases, tally, stop, arguments.seed * 1000 + i)
                       for i in range(arguments.clients)]
            threads = [*clients, threading.Thread(target=watch, args=(daemon, tally, stop))]
            for thread in threads:
                thread.start()
            begin = time.monotonic()
            ways = [way for way in done.all() if mounted or way != done.fill_the_store]
            while (passed := time.monotonic() - begin) < arguments.seconds and not stop.is_set():
                if passed > arguments.seconds / 4 and "quarter" not in memory:
                    memory["quarter"] = daemon.rss_bytes()
                ways[rng.integers(len(ways))]()
                time.sleep(PAUSE_S)
            stop.set()
            for thread in threads:
                thread.join(120)
                if thread.is_alive():
                    tally.fault("a client was never answered")
            done.make_whole()
            for words in ask_all(daemon, cases):
                tally.fault(words)
            memory["end"] = daemon.rss_bytes()
            scraped = Scrape(daemon.metrics_url)
            foreign = scraped.total("reprise_withheld_answers_total")
            if foreign:
                tally.fault(f"{foreign} outputs had another form than was promised")
    finally:
        if mounted:
            subprocess.run(["umount", store], check=False)
    refused = sum(tally.counts[code] for code in REFUSALS)
    if refused > MOST_REFUSED * (tally.counts["answers"] + refused):
        tally.fault(f"{refused} requests were refused, {tally.counts['answers']} answered")
    grew = memory["end"] > memory.get("quarter", memory["end"]) * GROWTH + SLACK_BYTES
    if grew and arguments.seconds >= JUDGED_FROM_S:
        tally.fault("memory grew")
    return tally, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=6)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reprise-chaos-") as folder:
        tally, memory = run(arguments, pathlib.Path(folder))
    print(json.dumps({"counts": dict(sorted(tally.counts.items())),
                      "resident_mb": {when: size >> 20 for when, size in memory.items()}}, indent=2))
    for words in tally.faults[:40]:
        print("FAULT", words)
    sys.exit(1 if tally.faults else 0)


if __name__ == "__main__":
    main()
