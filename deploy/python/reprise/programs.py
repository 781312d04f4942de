"""The programs of this installation."""

import os
import sys


def program(name):
    """Returns the path of `reprised` or `reprise`."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree", "bin", name)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path} is not there: this module is used outside of its wheel")
    return path


def _become(name):
    path = program(name)
    os.execv(path, [name, *sys.argv[1:]])


def reprised():
    """Becomes the program `reprised`, so that signals reach it."""
    _become("reprised")


def reprise():
    """Becomes the program `reprise`."""
    _become("reprise")
