"""Answers that are under way when their model, their server or their client goes."""

import json
import signal
import socket
import urllib.error
import urllib.request

import pytest

from testing import decoders
from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.patience import wait_until


def config(**parameters):
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in parameters.items())


def slow(seed=0, context=512):
    """Makes a model whose step takes about a millisecond."""
    return decoders.make("gqa", heads=8, size=64, layers=3, context=context, seed=seed)


class Stream:
    """An answer that is read event by event."""

    def __init__(self, daemon, model, ids, **parameters):
        body = json.dumps({"input_ids": ids, "parameters": {"temperature": 0, **parameters}})
        self.answer = urllib.request.urlopen(urllib.request.Request(
            f"{daemon.http_url}/v2/models/{model}/generate_stream", body.encode()), timeout=120)
        self.tokens, self.last = [], None

    def next(self):
        line = self.answer.readline().decode()
        while line == "\n":
            line = self.answer.readline().decode()
        if not line:
            return None
        self.last = json.loads(line.removeprefix("data: "))
        self.tokens += self.last.get("token_ids", [])
        return self.last

    def rest(self):
        while self.next():
            pass
        return self.tokens


def test_a_reload_lets_what_runs_finish_on_its_version(repository):
    first = slow()
    repository.add("smol", first, config=config(context=512))
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        stream = Stream(daemon, "smol", [1, 2, 3], max_tokens=400)
        stream.next()
        second = slow(seed=9)
        repository.add("smol", second, version=2)
        daemon.client().load_model("smol")
        assert stream.last.get("finish_reason") is None
        assert stream.rest() == decoders.Stepper(first).greedy([1, 2, 3], 400)[0]
        assert stream.last["finish_reason"] == "length" and stream.last["model_version"] == "1"
        later = Stream(daemon, "smol", [1, 2, 3], max_tokens=8)
        assert later.rest() == decoders.Stepper(second).greedy([1, 2, 3], 8)[0]
        assert later.last["model_version"] == "2"


def test_an_unload_answers_what_was_accepted_and_refuses_what_comes(repository):
    repository.add("smol", slow(), config=config(context=512))
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        stream = Stream(daemon, "smol", [1, 2, 3], max_tokens=300)
        stream.next()
        daemon.client().unload_model("smol")
        assert len(stream.rest()) == 300 and stream.last["finish_reason"] == "length"
        with pytest.raises(urllib.error.HTTPError) as refused:
            Stream(daemon, "smol", [1], max_tokens=1)
        assert refused.value.code in (404, 503)


def test_a_server_that_stops_tells_what_does_not_end_in_time(repository):
    repository.add("smol", slow(context=16384), config=config(context=16384))
    with Daemon(repository, "--exit-timeout-secs", "1") as daemon:
        stream = Stream(daemon, "smol", [1, 2, 3], max_tokens=16000)
        stream.next()
        daemon.process.send_signal(signal.SIGTERM)
        stream.rest()
        assert "the server is stopping" in stream.last["error"]
        assert 1 <= len(stream.tokens) < 16000
        daemon.process.wait(30)


def test_a_client_that_does_not_read_is_waited_for_and_then_cut_off(repository):
    repository.add("tiny", decoders.make("gqa", context=16384), config=config(context=16384))
    with Daemon(repository, "--write-timeout-secs", "1") as daemon:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", daemon.http_port))
            body = json.dumps({"input_ids": [1, 2, 3], "parameters": {
                "max_tokens": 16000, "logprobs": 20, "n": 8}})
            client.sendall(f"POST /v2/models/tiny/generate_stream HTTP/1.1\r\nHost: a\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            assert b"text/event-stream" in client.recv(512)
            wait_until(lambda: Scrape(daemon.metrics_url).by(
                "reprise_pages", "state", model="tiny").get("used", 0) == 0)
        made = Scrape(daemon.metrics_url).by("reprise_tokens_total", "kind", model="tiny")
        assert made["generated"] < 8 * 16000
        assert Scrape(daemon.metrics_url).total("reprise_sequences", model="tiny") == 0
