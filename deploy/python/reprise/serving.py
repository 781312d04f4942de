"""Starts a daemon for as long as a block runs: for tests and notebooks."""

import collections
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from .programs import program

_LOG_LINES = 200  # that are kept


class ServeError(RuntimeError):
    """The daemon ended, or refused a model; the text says why."""


def _model_flags(models):
    """Returns the flags that serve `models`; a folder of folders is a repository."""
    if isinstance(models, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(models))
        if os.path.isdir(path) and not _is_model(path):
            return ["--model-repository", path]
        models = {os.path.splitext(os.path.basename(path))[0]: path}
    return [flag for name, path in models.items() for flag in ("--model", f"{name}={os.path.abspath(os.fspath(path))}")]


def _is_model(folder):
    """Returns whether a folder is one model, with files of its own, rather than a repository of folders."""
    return any(entry.is_file() and not entry.name.startswith(".") for entry in os.scandir(folder)) or any(
        name.isdigit() or name == "onnx" for name in os.listdir(folder))


class Server:
    """A running daemon; a context manager that ends it.

    url         http://127.0.0.1:PORT of inference, health and the live page
    grpc        127.0.0.1:PORT for gRPC
    metrics     http://127.0.0.1:PORT/metrics
    models      the names of the models that it serves
    process     the daemon, a subprocess.Popen
    """

    def __init__(self, flags, timeout):
        self._lines = collections.deque(maxlen=_LOG_LINES)
        self._listening = threading.Event()
        self._end = time.monotonic() + timeout
        self._timeout = timeout
        given = {flag.split("=", 1)[0] for flag in flags}
        defaults = {"--http-port": "0", "--grpc-port": "0", "--metrics-port": "0", "--drain-grace-secs": "0"}
        self.process = subprocess.Popen(
            [program("reprised"), "--log-format", "json",
             *(f"{flag}={value}" for flag, value in defaults.items() if flag not in given), *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        # The log is read until the daemon ends, so that it never waits for a reader.
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        try:
            self._wait_for_ports()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _read_log(self):
        for line in self.process.stderr:
            try:
                line = json.loads(line)["message"]
            except (ValueError, KeyError, TypeError):
                line = line.rstrip("\n")
            self._lines.append(line)
            found = re.match(r"listening: grpc (\S+), http (\S+), metrics (\S+)$", line)
            if found:
                self.grpc = found.group(1)
                self.url = f"http://{found.group(2)}"
                self.metrics = f"http://{found.group(3)}/metrics"
                self._listening.set()
        self._listening.set()

    def log(self):
        """Returns the last lines that the daemon wrote."""
        return "\n".join(self._lines)

    def _left(self):
        left = self._end - time.monotonic()
        if left <= 0:
            raise ServeError(f"reprised is not ready after {self._timeout} s\n{self.log()}")
        return left

    def _wait_for_ports(self):
        self._listening.wait(self._left())
        if not hasattr(self, "url"):
            self._left()
            self._fail()

    def _fail(self):
        self._reader.join(5)
        raise ServeError(f"reprised ended with {self.process.wait(5)}\n{self.log()}")

    def _wait_until_ready(self):
        """Returns once every model answers; a model that is refused is an error."""
        while True:
            self._left()
            if self.process.poll() is not None:
                self._fail()
            state = self._readiness()
            if state.get("ready"):
                self.models = sorted({model["name"] for model in state["models"]})
                return
            if state.get("state", "starting") != "starting":
                raise ServeError(f"{state.get('reason')}\n{self.log()}")
            time.sleep(0.02)

    def _readiness(self):
        try:
            with urllib.request.urlopen(self.url + "/v2/health/ready", timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)
        except OSError:
            return {}

    def stop(self, timeout=60):
        """Answers the accepted requests and ends the daemon; a daemon that does not end in time is killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(5)
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def serve(models, *flags, timeout=300):
    """Starts a daemon on free ports and returns a Server when all of its models answer.

    `models`: the folder or file of one model, which is named after it; a dictionary of names and paths; or a
    repository, a folder of such folders. `flags` are more flags of `reprised`, ports among them. Raises ServeError
    where the daemon ends or refuses a model within `timeout` seconds.
    """
    return Server([*_model_flags(models), *map(str, flags)], timeout)
