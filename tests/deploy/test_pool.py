"""examples/triton_pool: perf_analyzer, unmodified, at replicas that a proxy makes one server of Triton."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

from testing.daemon import SOURCE, Daemon, flags_of_reprised
from testing.metrics import Scrape
from testing.replicas import proxies
from testing.repository import MINILM, Repository

sys.path.append(str(SOURCE / "tests/container"))
import container  # noqa: E402

POOL = SOURCE / "examples/triton_pool"
CACHE = pathlib.Path(os.environ["REPRISE_CACHE"]) / "perf_analyzer"
WHEEL = "perf-analyzer==2.60.0 --hash=sha256:23ef56b107ae9233e5cf09fbdf508dd9b936a52f1bae2f63f53c8117087b3f25"
# Its way of asking: flags, and which of the proxy's ports.
WAYS = {"grpc": (["-i", "grpc"], "grpc_port"), "http": (["-i", "http"], "http_port"),
        "streams": (["-i", "grpc", "--streaming"], "grpc_port")}


@pytest.fixture(scope="module")
def perf_analyzer():
    """Returns the command. The program wants a newer C library than Debian 12 has: Debian 13's is next to it."""
    program, libraries = CACHE / "perf_analyzer/bin/perf_analyzer", CACHE / "usr/lib/x86_64-linux-gnu"
    stamp = CACHE / "requirements.txt"
    if not stamp.is_file() or stamp.read_text() != WHEEL:
        CACHE.mkdir(parents=True, exist_ok=True)
        wanted = CACHE / "wanted.txt"
        wanted.write_text(WHEEL + "\n")
        container.run(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--upgrade",
                      "--only-binary", ":all:", "--platform", "manylinux_2_38_x86_64", "--require-hashes", "--target", CACHE,
                      "-r", wanted)
        program.chmod(0o755)
        container.run("tar", "-C", CACHE, "-xf", container.base("trixie"), "./usr/lib/x86_64-linux-gnu")
        stamp.write_text(WHEEL)
    return [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, program]


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """Starts two replicas of the real model, and HAProxy by the file that ships."""
    folder = tmp_path_factory.mktemp("pool")
    repository = Repository(folder / "models")
    repository.add("minilm", MINILM)
    flags = ["--streams", "1", "--grpc-http2-min-recv-ping-interval-without-data", "100"]
    with Daemon(repository, *flags) as one, Daemon(repository, *flags) as two:
        with proxies.Haproxy([one, two], folder) as proxy:
            yield [one, two], proxy


def counted(daemons, name):
    return [Scrape(daemon.metrics_url).total(name, model="minilm") for daemon in daemons]


@pytest.mark.parametrize("way", WAYS)
def test_every_request_is_answered_and_both_replicas_work(way, pool, perf_analyzer):
    daemons, proxy = pool
    flags, port = WAYS[way]

    def run(count):
        before = counted(daemons, "nv_inference_request_success")
        done = subprocess.run(
            [*perf_analyzer, "-m", "minilm", *flags, "-u", f"127.0.0.1:{getattr(proxy, port)}", "--input-data",
             POOL / "sentences.json", "--concurrency-range", "4", "--request-count", str(count)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        assert int(re.search(r"Request count: (\d+)", done.stdout).group(1)) >= count, done.stdout
        assert "error" not in done.stdout.lower(), done.stdout
        return [now - was for now, was in zip(counted(daemons, "nv_inference_request_success"), before)]

    # The buckets that batches take are few: after some runs nothing is captured any more.
    for _ in range(6):
        captured = sum(counted(daemons, "reprise_compiles_total"))
        shares = run(100)
        assert sum(shares) >= 100 and min(shares) >= 0.25 * sum(shares), shares
        if sum(counted(daemons, "reprise_compiles_total")) == captured:
            return
    raise AssertionError(f"captures have no end: {captured}")


def test_compose_file_names_the_replicas_and_the_ports_of_the_proxy():
    services = yaml.safe_load((POOL / "compose.yaml").read_text())["services"]
    text = (SOURCE / "deploy/proxies/haproxy.cfg").read_text()
    assert set(services) == {*re.findall(r"(reprise-\d):", text), "haproxy"}
    (mounted,) = services["haproxy"]["volumes"]
    assert (POOL / mounted.split(":")[0]).resolve() == SOURCE / "deploy/proxies/haproxy.cfg"
    assert {port.rsplit(":", 1)[1] for port in services["haproxy"]["ports"]} == set(re.findall(r"bind :(\d+)", text))
    for name in services:
        if name != "haproxy":
            assert {flag for flag in services[name]["command"] if flag.startswith("--")} <= flags_of_reprised()


def test_compose_file_is_what_the_specification_says():
    done = subprocess.run([pathlib.Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec",
                           POOL / "compose.yaml"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
