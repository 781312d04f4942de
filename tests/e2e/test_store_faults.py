"""kill -9 while two daemons write to one recipe store: every later start works and answers right."""

from testing import store_faults


def test_daemons_killed_while_they_write_leave_a_store_that_serves(repository, tmp_path):
    store_faults.run(repository, tmp_path / "store", rounds=8)
