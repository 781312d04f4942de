"""CPU seconds of a build from nothing, by room; see run.

Seconds differ from machine to machine, so each table begins with a yardstick: the CPU seconds that this
machine needs for a fixed source (the standard headers that every source of ours reads). test_budget.py
compares the table with budget.tsv.
"""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "build/bench_build"
HEAD = "part\tCPU seconds\tpeak MB"
REST = "links, archives, generators, cargo"  # steps that no launcher saw
FIGURES = pathlib.Path(__file__).parent / "figures.tsv"
YARDSTICK = "\n".join(f"#include <{header}>" for header in (
    "algorithm", "chrono", "filesystem", "functional", "map", "random", "regex", "string", "thread",
    "unordered_map", "variant", "vector"))


def cpu_seconds():
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def yardstick():
    """The least of five compilations of YARDSTICK, in CPU seconds."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "yardstick.cc"
        source.write_text(YARDSTICK)
        for _ in range(5):
            before = cpu_seconds()
            subprocess.run(["c++", "-std=c++20", "-O2", "-c", source, "-o", "/dev/null"], check=True)
            times.append(cpu_seconds() - before)
    return min(times)


def build(times, *targets):
    """Builds `targets` (none: all); returns CPU seconds and seconds on the clock."""
    before, start = cpu_seconds(), time.monotonic()
    subprocess.run(["cmake", "--build", BUILD, "--parallel", str(os.cpu_count()),
                    *(["--target", *targets] if targets else [])],
                   check=True, env={**os.environ, "REPRISE_BUILD_TIMES": str(times)})
    return cpu_seconds() - before, time.monotonic() - start


def by_room(times):
    """CPU seconds and the largest peak of memory, by target."""
    rooms = {}
    for line in times.read_text().splitlines():
        target, seconds, megabytes = line.split("\t")
        total, peak = rooms.get(target, (0.0, 0))
        rooms[target] = (total + float(seconds), max(peak, int(megabytes)))
    return rooms


def rows(programs, total, rooms, unit):
    """The lines of figures.tsv below its first; `rooms` as by_room has them."""
    rooms = {**rooms, REST: (total - sum(seconds for seconds, _ in rooms.values()), 0)}
    return [f"yardstick\t{unit:.2f}\t0", f"programs\t{programs:.0f}\t0", f"programs and tests\t{total:.0f}\t0",
            *(f"{room}\t{seconds:.1f}\t{peak}"
              for room, (seconds, peak) in sorted(rooms.items(), key=lambda room: -room[1][0]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write figures.tsv")
    arguments = parser.parse_args()
    shutil.rmtree(BUILD, ignore_errors=True)
    launcher = pathlib.Path(__file__).parent / "launcher"
    subprocess.run(["cmake", "--preset", "release", "-B", BUILD, f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
                    f"-DREPRISE_CACHE={BUILD}/cache"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    times = BUILD / "times.tsv"
    programs, programs_clock = build(times, "reprised", "reprise")
    tests, tests_clock = build(times)
    total = programs + tests
    lines = rows(programs, total, by_room(times), yardstick())
    print("\n".join(lines))
    print(f"programs: {programs / 60:.1f} CPU minutes, {programs_clock / 60:.1f} on the clock; "
          f"programs and tests: {total / 60:.1f} and {(programs_clock + tests_clock) / 60:.1f}")
    if arguments.keep:
        FIGURES.write_text("\n".join([HEAD, *lines]) + "\n")
    shutil.rmtree(BUILD)


if __name__ == "__main__":
    main()
