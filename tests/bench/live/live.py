"""Recipes that know where rows end, beside exact ones of the same size. See tests/bench/live/run."""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).parents[3]
os.environ.setdefault("REPRISE_BUILD_DIR", str(ROOT / "build/release"))
os.environ.setdefault("REPRISE_SOURCE_DIR", str(ROOT))
os.environ.setdefault("REPRISE_CACHE", str(pathlib.Path.home() / ".cache/reprise"))
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/bench/peers")]

from side import cpu_name, warn_if_busy  # noqa: E402
from testing import windows  # noqa: E402
from testing.daemon import Daemon  # noqa: E402
from testing.inference import infer, tensors  # noqa: E402
from testing.repository import Repository  # noqa: E402

# The widths are the named models' own, with a few of their layers: all layers of a
# stack are alike. Each has the shape of a request.
MODELS = {
    "wav2vec2-base": (lambda: windows.wav2vec(False, 768, 512, windows.WHOLE_STACK, (128, 16), 3, 12),
                      (1, 16000)),
    "wav2vec2-large": (lambda: windows.wav2vec(True, 1024, 512, windows.WHOLE_STACK, (128, 16), 3, 16),
                       (1, 16000)),
    "whisper-base": (lambda: windows.listener(512, 80, 1500, 6, 8), (1, 80, 1000)),
    "conformer": (lambda: windows.conformer(144, 80, 144, 4), (1, 800, 80)),
    "resnet": (lambda: windows.resnet(64), (1, 3, 224, 224)),
    "crnn": (lambda: windows.text_line(64), (1, 1, 16, 320)),
    "inception": (windows.inception, (1, 3, 224, 224)),
    "detector": (lambda: windows.detector(32), (1, 3, 320, 320)),
    "yolo": (lambda: windows.yolo(32, 80), (1, 3, 320, 320)),
}


def parameter(key, value):
    return f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}\n'


def configs(shape):
    """Makes one bucket of the size that is sent, and no padding."""
    image = len(shape) == 4 and shape[1] == 3
    if image:
        live = "".join(parameter(f"buckets.{axis}", shape[dim])
                       for axis, dim in (("height", 2), ("width", 3)))
        axes = ("height", "width")
    else:
        size = {2: shape[-1], 3: shape[1] if shape[-1] == 80 else shape[-1], 4: shape[-1]}[len(shape)]
        live, axes = parameter("sequence_buckets", size), ("sequence",)
    live += parameter("max_batch_tokens", 1 << 20)
    return live, "".join(parameter(f"padding.{axis}", "off") for axis in axes)


def cpu_ns(pid):
    """Returns how long all threads of a process have run."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def measure(name, rounds):
    make, shape = MODELS[name]
    request = {"x": np.random.default_rng(1).standard_normal(shape, np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(folder)
        model = make().SerializeToString()
        for side, config in zip(("live", "exact"), configs(shape)):
            repository.add(side, model, config=config)
        with Daemon(repository, "--streams", "1", "--threads-per-stream", "1") as daemon:
            client, sent = daemon.client(), tensors(request)
            buckets = {}
            for side in ("live", "exact"):
                for _ in range(3):
                    buckets[side] = infer(client, side, request).bucket
            times, cpu = {"live": [], "exact": []}, {"live": [], "exact": []}
            for i in range(rounds):
                for side in ("live", "exact") if i % 2 == 0 else ("exact", "live"):
                    begin, begin_cpu = time.perf_counter_ns(), cpu_ns(daemon.process.pid)
                    client.infer(side, sent)
                    times[side].append(time.perf_counter_ns() - begin)
                    cpu[side].append(cpu_ns(daemon.process.pid) - begin_cpu)
    ms = {side: statistics.median(ns) / 1e6 for side, ns in times.items()}
    cpu_ms = {side: statistics.median(ns) / 1e6 for side, ns in cpu.items()}
    size = "x".join(map(str, shape))
    live = buckets["live"] != "exact"
    shares = [f"{x['live'] / x['exact']:8.3f}" if live else f"{'':8}" for x in (ms, cpu_ms)]
    print(f"{name:>16}{size:>14}{ms['live']:10.2f}{ms['exact']:10.2f}{shares[0]}"
          f"{cpu_ms['live']:10.2f}{cpu_ms['exact']:10.2f}{shares[1]}  {buckets['live']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--models", default=",".join(MODELS))
    arguments = parser.parse_args()
    warn_if_busy()
    print(f"one client, one stream, one thread; medians of an answer in ms, {cpu_name()}")
    print(f"{'model':>16}{'request':>14}{'live':>10}{'exact':>10}{'share':>8}"
          f"{'live CPU':>10}{'exact CPU':>10}{'share':>8}  bucket")
    for name in arguments.models.split(","):
        measure(name, arguments.rounds)


main()
