"""Overload: goodput, latency of accepted and of refused requests, and memory.

The client speaks HTTP/1.1 over connections of its own with one request that was encoded before, so
that it takes little of the machine; its share of a core is limited and reported. Capacity is the rate that a
closed loop gets. Then requests are sent at their times, whether earlier ones were answered or not.
"""

import argparse
import asyncio
import json
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np
import tritonclient.http

from testing.daemon import Daemon
from testing.inference import text_inputs
from testing.metrics import Scrape
from testing.repository import MINILM, Repository

NAMES = ["input_ids", "attention_mask", "token_type_ids"]
CLIENT_SHARE = 0.5  # of a core


def encoded(length):
    """Returns the bytes of one request."""
    inputs = []
    for name, value in text_inputs(NAMES, 1, length, np.random.default_rng(7)).items():
        tensor = tritonclient.http.InferInput(name, value.shape, "INT64")
        tensor.set_data_from_numpy(value)
        inputs.append(tensor)
    wanted = [tritonclient.http.InferRequestedOutput("last_hidden_state", binary_data=True)]
    body, json_size = tritonclient.http.InferenceServerClient.generate_request_body(
        inputs, outputs=wanted)
    head = (f"POST /v2/models/minilm/infer HTTP/1.1\r\nHost: localhost\r\n"
            f"Inference-Header-Content-Length: {json_size or len(body)}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


class Connections:
    """A pool of connections; each carries one request at a time."""

    def __init__(self, port, request):
        self.port, self.request, self.idle = port, request, []

    async def ask(self):
        """(status, seconds) of one request."""
        begin = time.perf_counter()
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection(
            "127.0.0.1", self.port, limit=1 << 20)
        writer.write(self.request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        self.idle.append((reader, writer))
        return int(head[9:12]), time.perf_counter() - begin


class Share:
    """Keeps the client below its share of a core: it pauses where it has taken more."""

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        self.late = 0.0

    def used(self):
        return (time.process_time() - self.cpu) / max(1e-9, time.perf_counter() - self.wall)

    async def keep(self):
        over = (time.process_time() - self.cpu) / CLIENT_SHARE - (time.perf_counter() - self.wall)
        if over > 0.01:
            self.late += over
            await asyncio.sleep(over)


async def measure_capacity(connections, clients, seconds):
    """Answers a second of `clients` that each send the next request at once."""
    begin = time.perf_counter()
    answered = 0

    async def loop():
        nonlocal answered
        while time.perf_counter() - begin < seconds:
            status, _ = await connections.ask()
            assert status == 200, status
            answered += 1

    await asyncio.gather(*(loop() for _ in range(clients)))
    # The last answers of all clients come after the end.
    return answered / (time.perf_counter() - begin)


async def offer(connections, rate, seconds):
    """Sends `rate` requests a second. [(second of arrival, status, seconds)], and the client's share."""
    share, done, tasks = Share(), [], set()
    begin = time.perf_counter()

    async def one(at):
        status, took = await connections.ask()
        done.append((at, status, took))

    sent = 0
    while (now := time.perf_counter() - begin) < seconds:
        while sent < now * rate:
            task = asyncio.create_task(one(sent / rate))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await share.keep()
        await asyncio.sleep(0.002)
    used = share.used()
    await asyncio.gather(*tasks)
    return done, used


def cpu_seconds(daemon):
    """Returns the CPU time that the daemon has taken."""
    stat = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values, share):
    return float(np.percentile(values, share)) if values else float("nan")


async def run(options, daemon):
    connections = Connections(daemon.http_port, encoded(options.length))
    await measure_capacity(connections, options.clients, 3)  # captures and tunes
    cpu = [cpu_seconds(daemon)]
    began = time.perf_counter()
    measured = [await measure_capacity(connections, options.clients, 5) for _ in range(3)]
    took = time.perf_counter() - began
    capacity = statistics.median(measured)
    cpu.append(cpu_seconds(daemon))
    before = daemon.rss_bytes()
    done, share = await offer(connections, options.times * capacity, options.seconds)
    after = daemon.rss_bytes()
    cpu.append(cpu_seconds(daemon))
    of_cpu = statistics.mean(measured) * took / (cpu[1] - cpu[0])
    accepted = [took for _, status, took in done if status == 200]
    refused = [took for _, status, took in done if status == 429]
    elapsed = max(at + took for at, _, took in done)
    waited = Scrape(daemon.metrics_url)
    return {
        "capacity_per_s": capacity,
        "offered_per_s": len(done) / options.seconds,
        "goodput_share": len(accepted) / elapsed / capacity,
        # The same by the CPU time that the daemon got: on a machine that others use too.
        "goodput_share_by_cpu": len(accepted) / (cpu[2] - cpu[1]) / of_cpu,
        "accepted_p50_s": percentile(accepted, 50),
        "accepted_p99_s": percentile(accepted, 99),
        "refused": len(refused),
        "refused_p50_ms": percentile(refused, 50) * 1e3,
        "refused_p99_ms": percentile(refused, 99) * 1e3,
        "others": len(done) - len(accepted) - len(refused),
        "memory_grew_mb": (after - before) / 2**20,
        "client_share_of_a_core": share,
        "requests_waiting_at_the_end": waited.total("reprise_requests_waiting"),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--times", type=float, default=4)
    parser.add_argument("--length", type=int, default=128)
    # Full batches, whose arenas are there before memory is looked at.
    parser.add_argument("--clients", type=int, default=128)
    parser.add_argument("--max-queue-time", default="auto")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(folder)
        repository.add("minilm", MINILM)
        with Daemon(repository, "--max-queue-time", options.max_queue_time) as daemon:
            print(json.dumps(asyncio.run(run(options, daemon)), indent=2))


if __name__ == "__main__":
    main()
