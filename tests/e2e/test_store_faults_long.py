"""As test_store_faults, two hundred times."""

from testing import store_faults


def test_two_hundred_kills_leave_a_store_that_serves(repository, tmp_path):
    store_faults.run(repository, tmp_path / "store", rounds=200, seed=2)
