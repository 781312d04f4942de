"""The image: built here from the Dockerfile, small, without root, read-only, within its memory."""

import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess

import numpy as np
import pytest

import container
from testing.inference import assert_same_answer, infer, reference, tensors, text_inputs
from testing.repository import MINILM, Repository

NAMES = ["input_ids", "attention_mask", "token_type_ids"]
MEGABYTE = 1_000_000
LIMIT = 512 << 20


@pytest.fixture(scope="module")
def image():
    return container.build()


@pytest.fixture(scope="module")
def config(image):
    return image["Docker"]["config"]


@pytest.fixture(scope="module")
def root(image, tmp_path_factory):
    return container.unpack(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Makes a repository as a volume holds it: files, not links to elsewhere, that any user may read."""
    repository = Repository(tmp_path_factory.mktemp("models"))
    repository.root.chmod(0o755)
    repository.add("minilm", pathlib.Path(MINILM).read_bytes())
    return repository


@pytest.fixture
def running(root, config, models, tmp_path):
    with container.Container(root, config, models, tmp_path / "log") as one:
        yield one


def size_of(folder):
    """Bytes of all files below, each once."""
    return sum(path.lstat().st_size for path in pathlib.Path(folder).rglob("*")
               if path.is_file() and not path.is_symlink())


def compressed_size(folder):
    """Bytes of the folder as a registry keeps a layer."""
    with (subprocess.Popen(["tar", "-C", folder, "-cf", "-", "."], stdout=subprocess.PIPE) as tar,
          subprocess.Popen(["gzip", "-c"], stdin=tar.stdout, stdout=subprocess.PIPE) as gzip):
        size = 0
        while piece := gzip.stdout.read(1 << 20):
            size += len(piece)
        assert (tar.wait(), gzip.wait()) == (0, 0)
    return size


def test_image_is_below_100_megabytes(image, root):
    packed = compressed_size(root)
    print(f"\nimage: {packed / MEGABYTE:.1f} MB, {size_of(root) / MEGABYTE:.1f} MB of files")
    assert packed < 100 * MEGABYTE and size_of(root) < 120 * MEGABYTE


def test_image_says_what_a_user_needs_to_know(config):
    assert config["User"] == "10001"
    assert {"8000/tcp", "8001/tcp", "8002/tcp"} <= set(config["ExposedPorts"])
    assert config["Healthcheck"]["Test"][:2] == ["CMD", "reprise"]


def test_image_holds_nothing_of_this_machine_and_no_tools(root, image):
    assert not (root / "etc/apt").exists()
    for tool in ("sh", "bash", "apt", "dpkg", "perl", "gcc"):
        assert not list(root.rglob(f"bin/{tool}"))
    archive = re.sub(r"^\w+://|/.*$", "", container.archive())
    if archive != "deb.debian.org":
        assert archive not in str(image)
        for path in root.rglob("etc/*"):
            assert not path.is_file() or archive not in path.read_text(errors="replace")


def test_answers_an_unmodified_client_as_another_user_on_a_read_only_root(running, models):
    rng = np.random.default_rng(3)
    for rows, length in [(1, 12), (3, 40), (1, 200)]:
        inputs = text_inputs(NAMES, rows, length, rng)
        answer = infer(running.client(), "minilm", inputs)
        assert_same_answer(answer.outputs, reference(models.path("minilm"), inputs))
    status = pathlib.Path(f"/proc/{running.daemon_pid()}/status").read_text()
    assert re.search(r"^Uid:\s+10001\s+10001\s+10001\s+10001$", status, re.M)
    assert re.search(r"^CapEff:\s+0+$", status, re.M)
    mounts = pathlib.Path(f"/proc/{running.daemon_pid()}/mounts").read_text().splitlines()
    (options,) = [m.split()[3] for m in mounts if m.split()[1] == "/"]
    assert "ro" in options.split(",")
    print(f"\nready after {running.start_seconds:.2f} s")


def test_health_check_tells_ready_from_not_answering(root, config, models, tmp_path):
    with container.Container(root, config, models, tmp_path / "log", own_network=True) as one:
        assert one.health_check() == 0
        pid = one.daemon_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            assert one.health_check() == 1
        finally:
            os.kill(pid, signal.SIGCONT)
        assert one.health_check() == 0
        assert one.stop() == 0


def test_sigterm_answers_what_was_accepted_and_ends_it_with_0(running):
    """Requests are on their way, some of them just accepted, when the signal comes."""
    client = running.client()
    inputs = tensors(text_inputs(NAMES, 8, 512, np.random.default_rng(7)))
    ended = queue.Queue()
    for _ in range(12):
        client.async_infer("minilm", inputs, lambda result, error: ended.put(error))
    assert ended.get(timeout=60) is None  # one is answered, so others are inside
    assert running.stop() == 0
    errors = [error for error in (ended.get(timeout=60) for _ in range(11)) if error]
    # A request that came too late is told so; nothing is lost or cut.
    assert {error.status() for error in errors} <= {"StatusCode.UNAVAILABLE"}, errors
    assert len(errors) < 11
    assert "draining" in running.log() and "stopped" in running.log()


def test_a_volume_keeps_recipes_over_a_restart(root, config, models, tmp_path):
    volume = tmp_path / "volume"
    shutil.copytree(root / "var/cache/reprise", volume)  # as an engine fills an empty volume
    inputs = text_inputs(NAMES, 2, 20, np.random.default_rng(9))
    answers, hits = [], []
    for start in range(2):
        with container.Container(root, config, models, tmp_path / f"log{start}", "--recipe-cache",
                                 "/var/cache/reprise", volume=volume) as one:
            answers.append(infer(one.client(), "minilm", inputs).outputs)
            scrape = one.scrape()
            hits.append(scrape.total("reprise_cache_requests_total", tier="store", outcome="hit"))
            assert scrape.total("reprise_store_usable") == 1
            assert scrape.total("reprise_store_writable") == 1
            assert one.stop() == 0
    assert_same_answer(answers[1], answers[0])
    assert hits[0] == 0 and hits[1] > 0


def test_a_store_on_the_read_only_root_is_reported_and_nothing_more(root, config, models, tmp_path):
    with container.Container(root, config, models, tmp_path / "log", "--recipe-cache",
                             "/var/cache/reprise") as one:
        infer(one.client(), "minilm", text_inputs(NAMES, 1, 9, np.random.default_rng(9)))
        assert one.scrape().find("reprise_store_writable") == [({}, 0)]
        assert "read-only" in one.log()


def test_a_wrong_flag_ends_it_with_2(root, config, models, tmp_path):
    one = container.Container(root, config, models, tmp_path / "log")
    done = one.run(*config["Entrypoint"], *config["Cmd"], "--frobnicate")
    assert done.returncode == 2 and "--frobnicate" in done.stderr


def test_stays_within_a_memory_limit_under_traffic_of_every_bucket(root, config, models, tmp_path):
    limit = container.MemoryLimit(LIMIT)
    # Without control groups there is nothing that accounts for memory as an engine does.
    assert limit.kind, "no memory control group can be made here"
    try:
        with container.Container(root, config, models, tmp_path / "log", limit=limit) as one:
            rng = np.random.default_rng(5)
            client = one.client()
            for length in (5, 16, 30, 64, 100, 128, 250, 256, 400, 512):
                for rows in (1, 2, 4, 8):
                    infer(client, "minilm", text_inputs(NAMES, rows, length, rng))
            assert one.stop() == 0
        print(f"\n{limit.kind}: peak {limit.peak_bytes() / 2**20:.0f} of {LIMIT >> 20} MiB")
        assert limit.kills() == 0
        assert limit.peak_bytes() <= LIMIT
    finally:
        limit.remove()
