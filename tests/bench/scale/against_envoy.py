"""`reprise plan --replicas` against daemons behind Envoy on this machine: see `run`.

All that the plan is told is measured without a queue: the time of a request on a stream, by length, as the daemons count
it, the core time of a request outside of streams, in the client, in Envoy and in the daemons, the time on the way that is
neither, and how much longer requests take while all cores are busy. Then requests of mixed lengths come at random, and half and 99 % of them are
compared with the plan's.
"""

import argparse
import asyncio
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import grpc
import numpy as np

ROOT = pathlib.Path(__file__).parents[3]
os.environ.setdefault("REPRISE_BUILD_DIR", str(ROOT / "build/release"))
os.environ.setdefault("REPRISE_SOURCE_DIR", str(ROOT))
os.environ.setdefault("REPRISE_CACHE", str(pathlib.Path.home() / ".cache/reprise"))
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/bench/peers")]

from side import cpu_name  # noqa: E402
from testing.daemon import BUILD, Daemon  # noqa: E402
from testing.metrics import Scrape  # noqa: E402
from testing.replicas import proxies  # noqa: E402
from testing.repository import MINILM, Repository  # noqa: E402
from tritonclient.grpc import service_pb2  # noqa: E402

NAMES = ["input_ids", "attention_mask", "token_type_ids"]
METHOD = "/inference.GRPCInferenceService/ModelInfer"
POINTS = [8, 32, 64, 128, 256]


def draw_length(rng):
    """As mixed texts: a median of 60 tokens, some hundreds at the most."""
    return min(POINTS[-1], max(8, round(math.exp(rng.gauss(math.log(60), 0.6)))))


def request_of(length):
    message = service_pb2.ModelInferRequest(model_name="minilm")
    for name in NAMES:
        message.inputs.add(name=name, datatype="INT64", shape=[1, length])
        message.raw_input_contents.append(np.ones(length, np.int64).tobytes())
    return message.SerializeToString()


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def compute_us(daemons):
    return sum(Scrape(daemon.metrics_url).total("nv_inference_compute_infer_duration_us", model="minilm")
               for daemon in daemons)


class Client:
    """Requests through Envoy; their answers are not read, but for their times."""

    def __init__(self, port):
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        self.call = self.channel.unary_unary(METHOD)
        self.messages = {}

    async def ask(self, length):
        """Seconds to the answer."""
        if length not in self.messages:
            self.messages[length] = request_of(length)
        begin = time.perf_counter()
        await self.call(self.messages[length], timeout=60)
        return time.perf_counter() - begin

    async def open_loop(self, lengths, gaps):
        """Times of requests that come whether or not others are answered."""
        tasks, at = [], time.perf_counter()
        for length, gap in zip(lengths, gaps):
            at += gap
            if (left := at - time.perf_counter()) > 0:
                await asyncio.sleep(left)
            tasks.append(asyncio.create_task(self.ask(length)))
        return await asyncio.gather(*tasks)


async def measure_times(client, daemons, requests):
    """{length: ms on a stream}, one request at a time."""
    times = {}
    for length in POINTS:
        for _ in range(8 * len(daemons)):
            await client.ask(length)
        seen = []
        for _ in range(5):
            before = compute_us(daemons)
            for _ in range(requests // 40):
                await client.ask(length)
            seen.append((compute_us(daemons) - before) / (requests // 40) / 1000)
        times[length] = statistics.median(seen)
    return times


async def measure_cores(client, daemons, others, cores, times, requests, rng):
    """(factor of `times` for the drawn lengths, how many times longer a request takes on busy cores, core ms of a request
    outside of streams, ms that are neither).

    Lengths between two of `times` run in larger buckets. The second and the third are of core time, which does not count
    the waiting for a core: the daemons', with one request at a time and with one for each core, and all processes'.
    """
    lengths = [draw_length(rng) for _ in range(requests)]
    on_stream = sum(np.interp(length, list(times), list(times.values())) for length in lengths) / requests
    pids = [daemon.process.pid for daemon in daemons]
    for length in set(lengths):
        await client.ask(length)
    before = compute_us(daemons)
    for length in lengths:
        await client.ask(length)
    factor = (compute_us(daemons) - before) / 1000 / requests / on_stream
    on_stream *= factor

    async def ask_all(share):
        return [await client.ask(length) for length in share]

    of_daemons, of_all, waited = [], [], []
    for clients in (1, cores):
        before, all_before = cpu_seconds(pids), cpu_seconds(pids + others)
        waited += await asyncio.gather(*(ask_all(lengths[i::clients]) for i in range(clients)))
        of_daemons.append(cpu_seconds(pids) - before)
        of_all.append(cpu_seconds(pids + others) - all_before)
    slowdown = max(1.0, of_daemons[1] / of_daemons[0])
    outside_ms = max(0.0, of_all[1] / requests * 1000 / slowdown - on_stream)
    # The first list is of requests one at a time.
    return factor, slowdown, outside_ms, max(0.0, statistics.fmean(waited[0]) * 1000 - on_stream - outside_ms)


def planned(flags, file, rate, times, overhead_ms, slowdown, latency_ms):
    out = subprocess.run(
        [str(BUILD / "reprise"), "plan", str(file), "--replicas", "--rate", f"{rate:.6g}", "--servers",
         str(flags.servers), "--times", ",".join(f"{length}:{ms:.6g}" for length, ms in times.items()), "--cores",
         str(flags.cores), "--overhead-ms", f"{overhead_ms:.6g}", "--slowdown", f"{slowdown:.4g}", "--latency-ms",
         f"{latency_ms:.6g}", "--json"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["loads"][0]


async def compare(flags, daemons, envoy, folder):
    others = [os.getpid(), envoy.process.pid]
    client = Client(envoy.grpc_port)
    rng = random.Random(flags.seed)
    times = await measure_times(client, daemons, flags.requests // 4)
    factor, slowdown, overhead_ms, latency_ms = await measure_cores(client, daemons, others, flags.cores, times, flags.requests // 3, rng)
    times = {length: ms * factor for length, ms in times.items()}
    print("ms on a stream, by length: " + ", ".join(f"{length}: {ms:.2f}" for length, ms in times.items()) +
          f"; outside of streams {overhead_ms:.2f} ms of a core; {slowdown:.2f} times longer on busy cores; {latency_ms:.2f} ms on the way")
    lengths = [draw_length(rng) for _ in range(flags.requests)]
    for length in set(lengths):
        await client.ask(length)
    file = folder / "lengths.txt"
    file.write_text("".join(f"{length}\n" for length in lengths))
    mean = statistics.fmean(np.interp(length, list(times), list(times.values())) for length in lengths) + overhead_ms
    print(f"{'busy, seen':>10}{'requests/s':>12}{'half: plan':>12}{'seen':>9}{'off by':>8}{'99 %: plan':>13}{'seen':>9}"
          f"{'off by':>8}")
    worst = 0.0
    for load in flags.loads:
        rate = load * flags.cores / mean / slowdown * 1000
        plan = planned(flags, file, rate, times, overhead_ms, slowdown, latency_ms)
        rounds, begin = [], time.perf_counter()
        before = cpu_seconds(others + [daemon.process.pid for daemon in daemons])
        for _ in range(flags.rounds):
            seen = sorted(await client.open_loop(lengths, [rng.expovariate(rate) for _ in lengths]))
            rounds.append([seen[int(share * (len(seen) - 1))] * 1000 for share in (0.5, 0.99)])
        used = cpu_seconds(others + [daemon.process.pid for daemon in daemons]) - before
        busy = used / (time.perf_counter() - begin) / flags.cores
        half, most = (statistics.median(column) for column in zip(*rounds))
        off = [plan["p50_ms"] / half - 1, plan["p99_ms"] / most - 1]
        worst = max(worst, abs(off[1]))
        print(f"{load:>5.2f} {busy:.2f}{rate:>12.1f}{plan['p50_ms']:>9.1f} ms{half:>6.1f} ms{off[0]:>+8.0%}{plan['p99_ms']:>10.1f} ms"
              f"{most:>6.1f} ms{off[1]:>+8.0%}", flush=True)
    print(f"the plan's 99 % are off by {worst:.0%} at most; the goal is 20 %")
    await client.channel.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--loads", type=lambda text: [float(one) for one in text.split(",")], default=[0.4, 0.6, 0.8])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default=str(MINILM))
    flags = parser.parse_args()
    print(f"{cpu_name()}: {flags.servers} daemons with a stream each behind Envoy, on {flags.cores} cores with the client")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        repository = Repository(folder / "models")
        repository.add("minilm", pathlib.Path(flags.model))
        daemons = [Daemon(repository, "--streams", "1", "--threads-per-stream", "1") for _ in range(flags.servers)]
        try:
            for daemon in daemons:
                daemon.start()
            for daemon in daemons:
                daemon.wait_ready()
            with proxies.Envoy(daemons, folder) as envoy:
                asyncio.run(compare(flags, daemons, envoy, folder))
        finally:
            for daemon in daemons:
                daemon.kill()


if __name__ == "__main__":
    main()
