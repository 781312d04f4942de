"""One side of a comparison, a process that answers line by line, and the machine that it runs on."""

import json
import pathlib
import subprocess
import sys
import time


class Side:
    def __init__(self, name, command):
        self.name = name
        if not pathlib.Path(command[0]).exists():
            sys.exit(f"{command[0]} is not there: tests/bench/README.md says how it is built")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True)
        self.load_ms = self._answer()["load_ns"] / 1e6

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended with code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            sys.exit(f"{self.name}: {answer['error']}")
        return answer

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def busy_share():
    """Share of the CPUs that others keep busy, over a quarter of a second."""
    def read():
        fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
        return sum(fields), fields[3] + fields[4]

    total, idle = read()
    time.sleep(0.25)
    total2, idle2 = read()
    return 1 - (idle2 - idle) / max(total2 - total, 1)


def warn_if_busy():
    """Returns the share of busy_share(), after a warning if it will disturb the measurements."""
    busy = busy_share()
    if busy > 0.2:
        print(f"warning: others keep {busy:.0%} of this machine busy; ratios will be noisy")
    return busy


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "CPU")
