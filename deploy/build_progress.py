"""Runs a build by ninja and shows one line that counts up, with the minutes that are likely left.

    build_progress.py FIGURES COMMAND...

FIGURES is tests/bench/build/figures.tsv: the share of each part in a build says how much of it is done, since
steps are of very different length. On a terminal the line is written over; else there is a line for each tenth.
All that the build says besides its steps, errors above all, is passed on. The result is COMMAND's.
"""

import pathlib
import re
import subprocess
import sys
import time

STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")
OBJECT = re.compile(r"CMakeFiles/([^/]+)\.dir/")
REST = "links, archives, generators, cargo"
SHORT = 0.2  # CPU seconds of a link or an archive, and the least of a step


def figures(path):
    """CPU seconds by part, as measured; empty where there is no such file."""
    lines = pathlib.Path(path).read_text().splitlines()[1:] if pathlib.Path(path).exists() else []
    return {part: float(seconds) for part, seconds, *_ in (line.split("\t") for line in lines)}


class Progress:
    """Says after each step how much is done and how long the rest will likely take."""

    def __init__(self, steps, seconds_of, clock=time.monotonic):
        objects = {}
        for step in steps:
            if found := OBJECT.search(step):
                objects[found[1]] = objects.get(found[1], 0) + 1
        self._objects, self._seconds_of, self._clock = objects, seconds_of, clock
        self._total = sum(map(self.weight, steps))
        self._done, self._start = 0.0, clock()

    def weight(self, step):
        """CPU seconds that `step` takes, the share of its part where that has several."""
        if step.startswith("Building") and (found := OBJECT.search(step)):
            return max(self._seconds_of.get(found[1], 3.0) / self._objects.get(found[1], 1), SHORT)
        return self._seconds_of.get(REST, 60.0) if "cargo" in step else SHORT

    def finish(self, step):
        """Counts a finished step; returns the percentage and the minutes left, None while that is a guess."""
        self._done += self.weight(step)
        self._total = max(self._total, self._done)
        share, elapsed = self._done / self._total, self._clock() - self._start
        left = elapsed * (1 - share) / share
        known = share >= 0.02 or elapsed > 30
        return int(100 * share), left / 60 if known else None


def line(number, count, percent, minutes):
    """Returns the line of progress."""
    if minutes is None:
        rest = "no estimate yet"
    elif minutes < 1:
        rest = "less than a minute left"
    else:
        rest = f"about {minutes:.0f} minute{'' if round(minutes) == 1 else 's'} left"
    return f"Building: {percent} %, step {number} of {count}, {rest}"


def show(source, progress, output):
    """Shows the progress of the steps in the lines of `source`; passes on all other lines."""
    rewrite, tenth, open_line = output.isatty(), -1, False
    for text in source:
        found = STEP.match(text.rstrip("\n"))
        if found is None:
            output.write(("\n" if open_line else "") + text)
            open_line = False
        elif int(found[2]) > 2 or not found[3].startswith("Re-"):  # [0/2] Re-checking, Re-running CMake
            percent, minutes = progress.finish(found[3])
            if rewrite:
                output.write("\r\033[K" + line(found[1], found[2], percent, minutes))
                open_line = True
            elif percent // 10 > tenth:
                tenth = percent // 10
                output.write(line(found[1], found[2], percent, minutes) + "\n")
        output.flush()
    if open_line:
        output.write("\n")


def main():
    path, *command = sys.argv[1:]
    dry = subprocess.run([*command, "--", "-n"], capture_output=True, text=True, check=False)
    steps = [found[3] for found in map(STEP.match, dry.stdout.splitlines()) if found]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as build:
        show(build.stdout, Progress(steps, figures(path)), sys.stdout)
    sys.exit(build.returncode)


if __name__ == "__main__":
    main()
