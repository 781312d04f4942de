"""Fixtures of the end-to-end tests."""

import numpy as np
import pytest

from testing.repository import Repository


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "models")


@pytest.fixture(scope="module")
def module_repository(tmp_path_factory):
    """One repository for the tests of a file, where a daemon is shared by them."""
    return Repository(tmp_path_factory.mktemp("repository") / "models")


@pytest.fixture
def rng():
    return np.random.default_rng(7)
