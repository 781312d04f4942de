"""Memory does not grow with the number of shapes that were seen, nor with the contents of requests."""

import contextlib
import gzip
import re
import socket
import time

import numpy as np
import pytest
import requests
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.repository import MINILM

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


def config(**parameters):
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in parameters.items())


def test_rss_after_500_lengths_is_that_of_all_buckets(repository, rng):
    repository.add("minilm", MINILM)
    with Daemon(repository) as daemon:
        client = daemon.client()
        for length in [16, 32, 64, 128, 256, 512]:
            for rows in [1, 2, 4, 8, 16, 32]:
                if rows * length <= 4096:
                    infer(client, "minilm", text_inputs(NAMES, rows, length, rng))
        captured = daemon.rss_bytes()
        lengths = rng.permutation(np.arange(1, 501))
        for length in lengths:
            infer(client, "minilm", text_inputs(NAMES, 1, int(length), rng))
        assert daemon.rss_bytes() < 1.05 * captured


def test_rss_settles_when_exact_shapes_come_and_go(repository, rng):
    """A model that may not be padded: its recipes are bounded in number, and so is the memory."""
    repository.add("mixes_sequence", models.mixes_sequence())
    with Daemon(repository) as daemon:
        client = daemon.client()

        def send(lengths):
            for length in lengths:
                x = rng.normal(size=(1, int(length))).astype(np.float32)
                infer(client, "mixes_sequence", {"x": x})

        send(range(1, 400))
        settled = daemon.rss_bytes()
        send(range(400, 1200))
        assert daemon.rss_bytes() < 1.05 * settled + (4 << 20)


def test_idle_arenas_give_their_memory_back_and_serve_again(repository, rng):
    repository.add("minilm", MINILM, config=config(release_after_ms=300, warmup="b8_s512"))
    with Daemon(repository, "--streams", "1") as daemon:
        client = daemon.client()
        inputs = text_inputs(NAMES, 8, 512, rng)
        before = infer(client, "minilm", inputs)

        def arena():
            return Scrape(daemon.metrics_url).total("reprise_memory_bytes", kind="arena")

        held = daemon.rss_bytes()
        wait_until(lambda: arena() == 0)
        assert Scrape(daemon.metrics_url).total("reprise_arena_releases_total") >= 1
        # 4096 tokens: more than 20 MB.
        assert daemon.rss_bytes() < held - (16 << 20)
        after = infer(client, "minilm", inputs)
        assert after.capture == "replayed"
        for name, value in before.outputs.items():
            assert np.array_equal(after.outputs[name], value)


def test_limits_of_memory_refuse_by_name_what_does_not_fit(repository, rng):
    repository.add("small", MINILM, config=config(max_arena_mb=4))
    repository.add("large", MINILM, config=config(max_parameter_mb=10))
    with Daemon(repository) as daemon:
        client = daemon.client()
        assert not client.is_model_ready("large")
        assert "reprise.max_parameter_mb allows 10485760" in daemon.log()
        infer(client, "small", text_inputs(NAMES, 1, 16, rng))
        with pytest.raises(InferenceServerException, match="reprise.max_arena_mb allows 4194304") as error:
            infer(client, "small", text_inputs(NAMES, 8, 512, rng))
        assert error.value.status() == "StatusCode.INVALID_ARGUMENT"
        infer(client, "small", text_inputs(NAMES, 1, 16, rng))


@pytest.mark.parametrize("flags", [["--arena-memory-mb", "16"], []])
def test_a_request_that_never_fits_is_no_reason_to_ask_again(flags, repository):
    """Expects 400: clients send requests again that were answered by 429."""
    repository.add("minilm", MINILM, config=None if flags else config(max_arena_mb=4))
    large = {"inputs": [{"name": name, "shape": [8, 512], "datatype": "INT64",
                         "data": np.ones((8, 512), np.int64).tolist()} for name in NAMES]}
    with Daemon(repository, *flags) as daemon:
        for _ in range(2):
            refused = requests.post(f"{daemon.http_url}/v2/models/minilm/infer", json=large, timeout=120)
            assert refused.status_code == 400 and re.search(r"\d{8,} bytes", refused.text), refused.text


def test_model_that_thrashes_is_named(repository, rng):
    repository.add("mixes_sequence", models.mixes_sequence(), config=config(max_exact=1))
    with Daemon(repository) as daemon:
        client = daemon.client()
        # The first 6 is one too many and runs eagerly; when it comes again it makes room for itself.
        for length in [5, 6] * 4:
            x = rng.normal(size=(1, length)).astype(np.float32)
            infer(client, "mixes_sequence", {"x": x})
        scrape = Scrape(daemon.metrics_url)
        assert scrape.by("reprise_cache_thrash_total", "bucket", model="mixes_sequence") == {"exact": 4}
        assert daemon.log().count("recipes thrash: exact") == 1


def test_recipes_go_and_arenas_are_given_back_under_traffic_and_every_answer_is_right(repository):
    """A megabyte for recipes that need more, and arenas that are given back at once."""
    path = repository.add("bert", models.bert(layers=8),
                          config=config(packing="off", capture="inline", release_after_ms=1,
                                        max_recipe_mb=1))
    with Daemon(repository, "--streams", "2") as daemon:
        def work(seed):
            rng, client = np.random.default_rng(seed), daemon.client()
            for _ in range(60):
                rows, length = int(rng.choice([1, 2, 4, 8])), int(rng.integers(1, 400))
                inputs = text_inputs(NAMES[:2], rows, length, rng, 200)
                assert_same_answer(infer(client, "bert", inputs).outputs, reference(path, inputs))
                assert Scrape(daemon.metrics_url).total("reprise_cache_bytes") <= 1 << 20

        together(work, range(8))
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_cache_evictions_total", model="bert", reason="memory") > 0
        assert scrape.total("reprise_arena_releases_total") > 0


def test_requests_over_http_that_wait_hold_no_parsed_json(repository):
    repository.add("elementwise", models.elementwise(),
                   config="dynamic_batching { max_queue_delay_microseconds: 30000000 }")
    body = (b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[1]}],"junk":['
            + b"{}," * 3_000_000 + b"1]}")
    zipped = gzip.compress(body, 1)
    head = ("POST /v2/models/elementwise/infer HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
            f"Content-Length: {len(zipped)}\r\n\r\n").encode()

    def waiting():
        return Scrape(daemon.metrics_url).total("reprise_queue_depth", model="elementwise")

    with Daemon(repository) as daemon, contextlib.ExitStack() as stack:
        before = daemon.rss_bytes()
        for count in range(1, 13):
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", daemon.http_port)))
            connection.sendall(head + zipped)
            wait_until(lambda count=count: waiting() == count)
        # The bodies, in the buffers they grew into, and the parsed form of one of them.
        assert daemon.rss_bytes() - before < (12 * 2 + 12) * len(body)


def filled():
    """y = the sum of as many zeros as n says: forty bytes of a request decide about gigabytes."""
    graph = helper.make_graph(
        [helper.make_node("ConstantOfShape", ["n"], ["zeros"],
                          value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0.0])),
         helper.make_node("Add", ["zeros", "x"], ["sums"]),
         helper.make_node("ReduceSum", ["sums"], ["y"], keepdims=0)], "g",
        [helper.make_tensor_value_info("n", TensorProto.INT64, [2]),
         helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_values_of_a_request_decide_is_bounded_and_given_back_in_seconds(repository):
    repository.add("filled", filled())
    with Daemon(repository, "--streams", "2", "--data-memory-mb", "600") as daemon:
        client = daemon.client()

        def ask(mebibytes):
            return infer(client, "filled", {"n": np.array([mebibytes, 1 << 18], np.int64),
                                            "x": np.ones(1, np.float32)}).outputs["y"]

        def decided():
            return Scrape(daemon.metrics_url).total("reprise_memory_bytes", kind="data")

        assert ask(1) == 1 << 18
        before = daemon.rss_bytes()
        assert ask(200) == pytest.approx(200 << 18, rel=1e-3)
        held = daemon.rss_bytes() - before
        assert held > 150 << 20, "the case needs no memory that data decide"
        assert decided() > 150 << 20
        answered = time.monotonic()
        wait_until(lambda: decided() == 0 and daemon.rss_bytes() - before < held / 8)
        assert time.monotonic() - answered < 5
        with pytest.raises(InferenceServerException, match="data-memory-mb|max_request_mb") as error:
            ask(1500)
        assert error.value.status() in ("StatusCode.INVALID_ARGUMENT",
                                        "StatusCode.RESOURCE_EXHAUSTED")
        assert ask(1) == 1 << 18


def resized():
    """Makes y = x as wide as s says, by nearest neighbours: the number of places is the results'."""
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2, 2]),
         helper.make_tensor_value_info("s", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, None, None])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_long_resize_keeps_nothing_of_its_places(repository):
    """Kept for each of the recipes that its sizes capture, they were the larger part of the daemon."""
    repository.add("resized", resized())
    with Daemon(repository, "--streams", "2") as daemon:
        client = daemon.client()

        def ask(width):
            wide = infer(client, "resized", {"x": np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2),
                                             "s": np.array([1, 1, 1, width / 2], np.float32)}).outputs["y"]
            assert wide.shape == (1, 1, 2, width)
            np.testing.assert_array_equal(wide[0, 0, :, [0, -1]].T, [[0, 1], [2, 3]])

        ask(1000)
        before = daemon.rss_bytes()
        for million in range(3, 9):
            ask(million * 1_000_000)
        # An answer has 64 MB at most.
        wait_until(lambda: daemon.rss_bytes() - before < 64 << 20)
