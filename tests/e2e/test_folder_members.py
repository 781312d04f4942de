"""Everything that the files of a folder say is done, as sentence-transformers and transformers do it, or refused by
name."""

import json
import subprocess

import numpy as np
import pytest
import requests

from testing.daemon import BUILD, Daemon, reprise
from testing.hub import HIDDEN, Folder, sigmoid, softmax
from testing.hub.modules import (Dense, LayerNorm, Normalize, Pooling, run_modules, write_modules)
from testing.tiny_texts import IDENTITY, TinyFolder

TEXTS = ["a", "The quick brown fox jumps over the lazy dog.", "日本語 and 한국어 " * 5]
CLOSE = dict(rtol=0, atol=2e-5)
RELU = "torch.nn.modules.activation.ReLU"
GELU = "torch.nn.modules.activation.GELU"
TANH = "torch.nn.modules.activation.Tanh"


def post(daemon, path, **body):
    return requests.post(daemon.http_url + path, json=body, timeout=60)


def embed(daemon, model, texts):
    answer = post(daemon, "/v1/embeddings", model=model, input=texts)
    assert answer.status_code == 200, answer.text
    return [entry["embedding"] for entry in answer.json()["data"]]


def ids_of(daemon, model, text, **more):
    answer = post(daemon, "/tokenize", model=model, prompt=text, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()["tokens"]


MODULES = {
    "normalize_first": [Pooling(), Normalize(), Dense(HIDDEN, 5, IDENTITY)],
    "two_dense": [Pooling("cls"), Dense(HIDDEN, 7, GELU, seed=3), Dense(7, 5, RELU, seed=4), Normalize()],
    "of_tokens": [Dense(HIDDEN, 6, RELU, reads="token_embeddings"), Pooling("max", 6)],
    "normal_tokens": [Normalize("token_embeddings"), Pooling()],
    "residual": [Pooling(), Dense(HIDDEN, HIDDEN, residual=True)],
    "residual_projects": [Pooling(), Dense(HIDDEN, 5, IDENTITY, bias=False, residual=True), Normalize()],
    "list": [Pooling(["max", "cls", "lasttoken"])],
    "layer_norm": [Pooling("mean_sqrt_len_tokens"), LayerNorm(HIDDEN)],
    "names": [Pooling(), Dense(HIDDEN, 5, writes="other"), Normalize("other", "sentence_embedding")],
}


def test_modules_run_in_the_order_of_the_file(tmp_path):
    folders = {name: write_modules(Folder(tmp_path / name), modules)
               for name, modules in MODULES.items()}
    cut = write_modules(Folder(tmp_path / "cut"), [Pooling(), Normalize()], truncate_dim=5)
    with Daemon(tmp_path) as daemon:
        for name, folder in folders.items():
            np.testing.assert_allclose(
                embed(daemon, name, TEXTS),
                [run_modules(folder, MODULES[name], text) for text in TEXTS], err_msg=name, **CLOSE)
        # Cut as it is: its length is no longer 1.
        np.testing.assert_allclose(
            embed(daemon, "cut", TEXTS),
            [run_modules(cut, [Pooling(), Normalize()], text)[:5] for text in TEXTS], **CLOSE)
        assert "cut to 5" in reprise("check", tmp_path / "cut")


def test_vectors_are_compared_as_the_folder_says(tmp_path):
    distances = {
        "cosine": lambda a, b: a @ b / np.linalg.norm(a) / np.linalg.norm(b),
        "dot": lambda a, b: a @ b,
        "euclidean": lambda a, b: -np.linalg.norm(a - b),
        "manhattan": lambda a, b: -np.abs(a - b).sum(),
    }
    folders = {name: write_modules(Folder(tmp_path / name), [Pooling()], similarity_fn_name=name)
               for name in distances}
    with Daemon(tmp_path) as daemon:
        for name, folder in folders.items():
            first, *others = [run_modules(folder, [Pooling()], text) for text in TEXTS]
            wanted = [distances[name](first, other) for other in others]
            answer = post(daemon, f"/models/{name}/similarity",
                          inputs={"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}).json()
            np.testing.assert_allclose(answer, wanted, rtol=1e-4, atol=1e-4, err_msg=name)
            scores = post(daemon, "/score", model=name, text_1=TEXTS[0], text_2=TEXTS[1:]).json()
            np.testing.assert_allclose([each["score"] for each in scores["data"]], wanted,
                                       rtol=1e-4, atol=1e-4)


def test_cross_encoders_as_they_are_saved_today(tmp_path):
    """modules.json with one Transformer, or with a head; the activation stands beside it."""
    plain = {name: write_modules(Folder(tmp_path / name, labels=["score"]), [],
                                 model_type="CrossEncoder", activation_fn=activation)
             for name, activation in [("identity", IDENTITY), ("tanh", TANH), ("silent", None)]}
    head = [Pooling("cls"), Dense(HIDDEN, 1, IDENTITY, writes="scores")]
    folder = write_modules(Folder(tmp_path / "head"), head, model_type="CrossEncoder",
                           activation_fn="torch.nn.modules.activation.Sigmoid")
    nli = write_modules(Folder(tmp_path / "nli", labels=["a", "b", "c"]), [],
                        model_type="CrossEncoder", activation_fn=IDENTITY)
    squash = {"identity": lambda x: x, "tanh": np.tanh, "silent": sigmoid, "head": sigmoid}
    query, documents = "which animal is lazy", TEXTS
    with Daemon(tmp_path) as daemon:
        for name, activate in squash.items():
            logits = np.array([
                run_modules(folder, head, query, each, "scores")[0] if name == "head" else
                plain[name].run(query, each)[0][0] for each in documents])
            wanted, order = activate(logits), np.argsort(-logits)
            cohere = post(daemon, "/rerank", model=name, query=query, documents=documents).json()
            assert [each["index"] for each in cohere["results"]] == list(order)
            np.testing.assert_allclose([each["relevance_score"] for each in cohere["results"]],
                                       wanted[order], err_msg=name, **CLOSE)
            tei = post(daemon, "/rerank", model=name, query=query, texts=documents).json()
            np.testing.assert_allclose([each["score"] for each in tei], wanted[order], **CLOSE)
            raw = post(daemon, "/rerank", model=name, query=query, texts=documents,
                       raw_scores=True).json()
            np.testing.assert_allclose([each["score"] for each in raw], logits[order], **CLOSE)
        assert "rerank (modules.json: cls of" in reprise("check", tmp_path / "head")
        labels = post(daemon, "/models/nli/predict", inputs=[[query, TEXTS[1]]]).json()[0]
        shares = softmax(nli.run(query, TEXTS[1])[0])
        np.testing.assert_allclose([each["score"] for each in labels], sorted(shares)[::-1], **CLOSE)


def test_a_score_that_is_nan_leaves_the_order_of_others(tmp_path):
    words = ["q", "nan", *"abcdefgh"]
    rng = np.random.default_rng(3)
    table = rng.normal(0, 2, (5 + len(words), 1))
    table[:6] = 0
    table[6] = np.nan
    TinyFolder(tmp_path / "m", words, table, output="logits",
               architectures=["BertForSequenceClassification"], id2label={"0": "score"})
    moods = TinyFolder(tmp_path / "moods", words, rng.normal(0, 1, (5 + len(words), 3)),
                       output="logits", architectures=["BertForSequenceClassification"])
    moods.table[7] = [1, np.nan, 2]
    (tmp_path / "moods/model.onnx").write_bytes(moods.model(None, "logits").SerializeToString())
    with Daemon(tmp_path) as daemon:
        for trial in range(20):
            texts = [str(word) for word in rng.permutation(list("abcdefgh") + ["nan"] * (1 + trial % 4))]
            raw = {word: table[5 + words.index(word), 0] for word in texts}
            right = [i for i in sorted(range(len(texts)), key=lambda i: -raw[texts[i]]
                                       if texts[i] != "nan" else np.inf)]
            answer = post(daemon, "/rerank", model="m", query="q", texts=texts).json()
            assert [each["index"] for each in answer] == right, texts
            best = post(daemon, "/rerank", model="m", query="q", documents=texts, top_n=1).json()
            assert [each["index"] for each in best["results"]] == right[:1]
        labels = post(daemon, "/models/moods/predict", inputs="a", raw_scores=True).json()
        assert labels[-1]["score"] is None and labels[0]["score"] > labels[1]["score"]
        # Their shares all depend on it.
        nothing = post(daemon, "/models/moods/predict", inputs="a")
        assert nothing.status_code == 422 and 'text 0: number 0' in nothing.text
        score = post(daemon, "/v1/score", model="m", text_1="q", text_2=["a", "nan"])
        assert score.status_code == 400 and "text 1: number 0" in score.json()["error"]["message"]


def test_a_vector_that_is_nan_or_infinite_is_an_error_that_names_the_text(tmp_path):
    words = ["nan", "large", *"abc"]
    table = np.random.default_rng(3).normal(0, 2, (5 + len(words), 4))
    table[5], table[6] = [1, np.nan, 2, 3], [1, 2, np.inf, 3]
    TinyFolder(tmp_path / "m", words, table)
    tags = np.random.default_rng(4).normal(0, 1, (5 + len(words), 2))
    tags[5] = [np.nan, 1]
    TinyFolder(tmp_path / "tags", words, tags, output="logits", of_tokens=True,
               architectures=["BertForTokenClassification"], id2label={"0": "O", "1": "B-X"})
    with Daemon(tmp_path) as daemon:
        for word, number in (("nan", "nan"), ("large", "inf")):
            for encoding in ("float", "base64"):
                refused = post(daemon, "/v1/embeddings", model="m", input=["a", word, "b"],
                               encoding_format=encoding)
                assert refused.status_code == 400
                error = refused.json()["error"]
                assert error["type"] == "invalid_request_error"
                assert "text 1: number" in error["message"] and number in error["message"]
            refused = post(daemon, "/models/m/embed", inputs=["a", word], normalize=False)
            assert refused.status_code == 422 and "text 1: number" in refused.json()["error"]
        close = post(daemon, "/models/m/similarity",
                     inputs={"source_sentence": "a", "sentences": ["b", "nan"]})
        assert close.status_code == 422 and "text 2: number 0" in close.text
        for strategy in ("none", "simple", "average"):
            refused = post(daemon, "/models/tags/predict", inputs=["a", "b nan"],
                           aggregation_strategy=strategy)
            assert refused.status_code == 422 and "text 1: number" in refused.text
        assert post(daemon, "/v1/embeddings", model="m", input=["a", "b"]).ok


# Python's own lower case is the standard: one letter that becomes two, one that depends on its place.
UPPER = ["É", "ΟΔΟΣ", "ΣΑΣ", "ДОМ", "ԲԱ", "Ｗ", "ẞ", "İ"]


def test_texts_are_lowered_in_every_script(tmp_path):
    words = [word.lower() for word in UPPER] + UPPER
    table = np.random.default_rng(1).normal(0, 1, (5 + len(words), 4))
    for name, lower in [("lower", True), ("as_it_is", False)]:
        folder = TinyFolder(tmp_path / name, words, table)
        folder.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer",
                                               "do_lower_case": False, "strip_accents": False})
        folder.write("sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": lower})
    with Daemon(tmp_path) as daemon:
        for word in UPPER:
            wanted = folder.ids("[CLS]", word.lower(), "[SEP]")
            assert ids_of(daemon, "lower", word) == wanted, word
            np.testing.assert_allclose(embed(daemon, "lower", [word])[0],
                                       folder.table[wanted].mean(0), **CLOSE)
            kept = folder.ids("[CLS]", word, "[SEP]")
            assert ids_of(daemon, "as_it_is", word) == kept
        said = json.loads(subprocess.run(
            [BUILD / "reprise", "tokenize", tmp_path / "lower", "--json"], input='"İ ДОМ"\n',
            capture_output=True, text=True, timeout=60, check=True).stdout)
        assert said["ids"] == folder.ids("[CLS]", "i̇", "дом", "[SEP]")
        assert said["offsets"][1:3] == [[0, 1], [2, 5]]


@pytest.mark.parametrize("problem, shares", [
    ("regression", lambda scores: scores), ("multi_label_classification", lambda scores: 1 / (1 + np.exp(-scores))),
    ("single_label_classification", lambda scores: np.exp(scores) / np.exp(scores).sum())])
def test_labels_are_what_the_problem_says(problem, shares, tmp_path):
    words, labels = list("ab"), ["low", "high"]
    table = np.random.default_rng(3).normal(0, 1, (7, 2))
    folder = TinyFolder(tmp_path / "m", words, table, output="logits", problem_type=problem,
                        architectures=["BertForSequenceClassification"],
                        id2label={str(i): label for i, label in enumerate(labels)})
    with Daemon(tmp_path) as daemon:
        answer = requests.post(f"{daemon.http_url}/predict", json={"model": "m", "inputs": "a b"}, timeout=60).json()
    wanted = shares(folder.table[folder.ids("[CLS]", "a", "b", "[SEP]")].sum(0))
    found = {one["label"]: one["score"] for one in answer}
    np.testing.assert_allclose([found[label] for label in labels], wanted, **CLOSE)


def test_positions_of_robertas_kind_begin_after_the_padding(tmp_path):
    words = list("abcd")
    rng = np.random.default_rng(2)
    table, places = rng.normal(0, 1, (9, 4)), rng.normal(0, 1, (34, 4))
    starts = {"bert": 0, "roberta": 2, "camembert": 2, "mpnet": 2}
    folders = {name: TinyFolder(tmp_path / name, words, table, places, model_type=name, pad_token_id=1,
                                max_position_embeddings=34) for name in starts}
    for folder in folders.values():
        folder.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer"})
    with Daemon(tmp_path) as daemon:
        for name, folder in folders.items():
            ids = folder.ids("[CLS]", "a", "b", "[SEP]")
            wanted = (folder.table[ids] + places[starts[name]:][:4]).mean(0)
            np.testing.assert_allclose(embed(daemon, name, ["a b"])[0], wanted, err_msg=name, **CLOSE)
            # 32 tokens fit after the padding's place.
            assert f"at most {34 - starts[name]} tokens" in reprise("check", tmp_path / name)


def test_the_side_that_the_folder_names_is_cut(tmp_path):
    words = list("abcdefgh")
    folder = TinyFolder(tmp_path / "m", words, np.eye(13))
    folder.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "model_max_length": 4,
                                           "truncation_side": "left"})
    with Daemon(tmp_path) as daemon:
        for more, kept in [({}, "gh"), ({"truncation_direction": "Left"}, "gh"),
                           ({"truncation_direction": "Right"}, "ab")]:
            answer = post(daemon, "/embed", model="m", inputs="a b c d e f g h", truncate=True,
                          normalize=False, **more).json()[0]
            wanted = folder.table[folder.ids("[CLS]", *kept, "[SEP]")].mean(0)
            np.testing.assert_allclose(answer, wanted, err_msg=str(more), **CLOSE)


def test_entities_are_grouped_by_words(tmp_path):
    """As the pipeline of transformers groups them, by the marks of WordPiece."""
    tags = ["O", "B-PER", "I-PER", "B-LOC"]
    folder = Folder(tmp_path / "tagger", labels=tags, of_tokens=True, seed=4)
    texts = ["The quick brown fox, unbelievable jumps!", "日本語 in Köln amused"]
    groupings = {
        "first": lambda rows: rows[0],
        "average": lambda rows: np.mean(rows, 0),
        "max": lambda rows: max(rows, key=lambda row: row.max()),
    }
    with Daemon(tmp_path) as daemon:
        for strategy, joined in groupings.items():
            several = 0
            for text in texts:
                logits, encoded = folder.run(text)
                words = []
                for i, row in enumerate(logits):
                    if encoded.special_tokens_mask[i]:
                        continue
                    start, end = encoded.offsets[i]
                    goes_on = (len(encoded.tokens[i]) != end - start and encoded.tokens[i] != "[UNK]")
                    if words and goes_on:
                        words[-1].append((softmax(row), start, end))
                        several += 1
                    else:
                        words.append([(softmax(row), start, end)])
                groups = []
                for word in words:
                    shares = joined([row for row, _, _ in word])
                    label, score = tags[shares.argmax()], shares.max()
                    tag = label.split("-")[-1]
                    if groups and groups[-1][0] == tag and not label.startswith("B-"):
                        groups[-1][1].append(score)
                        groups[-1][3] = word[-1][2]
                    else:
                        groups.append([tag, [score], word[0][1], word[-1][2]])
                wanted = [(tag, start, end) for tag, _, start, end in groups if tag != "O"]
                scores = [np.mean(each) for tag, each, _, _ in groups if tag != "O"]
                answer = post(daemon, "/models/tagger/predict", inputs=[text],
                              aggregation_strategy=strategy).json()[0]
                assert [(e["entity_group"], e["start"], e["end"]) for e in answer] == wanted
                np.testing.assert_allclose([e["score"] for e in answer], scores, **CLOSE)
            assert several > 0
        # Tokens that the vocabulary lacks are named by the text.
        unknown = "fox ⴀ dog ⴁⴂ over ⴃ the ⴄ lazy ⴅ ⴆ"
        named = post(daemon, "/models/tagger/predict", inputs=[unknown],
                     aggregation_strategy="none").json()[0]
        assert [e["word"] for e in named] == [unknown[e["start"]:e["end"]] for e in named]
        assert any("ⴀ" <= e["word"][0] <= "ⴆ" for e in named)
        joined = post(daemon, "/models/tagger/predict", inputs=[unknown]).json()[0]
        assert [e["word"] for e in joined] == [unknown[e["start"]:e["end"]] for e in joined]
        refused = post(daemon, "/models/tagger/predict", inputs="a", aggregation_strategy="middle")
        assert refused.status_code == 400 and refused.json()["error_type"] == "Validation"
        assert "first, average or max" in refused.text
        for wrong in (3, ["max"], True):
            refused = post(daemon, "/models/tagger/predict", inputs="a", aggregation_strategy=wrong)
            assert refused.status_code == 400 and "aggregation_strategy" in refused.text


REFUSED = {
    "sentence_bert_config.json": ({"transformer_task": "text-generation"}, "text-generation"),
    "config_sentence_transformers.json": ({"model_type": "WordVectors"}, "WordVectors"),
    "1_Pooling/config.json": ({"pooling_mode": "mean", "odd": 1}, '"odd" is not known'),
    "2_Normalize/config.json": ({"p": 1}, '"p" is not known'),
    "tokenizer_config.json": ({"truncation_side": "middle"}, "middle"),
}


@pytest.mark.parametrize("file", REFUSED)
def test_what_is_not_done_is_refused_by_name(file, tmp_path):
    value, why = REFUSED[file]
    write_modules(Folder(tmp_path / "m"), [Pooling(), Normalize()]).write(file, value)
    said = reprise("check", tmp_path / "m")
    assert "texts are not accepted" in said and file.rpartition("/")[2] in said and why in said


def test_a_router_of_queries_and_documents_is_refused_by_name(tmp_path):
    """As sentence-transformers saves it: a transformer with its tokenizer for each route, none in the folder."""
    folder = Folder(tmp_path / "m")
    folder.write("modules.json", [{"idx": 0, "name": "0", "path": "",
                                   "type": "sentence_transformers.base.modules.router.Router"}])
    folder.write("router_config.json", {"types": {}, "structure": {}, "parameters": {}})
    for route in ("query", "document"):
        (tmp_path / f"m/{route}_0_Transformer").mkdir()
        (tmp_path / f"m/{route}_0_Transformer/tokenizer.json").write_text((folder.path / "tokenizer.json").read_text())
    (folder.path / "tokenizer.json").unlink()
    with Daemon(tmp_path) as daemon:
        answer = post(daemon, "/v1/embeddings", model="m", input="a")
        assert answer.status_code == 501 and '"Router\\" is not supported' in answer.text
        assert daemon.client().is_model_ready("m")
