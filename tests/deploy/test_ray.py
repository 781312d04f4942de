"""The examples on Ray, on a cluster of two nodes on this machine: Ray Data's job, and Ray Serve with its faults."""

import json
import os
import pathlib
import re
import signal

import numpy as np
import pytest
import requests
import yaml

from testing import decoders
from testing.daemon import SOURCE, Daemon, free_ports
from testing.hub import Folder
from testing.leftovers import alive, end_tree
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.replicas.ray_cluster import Cluster
from testing.repository import Repository

JOB = SOURCE / "examples/batch_embed/ray_embed.py"
SERVE = SOURCE / "examples/ray_serve"
TEXTS = [f"{'one fox' if i % 3 else 'two dogs'} and {i} more" for i in range(200)] + [""]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    made = Repository(tmp_path_factory.mktemp("ray") / "models")
    Folder(made.root / "texts").sentence_transformer()
    made.add("tokens", decoders.make("gqa", heads=8, size=64, layers=3, context=512),
             config='parameters { key: "reprise.context" value { string_value: "512" } }\n')
    return made


@pytest.fixture(scope="module")
def expected(repository):
    """Returns the vectors of TEXTS, by a daemon without Ray."""
    with Daemon(repository) as daemon:
        reply = requests.post(f"{daemon.http_url}/v1/embeddings", timeout=60, json={"model": "texts", "input": TEXTS})
        return np.array([row["embedding"] for row in reply.json()["data"]], np.float32)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster"), [1, 1], SERVE, JOB.parent) as made:
        yield made


# --- A job on Ray Data. ---


def job(file, out, repository, *flags):
    return [JOB, file, out, "--model", f"texts={repository.root / 'texts'}", "--part", "16", "--batch", "8", *flags]


def vectors_of(folder):
    return np.concatenate([np.load(path) for path in sorted(folder.glob("part-*.npy"))])


def test_job_that_was_killed_goes_on_on_all_nodes(cluster, repository, expected, tmp_path):
    file, out = tmp_path / "texts.txt", tmp_path / "out"
    file.write_text("\n".join(TEXTS) + "\n")
    with open(tmp_path / "log", "w") as log:
        killed = cluster.start(*job(file, out, repository), log=log)
    try:
        wait_until(lambda: len(list(out.glob("part-*.npy"))) >= 2 or killed.poll() is not None,
                   explain=lambda: (tmp_path / "log").read_text())
    finally:
        end_tree(killed.pid)
        killed.wait()
    whole = {path: path.stat().st_mtime_ns for path in out.glob("part-*.npy")}
    assert len(whole) >= 2, (tmp_path / "log").read_text()
    # Some are lost, however fast the job was.
    for path in sorted(whole)[1:]:
        del whole[path]
        path.unlink()
    done = cluster.python(*job(file, out, repository))
    there = int(re.search(r"201 texts in 13 parts, (\d+) of them there before", done.stdout).group(1))
    assert 1 <= there < 13
    assert {path: path.stat().st_mtime_ns for path in whole} == whole
    np.testing.assert_allclose(vectors_of(out), expected, atol=1e-5)
    assert len(set(re.findall(r"daemon of node (\w+)", done.stdout))) == 2, done.stdout


def test_job_of_another_model_is_refused(cluster, repository, tmp_path):
    file, out = tmp_path / "texts.txt", tmp_path / "out"
    file.write_text("one\n")
    out.mkdir()
    (out / "job.json").write_text('{"texts": 4, "part": 16, "model": "other"}')
    done = cluster.python(*job(file, out, repository), check=False)
    assert done.returncode == 1 and "another job" in done.stdout


# --- Ray Serve. ---


class Served:
    """The application of the manifest, served by the cluster until the end of the block."""

    def __init__(self, cluster, repository, folder):
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        (service,) = yaml.safe_load_all((SERVE / "rayservice.yaml").read_text())
        config = yaml.safe_load(service["spec"]["serveConfigV2"])
        (application,) = config["applications"]
        application.pop("runtime_env", None)
        # Both nodes are this machine: ports are free ones.
        application["args"].update(models=str(repository.root), flags=[], num_cpus=0.5)
        config["http_options"] = {**config.get("http_options", {}), "host": "127.0.0.1", "port": self.port}
        config["proxy_location"] = "HeadOnly"
        self._config = folder / "serve.yaml"
        self._config.write_text(yaml.safe_dump(config))
        self._log = folder / "serve.log"
        self._cluster = cluster

    def __enter__(self):
        with open(self._log, "w") as log:
            self.process = self._cluster.start("run", self._config, program="serve", log=log)
        wait_until(lambda: self.process.poll() is not None or len(self.instances()) == 2, explain=self.log)
        assert self.process.poll() is None, self.log()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(120)
        finally:
            end_tree(self.process.pid)
            self.process.wait()

    def log(self):
        return self._log.read_text(errors="replace")[-6000:]

    def daemons(self):
        """{pid: URL of metrics} of the daemons that replicas have told of and that live."""
        found = re.findall(r"reprised is process (\d+): \S+, metrics at (\S+)", self._log.read_text(errors="replace"))
        return {int(pid): url for pid, url in found if alive(int(pid))}

    def instances(self):
        """Returns the replicas that answer a few requests; none while there is no answer."""
        seen = set()
        for _ in range(12):
            try:
                reply = requests.get(f"{self.url}/v2/health/ready", timeout=10)
            except OSError:
                return set()
            if reply.status_code == 200:
                seen.add(reply.headers["x-reprise-instance"])
        return seen

    def embed(self, texts):
        return requests.post(f"{self.url}/v1/embeddings", timeout=60, json={"model": "texts", "input": texts})


@pytest.fixture(scope="module")
def served(cluster, repository, tmp_path_factory):
    with Served(cluster, repository, tmp_path_factory.mktemp("serve")) as made:
        yield made


def vectors(reply):
    assert reply.status_code == 200, reply.text
    return np.array([row["embedding"] for row in reply.json()["data"]], np.float32)


def captures(daemons):
    return sum(Scrape(url).total("reprise_compiles_total", model="texts") for url in daemons.values())


def test_answers_are_those_of_a_daemon_and_nothing_is_captured_after_warm_up(served, expected):
    daemons = served.daemons()
    assert len(daemons) == 2
    assert len(served.instances()) == 2

    def ask():
        for i in range(0, len(TEXTS), 8):
            np.testing.assert_allclose(vectors(served.embed(TEXTS[i:i + 8])), expected[i:i + 8], atol=1e-5)

    def asked():
        return [Scrape(url).total("reprise_texts_total", model="texts") for url in daemons.values()]

    ask()
    before, texts = captures(daemons), asked()
    ask()
    assert captures(daemons) == before
    assert all(now > was for now, was in zip(asked(), texts)), "both replicas answer"


def test_errors_and_headers_pass_as_they_are(served):
    refused = requests.post(f"{served.url}/v1/embeddings", timeout=60, json={"model": "nobody", "input": "x"})
    assert refused.status_code == 404 and "nobody" in refused.json()["error"]["message"]
    told = requests.post(f"{served.url}/v1/embeddings", timeout=60, json={"model": "texts", "input": "x"},
                         headers={"endpoint-load-metrics-format": "TEXT"})
    assert told.headers["endpoint-load-metrics"].startswith("TEXT ")
    page = requests.get(f"{served.url}/metrics", timeout=60)
    assert "reprise_model_ready" in page.text


def test_stream_passes_event_by_event(served):
    body = {"input_ids": [1, 2, 3], "parameters": {"temperature": 0, "max_tokens": 400}}
    with requests.post(f"{served.url}/v2/models/tokens/generate_stream", json=body, timeout=120, stream=True) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        parts = list(answer.iter_content(None))
    events = [json.loads(line[6:]) for line in b"".join(parts).decode().split("\n\n") if line]
    assert len(events) == 400 and events[-1]["finish_reason"] == "length"
    assert len(parts) > 10, "they came in pieces, not at the end"


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=lambda fault: fault.name)
def test_daemon_that_ends_or_hangs_is_replaced_by_rays_check_of_health(fault, served, expected):
    before = served.daemons()
    victim = min(before)
    os.kill(victim, fault)
    wait_until(lambda: victim not in served.daemons() and len(served.daemons()) == 2 and len(served.instances()) == 2,
               explain=served.log)
    assert set(served.daemons()) - set(before), "a new daemon"
    for i in range(0, 64, 8):
        np.testing.assert_allclose(vectors(served.embed(TEXTS[i:i + 8])), expected[i:i + 8], atol=1e-5)


def test_daemon_does_not_outlive_a_replica_that_is_killed(served):
    before = served.daemons()
    victim = min(before)
    stat = pathlib.Path(f"/proc/{victim}/stat").read_text().rsplit(")", 1)[1].split()
    os.kill(int(stat[1]), signal.SIGKILL)
    wait_until(lambda: victim not in served.daemons(), explain=served.log)
    wait_until(lambda: len(served.daemons()) == 2 and len(served.instances()) == 2, explain=served.log)
