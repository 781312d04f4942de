"""Embeddings of other kinds: weights of words, a vector a token, decoders, pictures."""

import base64
import io
import shutil
import string

import numpy as np
import onnxruntime
import pytest
import requests
from PIL import Image
from tritonclient.utils import InferenceServerException

from testing.daemon import Daemon, reprise
from testing.exported.embedders import clip, clip_in_one_file, decoder, late, masked_model, splade_modules
from testing.hub import HIDDEN, Folder
from testing.inference import tensors

TEXTS = ["a", "The quick brown fox jumps over the lazy dog.", "Prices: 99% off; call, mail!"]
CLOSE = dict(rtol=1e-5, atol=1e-5)


def post(daemon, path, **body):
    return requests.post(daemon.http_url + path, json=body, timeout=60)


def answered(daemon, path, **body):
    answer = post(daemon, path, **body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def dense_row(pairs, width):
    row = np.zeros(width)
    assert [pair["index"] for pair in pairs] == sorted({pair["index"] for pair in pairs})
    for pair in pairs:
        assert pair["value"] != 0
        row[pair["index"]] = pair["value"]
    return row


def test_weights_of_words_are_those_of_splade(tmp_path):
    words = 50
    largest = splade_modules(masked_model(tmp_path / "largest", words))
    summed = splade_modules(masked_model(tmp_path / "summed", words),
                            {"pooling_strategy": "sum", "activation_function": "log1p_relu"})
    few = splade_modules(masked_model(tmp_path / "few", words), max_active_dims=3)
    by_hand = masked_model(tmp_path / "by_hand", words)
    (tmp_path / "by_hand/config.pbtxt").write_text(
        'parameters { key: "reprise.pooling" value { string_value: "splade" } }\n')
    Folder(tmp_path / "dense").sentence_transformer()
    masked_model(tmp_path / "undeclared", words)

    def weights(folder, text, log=np.log1p, over=np.max):
        return over(log(np.maximum(folder.run(text)[0], 0)), 0)

    twice = lambda x: np.log1p(np.log1p(x))
    with Daemon(tmp_path) as daemon:
        for name, folder, how in (("largest", largest, {}), ("by_hand", by_hand, {}),
                                  ("summed", summed, dict(log=twice, over=np.sum))):
            found = answered(daemon, f"/models/{name}/embed_sparse", inputs=TEXTS)
            wanted = [weights(folder, text, **how) for text in TEXTS]
            assert 0 < min(len(row) for row in found) < words
            np.testing.assert_allclose([dense_row(row, words) for row in found], wanted, **CLOSE)
            # A text's weights are its own, whatever it shares a replay with.
            assert answered(daemon, f"/models/{name}/embed_sparse", inputs=TEXTS[0]) == found[:1]
        kept = answered(daemon, "/models/few/embed_sparse", inputs=TEXTS[1])[0]
        wanted = weights(few, TEXTS[1])
        assert sorted(pair["index"] for pair in kept) == sorted(np.argsort(-wanted)[:3])
        vector = answered(daemon, "/pooling", model="largest", input=TEXTS[1])["data"][0]["data"]
        np.testing.assert_allclose(vector, weights(largest, TEXTS[1]), **CLOSE)
        ranked = answered(daemon, "/models/largest/rerank", query=TEXTS[1], texts=TEXTS)
        rows = [weights(largest, text) for text in TEXTS]
        np.testing.assert_allclose([entry["score"] for entry in sorted(ranked, key=lambda e: e["index"])],
                                   [rows[1] @ row for row in rows], rtol=1e-4)
        info = requests.get(f"{daemon.http_url}/models/largest/info", timeout=60).json()
        assert info["model_type"] == {"embedding": {"pooling": "splade"}}
        for path, body, why in (
                ("/models/dense/embed_sparse", {"inputs": "a"}, "offers embeddings, not sparse embeddings"),
                ("/models/largest/v1/embeddings", {"input": "a"}, "offers sparse embeddings, not embeddings"),
                ("/models/undeclared/embed_sparse", {"inputs": "a"}, "splade")):
            refused = post(daemon, path, **body)
            assert refused.status_code == 400 and why in refused.text, refused.text


def vectors_of(folder, ids, attended):
    session = onnxruntime.InferenceSession(folder.file.read_bytes(), providers=["CPUExecutionProvider"])
    mask = np.zeros((1, len(ids)), np.int64)
    mask[0, :attended] = 1
    rows = session.run(None, {"input_ids": np.array([ids], np.int64), "attention_mask": mask})[0][0] @ folder.dense.T
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_colbert_of_pylate(tmp_path):
    config = {"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 16,
              "document_length": 24, "attend_to_expansion_tokens": False, "skiplist_words": list(string.punctuation),
              "do_query_expansion": True, "similarity_fn_name": "MaxSim"}
    folder = late(tmp_path / "colbert", config, marks=("[Q] ", "[D] "))
    tokenizer = folder.tokenizer
    marks = {name: tokenizer.token_to_id(mark) for name, mark in (("query", "[Q] "), ("document", "[D] "))}
    filler = tokenizer.token_to_id("[MASK]")
    skipped = {tokenizer.token_to_id(word) for word in string.punctuation}
    Folder(tmp_path / "dense").sentence_transformer()

    def wanted(text, side):
        tokenizer.enable_truncation(15 if side == "query" else 23)
        ids = tokenizer.encode(text).ids
        ids = [ids[0], marks[side], *ids[1:]]
        count = len(ids)
        if side == "query":
            return vectors_of(folder, ids + [filler] * (16 - count), count)
        kept = [place for place, each in enumerate(ids) if each not in skipped]
        assert not set(text) & set(string.punctuation) or len(kept) < len(ids)
        return vectors_of(folder, ids, count)[kept]

    with Daemon(tmp_path) as daemon:
        texts = [*TEXTS, "quick " * 40]
        for side in ("query", "document"):
            asked = {"prompt_name": side, "truncate": True}
            found = answered(daemon, "/models/colbert/embed_all", inputs=texts, **asked)
            pooled = answered(daemon, "/pooling", model="colbert", input=texts, task="token_embed", **asked)["data"]
            for text, rows, entry in zip(texts, found, pooled):
                np.testing.assert_allclose(rows, wanted(text, side), **CLOSE)
                assert entry["data"] == rows
        assert answered(daemon, "/models/colbert/embed_all", inputs=TEXTS[1]) == answered(
            daemon, "/models/colbert/embed_all", inputs=[TEXTS[1]], prompt_name="document")
        scores = [(wanted(TEXTS[1], "query") @ wanted(text, "document").T).max(1).sum() for text in TEXTS]
        ranked = answered(daemon, "/models/colbert/rerank", query=TEXTS[1], texts=TEXTS)
        np.testing.assert_allclose([entry["score"] for entry in sorted(ranked, key=lambda e: e["index"])], scores,
                                   rtol=1e-5)
        assert ranked[0]["index"] == 1
        found = answered(daemon, "/v1/score", model="colbert", text_1=TEXTS[1], text_2=TEXTS)
        np.testing.assert_allclose([entry["score"] for entry in found["data"]], scores, rtol=1e-5)
        for path, body, why in (
                ("/models/colbert/embed_all", {"inputs": texts[3], "prompt_name": "query"}, "15"),
                ("/models/dense/embed_all", {"inputs": "a"}, "offers embeddings, not token embeddings"),
                ("/models/colbert/v1/embeddings", {"input": "a"}, "offers token embeddings, not embeddings"),
                ("/pooling", {"model": "colbert", "input": "a", "task": "classify"}, "not classification"),
                ("/pooling", {"model": "colbert", "input": "a", "task": "plugin"}, "token_classify")):
            refused = post(daemon, path, **body)
            assert refused.status_code in (400, 422) and why in refused.text, refused.text
            assert refused.status_code == 400 or "tokens" in refused.text
        # The tensors of a text are computed from its own tokens.
        metadata = daemon.client().get_model_metadata("colbert")
        assert [output.name for output in metadata.outputs] == ["token_embeddings"]


def test_late_interaction_of_sentence_transformers(tmp_path):
    config = {"model_type": "MultiVectorEncoder", "similarity_fn_name": "meanmaxsim",
              "prompts": {"query": "fox ", "document": "dog "}}
    folder = late(tmp_path / "m", config, mask={"skiplist_words": ["the"], "skiplist_tasks": ["query", "document"]},
                  transformer={"query_expansion": {"strategy": "min", "attend": True, "length": 12, "token": "[UNK]"},
                               "document_length": 30})
    tokenizer = folder.tokenizer
    filler, the = tokenizer.token_to_id("[UNK]"), tokenizer.token_to_id("the")

    def wanted(text, side):
        ids = tokenizer.encode(("fox " if side == "query" else "dog ") + text).ids
        if side == "query":
            ids += [filler] * (12 - len(ids))
        kept = [place for place, each in enumerate(ids) if each != the]
        return vectors_of(folder, ids, len(ids))[kept]

    with Daemon(tmp_path) as daemon:
        for side in ("query", "document"):
            for text, rows in zip(TEXTS, answered(daemon, "/models/m/embed_all", inputs=TEXTS, prompt_name=side)):
                np.testing.assert_allclose(rows, wanted(text, side), **CLOSE)
        ranked = answered(daemon, "/models/m/rerank", query=TEXTS[2], texts=TEXTS)
        scores = [(wanted(TEXTS[2], "query") @ wanted(text, "document").T).max(1).mean() for text in TEXTS]
        np.testing.assert_allclose([entry["score"] for entry in sorted(ranked, key=lambda e: e["index"])], scores,
                                   rtol=1e-5)


def test_a_vector_a_token_of_any_encoder(tmp_path):
    folder = Folder(tmp_path / "m").sentence_transformer()
    (tmp_path / "m/config.pbtxt").write_text(
        'parameters { key: "reprise.pooling" value { string_value: "tokens" } }\n')
    with Daemon(tmp_path) as daemon:
        for text, rows in zip(TEXTS, answered(daemon, "/embed_all", inputs=TEXTS)):
            np.testing.assert_allclose(rows, folder.run(text)[0], **CLOSE)
        # Clients of the hub ask the address of the model.
        assert answered(daemon, "/models/m", inputs=TEXTS[0]) == answered(daemon, "/embed_all", inputs=TEXTS[0])


def test_a_decoder_with_caches_makes_vectors(tmp_path):
    folder = decoder(tmp_path / "decoder")
    bare = decoder(tmp_path / "bare", sentence_transformer=False)
    session = onnxruntime.InferenceSession(folder.file.read_bytes(), providers=["CPUExecutionProvider"])
    empty = {each.name: np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32)
             for each in session.get_inputs() if "past" in each.name}

    def last(text, folder=folder):
        ids = folder.tokenizer.encode(text).ids
        feeds = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64), **empty}
        return session.run(["last_hidden_state"], feeds)[0][0, -1]

    def unit(x):
        return x / np.linalg.norm(x)

    assert "the last one of a decoder counts" in reprise("check", tmp_path / "bare")
    with Daemon(tmp_path) as daemon:
        metadata = daemon.client().get_model_metadata("decoder")
        assert sorted(each.name for each in metadata.inputs) == ["attention_mask", "input_ids"]
        assert [each.name for each in metadata.outputs] == ["sentence_embedding"]
        for prompt in ("", "find: "):
            asked = {"prompt_name": "query"} if prompt else {}
            found = answered(daemon, "/v1/embeddings", model="decoder", input=TEXTS, **asked)["data"]
            np.testing.assert_allclose([each["embedding"] for each in found],
                                       [unit(last(prompt + text)) for text in TEXTS], **CLOSE)
        found = answered(daemon, "/v1/embeddings", model="bare", input=TEXTS)["data"]
        np.testing.assert_allclose([each["embedding"] for each in found], [last(text, bare) for text in TEXTS],
                                   **CLOSE)


def picture(colour, size=(40, 30)):
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    path = tmp_path_factory.mktemp("clip")
    folder = clip(path / "clip")
    (path / "none").mkdir()
    with Daemon(path / "none", "--model", f"texts={folder.path}/onnx/text_model.onnx", "--model",
                f"pictures={folder.path}/onnx/vision_model.onnx") as daemon:
        daemon.folder = folder
        yield daemon


COLOURS = [(255, 0, 0), (10, 200, 30), (0, 0, 0)]
WANTED = [10 * (np.array(colour) / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.25] for colour in COLOURS]


@pytest.mark.parametrize("form", ["data", "base64", "jina", "vllm", "parts"])
def test_pictures_have_vectors_in_every_form(sides, form):
    files = [picture(colour) for colour in COLOURS]
    urls = [f"data:image/png;base64,{file}" for file in files]
    body = {"data": {"input": urls}, "base64": {"input": files},
            "jina": {"input": [{"image": file} for file in files]},
            "vllm": {"messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": url}} for url in urls]}]},
            "parts": {"input": [{"content": [{"type": "image_url", "image_url": {"url": url}}]} for url in urls]}}[form]
    found = answered(sides, "/v1/embeddings", model="pictures", **body)
    assert found["model"] == "pictures" and [each["index"] for each in found["data"]] == [0, 1, 2]
    np.testing.assert_allclose([each["embedding"] for each in found["data"]], WANTED, **CLOSE)


def test_the_two_sides_of_clip(sides):
    urls = [f"data:image/png;base64,{picture(colour)}" for colour in COLOURS]
    found = answered(sides, "/v2/embed", model="pictures", images=urls, input_type="image")
    np.testing.assert_allclose(found["embeddings"]["float"], WANTED, **CLOSE)
    assert found["meta"]["billed_units"] == {"images": 3}
    texts = answered(sides, "/v1/embeddings", model="texts", input=TEXTS)["data"]
    np.testing.assert_allclose([each["embedding"] for each in texts],
                               [sides.folder.run(text)[0][0] for text in TEXTS], **CLOSE)
    # Where one model alone makes vectors of pictures, it needs no name.
    one = answered(sides, "/v1/embeddings", input=[{"image": urls[0]}], encoding_format="base64")["data"][0]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(one["embedding"]), np.float32), WANTED[0], **CLOSE)


def test_clip_in_one_file_takes_texts_and_pictures(tmp_path):
    folder = clip_in_one_file(tmp_path / "clip")
    (tmp_path / "none").mkdir()
    urls = [f"data:image/png;base64,{picture(colour)}" for colour in COLOURS]
    with Daemon(tmp_path / "none", "--model", f"clip={folder.path}", "--recipe-cache", tmp_path / "store") as daemon:
        for _ in range(2):
            texts = answered(daemon, "/v1/embeddings", model="clip", input=TEXTS)["data"]
            np.testing.assert_allclose([each["embedding"] for each in texts],
                                       [folder.run(text)[0][0] for text in TEXTS], **CLOSE)
            found = answered(daemon, "/v1/embeddings", model="clip", input=[{"image": url} for url in urls])["data"]
            np.testing.assert_allclose([each["embedding"] for each in found], WANTED, **CLOSE)
        found = answered(daemon, "/v2/embed", model="clip", images=urls, input_type="image")
        np.testing.assert_allclose(found["embeddings"]["float"], WANTED, **CLOSE)
        # Each side answers tensors as well, by its own inputs.
        client = daemon.client()
        answer = client.infer("clip", tensors({"pixel_values": np.ones((2, 3, 8, 8), np.float32)}))
        np.testing.assert_allclose(answer.as_numpy("image_embeds"), np.full((2, 3), 10), **CLOSE)
        for name in ("text_embeds", "logits_per_image"):
            assert answer.as_numpy(name) is None
        pixels, ids = np.zeros((2, 3, 8, 8), np.float32), np.array([[2, 5, 7, 3]], np.int64)
        texts = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        assert client.infer("clip", tensors(texts)).as_numpy("text_embeds").shape == (1, HIDDEN)
        with pytest.raises(InferenceServerException, match="input_ids"):
            client.infer("clip", tensors({**texts, "pixel_values": pixels}))
    # Without its texts the file stays whole.
    whole = tmp_path / "models/whole"
    shutil.copytree(folder.path, whole / "1")
    (whole / "config.pbtxt").write_text('parameters { key: "reprise.pooling" value { string_value: "none" } }')
    with Daemon(tmp_path / "models") as daemon:
        answer = daemon.client().infer("whole", tensors({**texts, "pixel_values": pixels}))
    session = onnxruntime.InferenceSession(folder.file)
    np.testing.assert_allclose(answer.as_numpy("logits_per_text"),
                               session.run(["logits_per_text"], {**texts, "pixel_values": pixels})[0], **CLOSE)


def test_what_is_no_picture_is_named(sides):
    url = f"data:image/png;base64,{picture((1, 2, 3))}"
    for body, why in (
            ({"model": "texts", "input": [{"image": url}]}, "the model takes no pictures"),
            ({"model": "pictures", "input": "a cat!"}, '\\"input\\" is not base64'),
            ({"model": "pictures", "input": "a cat"}, "neither a JPEG nor a PNG"),
            ({"model": "pictures", "input": [{"image": url}, {"image": "%"}]}, '\\"input[1]\\" is not base64'),
            ({"model": "texts", "input": [{"image": url}, {"text": "a"}]}, "a request has one kind"),
            ({"model": "pictures", "input": [{"image": "https://a.b/c.png"}]}, "fetches no pictures"),
            ({"model": "pictures", "input": base64.b64encode(b"GIF89a").decode()}, "neither a JPEG nor a PNG"),
            ({"model": "pictures", "input": [[1, 2]]}, "has no picture"),
            ({"model": "pictures", "input": [url] * 257}, "the limit is 256")):
        refused = post(sides, "/v1/embeddings", **body)
        assert refused.status_code == 400 and why in refused.text, refused.text
        assert refused.json()["error"]["type"] == "invalid_request_error"
