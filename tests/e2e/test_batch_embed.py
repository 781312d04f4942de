"""examples/batch_embed: vectors of a file of texts from several daemons; resumed, each text once, in order."""

import re
import subprocess
import sys

import numpy as np
import pytest
import requests

from testing.daemon import SOURCE, Daemon
from testing.hub import Folder
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.repository import Repository

PROGRAM = SOURCE / "examples/batch_embed/batch_embed.py"
TEXTS = [f"{'one fox' if i % 3 else 'two dogs'} and {i} more" for i in range(400)] + [""]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


@pytest.fixture(scope="module")
def daemons(tmp_path_factory):
    repository = Repository(tmp_path_factory.mktemp("batch") / "models")
    Folder(repository.root / "texts").sentence_transformer()
    with Daemon(repository) as one, Daemon(repository) as two:
        yield [one, two]


def command(file, out, servers, *flags):
    return [sys.executable, PROGRAM, file, out, "--model", "texts", "--part", "16", "--batch", "8",
            *(word for server in servers for word in ("--server", server)), *flags]


def run(*arguments):
    return subprocess.run(command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def vectors_of(folder):
    return np.concatenate([np.load(path) for path in sorted(folder.glob("part-*.npy"))])


def expected(daemon):
    rows = []
    for i in range(0, len(TEXTS), 50):
        reply = requests.post(f"{daemon.http_url}/v1/embeddings", timeout=60,
                              json={"model": "texts", "input": TEXTS[i:i + 50]})
        rows += [row["embedding"] for row in reply.json()["data"]]
    return np.array(rows, np.float32)


def texts_served(daemons):
    return [Scrape(daemon.metrics_url).total("reprise_texts_total", model="texts") for daemon in daemons]


def test_vectors_are_those_of_the_daemon_in_the_order_of_the_lines(daemons, file, tmp_path):
    before = texts_served(daemons)
    done = run(file, tmp_path / "out", [daemon.http_url for daemon in daemons])
    assert done.returncode == 0, done.stderr
    more = [now - was for now, was in zip(texts_served(daemons), before)]
    assert sum(more) == len(TEXTS) and min(more) > 0, "each text once, and both daemons had some"
    np.testing.assert_allclose(vectors_of(tmp_path / "out"), expected(daemons[0]), atol=1e-5)


def test_job_that_was_killed_goes_on_with_the_missing_parts(daemons, file, tmp_path):
    out, servers = tmp_path / "out", [daemons[0].http_url]
    process = subprocess.Popen(command(file, out, servers, "--concurrency", "1"), stdin=subprocess.DEVNULL)
    wait_until(lambda: len(list(out.glob("part-*.npy"))) >= 3)
    process.kill()
    process.wait()
    there = {path: path.stat().st_mtime_ns for path in out.glob("part-*.npy")}
    assert 3 <= len(there) < len(TEXTS) // 16, "the job was over already"
    before = sum(texts_served(daemons))
    done = run(file, out, servers)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"{len(there)} of them there before", done.stdout)
    assert {path: path.stat().st_mtime_ns for path in there} == there
    assert sum(texts_served(daemons)) - before == len(TEXTS) - 16 * len(there)
    np.testing.assert_allclose(vectors_of(out), expected(daemons[0]), atol=1e-5)


def test_daemon_that_is_away_is_left_out(daemons, file, tmp_path):
    done = run(file, tmp_path / "out", ["http://127.0.0.1:9", daemons[0].http_url])
    assert done.returncode == 0, done.stderr
    assert len(vectors_of(tmp_path / "out")) == len(TEXTS)


def test_no_daemon_or_a_wrong_request_ends_the_job_and_says_so(daemons, file, tmp_path):
    done = run(file, tmp_path / "away", ["http://127.0.0.1:9"])
    assert done.returncode == 1 and "26 of 26 parts are missing" in done.stderr
    wrong = command(file, tmp_path / "wrong", [daemons[0].http_url])
    wrong[wrong.index("texts", 4)] = "nobody"
    done = subprocess.run(wrong, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "refused: " in done.stderr and "nobody" in done.stderr


def test_folder_of_another_job_is_refused(daemons, file, tmp_path):
    servers = [daemons[0].http_url]
    assert run(file, tmp_path / "out", servers).returncode == 0
    file.write_text("other\n")
    done = run(file, tmp_path / "out", servers)
    assert done.returncode == 1 and "another job" in done.stderr
