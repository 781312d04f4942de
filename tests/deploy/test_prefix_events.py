"""Events of pages (--prefix-events), read by ZeroMQ's own library and a MessagePack reader, as routers read them."""

import random
import re
import socket
import sys
import time

import pytest
import requests

from testing import decoders
from testing.daemon import Daemon, free_ports, run_reprised
from testing.kubernetes.charts import TOOLS
from testing.patience import wait_until
from testing.repository import Repository

sys.path.append(str(TOOLS))
import msgpack  # noqa: E402
import zmq  # noqa: E402

PAGE = 16
VOCABULARY = 50


class Router:
    """What a router knows of one server: its pages by their hashes, each with the ids from the beginning."""

    def __init__(self, port, topic="kv@"):
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.connect(f"tcp://127.0.0.1:{port}")
        self.socket.setsockopt_string(zmq.SUBSCRIBE, topic)
        self.pages, self.topics, self.last = {}, set(), -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close(linger=0)

    def read(self):
        """Takes all messages that have come."""
        while self.socket.poll(50):
            topic, number, batch = self.socket.recv_multipart()
            number = int.from_bytes(number, "big")
            assert number in (self.last + 1, 0)  # of a new connection
            self.last = number
            self.topics.add(topic.decode())
            # Readers in Go want all three, though a server is one engine.
            seconds, events, rank = msgpack.unpackb(batch)
            assert rank is None and abs(seconds - time.time()) < 60
            for event in events:
                self.take(topic.decode().split("@")[2], *event)
        return self

    def take(self, model, kind, hashes=(), before=None, ids=(), positions=0):
        if kind == "AllBlocksCleared":
            self.pages.clear()
        elif kind == "BlockStored":
            assert len(hashes) == 1 and len(ids) == positions == PAGE
            assert before is None or (model, before) in self.pages
            beginning = [] if before is None else self.pages[model, before]
            assert (model, hashes[0]) not in self.pages
            self.pages[model, hashes[0]] = beginning + ids
        else:
            assert kind == "BlockRemoved"
            del self.pages[model, hashes[0]]

    def prompts(self, model):
        return sorted(ids for (of, _), ids in self.pages.items() if of == model)


def generate(daemon, model, ids, tokens=2, **parameters):
    reply = requests.post(f"{daemon.http_url}/v2/models/{model}/generate", timeout=120,
                          json={"input_ids": ids, "parameters": {"max_tokens": tokens, **parameters}})
    assert reply.status_code == 200, reply.text
    return reply


def serving(folder, *flags, **models):
    repository = Repository(folder / "models")
    for name, config in models.items():
        repository.add(name, decoders.make("gqa"), config=config)
    (port,) = free_ports(1)
    return port, Daemon(repository, "--prefix-events", f"127.0.0.1:{port}", "--instance", "replica-3", *flags)


def ids_of(seed, count):
    rng = random.Random(seed)
    return [rng.randrange(1, VOCABULARY) for _ in range(count)]


def pages_of(*prompts):
    return sorted({tuple(ids[:end]) for ids in prompts for end in range(PAGE, len(ids) + 1, PAGE)})


def assert_knows(router, model, *prompts):
    wanted = [list(ids) for ids in pages_of(*prompts)]
    wait_until(lambda: router.read().prompts(model) == wanted, explain=lambda: str(router.prompts(model)))


def test_router_knows_the_pages_that_requests_leave_whenever_it_comes(tmp_path):
    port, daemon = serving(tmp_path, a=None, b=None)
    with daemon, Router(port) as early:
        first, second, third = ids_of(1, 40), ids_of(1, 32) + ids_of(2, 20), ids_of(3, 20)
        generate(daemon, "a", first)
        assert_knows(early, "a", first)
        generate(daemon, "a", second)
        generate(daemon, "b", third)
        for router in (early, Router(port), Router(port, "kv@replica-3@")):
            assert_knows(router, "a", first, second)
            assert_knows(router, "b", third)
            assert router.topics == {"kv@replica-3@a", "kv@replica-3@b"}
        with Router(port, "kv@replica-3@b") as of_one:
            assert_knows(of_one, "b", third)
            assert of_one.topics == {"kv@replica-3@b"}


def test_answers_say_how_many_tokens_the_pages_had(tmp_path):
    _, daemon = serving(tmp_path, a=None)
    with daemon:
        ids = ids_of(1, 40)
        assert generate(daemon, "a", ids).headers["x-reprise-cached-tokens"] == "0"
        again = generate(daemon, "a", ids)
        assert again.headers["x-reprise-cached-tokens"] == "32" and again.json()["cached_tokens"] == 32
        stream = requests.post(f"{daemon.http_url}/v2/models/a/generate_stream", timeout=120,
                               json={"input_ids": ids, "parameters": {"max_tokens": 2}})
        assert stream.headers["x-reprise-cached-tokens"] == "32"


def test_pages_whose_memory_others_take_are_forgotten(tmp_path):
    config = 'parameters { key: "reprise.cache_mb" value { string_value: "1" } }'
    port, daemon = serving(tmp_path, a=config)
    with daemon, Router(port) as router:
        most = int(requests.get(daemon.metrics_url, timeout=30).text.split('reprise_pages{model="a",state="free",version="1"} ')[1]
                   .split()[0])
        for seed in range(most // 2 + 8):
            generate(daemon, "a", ids_of(seed, 38), tokens=1)
        wait_until(lambda: len(router.read().pages) > most // 2)
        assert len(router.read().pages) <= most
        with Router(port) as late:
            wait_until(lambda: late.read().pages == router.read().pages)


def test_pages_of_a_model_that_is_unloaded_are_gone_and_those_of_a_salt_are_not_told(tmp_path):
    port, daemon = serving(tmp_path, "--model-control-mode", "explicit", "--load-model", "*", a=None, b=None)
    with daemon, Router(port) as router:
        first, second = ids_of(1, 40), ids_of(2, 40)
        generate(daemon, "a", first)
        generate(daemon, "b", first)
        generate(daemon, "b", second, cache_salt="mine")
        assert_knows(router, "a", first)
        assert_knows(router, "b", first)
        reply = requests.post(f"{daemon.http_url}/v2/repository/models/a/unload", json={}, timeout=60)
        assert reply.status_code == 200, reply.text
        assert_knows(router, "a")
        assert_knows(router, "b", first)


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n" + b"x" * 64, b"\xff" + b"\0" * 63, b""])
def test_peer_of_another_protocol_is_disconnected_and_others_are_not(tmp_path, sent):
    port, daemon = serving(tmp_path, a=None)
    with daemon, Router(port) as router:
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.settimeout(30)
            peer.sendall(sent)
            assert peer.recv(64).startswith(b"\xff")
            while peer.recv(4096):
                pass
        ids = ids_of(1, 40)
        generate(daemon, "a", ids)
        assert_knows(router, "a", ids)


def test_restarted_server_is_known_anew(tmp_path):
    port, daemon = serving(tmp_path, a=None)
    ids, others = ids_of(1, 40), ids_of(2, 40)
    with Router(port) as router:
        with daemon:
            generate(daemon, "a", ids)
            assert_knows(router, "a", ids)
        with daemon:
            generate(daemon, "a", others)
            assert_knows(router, "a", others)


@pytest.mark.parametrize("value", ["5557", "host:", ":5557", "host:65536", "[::1:5557"])
def test_address_that_is_none_is_refused(value):
    done = run_reprised("--prefix-events", value)
    assert done.returncode == 2 and re.search("is not ADDRESS:PORT", done.stderr)
