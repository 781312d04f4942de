"""Texts take the memory and the threads that they need and no more; without memory they are refused."""

import concurrent.futures
import pathlib
import re
import time

import numpy as np
import pytest
import requests
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from testing.daemon import Daemon
from testing.hub import Folder

MEGABYTE = 1 << 20
LONG = "a " * (MEGABYTE // 2)
LONG_WORD = "q" * MEGABYTE  # one token, the unknown one


def peak_bytes(daemon):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    Folder(root / "sentences").sentence_transformer()
    Folder(root / "ranker", seed=3, labels=["relevance"])
    return root


@pytest.fixture
def daemon(hub):
    with Daemon(hub) as daemon:
        yield daemon


def post(daemon, path, body, timeout=120):
    return requests.post(daemon.http_url + path, json=body, timeout=timeout)


def test_documents_share_their_query(daemon):
    assert post(daemon, "/rerank", {"model": "ranker", "query": "a", "documents": ["b"]}).ok
    before = peak_bytes(daemon)
    query = LONG  # tokenized once: for each document it would take a quarter of a second
    answer = post(daemon, "/rerank", {"model": "ranker", "query": query, "documents": ["dog"] * 500,
                                      "truncate": True})
    assert answer.status_code == 200 and len(answer.json()["results"]) == 500
    scores = post(daemon, "/score", {"model": "ranker", "text_1": query, "text_2": ["dog"] * 500,
                                    "truncate": True})
    assert scores.status_code == 200 and len(scores.json()["data"]) == 500
    # Copies would take 500 for each of the two.
    assert peak_bytes(daemon) - before < 450 * MEGABYTE


@pytest.mark.parametrize("path,body", [
    ("/v1/embeddings", {"model": "sentences", "input": ["a"] * 65537}),
    ("/v1/embeddings", {"model": "sentences", "input": [[1]] * 65537}),
    ("/embed", {"model": "sentences", "inputs": ["a"] * 65537}),
    ("/rerank", {"model": "ranker", "query": "a", "documents": ["a"] * 65537}),
    ("/tokenize", {"model": "sentences", "inputs": ["a"] * 65537})],
    ids=["texts", "ids", "plain", "documents", "tokenize"])
def test_more_texts_than_a_request_may_have_are_refused_with_both_numbers(daemon, path, body):
    answer = post(daemon, path, body)
    assert answer.status_code in (400, 422)
    assert "65537 texts, the limit is 65536" in answer.text


def test_many_short_texts_take_little_more_than_their_bytes(daemon):
    post(daemon, "/v1/embeddings", {"model": "sentences", "input": "a"})
    before = peak_bytes(daemon)
    answer = post(daemon, "/v1/embeddings", {"model": "sentences", "input": ["a"] * 2_000_000})
    assert answer.status_code == 400 and "2000000 texts" in answer.text
    assert peak_bytes(daemon) - before < 25 * 2_000_000 * len('"a", ')


@pytest.mark.parametrize("module", [tritonclient.grpc, tritonclient.http], ids=["grpc", "rest"])
def test_probes_are_answered_while_texts_become_tokens(daemon, module):
    address = daemon.grpc_address if module is tritonclient.grpc else f"127.0.0.1:{daemon.http_port}"
    texts = np.array([LONG.encode()], np.object_)

    def ask(_):
        client = module.InferenceServerClient(address)
        given = module.InferInput("text", [1], "BYTES")
        given.set_data_from_numpy(texts)
        with pytest.raises(InferenceServerException, match="more than .* tokens, the model takes 64"):
            client.infer("sentences", [given])

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        asked = [pool.submit(ask, i) for i in range(24)]
        slowest = 0
        while not all(one.done() for one in asked):
            begin = time.monotonic()
            assert daemon.http_status("/v2/health/ready") == 200
            slowest = max(slowest, time.monotonic() - begin)
            time.sleep(0.05)  # the interval of probes
        for one in asked:
            one.result()
    assert slowest < 3


def test_a_client_that_leaves_ends_its_tokens(daemon):
    words = {"model": "sentences", "inputs": [LONG] * 16}
    with pytest.raises(requests.Timeout):
        post(daemon, "/tokenize", words, timeout=1)
    begin = time.monotonic()
    assert post(daemon, "/tokenize", {"model": "sentences", "prompt": "dog"}).ok
    assert time.monotonic() - begin < 5  # the sixteen take twenty


@pytest.mark.parametrize("module", [tritonclient.grpc, tritonclient.http], ids=["grpc", "rest"])
def test_a_client_of_the_inference_protocol_that_leaves_ends_its_tokens(daemon, module):
    """Of a request whose tokens are being made, and of those that wait for a thread of texts."""
    address = daemon.grpc_address if module is tritonclient.grpc else f"127.0.0.1:{daemon.http_port}"
    given = module.InferInput("text", [16], "BYTES")
    given.set_data_from_numpy(np.array([LONG_WORD.encode()] * 16, np.object_))

    def ask(_):
        if module is tritonclient.grpc:
            module.InferenceServerClient(address).infer("sentences", [given], client_timeout=2)
        else:
            module.InferenceServerClient(address, network_timeout=2).infer("sentences", [given])

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for one in [pool.submit(ask, i) for i in range(12)]:
            with pytest.raises(Exception, match="(?i)deadline|timed out"):
                one.result()
    begin = time.monotonic()
    assert post(daemon, "/v1/embeddings", {"model": "sentences", "input": "dog"}).ok
    assert time.monotonic() - begin < 5  # all of them take half a minute


@pytest.mark.parametrize("addresses_mb", [500, 600, 900])
def test_texts_without_memory_are_refused_and_the_daemon_goes_on(hub, addresses_mb):
    with Daemon(hub, "--streams", "1", address_bytes=addresses_mb * MEGABYTE) as daemon:
        def tokenize(_):
            return post(daemon, "/tokenize", {"model": "sentences", "prompt": LONG}).status_code

        def embed(_):
            body = {"model": "sentences", "input": [LONG] * 4, "truncate": True}
            return post(daemon, "/v1/embeddings", body).status_code

        def infer(_):
            client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{daemon.http_port}")
            given = tritonclient.http.InferInput("text", [4], "BYTES")
            given.set_data_from_numpy(np.array([LONG.encode()] * 4, np.object_))
            with pytest.raises(InferenceServerException):
                client.infer("sentences", [given])
            return 400

        for ask, at_once in ((tokenize, 4), (infer, 4), (embed, 8)):
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                codes = list(pool.map(ask, range(2 * at_once)))
            assert set(codes) <= {200, 400, 429, 503}, codes
            assert daemon.process.poll() is None, daemon.log()
            assert post(daemon, "/v1/embeddings", {"model": "sentences", "input": "dog"}).ok
