"""Texts over HTTP and over the inference protocol, by the clients that people have, unmodified."""

import base64
import os
import re

import cohere
import numpy as np
import openai
import pytest
import requests
import tritonclient.grpc
import tritonclient.http
from cohere.errors import UnprocessableEntityError

from testing.daemon import Daemon, reprise
from testing.hub import sigmoid, softmax
from testing.hub.served import CLOSE, DOCUMENTS, LABELS, TAGS, TEXTS, served
from testing.metrics import Scrape
from testing.tiny_texts import TinyFolder


def test_openai_embeddings_are_those_of_the_python_stack(served):
    texts = [text for text in TEXTS if len(text) < 150]
    answer = served.openai().embeddings.create(model="sentences", input=texts)
    assert [entry.index for entry in answer.data] == list(range(len(texts)))
    wanted = [served.sentences.embed(text) for text in texts]
    np.testing.assert_allclose([entry.embedding for entry in answer.data], wanted, **CLOSE)
    tokens = sum(len(served.sentences.run(text)[1].ids) for text in texts)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == tokens
    assert answer.model == "sentences"
    floats = served.openai().embeddings.create(model="sentences", input=texts[0],
                                               encoding_format="float")
    np.testing.assert_allclose(floats.data[0].embedding, wanted[0], **CLOSE)


def test_openai_embeddings_take_ids_and_dimensions(served):
    ids = [served.sentences.run(text)[1].ids for text in TEXTS[:3]]
    wanted = np.array([served.sentences.embed(text) for text in TEXTS[:3]])
    answer = served.openai().embeddings.create(model="sentences", input=ids)
    np.testing.assert_allclose([entry.embedding for entry in answer.data], wanted, **CLOSE)
    one = served.openai().embeddings.create(model="sentences", input=ids[0], dimensions=8)
    cut = wanted[0][:8] / np.linalg.norm(wanted[0][:8])
    np.testing.assert_allclose(one.data[0].embedding, cut, **CLOSE)
    with pytest.raises(openai.BadRequestError, match='"dimensions" is 1000, the model\'s vectors have 24'):
        served.openai().embeddings.create(model="sentences", input="a", dimensions=1000)


def test_openai_lists_models_and_its_errors_are_its_own(served):
    names = {model.id for model in served.openai().models.list()}
    assert names == {"sentences", "other", "ranker", "moods", "tagger", "words", "vectors"}
    assert served.openai().models.retrieve("ranker").id == "ranker"
    with pytest.raises(openai.NotFoundError, match='no model \\\\?"nobody') as error:
        served.openai().embeddings.create(model="nobody", input="a")
    assert error.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="offers rerank, not embeddings"):
        served.openai().embeddings.create(model="ranker", input="a")
    with pytest.raises(openai.BadRequestError, match='the model takes 64'):
        served.openai().embeddings.create(model="sentences", input="dog " * 200)
    with pytest.raises(openai.BadRequestError, match="out of range"):
        served.openai().embeddings.create(model="sentences", input=[[1, 99999]])


def test_truncation_is_done_where_it_is_asked_for(served):
    text = "dog fox " * 50
    answer = served.openai().embeddings.create(model="sentences", input=text,
                                               extra_body={"truncate": True})
    np.testing.assert_allclose(answer.data[0].embedding, served.sentences.embed(text, most=64),
                               **CLOSE)
    assert answer.usage.prompt_tokens == 64
    left = served.post("/models/sentences/embed", {"inputs": text + "lazy", "truncate": True,
                                                   "truncation_direction": "Left"}).json()
    served.sentences.tokenizer.enable_truncation(64, direction="left")
    ids = served.sentences.tokenizer.encode(text + "lazy").ids
    by_ids = served.post("/models/sentences/embed", {"inputs": [ids]}).json()
    np.testing.assert_allclose(left, by_ids, **CLOSE)
    # However long it is, it is cut. More than a megabyte never fits: no client sends it again.
    far = served.openai().embeddings.create(model="sentences", input=text * 200,
                                            extra_body={"truncate": True})
    np.testing.assert_allclose(far.data[0].embedding, answer.data[0].embedding, **CLOSE)
    refused = served.post("/v1/embeddings", {"model": "sentences", "input": "dog " * 1000})
    assert refused.status_code == 400
    assert "more than 258 tokens, the model takes 64" in refused.text
    refused = served.post("/v1/embeddings", {"model": "sentences", "input": "d" * 1_100_000})
    assert refused.status_code == 400
    assert "1100000 bytes, the limit is 1048576" in refused.text


def test_a_request_of_many_texts_is_answered_in_order(served):
    texts = [f"dog {i} " * (i % 7 + 1) for i in range(1500)]
    answer = served.openai().embeddings.create(model="sentences", input=texts)
    assert len(answer.data) == 1500
    for i in (0, 1, 700, 1499):
        np.testing.assert_allclose(answer.data[i].embedding, served.sentences.embed(texts[i]),
                                   **CLOSE)


def test_embed_normalises_and_takes_prompts(served):
    plain = served.post("/models/other/embed", {"inputs": TEXTS[:2]}).json()
    np.testing.assert_allclose(plain, [served.other.embed(text) for text in TEXTS[:2]], **CLOSE)
    prompted = served.post("/models/sentences/embed", {"inputs": "a fox", "prompt_name": "query"})
    np.testing.assert_allclose(prompted.json()[0], served.sentences.embed("query: a fox"), **CLOSE)
    refused = served.post("/models/sentences/embed", {"inputs": "a", "prompt_name": "nobody"})
    assert refused.status_code == 422
    assert refused.json() == {"error": 'the model has no prompt "nobody"; it has query',
                              "error_type": "Validation"}
    # Two models offer vectors: neither is guessed.
    refused = served.post("/embed", {"inputs": "a"})
    assert refused.status_code == 422 and "other, sentences" in refused.json()["error"]


def test_huggingface_hub_reads_vectors_labels_and_entities(served):
    vector = served.hub("sentences").feature_extraction(TEXTS[0])
    np.testing.assert_allclose(vector[0], served.sentences.embed(TEXTS[0]), **CLOSE)
    cosines = served.hub("sentences").sentence_similarity(TEXTS[0], other_sentences=DOCUMENTS)
    a = served.sentences.embed(TEXTS[0])
    np.testing.assert_allclose(cosines, [a @ served.sentences.embed(d) for d in DOCUMENTS], **CLOSE)
    logits, _ = served.moods.run(TEXTS[0])
    moods = served.hub("moods").text_classification(TEXTS[0])
    order = np.argsort(-logits)
    assert [mood.label for mood in moods] == [LABELS[i] for i in order]
    np.testing.assert_allclose([mood.score for mood in moods], softmax(logits)[order], **CLOSE)
    entities = served.hub("tagger").token_classification(TEXTS[0], aggregation_strategy="none")
    logits, encoded = served.tagger.run(TEXTS[0])
    wanted = [(TAGS[row.argmax()], softmax(row).max(), encoded.offsets[i])
              for i, row in enumerate(logits)
              if not encoded.special_tokens_mask[i] and TAGS[row.argmax()] != "O"]
    assert [(e.entity, (e.start, e.end)) for e in entities] == [(tag, at) for tag, _, at in wanted]
    np.testing.assert_allclose([e.score for e in entities], [score for _, score, _ in wanted], **CLOSE)


def test_neighbouring_tokens_of_one_tag_are_one_entity(served):
    text = "日本語 and the quick brown fox in Köln"
    answer = served.post("/models/tagger/predict", {"inputs": [text]}).json()[0]
    logits, encoded = served.tagger.run(text)
    runs = []
    for i, row in enumerate(logits):
        if encoded.special_tokens_mask[i]:
            continue
        label = TAGS[row.argmax()]
        tag = label.split("-")[-1]
        if runs and runs[-1][0] == tag and not label.startswith("B-"):
            runs[-1][1].append(i)
        else:
            runs.append((tag, [i]))
    wanted = [(tag, encoded.offsets[run[0]][0], encoded.offsets[run[-1]][1])
              for tag, run in runs if tag != "O"]
    assert [(e["entity_group"], e["start"], e["end"]) for e in answer] == wanted
    assert len(wanted) > 0


def test_rerank_in_the_shapes_of_cohere_jina_and_tei(served):
    query = "which animal is lazy"
    logits = np.array([served.ranker.run(query, document)[0][0] for document in DOCUMENTS])
    scores = sigmoid(logits)
    order = list(np.argsort(-scores))
    client = cohere.ClientV2(api_key="none", base_url=served.url())
    answer = client.rerank(model="ranker", query=query, documents=DOCUMENTS, top_n=3)
    assert [result.index for result in answer.results] == order[:3]
    np.testing.assert_allclose([result.relevance_score for result in answer.results],
                               scores[order[:3]], **CLOSE)
    jina = served.post("/v1/rerank", {"model": "ranker", "query": query, "return_documents": True,
                                      "documents": [{"text": d} for d in DOCUMENTS]}).json()
    assert [r["document"]["text"] for r in jina["results"]] == [DOCUMENTS[i] for i in order]
    assert jina["usage"]["total_tokens"] > 0
    tei = served.post("/rerank", {"query": query, "texts": DOCUMENTS, "raw_scores": True,
                                  "return_text": True}).json()
    assert [(each["index"], each["text"]) for each in tei] == [(i, DOCUMENTS[i]) for i in order]
    np.testing.assert_allclose([each["score"] for each in tei], logits[order], **CLOSE)
    with pytest.raises(UnprocessableEntityError, match="documents"):
        client.rerank(model="ranker", query=query, documents=[])


def test_embeddings_in_the_shape_of_cohere(served):
    client = cohere.ClientV2(api_key="none", base_url=served.url())
    texts = TEXTS[:3]
    answer = client.embed(model="sentences", texts=texts, input_type="search_document",
                          embedding_types=["float", "base64", "binary", "ubinary"])
    wanted = np.array([served.sentences.embed(text) for text in texts], np.float32)
    np.testing.assert_allclose(answer.embeddings.float_, wanted, **CLOSE)
    exact = np.array(answer.embeddings.float_, np.float32)
    assert [base64.b64decode(text) for text in answer.embeddings.base64] == [row.tobytes() for row in exact]
    signs = np.packbits(exact > 0, axis=1)
    assert answer.embeddings.ubinary == signs.tolist()
    assert answer.embeddings.binary == (signs.astype(int) - 128).tolist()
    assert answer.texts == texts and answer.meta.billed_units.input_tokens > 0
    # A folder's prompt for queries is the prompt of this kind of input.
    query = client.embed(model="sentences", texts=["dog"], input_type="search_query", output_dimension=8)
    cut = served.sentences.embed("query: dog")[:8]
    np.testing.assert_allclose(query.embeddings.float_[0], cut / np.linalg.norm(cut), **CLOSE)
    # Long texts are cut unless the client says otherwise.
    long = client.embed(model="sentences", texts=["dog " * 200], input_type="clustering")
    np.testing.assert_allclose(long.embeddings.float_[0], served.sentences.embed("dog " * 200, most=64), **CLOSE)
    with pytest.raises(UnprocessableEntityError, match="the model takes 64"):
        client.embed(model="sentences", texts=["dog " * 200], input_type="clustering", truncate="NONE")
    # Its first client, which LangChain's embeddings use, reads a list where no types are named.
    first = cohere.Client(api_key="none", base_url=served.url())
    found = first.embed(model="sentences", texts=texts, input_type="search_document")
    assert found.response_type == "embeddings_floats"
    np.testing.assert_allclose(found.embeddings, wanted, **CLOSE)
    found = first.embed(model="sentences", texts=texts, input_type="search_document", embedding_types=["ubinary"])
    assert found.response_type == "embeddings_by_type" and found.embeddings.ubinary == signs.tolist()
    refused = served.post("/v1/embed", {"model": "sentences", "texts": []})
    assert refused.status_code == 400 and refused.json()["error"]["type"] == "invalid_request_error"
    assert "empty list" in refused.json()["message"]
    for body, status, words in (({"texts": []}, 422, "empty list"), ({"texts": ["a"], "embedding_types": ["int8"]}, 501, "int8"),
                                ({"texts": ["a"], "embedding_types": ["x"]}, 400, "float, base64, binary or ubinary"),
                                ({"inputs": [{"content": "x"}]}, 501, "inputs"),
                                ({"images": ["x"]}, 422, "takes no pictures")):
        refused = served.post("/v2/embed", {"model": "sentences", **body})
        assert refused.status_code == status and words in refused.json()["message"], refused.text


def test_classes_and_poolings_in_the_shape_of_vllm(served):
    texts = TEXTS[:2]
    answer = served.post("/classify", {"model": "moods", "input": texts}).json()
    for i, text in enumerate(texts):
        shares = softmax(served.moods.run(text)[0])
        entry = answer["data"][i]
        assert entry["index"] == i and entry["num_classes"] == len(LABELS)
        assert entry["label"] == LABELS[int(np.argmax(shares))]
        np.testing.assert_allclose(entry["probs"], shares, **CLOSE)
    assert answer["usage"]["prompt_tokens"] > 0 and answer["model"] == "moods"
    vectors = served.post("/models/sentences/pooling", {"input": texts}).json()["data"]
    np.testing.assert_allclose([entry["data"] for entry in vectors], [served.sentences.embed(text) for text in texts], **CLOSE)
    packed = served.post("/models/sentences/pooling", {"input": texts[0], "encoding_format": "base64"}).json()["data"][0]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(packed["data"]), np.float32), vectors[0]["data"], **CLOSE)
    scores = served.post("/models/moods/pooling", {"input": texts[0]}).json()["data"][0]["data"]
    np.testing.assert_allclose(scores, served.moods.run(texts[0])[0], **CLOSE)
    # A row for each token of a model that labels these.
    rows = served.post("/models/tagger/pooling", {"input": texts[0]}).json()["data"][0]["data"]
    np.testing.assert_allclose(rows, served.tagger.run(texts[0])[0], **CLOSE)
    refused = served.post("/classify", {"model": "sentences", "input": "a"})
    assert refused.status_code == 400 and "offers embeddings" in refused.json()["error"]["message"]


def test_scores_of_pairs_and_by_vectors(served):
    answer = served.post("/score", {"model": "ranker", "text_1": TEXTS[0],
                                    "text_2": DOCUMENTS}).json()
    wanted = sigmoid(np.array([served.ranker.run(TEXTS[0], d)[0][0] for d in DOCUMENTS]))
    np.testing.assert_allclose([each["score"] for each in answer["data"]], wanted, **CLOSE)
    by_vectors = served.post("/v1/score", {"model": "sentences", "text_1": TEXTS[:2],
                                           "text_2": DOCUMENTS[:2]}).json()
    wanted = [served.sentences.embed(a) @ served.sentences.embed(b)
              for a, b in zip(TEXTS[:2], DOCUMENTS[:2])]
    np.testing.assert_allclose([each["score"] for each in by_vectors["data"]], wanted, **CLOSE)
    refused = served.post("/score", {"model": "ranker", "text_1": ["a", "b"], "text_2": ["c"]})
    assert refused.status_code == 400 and refused.json()["error"]["message"].startswith('"text_1" has 2')


def test_many_lists_of_ids_are_decoded_at_the_cost_of_their_ids(tmp_path):
    """Minutes, where each list copies the vocabulary."""
    words = [f"w{i}" for i in range(100_000)]
    folder = TinyFolder(tmp_path / "words", words, np.zeros((len(words) + 5, 2)))
    with Daemon(tmp_path) as daemon:
        answer = requests.post(f"{daemon.http_url}/decode", timeout=60,
                               json={"model": "words", "ids": [folder.ids("w7")] * 5000})
        assert answer.json() == ["w7"] * 5000


def test_tokenize_and_detokenize(served):
    text = TEXTS[2]
    encoded = served.sentences.run(text)[1]
    answer = served.post("/tokenize", {"model": "sentences", "prompt": text,
                                       "return_token_strs": True}).json()
    assert answer == {"count": len(encoded.ids), "max_model_len": 64, "tokens": encoded.ids,
                      "token_strs": encoded.tokens}
    back = served.post("/detokenize", {"model": "sentences", "tokens": encoded.ids}).json()
    assert back["prompt"] == served.sentences.tokenizer.decode(encoded.ids, skip_special_tokens=False)
    tei = served.post("/models/sentences/tokenize", {"inputs": [text]}).json()[0]
    assert [token["id"] for token in tei] == encoded.ids
    assert [(t["start"], t["stop"]) for t in tei if not t["special"]] == [
        at for at, special in zip(encoded.offsets, encoded.special_tokens_mask) if not special]
    assert served.post("/models/sentences/decode", {"ids": [encoded.ids]}).json() == [
        served.sentences.tokenizer.decode(encoded.ids)]
    for body in ({"tokens": [1, 999_999]}, {"ids": [1, 999_999]}):
        wrong = served.post("/models/sentences/detokenize", body)
        assert wrong.status_code in (400, 422) and "id 999999 is out of range" in wrong.text
    assert served.post("/models/sentences/tokenize", {"inputs": []}).json() == []


def test_a_strategy_that_there_is_not_is_refused(served):
    refused = served.post("/models/tagger/predict", {
        "inputs": "a", "parameters": {"aggregation_strategy": "wildest"}})
    assert refused.status_code == 400
    assert '"aggregation_strategy" is "wildest"' in refused.json()["error"]
    side = served.post("/models/sentences/embed", {"inputs": "a", "truncation_direction": "Up"})
    assert side.status_code == 400 and '"truncation_direction" is "Up"' in side.json()["error"]


def test_info_names_the_model_and_its_limits(served):
    info = requests.get(served.url("sentences") + "/info", timeout=10).json()
    assert info["model_id"] == "sentences" and info["max_input_length"] == 64
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    # Bounds that hold: the queue's, which docs/serving.md names, and the threads that make tokens.
    assert info["max_concurrent_requests"] == 16384
    assert info["tokenization_workers"] == len(os.sched_getaffinity(0))
    assert "max_client_batch_size" not in info
    labels = requests.get(served.url("moods") + "/info", timeout=10).json()["model_type"]
    assert labels["classifier"]["id2label"] == {str(i): label for i, label in enumerate(LABELS)}


def test_the_inference_protocol_takes_texts_and_ids(served):
    texts = np.array([text.encode() for text in TEXTS[:3]], np.object_)
    wanted = [served.sentences.embed(text) for text in TEXTS[:3]]
    for module, address in ((tritonclient.grpc, served.daemon.grpc_address),
                            (tritonclient.http, f"127.0.0.1:{served.daemon.http_port}")):
        client = module.InferenceServerClient(address)
        given = module.InferInput("text", [3], "BYTES")
        given.set_data_from_numpy(texts)
        answer = client.infer("sentences", [given]).as_numpy("sentence_embedding")
        np.testing.assert_allclose(answer, wanted, **CLOSE)
        ids = np.array([served.sentences.run(TEXTS[0])[1].ids], np.int64)
        tensors = []
        for name, values in (("input_ids", ids), ("attention_mask", np.ones_like(ids))):
            tensors.append(module.InferInput(name, list(values.shape), "INT64"))
            tensors[-1].set_data_from_numpy(values)
        np.testing.assert_allclose(client.infer("sentences", tensors).as_numpy("sentence_embedding")[0],
                                   wanted[0], **CLOSE)
    broken = tritonclient.grpc.InferInput("text", [1], "BYTES")
    broken.set_data_from_numpy(np.array([b"dog \xff"], np.object_))
    with pytest.raises(tritonclient.utils.InferenceServerException, match="no UTF-8 at byte 4"):
        served.daemon.client().infer("sentences", [broken])


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b"{}", b'{"input": null}', b'{"input": 3}', b'{"input": [[]]}',
    b'{"input": [1, "a"]}', b'{"input": {"a": 1}}', b'{"input": []}', b'{"input": "\xff"}',
    b'{"input": "a", "dimensions": 0}', b'{"input": "a", "encoding_format": "hex"}',
    b'{"input": [[-1]]}', b'{"input": [[1e99]]}', b'{"input": "a", "truncate": 7}'])
def test_what_is_no_request_is_told_so_in_the_form_of_openai(served, body):
    answer = requests.post(served.url("sentences") + "/v1/embeddings", data=body, timeout=30)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]["message"]
    assert served.daemon.process.poll() is None


def test_texts_are_counted_and_timed(served):
    def counts():
        page = Scrape(served.daemon.metrics_url)
        return [page.total(name, model="sentences") for name in (
            "reprise_texts_total", "reprise_text_tokens_total", "reprise_text_truncations_total",
            "reprise_tokenizer_duration_seconds_count")]

    before = counts()
    long_text = "dog fox " * 50
    tokens = sum(len(served.sentences.run(text)[1].ids) for text in TEXTS[:2])
    answer = served.post("/v1/embeddings", {"model": "sentences", "input": [*TEXTS[:2], long_text],
                                            "truncate": True}).json()
    assert answer["usage"]["total_tokens"] == tokens + 64
    client = tritonclient.grpc.InferenceServerClient(served.daemon.grpc_address)
    given = tritonclient.grpc.InferInput("text", [2], "BYTES")
    given.set_data_from_numpy(np.array([text.encode() for text in TEXTS[:2]], np.object_))
    parameters = client.infer("sentences", [given]).get_response().parameters
    assert parameters["reprise.tokens"].int64_param == tokens
    after = counts()
    assert [b - a for a, b in zip(before, after)] == [5, 2 * tokens + 64, 1, 5]


def test_explain_names_the_slow_stage_of_a_slow_request(served):
    text = "dog fox " * 50
    for _ in range(3):
        served.post("/v1/embeddings", {"model": "sentences", "input": text, "truncate": True})
    said = served.daemon.reprise("explain", "sentences")
    slow = said.split("slowest requests of the last 10 minutes:")[1].split("\n\n")[0].strip()
    lines = slow.splitlines()
    assert 3 <= len(lines) <= 8
    times = [float(line.split(" ms, most of it in ")[0]) for line in lines]
    assert times == sorted(times, reverse=True)
    for line in lines:
        stages = line.split(": ", 1)[1].split(" (")[0].split(", ")
        named = line.split("most of it in ")[1].split(":")[0]
        times = {}
        for stage in stages:
            name, _, ms = stage.rpartition(" ")
            if ms.replace(".", "").isdigit():
                times[name] = float(ms)
        if "queue" not in named:
            assert times[named] == max(times.values()), line
    assert any("tokenizer " in line for line in lines)


def test_bench_sends_texts_and_counts_their_tokens(served, tmp_path):
    file = tmp_path / "texts.txt"
    texts = [TEXTS[0], TEXTS[1], TEXTS[4]]
    file.write_text("\n".join(texts) + "\n\n")
    tokens = sum(len(served.sentences.run(text)[1].ids) for text in texts)
    said = served.daemon.reprise("bench", "sentences", "--texts", file, "-n", 6, "-c", 2)
    assert f"3 texts of {file}" in said and "6 requests in" in said and "0 failed" in said
    rates = re.search(r"([\d.]+) requests/s, (\d+) tokens/s", said)
    assert abs(float(rates[2]) / float(rates[1]) - 2 * tokens / 6) < 1
    refused = served.daemon.reprise("bench", "sentences", "--texts", file, "--lengths", "3",
                                    check=False)
    assert refused.returncode == 2


def test_commands_print_vectors_and_ranks(served):
    at = ["--server", served.daemon.grpc_address]  # which tells of its HTTP port
    http = ["--server", served.daemon.http_url]
    assert reprise("embed", "sentences", TEXTS[0], *at) == reprise("embed", "sentences", TEXTS[0], *http)
    printed = reprise("embed", "sentences", *TEXTS[:2], *at).splitlines()
    vectors = [[float(x) for x in line.split()] for line in printed]
    np.testing.assert_allclose(vectors, [served.sentences.embed(t) for t in TEXTS[:2]], **CLOSE)
    ranked = reprise("rerank", "ranker", "--query", "lazy", *DOCUMENTS, *at)
    scores = sigmoid(np.array([served.ranker.run("lazy", d)[0][0] for d in DOCUMENTS]))
    assert DOCUMENTS[int(scores.argmax())] in ranked.splitlines()[2]
    refused = reprise("embed", "nobody", "a", *at, check=False)
    assert refused.returncode == 1 and 'no model "nobody"' in refused.stderr
