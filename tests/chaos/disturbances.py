"""Disturbances of the daemon while it serves."""

import pathlib
import resource
import subprocess
import time

from tritonclient.utils import InferenceServerException

MEMORY_S = 3  # how long the daemon gets no more memory
MB = 1 << 20


class Disturbances:
    """Each method does one thing, whole. Threads: one."""

    def __init__(self, daemon, repository, cases, store, tally, rng):
        self._daemon, self._repository, self._store = daemon, repository, store
        self._tally, self._rng = tally, rng
        self._changing = [case for case in cases if len(case.versions) > 1]
        self._cases = cases
        self._newest = {case.name: 1 for case in self._changing}

    def all(self):
        return [self.reload, self.reload, self.unload_and_load, self.capture_ahead,
                self.fill_the_store, self.run_out_of_memory]

    def _control(self, words, call):
        """Model control may be refused while memory is out: the daemon says so."""
        try:
            call()
            self._tally.count(words)
        except InferenceServerException as error:
            text = f"{error.status()} {error.message()}"
            explained = any(code in text for code in ("RESOURCE_EXHAUSTED", "UNAVAILABLE"))
            if not explained:
                self._tally.fault(f"{words}: {text[:400]}")
            self._tally.count(f"{words}: refused")

    def reload(self):
        """Makes the other version of a model the newest one, or removes it."""
        case = self._changing[self._rng.integers(len(self._changing))]
        folder = pathlib.Path(self._repository.root) / case.name
        if self._newest[case.name] == 1:
            (folder / "aside").rename(folder / "2")
        else:
            (folder / "2").rename(folder / "aside")
        self._newest[case.name] = 3 - self._newest[case.name]
        self._control("reloads", lambda: self._daemon.client().load_model(case.name))

    def unload_and_load(self):
        case = self._cases[self._rng.integers(len(self._cases))]
        self._control("unloads", lambda: self._daemon.client().unload_model(case.name))
        time.sleep(float(self._rng.uniform(0, 0.5)))
        self._control("loads", lambda: self._daemon.client().load_model(case.name))

    def capture_ahead(self):
        case = self._cases[self._rng.integers(len(self._cases))]
        done = self._daemon.reprise("warmup", case.name, "--all", check=False)
        self._tally.count("captures ahead" if done.returncode == 0 else "captures ahead: refused")

    def fill_the_store(self):
        """Lets nothing be written for a while."""
        filler = pathlib.Path(self._store) / "filler"
        try:
            with filler.open("wb") as file:
                while file.write(b"\0" * MB):
                    pass
        except OSError:
            pass
        time.sleep(float(self._rng.uniform(0.5, 2)))
        filler.unlink()
        self._tally.count("full disks")

    def run_out_of_memory(self):
        """No more addresses than it has, for a while."""
        pid = self._daemon.process.pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        size = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmSize"))
        limit = size * 1024 + int(self._rng.integers(0, 16)) * MB
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        time.sleep(MEMORY_S)
        resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self._tally.count("memory outs")

    def make_whole(self):
        """Loads every model again, with all of its memory."""
        for case in self._cases:
            self._daemon.client().load_model(case.name)


def mount_small(folder, megabytes=24):
    """Mounts a file system of its own for `folder`, where that is allowed; returns whether it is."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder],
                          capture_output=True, check=False)
    return done.returncode == 0
