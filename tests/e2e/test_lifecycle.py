"""Start and stop: SIGTERM answers accepted requests, refuses those that come after, and ends with 0."""

import contextlib
import queue
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from testing import models
from testing.clients import meanwhile
from testing.daemon import Daemon
from testing.inference import infer, tensors, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.repository import MINILM

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


def test_sigterm_answers_accepted_requests_and_ends_with_0(repository, rng):
    repository.add("minilm", MINILM)
    with Daemon(repository) as daemon:
        inputs = text_inputs(NAMES, 8, 128, rng)
        infer(daemon.client(), "minilm", inputs)  # captured, so that the rest is replays
        answered = threading.Event()

        def ask_until_refused(_):
            client = daemon.client()
            while True:
                try:
                    answer = infer(client, "minilm", inputs)
                except InferenceServerException as error:
                    return str(error.status())
                assert np.isfinite(answer.outputs["last_hidden_state"]).all()
                answered.set()

        with meanwhile(ask_until_refused, range(8)) as clients:
            assert answered.wait(60)
            daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(60) == 0
        # Each client ends with its first refusal: never a lost answer, never another code.
        assert {client.result() for client in clients} == {"StatusCode.UNAVAILABLE"}


def test_requests_are_served_while_clients_find_out_that_the_server_leaves(repository, rng):
    repository.add("elementwise", models.elementwise())
    with Daemon(repository, "--drain-grace-secs", "5") as daemon:
        client, x = daemon.client(), {"x": rng.normal(size=(2, 5)).astype(np.float32)}
        infer(client, "elementwise", x)
        assert Scrape(daemon.metrics_url).total("reprise_draining") == 0
        daemon.process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        wait_until(lambda: daemon.http_status("/v2/health/ready") == 503)
        assert not client.is_server_ready() and not client.is_model_ready("elementwise")
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_draining") == 1 and scrape.total("reprise_server_ready") == 0
        # It says that it leaves well before it does: there is time to ask it once more.
        infer(client, "elementwise", x)
        assert daemon.http_status("/v2/health/live") == 200
        assert daemon.process.wait(60) == 0
        assert time.monotonic() - begin > 4.9


def test_gauges_without_labels_say_what_waits_and_runs(repository, rng):
    repository.add("minilm", MINILM)
    with Daemon(repository) as daemon:
        inputs = text_inputs(NAMES, 8, 128, rng)
        infer(daemon.client(), "minilm", inputs)
        load = ("reprise_requests_waiting", "reprise_requests_running",
                "reprise_tokens_waiting", "reprise_tokens_running")
        # A client may have its answer a moment before the stream is free.
        wait_until(lambda: all(scrape.total(name) == 0 for scrape in [Scrape(daemon.metrics_url)]
                               for name in load))
        seen, stop = [], threading.Event()

        def ask(_):
            client = daemon.client()
            while not stop.is_set():
                infer(client, "minilm", inputs)

        with meanwhile(ask, range(8)):
            try:
                def look():
                    seen.append(Scrape(daemon.metrics_url))
                    return (any(s.total("reprise_requests_waiting") for s in seen)
                            and any(s.total("reprise_tokens_running") >= 8 * 128 for s in seen)
                            and seen[-1].total("reprise_utilization") > 0.1)
                wait_until(look)
            finally:
                stop.set()
        assert all(0 <= s.total("reprise_utilization") <= 1 for s in seen)


class SlowLine:
    """A way to the daemon that lets `head` bytes of its answers through, and the rest after `open`."""

    def __init__(self, port, head=4096):
        self._port, self._head, self._opened = port, head, threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def open(self):
        self._opened.set()

    def _serve(self):
        near, _ = self._listener.accept()
        far = socket.create_connection(("127.0.0.1", self._port))
        threading.Thread(target=self._copy, args=(near, far, False), daemon=True).start()
        self._copy(far, near, True)

    def _copy(self, source, target, slow):
        left = self._head
        try:
            while data := source.recv(min(left, 65536) if slow and left > 0 else 65536):
                left -= len(data)
                target.sendall(data)
                if slow and left <= 0:
                    self._opened.wait()
        except OSError:
            pass  # one of the ends is gone
        finally:
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


def ask_over(line, daemon, inputs, ended):
    """Sends a request whose answer of 6 MB the daemon has computed, and cannot send, at the return."""
    infer(daemon.client(), "minilm", inputs)
    before = Scrape(daemon.metrics_url).total("reprise_replays_total", model="minilm")
    client = tritonclient.grpc.InferenceServerClient(line.address)
    client.async_infer("minilm", tensors(inputs),
                       lambda result, error: ended.put((result, error)))
    wait_until(lambda: Scrape(daemon.metrics_url).total("reprise_replays_total",
                                                        model="minilm") > before)
    return client  # whose end would end the call


def test_sigterm_waits_for_a_client_that_reads_slowly(repository, rng):
    repository.add("minilm", MINILM)
    with Daemon(repository) as daemon:
        line, ended = SlowLine(daemon.grpc_port), queue.Queue()
        client = ask_over(line, daemon, text_inputs(NAMES, 8, 512, rng), ended)
        daemon.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            daemon.process.wait(4)
        line.open()
        result, error = ended.get(timeout=60)
        assert error is None
        assert np.isfinite(result.as_numpy("last_hidden_state")).all()
        assert daemon.process.wait(60) == 0
        client.close()


def test_a_client_that_never_reads_is_cut_off(repository, rng):
    repository.add("minilm", MINILM)
    with Daemon(repository, "--exit-timeout-secs", "1") as daemon:
        line, ended = SlowLine(daemon.grpc_port), queue.Queue()
        client = ask_over(line, daemon, text_inputs(NAMES, 8, 512, rng), ended)
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(60) == 0
        assert "have not read their answers" in daemon.log()
        line.open()
        client.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_idle_daemon_ends_at_once_on_each_ending_signal(repository, number):
    repository.add("elementwise", models.elementwise())
    with hangups(signal.SIG_DFL), Daemon(repository) as daemon:
        daemon.process.send_signal(number)
        assert daemon.process.wait(30) == 0


@contextlib.contextmanager
def hangups(action):
    """Sets the action of SIGHUP in a process that is started in the block, whatever this one was started with."""
    before = signal.signal(signal.SIGHUP, action)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_daemon_that_ignores_hangups_goes_on(repository):
    repository.add("elementwise", models.elementwise())
    with hangups(signal.SIG_IGN):  # as nohup does
        with Daemon(repository) as daemon:
            daemon.process.send_signal(signal.SIGHUP)
            ones = np.ones((2, 5), np.float32)
            assert (infer(daemon.client(), "elementwise", {"x": ones}).outputs["y"] == 3).all()
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(30) == 0
            assert "signal 1:" not in daemon.log()


def test_clients_that_send_http_requests_byte_by_byte_hold_up_neither_others_nor_the_end(repository):
    repository.add("elementwise", models.elementwise())
    with Daemon(repository) as daemon, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                for port in (daemon.http_port, daemon.metrics_port) * 3]

        def drip():
            while daemon.process.poll() is None:
                for line in slow:
                    with contextlib.suppress(OSError):
                        line.sendall(b"G")
                time.sleep(0.05)

        with meanwhile(lambda _: drip(), [None]):
            assert daemon.http_status("/v2/health/ready") == 200
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(20) == 0


def test_repository_through_a_symbolic_link_is_served(repository, tmp_path, rng):
    repository.add("elementwise", models.elementwise())
    link = tmp_path / "a link with spaces"
    link.symlink_to(repository.root, target_is_directory=True)
    with Daemon(link) as daemon:
        x = rng.normal(size=(2, 5)).astype(np.float32)
        answer = infer(daemon.client(), "elementwise", {"x": x})
        assert np.array_equal(answer.outputs["y"], 2 * x + 1)
