"""A test run that leaves a running process fails, names it and ends it."""

import os
import pathlib
import subprocess
import sys

import pytest

from testing.daemon import BUILD
from testing.leftovers import descendants, end_tree, programs_of

LEAVES = """
import subprocess
def test_leaves_one():
    # Its own session, and its parent ends first: nothing ties it to this test any more.
    subprocess.run(["setsid", "--fork", "sleep", "{seconds}"], check=True)
"""
TIDY = """
import subprocess
def test_waits_for_it():
    subprocess.run(["setsid", "--wait", "sleep", "0"], check=True)
"""


def run_tests(folder, text):
    (folder / "test_it.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "testing.leftovers", "test_it.py"],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def sleepers(seconds):
    return [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline")
            if p.read_bytes() == f"sleep\0{seconds}\0".encode()]


def test_run_that_leaves_a_process_behind_fails_and_names_it(tmp_path):
    seconds = 86400 + os.getpid()  # told from all others by its argument
    done = run_tests(tmp_path, LEAVES.format(seconds=seconds))
    assert done.returncode == 1
    assert "1 passed" in done.stdout and f"sleep {seconds}" in done.stderr, done.stdout + done.stderr
    assert not sleepers(seconds)


def test_run_that_leaves_none_passes(tmp_path):
    done = run_tests(tmp_path, TIDY)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tree_ends_also_where_its_parts_are_in_sessions_of_their_own():
    process = subprocess.Popen(["sh", "-c", "setsid sh -c 'sleep 3600; true' & sleep 3600"])
    while len(descendants(process.pid)) < 3:
        assert process.poll() is None
    tree = descendants(process.pid)
    end_tree(process.pid)
    process.wait()
    for pid in tree:
        stat = pathlib.Path(f"/proc/{pid}/stat")
        assert not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] in "ZX"


@pytest.mark.parametrize("program", ["reprised"])
def test_program_of_the_build_folder_is_found_whoever_started_it(program, tmp_path):
    before = programs_of(BUILD)
    with subprocess.Popen([BUILD / program, "--model-repository", tmp_path, "--grpc-port", "0", "--http-port",
                           "0", "--metrics-port", "0"], stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            assert process.pid in programs_of(BUILD) and process.pid not in before
        finally:
            end_tree(process.pid)
