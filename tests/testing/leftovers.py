"""No test leaves a running process.

As a pytest plugin (`-p testing.leftovers`): the run adopts the orphans of its tests, and fails
if anything of it is alive at the end; the processes left are named and killed.

As a program (`leftovers.py FOLDER`): fails if a program of the folder runs, however it was started.
"""

import ctypes
import os
import pathlib
import signal
import sys
import time

_SET_CHILD_SUBREAPER = 36
# A process that was just told to end has this long for it.
_GRACE_SECONDS = 3


def children(pid):
    """Returns the pids of its children, of all of its threads."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # the thread, or all of the process, has ended
            pass
    return found


def descendants(pid):
    """Returns the pids below it, parents before their children."""
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def alive(pid):
    """Returns whether the process runs; one that has ended and waits for its parent does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def name_of(pid):
    try:
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return f"{pid}: {b' '.join(command).decode(errors='replace').strip()}"
    except OSError:
        return f"{pid}"


def end_tree(pid):
    """Kills the process and all below it: also those whose tie to their parent is cut."""
    tree = [pid, *descendants(pid)]
    for one in tree:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass
    end = time.monotonic() + _GRACE_SECONDS
    while any(map(alive, tree)) and time.monotonic() < end:
        time.sleep(0.01)  # the interval of polling


def left_over(pid):
    """Returns the processes alive below it, after a moment to end."""
    end = time.monotonic() + _GRACE_SECONDS
    while True:
        left = [one for one in descendants(pid) if alive(one)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)  # the interval of polling


def pytest_sessionstart(session):
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def pytest_sessionfinish(session, exitstatus):
    left = left_over(os.getpid())
    if not left:
        return
    print("\nprocesses that the tests have left behind:", file=sys.stderr)
    for pid in left:
        print(f"  {name_of(pid)}", file=sys.stderr)
    for pid in left:
        end_tree(pid)
    session.exitstatus = 1


def programs_of(folder):
    """Returns the pids of all processes whose program lies in `folder`."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            program = os.readlink(process / "exe").removesuffix(" (deleted)")
        except OSError:  # it has ended, or is another user's
            continue
        if pathlib.Path(program).is_relative_to(folder):
            found.append(int(process.name))
    return found


def main(folder):
    end = time.monotonic() + _GRACE_SECONDS
    while True:
        left = programs_of(folder)
        if not left or time.monotonic() > end:
            break
        time.sleep(0.05)  # the interval of polling
    for pid in left:
        print(f"a program of {folder} is left running: {name_of(pid)}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
