"""Image models beside the peers: median milliseconds of a call, sides in turns, answers compared.

See tests/bench/peers/run --images. The models are those of image_models.py, with random weights.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np

from side import Side, warn_if_busy

MODELS = "resnet18 resnet50 mobilenet_v2"
PEERS = ["onnxruntime", "openvino-static"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True, help="the folder of the models")
    parser.add_argument("--threads", default="1", help="1,2: one table line for each")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default=MODELS, help="names of models")
    parser.add_argument("--max-isa", default="", help="of Reprise")
    arguments = parser.parse_args()
    warn_if_busy()
    worker = str(pathlib.Path(__file__).with_name("peer_worker.py"))
    cap = ["--max-isa", arguments.max_isa] if arguments.max_isa else []
    names = ["reprise", *PEERS]
    print("median ms of a call; error: largest difference from onnxruntime over its largest answer")
    print(f"{'model':>14}{'threads':>9}{'batch':>7}" + "".join(f"{n:>18}" for n in names)
          + f"{'vs best':>9}{'error':>10}")
    with tempfile.TemporaryDirectory() as scratch:
        for model in arguments.only.split():
            path = str(pathlib.Path(arguments.model) / f"{model}.onnx")
            for threads in arguments.threads.split(","):
                sides = {n: Side(n, [sys.executable, worker, n, path, threads]) for n in PEERS}
                sides["reprise"] = Side("reprise",
                                        [arguments.engine, path, "--threads", threads, *cap])
                for batch in map(int, arguments.batch.split(",")):
                    pixels = np.random.default_rng(batch).normal(0, 1, (batch, 3, 224, 224))
                    file = pathlib.Path(scratch) / "pixels.raw"
                    pixels.astype(np.float32).tofile(file)
                    inputs = [{"shape": pixels.shape, "file": str(file), "dtype": "float32"}]
                    answers, times = {}, {n: [] for n in names}
                    for name in names:
                        prefix = str(pathlib.Path(scratch) / name)
                        sides[name].ask(op="time", inputs=inputs, repeat=2, outputs=prefix)
                        answers[name] = np.fromfile(prefix + ".0", dtype=np.float32)
                    for _ in range(arguments.rounds):
                        for name in names:
                            ns = sides[name].ask(op="time", inputs=inputs, repeat=3)["ns"]
                            times[name].append(statistics.median(ns) / 1e6)
                    median = {n: statistics.median(t) for n, t in times.items()}
                    truth = answers["onnxruntime"]
                    error = np.abs(answers["reprise"] - truth).max() / np.abs(truth).max()
                    print(f"{model:>14}{threads:>9}{batch:>7}"
                          + "".join(f"{median[n]:18.2f}" for n in names)
                          + f"{min(median[n] for n in PEERS) / median['reprise']:9.2f}"
                          + f"{error:10.1e}", flush=True)
                for side in sides.values():
                    side.close()


main()
