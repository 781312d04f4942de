"""Waiting for work in the background of requests."""

import time

# Bounds a test that hangs, and nothing else: a busy machine is ten times slower than an idle one.
PATIENCE_S = 400


def pause():
    time.sleep(0.05)  # the interval of polling


def wait_until(condition, meanwhile=pause, explain=lambda: "it never came to pass"):
    """Does `meanwhile` until `condition()` holds; a failure shows the text of `explain()`."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, explain()
        meanwhile()
