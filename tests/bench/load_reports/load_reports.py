"""The price of load reports (--load-reports): core time of the daemon for a request of 8 ids. See `run`.

A daemon for each mode, which take turns; one that only its stream of reports is asked of has a subscriber.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import grpc

ROOT = pathlib.Path(__file__).parents[3]
os.environ.setdefault("REPRISE_BUILD_DIR", str(ROOT / "build/release"))
os.environ.setdefault("REPRISE_SOURCE_DIR", str(ROOT))
os.environ.setdefault("REPRISE_CACHE", str(pathlib.Path.home() / ".cache/reprise"))
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/bench/peers")]

from side import cpu_name  # noqa: E402
from testing.daemon import BUILD, Daemon  # noqa: E402
from testing.replicas import orca  # noqa: E402
from testing.repository import MINILM, Repository  # noqa: E402

MODES = ["off", "always", "oob"]
EVERY_MS = 100  # as often as a subscriber may ask


def core_ns(pid):
    """Time of all threads of a process on cores, as the scheduler counts it."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total


class Reader:
    """A subscriber of the stream of reports."""

    def __init__(self, daemon):
        self.channel = grpc.insecure_channel(daemon.grpc_address)
        self.reports = orca.stream(self.channel, EVERY_MS)
        next(self.reports)

    def close(self):
        self.reports.cancel()
        self.channel.close()


def core_us(daemon, requests, clients):
    """Core time of a request, in microseconds."""
    before = core_ns(daemon.process.pid)
    subprocess.run([str(BUILD / "reprise"), "bench", "minilm", "--server", daemon.grpc_address, "--requests", str(requests),
                    "--concurrency", str(clients), "--lengths", "8", "--warmup", "0", "--json"],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (core_ns(daemon.process.pid) - before) / requests / 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--model", default=str(MINILM))
    flags = parser.parse_args()
    print(f"{cpu_name()}: 1x8, {flags.clients} clients, {flags.rounds} rounds of {flags.requests} requests a mode")
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(pathlib.Path(folder) / "models")
        repository.add("minilm", pathlib.Path(flags.model))
        daemons = {mode: Daemon(repository, "--load-reports", mode, metrics_detail=False) for mode in MODES}
        seen = {mode: [] for mode in MODES}
        try:
            for daemon in daemons.values():
                daemon.start()
            for daemon in daemons.values():
                daemon.wait_ready()
                core_us(daemon, flags.requests, flags.clients)
            reader = Reader(daemons["oob"])
            for turn in range(flags.rounds):
                # Each is first as often as the others.
                for mode in MODES[turn % len(MODES):] + MODES[:turn % len(MODES)]:
                    seen[mode].append(core_us(daemons[mode], flags.requests, flags.clients))
            reader.close()
        finally:
            for daemon in daemons.values():
                daemon.kill()
    for mode in MODES:
        ratios = sorted(one / off - 1 for one, off in zip(seen[mode], seen["off"]))
        middle = statistics.median(ratios)
        low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        print(f"{mode:8}{statistics.median(seen[mode]):9.1f} us a request, {middle:+.2%} (half of the rounds {low:+.2%} to {high:+.2%})")


if __name__ == "__main__":
    main()
