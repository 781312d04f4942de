"""The bytes of fetched models: whole, checked, resumed, bounded; and archives, which stay in their folder."""

import io
import os
import pathlib
import signal
import subprocess
import tarfile
import zipfile

import pytest

from testing.daemon import BUILD
from testing.remotes.pulls import cache, files_in, heavy, nothing_is_visible, pull, remote, small
from testing.patience import wait_until
from testing.remotes import COMMIT


# --- Bytes: whole, checked, resumed, bounded. ---


def test_a_transfer_that_is_cut_goes_on_where_it_ended(remote, cache):
    data = heavy(4)
    remote.add_hub("acme/m", {"model.onnx": data}, lfs={"model.onnx"})
    remote.cut_after = [1_000_000, 1_500_000]
    path = pull(remote, cache, "hf://acme/m")
    assert (path / "model.onnx").read_bytes() == data
    ranges = [one.headers.get("range") for one in remote.requests if "/resolve/" in one.path]
    assert len(ranges) == 3 and ranges[0] is None and all(one != "bytes=0-" for one in ranges[1:])


def test_a_process_that_is_killed_leaves_what_the_next_goes_on_with(remote, cache):
    data = heavy(8)
    remote.add_hub("acme/m", {"model.onnx": data}, lfs={"model.onnx"})
    remote.pause_s = 0.02
    process = subprocess.Popen([BUILD / "reprise", "pull", "hf://acme/m", "--model-cache", str(cache)],
                               env={"PATH": os.environ["PATH"], **remote.environment()},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: any(p.stat().st_size > 2_000_000 for p in cache.glob("blobs/*.part")))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert nothing_is_visible(cache)
    remote.pause_s = 0
    remote.requests.clear()
    assert (pull(remote, cache, "hf://acme/m") / "model.onnx").read_bytes() == data
    (asked,) = [one for one in remote.requests if "/resolve/" in one.path]
    assert int(asked.headers["range"].removeprefix("bytes=").removesuffix("-")) >= 2_000_000
    assert list(cache.glob("blobs/*.part")) == []


def test_a_server_without_ranges_is_read_from_the_start(remote, cache):
    data = heavy(3)
    remote.no_ranges = True
    remote.cut_after = [1_000_000]
    assert pull(remote, cache, remote.add_file("/m.onnx", data)).read_bytes() == data


def test_bytes_that_are_not_those_that_were_told_are_refused(remote, cache):
    remote.add_hub("acme/m", {"model.onnx": heavy(1)}, lfs={"model.onnx"})
    remote.broken.add(f"/acme/m/resolve/{COMMIT}/model.onnx")
    done = pull(remote, cache, "hf://acme/m", check=False)
    assert done.returncode == 1 and "DATA_LOSS" in done.stderr and "sha256:" in done.stderr
    assert nothing_is_visible(cache)
    remote.broken.clear()
    pull(remote, cache, "hf://acme/m")
    pinned = pull(remote, cache, remote.add_file("/m.onnx", small()) + "#sha256=" + "0" * 64, check=False)
    assert pinned.returncode == 1 and "DATA_LOSS" in pinned.stderr


def test_a_model_above_the_limit_is_refused_before_it_comes(remote, cache):
    remote.add_hub("acme/m", {"model.onnx": heavy(3)}, lfs={"model.onnx"})
    done = pull(remote, cache, "hf://acme/m", "--max-download-mb", "2", check=False)
    assert done.returncode == 1 and "3 MiB, --max-download-mb is 2" in done.stderr
    assert not any("/resolve/" in one.path for one in remote.requests)


def test_a_full_disk_is_told_and_what_is_there_is_kept(remote, tmp_path):
    """A file system of 2 MiB."""
    small_disk = tmp_path / "disk"
    small_disk.mkdir()
    call = (f"mount -t tmpfs -o size=2m none {small_disk} && {BUILD / 'reprise'} pull hf://acme/m "
            f"--model-cache {small_disk}; code=$?; stat -c %s {small_disk}/blobs/*.part; exit $code")
    remote.add_hub("acme/m", {"model.onnx": heavy(4)}, lfs={"model.onnx"})
    done = subprocess.run(["unshare", "--mount", "sh", "-c", call], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], **remote.environment()}, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "RESOURCE_EXHAUSTED" in done.stderr and "No space left on device" in done.stderr
    assert int(done.stdout) > 1_000_000


def test_processes_that_share_a_cache_fetch_once(remote, cache):
    data = heavy(6)
    remote.add_hub("acme/m", {"model.onnx": data}, lfs={"model.onnx"})
    remote.pause_s = 0.01
    command = [BUILD / "reprise", "pull", "hf://acme/m", "--model-cache", str(cache)]
    both = [subprocess.Popen(command, env={"PATH": os.environ["PATH"], **remote.environment()},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    paths = {process.communicate(timeout=60)[0].strip() for process in both}
    assert len(paths) == 1 and (pathlib.Path(paths.pop()) / "model.onnx").read_bytes() == data
    assert len([one for one in remote.requests if "/resolve/" in one.path]) == 1


# --- Archives. ---


def tar(entries, mode="w:gz"):
    """`entries`: names and bytes, or TarInfo."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, data in entries:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def link(name, target, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("mode, name", [("w", "m.tar"), ("w:gz", "m.tar.gz"), ("w:gz", "m.tgz"),
                                        ("w:bz2", "m.tar.bz2"), ("w:xz", "m.tar.xz")])
def test_archives_are_unpacked(remote, cache, mode, name):
    data = tar([("minilm/model.onnx", small()), ("minilm/config.json", b"{}")], mode)
    assert files_in(pull(remote, cache, remote.add_file(f"/{name}", data))) == ["config.json", "model.onnx"]


def test_a_zip_of_a_bucket_is_unpacked(remote, cache):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1/model.onnx", small())
        archive.writestr("config.pbtxt", "")
    remote.add_bucket("acme", {"m.zip": packed.getvalue()})
    assert files_in(pull(remote, cache, "s3://acme/m.zip")) == ["1/model.onnx", "config.pbtxt"]


HOSTILE = {
    "absolute": [("/tmp/out.txt", b"x")],
    "dots": [("a/../../out.txt", b"x")],
    "symbolic link": [(link("out", "/tmp", tarfile.SYMTYPE), b""), ("out/x.txt", b"x")],
    "hard link": [("a", b"x"), (link("out", "../../a", tarfile.LNKTYPE), b"")],
    "device": [(link("null", "", tarfile.CHRTYPE), b"")],
    "pipe": [(link("pipe", "", tarfile.FIFOTYPE), b"")],
    "twice": [("a", b"x"), ("a", b"y")],
    "control": [("a\nb", b"x")],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE)
def test_archives_do_not_leave_their_folder(remote, cache, entries):
    data = tar([("model.onnx", small()), *entries])
    done = pull(remote, cache, remote.add_file("/m.tar.gz", data), check=False)
    assert done.returncode == 1 and "INVALID_ARGUMENT" in done.stderr and "the archive's entry" in done.stderr
    assert nothing_is_visible(cache) and not list(cache.rglob("*.txt"))


def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused(remote, cache):
    bomb = tar([("model.onnx", b"\0" * (64 << 20))])
    assert len(bomb) < 1 << 20
    done = pull(remote, cache, remote.add_file("/m.tar.gz", bomb), "--max-download-mb", "8", check=False)
    assert done.returncode == 1 and "unpacks to more than 8 MiB (--max-download-mb)" in done.stderr
    assert nothing_is_visible(cache)
    assert sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) < 1 << 20
