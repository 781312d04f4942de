"""Compares the tokens that Reprise makes of exported decoders with onnxruntime's."""

import argparse
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnxruntime

DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
          "tensor(int32)": np.int32, "tensor(bool)": bool}
NEW_TOKENS, VOCABULARY, PROMPTS = 16, 97, (1, 7, 40)


class Stepper:
    """A decoder in onnxruntime whose cache the caller keeps."""

    def __init__(self, path, plain):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if plain:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = {one.name: one for one in self.session.get_inputs()}
        self.outputs = [one.name for one in self.session.get_outputs()]
        self.caches = [one for one in self.inputs.values() if "past" in one.name and len(one.shape) >= 3]

    def feed(self, name, ids, length):
        dtype = DTYPES[self.inputs[name].type]
        if "attention_mask" in name:
            return np.ones((1, length + len(ids)), dtype)
        if "position" in name:
            places = np.arange(length, length + len(ids), dtype=dtype)
            return places if len(self.inputs[name].shape) == 1 else places[None]
        if name == "use_cache_branch":
            return np.array([True])
        return np.array([ids], dtype)

    def greedy(self, prompt, single):
        """Returns tokens, and by how much each was the best one."""
        sizes = {0: 1}
        past = {one.name: np.zeros([d if isinstance(d, int) else sizes.get(i, 0) for i, d in enumerate(one.shape)],
                                   DTYPES[one.type]) for one in self.caches}
        waiting, ids = (list(prompt[1:]), list(prompt[:1])) if single else ([], list(prompt))
        length, tokens, margins = 0, [], []
        while len(tokens) < NEW_TOKENS:
            feeds = {name: past[name] if name in past else self.feed(name, ids, length) for name in self.inputs}
            answers = dict(zip(self.outputs, self.session.run(self.outputs, feeds)))
            for name in past:
                present = next(one for one in (name.replace("past_key_values", "present"), name.replace("past", "present"))
                               if one in answers)
                past[name] = answers[present]
            length += len(ids)
            if waiting:
                ids = [waiting.pop(0)]
                continue
            scores = answers.get("logits", answers[self.outputs[0]])[0, -1].astype(np.float64)
            second, first = np.sort(scores)[-2:]
            margins.append(first - second)
            tokens.append(int(scores.argmax()))
            ids = tokens[-1:]
        return tokens, margins


def compare(reprise, path, single, plain):
    """Returns a line about the file."""
    rng = np.random.default_rng(5)
    stepper = Stepper(path, plain)
    if not stepper.caches:
        return "has no past"
    equal, differences = 0, []
    for length in PROMPTS:
        prompt = [int(one) for one in rng.integers(2, VOCABULARY, length)]
        expected, margins = stepper.greedy(prompt, single)
        ran = subprocess.run([reprise, "generate", path, "--ids", ",".join(map(str, prompt)), "--max-tokens",
                              str(NEW_TOKENS), "--temperature", "0"], capture_output=True, text=True, timeout=300)
        found = re.search(r"^0 (?:length|stop) ([\d,]+)", ran.stdout, re.M)
        if not found:
            return "makes none: " + ran.stderr.strip()[-300:]
        got = [int(one) for one in found.group(1).split(",")]
        wrong = next((i for i, one in enumerate(got) if one != expected[i]), None)
        equal += wrong is None
        if wrong is not None:
            differences.append(f"prompt of {length}: token {wrong}, best by {margins[wrong]:.4f}")
    return f"equal {equal} of {len(PROMPTS)}" + "".join("; " + one for one in differences)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reprise", type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--single", action="store_true", help="onnxruntime gets one token at a time")
    parser.add_argument("--plain", action="store_true", help="onnxruntime without its graph optimisations")
    arguments = parser.parse_args()
    failed = 0
    for folder in arguments.folders:
        for path in sorted(one for one in folder.rglob("*.onnx") if "source" not in one.parts):
            try:
                line = compare(arguments.reprise.resolve(), path, arguments.single, arguments.plain)
            except Exception as error:
                line = "onnxruntime: " + str(error)[:150].replace("\n", " ")
            failed += not line.startswith((f"equal {len(PROMPTS)}", "has no past"))
            print(path.relative_to(folder), line, flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
