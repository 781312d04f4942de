"""The line of progress of deploy/demo."""

import io
import subprocess
import sys

from testing.daemon import SOURCE

SCRIPT = SOURCE / "deploy/build_progress.py"
sys.path.insert(0, str(SCRIPT.parent))
import build_progress  # noqa: E402  the script beside which the path is set

STEPS = ["Building CXX object runtime/CMakeFiles/slow.dir/a.cc.o",
         "Building CXX object runtime/CMakeFiles/slow.dir/b.cc.o",
         "Building CXX object runtime/CMakeFiles/quick.dir/c.cc.o"]
FIGURES = {"slow": 90.0, "quick": 10.0}


class Output(io.StringIO):
    """A file that may say that it is a terminal."""

    def __init__(self, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


def shown(lines, terminal, seconds_a_step=60):
    times = iter(range(0, 10 ** 6, seconds_a_step))
    output = Output(terminal)
    progress = build_progress.Progress(STEPS, FIGURES, lambda: next(times))
    build_progress.show(lines, progress, output)
    return output.getvalue()


def numbered(steps):
    return [f"[{i + 1}/{len(steps)}] {step}\n" for i, step in enumerate(steps)]


def test_the_share_and_the_time_left_follow_what_parts_take():
    # 45 of 100 seconds took a minute: 55 of them take 1.2.
    lines = shown(numbered(STEPS), terminal=False).splitlines()
    assert lines[0] == "Building: 45 %, step 1 of 3, about 1 minute left"
    assert lines[1] == "Building: 90 %, step 2 of 3, less than a minute left"
    assert lines[2].startswith("Building: 100 %, step 3 of 3")


def test_no_control_characters_without_a_terminal():
    text = shown(numbered(STEPS), terminal=False)
    assert all(character == "\n" or character.isprintable() for character in text)
    assert len(shown(numbered(STEPS * 300), terminal=False).splitlines()) <= 11


def test_a_terminal_has_one_line_that_is_written_over():
    text = shown(numbered(STEPS), terminal=True)
    assert text.count("\n") == 1 and text.count("\r") == 3


def test_errors_are_passed_on():
    lines = [*numbered(STEPS)[:1], "FAILED: b.cc.o\n", "b.cc:1: error: no\n"]
    assert "FAILED: b.cc.o\nb.cc:1: error: no\n" in shown(lines, terminal=False)
    assert "\nFAILED: b.cc.o\nb.cc:1: error: no\n" in shown(lines, terminal=True)


def test_the_result_is_that_of_the_build(tmp_path):
    (tmp_path / "build.ninja").write_text("rule fail\n  command = false\nbuild out: fail\n")
    command = [sys.executable, str(SCRIPT), str(tmp_path / "none.tsv"), "sh", "-c", 'ninja -C "$0" ${2:+-n}', str(tmp_path)]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode != 0 and "FAILED" in failed.stdout
