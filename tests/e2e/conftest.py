"""Fixtures of the end-to-end tests."""

import numpy as np
import pytest

from testing.daemon import Daemon
from testing.repository import Repository

# A larger recipe would serve instead, and the own one be captured in the background.
INLINE = 'parameters { key: "reprise.capture" value { string_value: "inline" } }'


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "models")


@pytest.fixture(scope="module")
def module_repository(tmp_path_factory):
    """Makes one repository for the tests of a file, where a daemon is shared by them."""
    return Repository(tmp_path_factory.mktemp("repository") / "models")


@pytest.fixture(scope="module")
def paths(module_repository, request):
    """Makes the files of the MODELS of a test module, by name, each captured as its requests come."""
    return {name: module_repository.add(name, make(), config=INLINE)
            for name, make in request.module.MODELS.items()}


@pytest.fixture(scope="module")
def daemon(module_repository, paths):
    """Serves them."""
    with Daemon(module_repository) as running:
        yield running


@pytest.fixture
def rng():
    return np.random.default_rng(7)
