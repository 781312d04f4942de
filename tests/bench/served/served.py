"""The daemon beside its peers: how long one client waits, and how much CPU time a request costs.

See tests/bench/served/run. Peers run in process: nothing is sent to them. Sides take turns.
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
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/bench/peers")]

from side import Side, cpu_name, warn_if_busy  # noqa: E402
from testing.clients import together  # noqa: E402
from testing.daemon import Daemon  # noqa: E402
from testing.inference import tensors, text_inputs  # noqa: E402
from testing.repository import MINILM, Repository  # noqa: E402

WORKER = ROOT / "tests/bench/peers/peer_worker.py"
NAMES = ["input_ids", "attention_mask", "token_type_ids"]
PEERS = ["openvino-static", "openvino-dynamic", "onnxruntime"]


def cpu_seconds(pid):
    """User and system time of all threads of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peer(name, arguments):
    return Side(name, [arguments.peers_python, str(WORKER), name, str(arguments.model), "1"])


def serve(folder, model, *flags):
    repository = Repository(folder)
    repository.add("model", pathlib.Path(model))
    return Daemon(repository, *flags)


def raw_inputs(folder, length, rng):
    """Makes one request of full length as the peers read it and as a client sends it."""
    arrays = text_inputs(NAMES, 1, length, rng, 20000)
    files = []
    for name, array in arrays.items():
        path = pathlib.Path(folder) / f"{name}.{length}.raw"
        array.tofile(path)
        files.append({"shape": list(array.shape), "file": str(path)})
    return arrays, files


def latency(arguments):
    print(f"\none client, one stream, one thread; median ms of an answer, {cpu_name()}")
    print(f"{'length':>8}{'reprise':>12}" + "".join(f"{p:>18}" for p in PEERS) +
          f"{'vs ' + PEERS[0]:>20}{'vs best':>9}")
    peers = [peer(name, arguments) for name in PEERS]
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder, serve(
            folder + "/models", arguments.model, "--streams", "1",
            "--threads-per-stream", "1") as daemon:
        client = daemon.client()
        for length in map(int, arguments.lengths.split(",")):
            arrays, files = raw_inputs(folder, length, rng)
            sent = tensors(arrays)
            for _ in range(3):
                client.infer("model", sent)
            times = {name: [] for name in ["reprise", *PEERS]}
            for _ in range(arguments.rounds):
                for _ in range(5):
                    begin = time.perf_counter_ns()
                    client.infer("model", sent)
                    times["reprise"].append(time.perf_counter_ns() - begin)
                for side in peers:
                    times[side.name] += side.ask(op="time", inputs=files, repeat=5)["ns"]
            ms = {name: statistics.median(ns) / 1e6 for name, ns in times.items()}
            best = min(ms[p] for p in PEERS)
            print(f"{length:8}{ms['reprise']:12.2f}" + "".join(f"{ms[p]:18.2f}" for p in PEERS) +
                  f"{ms[PEERS[0]] / ms['reprise']:20.2f}{best / ms['reprise']:9.2f}", flush=True)
    for side in peers:
        side.close()


def send_all(daemon, lengths, clients):
    position, lock = iter(lengths), threading.Lock()

    def work(seed):
        client, rng = daemon.client(), np.random.default_rng(seed)
        while True:
            with lock:
                length = next(position, None)
            if length is None:
                return
            client.infer("model", tensors(text_inputs(NAMES, 1, int(length), rng, 20000)))

    together(work, range(clients))


def cpu(arguments):
    rng = np.random.default_rng(2024)

    def lognormal(median, sigma, low, high, count):
        return np.clip(np.rint(rng.lognormal(np.log(median), sigma, count)), low, high).astype(int)

    count = arguments.requests
    traces = {
        "squad": lognormal(150, 0.5, 16, 512, count),
        "chat": np.where(rng.random(count) < 0.5, lognormal(20, 0.6, 8, 512, count),
                         lognormal(300, 0.4, 8, 512, count)),
    }
    print(f"\n16 clients, {count} requests; CPU ms a request (user and system, of all threads)")
    print(f"{'trace':>8}{'reprise':>12}{'onnxruntime':>14}{'share':>8}")
    for trace, lengths in traces.items():
        ours, theirs = [], []
        other = peer("onnxruntime", arguments)
        with tempfile.TemporaryDirectory() as folder, serve(folder, arguments.model) as daemon:
            # Both have seen every length before anything is counted.
            send_all(daemon, lengths, 16)
            other.ask(op="trace", lengths=lengths.tolist(), window=1, batch=1)
            for _ in range(arguments.rounds):
                begin = cpu_seconds(daemon.process.pid)
                send_all(daemon, lengths, 16)
                ours.append((cpu_seconds(daemon.process.pid) - begin) * 1e3 / count)
                begin = cpu_seconds(other.process.pid)
                other.ask(op="trace", lengths=lengths.tolist(), window=1, batch=1)
                theirs.append((cpu_seconds(other.process.pid) - begin) * 1e3 / count)
        other.close()
        mine, its = statistics.median(ours), statistics.median(theirs)
        print(f"{trace:>8}{mine:12.2f}{its:14.2f}{mine / its:8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers-python", required=True)
    parser.add_argument("--model", default=str(MINILM))
    parser.add_argument("--lengths", default="32,64,128,256,512")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=200, help="of the table of CPU time")
    parser.add_argument("--only", default="", choices=["", "latency", "cpu"])
    arguments = parser.parse_args()
    warn_if_busy()
    for name, table in {"latency": latency, "cpu": cpu}.items():
        if arguments.only in ("", name):
            table(arguments)


main()
