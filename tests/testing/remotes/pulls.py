"""Models fetched from a remote of testing.remotes by `reprise pull`."""

import os
import pathlib
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from testing import models
from testing.daemon import BUILD
from testing.remotes import Remote

BLOCK = os.urandom(1 << 20)


@pytest.fixture
def remote():
    with Remote() as remote:
        yield remote


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def small():
    """y = 2 x + 1, as bytes."""
    return models.elementwise().SerializeToString()


def heavy(megabytes):
    """Makes a model whose weights take some megabytes."""
    weights = numpy_helper.from_array(np.frombuffer(BLOCK * megabytes, np.uint8), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy")
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "heavy", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def pull(remote, cache, url, *flags, environment=None, check=True):
    """`reprise pull`; the path that it prints, or the finished process."""
    done = subprocess.run(
        [BUILD / "reprise", "pull", url, "--model-cache", str(cache), *map(str, flags)],
        env={"PATH": os.environ["PATH"], "HOME": str(cache), **(environment or remote.environment())},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if not check:
        return done
    assert done.returncode == 0, done.stderr
    return pathlib.Path(done.stdout.strip())


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def nothing_is_visible(cache):
    return not any(path.is_file() for path in (cache / "models").rglob("*")) and \
        not list((cache / "refs").glob("*"))
