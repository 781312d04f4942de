"""Models that take texts, of seven kinds, in one daemon."""

import huggingface_hub
import openai
import pytest
import requests

from testing import tokenizer_kinds
from testing.daemon import Daemon
from testing.hub import Folder


TEXTS = ["The quick brown fox jumps over the lazy dog.", "Reprise captures a graph once.",
         "日本語の文章は空白で区切られていません。", "", "Emojis 😀😃🎉 and flags 🇩🇪 here.", "fox " * 40]
DOCUMENTS = ["the dog is not amused", "Schöne Grüße aus Köln", "a graph for every request", "fox"]
LABELS = ["sad", "calm", "glad"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
CLOSE = dict(rtol=0, atol=2e-5)


class Served:
    """Seven models of seven kinds in one process, and a client of each protocol."""

    def __init__(self, root):
        hub = root / "hub"
        hub.mkdir()
        self.sentences = Folder(hub / "sentences").sentence_transformer(
            dense=24, prompts={"query": "query: "})
        self.other = Folder(root / "other", tokenizer=tokenizer_kinds.byte_bpe(), seed=2,
                            file="onnx/model.onnx").sentence_transformer(pooling="cls_token")
        self.ranker = Folder(hub / "ranker", seed=3, labels=["relevance"])
        self.moods = Folder(hub / "moods", seed=4, labels=LABELS)
        self.tagger = Folder(hub / "tagger", seed=6, labels=TAGS, of_tokens=True)
        Folder(hub / "words", seed=7, labels=TAGS, of_tokens=True)
        Folder(hub / "vectors", seed=8)
        for name, pooling in (("words", "splade"), ("vectors", "tokens")):
            (hub / name / "config.pbtxt").write_text(
                f'parameters {{ key: "reprise.pooling" value {{ string_value: "{pooling}" }} }}\n')
        self.daemon = Daemon(hub, "--model", f"other={root / 'other'}")

    def url(self, model=None):
        return self.daemon.http_url + (f"/models/{model}" if model else "")

    def post(self, path, body):
        return requests.post(self.daemon.http_url + path, json=body, timeout=60)

    def openai(self):
        return openai.OpenAI(base_url=self.url() + "/v1", api_key="none", max_retries=0)

    def hub(self, model):
        return huggingface_hub.InferenceClient(model=self.url(model))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    it = Served(tmp_path_factory.mktemp("texts"))
    with it.daemon:
        yield it
