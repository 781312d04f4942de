"""Runs the real daemon for a test, and the command line.

    with Daemon(repository) as daemon:          # ready, or an error that shows the log
        daemon.client().is_server_ready()
        daemon.reprise("explain", "bert")       # a command that asks this daemon
    reprise("check", "model.onnx")              # one that needs none
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import tritonclient.grpc

from testing.leftovers import end_tree

BUILD = pathlib.Path(os.environ["REPRISE_BUILD_DIR"])
SOURCE = pathlib.Path(os.environ["REPRISE_SOURCE_DIR"])


def free_ports(count):
    """Returns ports that no process listens on; all held at once, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def reprise(*arguments, check=True, log=lambda: ""):
    """Runs `reprise`; returns its stdout, or the finished process if its exit code is not checked.

    `log` makes the text that is shown beside the errors of a command that fails.
    """
    done = subprocess.run([str(BUILD / "reprise"), *map(str, arguments)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if not check:
        return done
    assert done.returncode == 0, f"reprise {arguments}: {done.stdout}{done.stderr}{log()}"
    return done.stdout


def run_reprised(*flags):
    """Runs `reprised` with flags that end it at once; the finished process."""
    return subprocess.run([str(BUILD / "reprised"), *map(str, flags)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)


def flags_of_reprised():
    """Returns the names of all flags, `--help` and `--version` among them."""
    return set(re.findall(r"--[a-z][a-z0-9-]+", run_reprised("--help").stdout))


def commands_of(*words):
    """Returns the names of the commands of `reprise`, or of those below one of them."""
    listed = reprise(*words, "--help").split("\nOptions:")[0]
    return re.findall(r"^  ([a-z]+) {2,}\S", listed, re.M)


class Daemon:
    """One `reprised` over the model repository `repository`; stopped at the end of the block."""

    context = None  # of TLS, where `http_url` begins with https

    def __init__(self, repository, *flags, ready_within_s=120, address_bytes=None, log_to=None,
                 descriptors=None, metrics_detail=True, cpu=None):
        """`address_bytes`: how much memory it can have, as far as addresses go; None: all.

        `descriptors`: how many it can have open; None: as many as the system lets it.
        `cpu`: the name of another CPU, as qemu-x86_64 knows it, that is emulated.
        `log_to`: the file or descriptor that the log goes to; None: the pipe that `log` reads.
        `metrics_detail`: whether scrapes have every series.
        """
        self._limits = ([f"--as={address_bytes}"] if address_bytes else []) + (
            [f"--nofile={descriptors}"] if descriptors else [])
        self._emulator = ["qemu-x86_64", "-cpu", cpu] if cpu else []
        self._log_to = log_to
        self.http_port, self.grpc_port, self.metrics_port = free_ports(3)
        self.grpc_address = f"127.0.0.1:{self.grpc_port}"
        self.http_url = f"http://127.0.0.1:{self.http_port}"
        self.metrics_url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        self._ready_within_s = ready_within_s
        # A test that is not about it need not wait for clients that look elsewhere.
        if "--drain-grace-secs" not in flags:
            flags += ("--drain-grace-secs", "0")
        if metrics_detail:
            flags += ("--metrics-detail",)
        self._command = [
            *self._emulator, str(BUILD / "reprised"), "--model-repository", str(repository),
            "--grpc-port", str(self.grpc_port), "--http-port", str(self.http_port),
            "--metrics-port", str(self.metrics_port), *flags,
        ]
        self._log = tempfile.NamedTemporaryFile(prefix="reprised-", suffix=".log")
        self.process = None

    def start(self):
        """Without waiting for it to be ready."""
        # Not with preexec_fn: gRPC's code in a forked child of this process sometimes aborts it.
        limit = ["prlimit", *self._limits] if self._limits else []
        self.process = subprocess.Popen(
            limit + self._command, stdin=subprocess.DEVNULL, stdout=self._log,
            stderr=self._log if self._log_to is None else self._log_to,
        )

    def __enter__(self):
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind, error, trace):
        ended = self.process.poll()
        if ended is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"reprised did not end after SIGTERM\n{self.log()}") from error
        code = self.process.returncode
        # A crash is the cause of whatever else the test saw.
        assert code == 0, f"reprised ended with {code}\n{self.log()}"

    def kill(self):
        if self.process.poll() is None:
            end_tree(self.process.pid)
            self.process.wait()

    def wait_ready(self):
        """Until each model is loaded or refused: that one of them is refused is a test's business."""
        end = time.monotonic() + self._ready_within_s
        while time.monotonic() < end:
            assert self.process.poll() is None, (
                f"reprised ended with {self.process.returncode}\n{self.log()}")
            if self.readiness().get("state", "starting") != "starting":
                return
            time.sleep(0.05)  # the interval of polling, not a wait for luck
        raise AssertionError(f"reprised is not ready after {self._ready_within_s} s\n{self.log()}")

    def log(self):
        return pathlib.Path(self._log.name).read_text(errors="replace")

    def http_status(self, path):
        """Returns the status code of a GET; None if no server answers."""
        try:
            with urllib.request.urlopen(self.http_url + path, timeout=10,
                                        context=self.context) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def readiness(self):
        """Returns the body of /v2/health/ready, whatever its status; {} if no server answers."""
        try:
            with urllib.request.urlopen(self.http_url + "/v2/health/ready", timeout=10,
                                        context=self.context) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            return json.load(error)
        except OSError:
            return {}

    def client(self):
        return tritonclient.grpc.InferenceServerClient(self.grpc_address)

    def rss_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def reprise(self, *arguments, check=True):
        """`reprise` against this daemon."""
        return reprise(*arguments, "--server", self.grpc_address, check=check, log=self.log)
