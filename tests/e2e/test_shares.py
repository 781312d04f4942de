"""Shares: clients that do not read, keys beside each other, and the pages and memory of a key."""

import concurrent.futures
import threading
import time

import numpy as np
import pytest
import requests
import tritonclient.grpc
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

from testing import decoders, h2, stateful
from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.patience import wait_until

A, B, C, D = (f"key-of-{name}-0000000000000000" for name in "abcd")
KEYS = (f"a {A} infer,observe\nb {B} infer\nc {C} infer weight=3 pages=both\nd {D} infer pages=both\n"
        "metrics key-of-metrics-000000000 metrics\n")
CONTEXT = 2048


def config(**parameters):
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in parameters.items())


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("shares")
    folder = root / "maker" / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(decoders.make("gqa", context=CONTEXT).SerializeToString())
    (root / "maker" / "config.pbtxt").write_text(config(context=CONTEXT, max_sequences=8))
    folder = root / "totals" / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(stateful.totals().SerializeToString())
    (root / "totals" / "config.pbtxt").write_text(
        stateful.totals_config(batching="max_sequence_idle_microseconds: 60000000"))
    (root.parent / "keys").write_text(KEYS)
    return root


@pytest.fixture(scope="module")
def daemon(root):
    with Daemon(root) as started:
        yield started


@pytest.fixture(scope="module")
def keyed(root):
    with Daemon(root, "--api-key-file", root.parent / "keys") as started:
        yield started


def generate(daemon, ids, key=None, **parameters):
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    reply = requests.post(f"{daemon.http_url}/v2/models/maker/generate", timeout=120, headers=headers,
                          json={"input_ids": ids, "parameters": {"temperature": 0, "max_tokens": 4} | parameters})
    assert reply.status_code == 200, reply.text
    return reply.json()


def tokens_request(ids, max_tokens):
    request = service_pb2.ModelInferRequest(model_name="maker")
    request.inputs.add(name="input_ids", datatype="INT64", shape=[1, len(ids)])
    request.raw_input_contents.append(np.array(ids, np.int64).tobytes())
    request.parameters["max_tokens"].int64_param = max_tokens
    return request.SerializeToString()


@pytest.mark.parametrize("trickle", [False, True])
def test_clients_that_do_not_read_do_not_keep_others_waiting(daemon, trickle):
    """Windows of nothing, or of some bytes now and then, over more streams than there are places."""
    connections = [h2.Connection(daemon.grpc_port, h2.PREFACE + h2.settings(initial_window_size=0))
                   for _ in range(4)]
    done = threading.Event()
    try:
        for connection in connections:
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.call_header(
                "/inference.GRPCInferenceService/ModelStreamInfer")))
            for i in range(16):
                body = h2.message(tokens_request([1, 2, 3, i], 1900))
                connection.send(h2.frame(h2.DATA, 0, 1, body))
        wait_until(lambda: Scrape(daemon.metrics_url).by(
            "reprise_sequences", "state", model="maker").get("stalled", 0) >= 16)

        def feed():
            while not done.wait(0.2):
                for connection in connections:
                    for stream in (0, 1):
                        connection.send(h2.frame(h2.WINDOW_UPDATE, 0, stream, (40).to_bytes(4, "big")))
        feeder = threading.Thread(target=feed)
        if trickle:
            feeder.start()
        start = time.monotonic()
        for i in range(20):
            assert len(generate(daemon, [5, 6, i], max_tokens=20)["token_ids"]) == 20
        assert time.monotonic() - start < 10
    finally:
        done.set()
        if trickle:
            feeder.join()
        for connection in connections:
            connection.socket.close()
    wait_until(lambda: Scrape(daemon.metrics_url).total("reprise_sequences", model="maker") == 0)


def test_another_key_does_not_wait_for_what_one_has_asked(keyed):
    """All places and more are one key's, for long answers; another's first token comes as if there were half."""
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        many = [pool.submit(generate, keyed, [1, 2, i % 90, i // 90], A, max_tokens=600) for i in range(48)]
        time.sleep(1)
        start = time.monotonic()
        generate(keyed, [7, 8, 9], B, max_tokens=1)
        took = time.monotonic() - start
        for one in many:
            one.result()
        whole = time.monotonic() - start
    assert took < max(1, whole / 10), (took, whole)


def test_prefixes_are_found_by_their_own_key_alone(keyed, rng):
    ids = [int(one) for one in rng.integers(0, 97, 50)]
    found = [generate(keyed, ids, key)["cached_tokens"] for key in (A, B, A, C, D, C)]
    # Those of c and d share pages, as their lines say.
    assert found == [0, 0, 48, 0, 48, 48]


def test_a_sequence_of_another_key_is_another_one(keyed):
    def infer(key, sequence, start=False, end=False):
        tensor = tritonclient.grpc.InferInput("x", [1, 4], "FP32")
        tensor.set_data_from_numpy(np.ones((1, 4), np.float32))
        return keyed.client().infer("totals", [tensor], sequence_id=sequence, sequence_start=start, sequence_end=end,
                                    headers={"authorization": f"Bearer {key}"}).as_numpy("y")[0, 0]
    for sequence in (17, "a text"):
        assert infer(A, sequence, start=True) == 1
        with pytest.raises(InferenceServerException, match="is not known"):
            infer(B, sequence)
        assert infer(B, sequence, start=True) == 1
        assert infer(A, sequence) == 2
        assert infer(B, sequence, end=True) == 2
        assert infer(A, sequence, end=True) == 3
    with pytest.raises(InferenceServerException, match="parameter sequence_id has 4097 bytes, the most is 4096"):
        infer(A, "x" * 4097, start=True)
