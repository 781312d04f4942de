"""Clients: patient ones, hasty ones, and ones that vanish."""

import collections
import json
import socket
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from cases import NEW_TOKENS
from testing.inference import assert_same_answer, tensors

CLOSE = 1e-3  # two scores that lie closer than that may come in either order

# Errors that the disturbances of the daemon explain. A client that is told anything else has met a fault.
REFUSALS = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "NOT_FOUND")
EXPLAINED = ("DEADLINE_EXCEEDED", "CANCELLED", *REFUSALS)


class Tally:
    """The outcomes of the requests. Threads: any."""

    def __init__(self):
        self._lock = threading.Lock()
        self.counts = collections.Counter()
        self.faults = []

    def count(self, what):
        with self._lock:
            self.counts[what] += 1

    def fault(self, words):
        with self._lock:
            self.counts["faults"] += 1
            self.faults.append(words)


class Client(threading.Thread):
    """Asks one thing after another until it is told to stop."""

    def __init__(self, daemon, cases, tally, stop, seed):
        super().__init__(daemon=True)
        self._daemon, self._cases, self._tally, self._until = daemon, cases, tally, stop
        self._rng = np.random.default_rng(seed)

    def run(self):
        client = self._daemon.client()
        while not self._until.is_set():
            case = self._cases[self._rng.integers(len(self._cases))]
            way = self._rng.random()
            try:
                if case.generates:
                    self._generate(case)
                elif way < 0.75:
                    self._ask(client, case, timeout_s=60)
                elif way < 0.85:
                    self._ask(client, case, timeout_s=float(self._rng.uniform(0.0005, 0.02)))
                elif way < 0.92:
                    self._ask_and_cancel(client, case)
                else:
                    self._vanish(case)
            except InferenceServerException as error:
                self._judge(case, f"{error.status()} {error.message()}")
            except (AssertionError, KeyError) as error:
                self._tally.fault(f"{case.name}: wrong answer: {error}")
            except OSError as error:
                self._judge(case, f"UNAVAILABLE {error}")

    def _judge(self, case, words):
        code = next((code for code in EXPLAINED if code in words), None)
        if code is None:
            self._tally.fault(f"{case.name}: {words[:400]}")
        else:
            self._tally.count(code)

    def _one_of(self, case):
        return case.asked[self._rng.integers(len(case.asked))]

    def _ask(self, client, case, timeout_s):
        which = int(self._rng.integers(len(case.asked)))
        result = client.infer(case.name, tensors(case.asked[which]), client_timeout=timeout_s)
        response = result.get_response()
        ours = {output.name: result.as_numpy(output.name) for output in response.outputs}
        version = int(response.model_version)
        assert_same_answer(ours, case.answers[version][which], f"version {version}, request {which}")
        self._tally.count("answers")

    def _ask_and_cancel(self, client, case):
        done = threading.Event()
        call = client.async_infer(case.name, tensors(self._one_of(case)),
                                  callback=lambda result, error: done.set(), client_timeout=60)
        time.sleep(float(self._rng.uniform(0, 0.01)))
        call.cancel()
        if not done.wait(60):
            self._tally.fault(f"{case.name}: a cancelled request was never ended")
        self._tally.count("cancelled")

    def _vanish(self, case):
        """Sends half a request, or a whole one and reads no answer; then resets."""
        inputs = [{"name": name, "shape": list(value.shape), "datatype": "INT64"
                   if value.dtype == np.int64 else "FP32", "data": value.ravel().tolist()}
                  for name, value in self._one_of(case).items()]
        body = json.dumps({"inputs": inputs}).encode()
        head = (f"POST /v2/models/{case.name}/infer HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        with socket.create_connection(("127.0.0.1", self._daemon.http_port), timeout=10) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            whole = self._rng.random() < 0.5
            s.sendall(head + (body if whole else body[:len(body) // 2]))
            time.sleep(float(self._rng.uniform(0, 0.02)))
        self._tally.count("vanished")

    def _generate(self, case):
        which = int(self._rng.integers(len(case.asked)))
        prompt, (ids, scores) = case.asked[which], case.answers[1][which]
        body = json.dumps({"input_ids": prompt, "parameters": {
            "temperature": 0, "max_tokens": NEW_TOKENS, "ignore_eos": True}}).encode()
        request = urllib.request.Request(
            f"{self._daemon.http_url}/v2/models/{case.name}/generate", body)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                got = list(np.ravel(json.load(answer)["token_ids"]))
        except urllib.error.HTTPError as error:
            words = error.read().decode(errors="replace")
            if error.code in (404, 408, 429, 499, 503, 504):
                self._tally.count(f"HTTP {error.code}")
            else:
                self._tally.fault(f"{case.name}: HTTP {error.code} {words[:400]}")
            return
        for place, (ours, theirs) in enumerate(zip(got, ids, strict=True)):
            if ours == theirs:
                continue
            best = np.sort(scores[place])[-2:]
            assert best[1] - best[0] < CLOSE, f"tokens {got}, expected {ids}"
            break
        self._tally.count("generations")
