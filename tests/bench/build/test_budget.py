"""A build from nothing stays within its budget: figures.tsv, which `tests/bench/build/run --keep` measures, beside
budget.tsv, both in units of the yardstick of the machine that they were measured on.

Where a room takes more by intention, its row of budget.tsv says so in the same commit.
"""

import re

import pytest

from testing.daemon import BUILD, SOURCE

FOLDER = SOURCE / "tests/bench/build"
MOST = 1.1  # of the budget
SLACK_S = 1.0  # the figure of a small room moves by this when nothing changed
MOST_UNMEASURED = 0.1  # of all targets
TOTALS = ["programs", "programs and tests"]


def read(name):
    """CPU seconds by part."""
    lines = (FOLDER / name).read_text().splitlines()[1:]
    return {part: float(seconds) for part, seconds, *_ in (line.split("\t") for line in lines)}


def beyond(figures, budget):
    """Returns the parts whose figures are above the budget: seconds and the most that they may be, on the
    machine of figures."""
    speed = figures["yardstick"] / budget["yardstick"]
    limits = {part: budget.get(part, 0.0) * speed * MOST + (0 if part in TOTALS else SLACK_S) for part in figures}
    return {part: f"{seconds} s of CPU, budget {limits[part]:.1f}" for part, seconds in figures.items()
            if part != "yardstick" and seconds > limits[part]}


def test_each_room_and_the_whole_are_within_the_budget():
    assert not beyond(read("figures.tsv"), read("budget.tsv"))


def test_all_rooms_but_a_few_have_figures():
    """A room without any is one that came after the measurement: a tenth of them, then measure again."""
    steps = (BUILD / "build.ninja").read_text()
    targets = set(re.findall(r"CMakeFiles/([^/\s]+)\.dir/[^\s:]+\.o:", steps))
    unmeasured = sorted(targets - set(read("figures.tsv")))
    assert len(unmeasured) <= MOST_UNMEASURED * len(targets), unmeasured


@pytest.mark.parametrize("part, seconds, speed, over", [
    ("a", 100, 1, False), ("a", 110, 1, False), ("a", 112, 1, True), ("programs", 450, 1, True),
    ("a", 150, 2, False), ("a", 223, 2, True), ("small", 2.9, 1, False), ("new", 2, 1, True)])
def test_more_than_a_tenth_is_beyond_the_budget(part, seconds, speed, over):
    budget = {"yardstick": 2.0, "programs": 400, "a": 100, "small": 2}
    figures = {"yardstick": 2.0 * speed, part: seconds}
    assert (list(beyond(figures, budget)) == [part]) == over
