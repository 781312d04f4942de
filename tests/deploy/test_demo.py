"""deploy/demo --chat, with the built programs in the place of installed ones."""

import os
import re
import shutil
import subprocess

from testing.daemon import BUILD, SOURCE
from testing.repository import CACHE


def test_the_demo_of_a_chat_asks_three_questions_and_captures_nothing(tmp_path):
    root, programs, cache = tmp_path / "root", tmp_path / "bin", tmp_path / "cache"
    for folder in (root, programs, cache):
        folder.mkdir()
    shutil.copytree(SOURCE / "deploy", root / "deploy")
    shutil.copy(SOURCE / "CMakeLists.txt", root)
    for name in ("reprised", "reprise"):
        (programs / name).symlink_to(BUILD / name)
    (cache / "models").symlink_to(CACHE / "models")
    done = subprocess.run(
        [root / "deploy/demo", "--chat"], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "REPRISE_CACHE": str(cache)})
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout
    assert "Using the installed" in shown, shown
    answers = re.findall(r"^(.*)\n\[(\d+) tokens, ([\d.]+) a second, the first after \d+ ms\]$", shown, re.M)
    assert len(answers) == 3 and "Paris" in answers[0][0] and "Rome" in answers[1][0], shown
    assert all(int(tokens) > 3 and float(rate) > 0 for _, tokens, rate in answers)
    assert re.search(r"^  60 caches in pages of 16 positions.*, 10 recipes of 1 to 512 new tokens", shown, re.M), shown
    made = int(re.search(r"^ *(\d+) tokens made$", shown, re.M)[1])
    assert made == sum(int(tokens) for _, tokens, _ in answers)
    # A question comes with the conversation before it, which is found in whole pages.
    assert int(re.search(r"^ *(\d+) tokens of prompts found in pages", shown, re.M)[1]) >= 32, shown
    before, after = re.search(r"(\d+) captures before the first question, (\d+) after", shown).groups()
    assert before == after == "10", shown
