"""docs/recompilation.md is true: its commands run as they stand, and print the page's output."""

import os
import re
import subprocess
import sys

import pytest

from testing.daemon import BUILD, SOURCE, free_ports

PAGE = (SOURCE / "docs/recompilation.md").read_text()
BLOCKS = re.findall(r"^```(sh|text)\n(.*?)^```$", PAGE, re.M | re.S)
FLAGS = ("--grpc-port", "--http-port", "--metrics-port")


def squeezed(text):
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Runs all blocks of commands by one shell in a folder of their own; returns the output of each."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "examples").symlink_to(SOURCE / "examples")
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(BUILD)
    ports = free_ports(3)
    flags = " ".join(f"{flag} {port}" for flag, port in zip(FLAGS, ports))
    script = "set -e\n"
    for i, block in enumerate(block for kind, block in BLOCKS if kind == "sh"):
        # Ports that no other test has, and the log next to the compared output.
        block = re.sub(r"(build/release/reprised .*) &", rf"\1 {flags} 2> daemon.log &", block)
        # A daemon that is told to end has ended well when its shell says that it did.
        block = block.replace("kill %1; wait", "kill %1; wait %1")
        script += f"echo '@@ {i}'\n{block}"
    environment = {**os.environ, "REPRISE_SERVER": f"127.0.0.1:{ports[0]}"}
    script = script.replace("python3 ", f"{sys.executable} ")
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.split(r"^@@ \d+\n", done.stdout, flags=re.M)[1:]


def test_every_line_that_the_page_shows_is_printed(outputs):
    commands, missing, shown = 0, [], 0
    for kind, block in BLOCKS:
        if kind == "sh":
            commands += 1
            continue
        output = squeezed(outputs[commands - 1])
        for line in block.splitlines():
            shown += 1
            if squeezed(line) not in output:
                missing.append((line, outputs[commands - 1]))
    assert missing == [] and shown > 10
