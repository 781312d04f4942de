"""Steps of decoders: past and new positions, a mask over both, caches that lie head by head."""

import numpy as np
import pytest

from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import assert_same_answer, infer, reference


def step(rng, rows, sequence, past, kv_heads, size=16):
    mask = np.ones((rows, past + sequence), np.int64)
    mask[0, :past // 2] = 0
    return {"input_ids": rng.integers(0, 50, (rows, sequence)), "attention_mask": mask,
            "past_keys": rng.standard_normal((rows, kv_heads, past, size), np.float32),
            "past_values": rng.standard_normal((rows, kv_heads, past, size), np.float32)}


# The file may say what the mask's length follows from, or give it a name of its own.
@pytest.mark.parametrize("total", ["total", "past + sequence"])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_steps_of_a_decoder(repository, rng, kv_heads, total):
    path = repository.add("decoder", models.cached_decoder(kv_heads=kv_heads, total=total))
    with Daemon(repository) as daemon:
        client = daemon.client()
        for rows, sequence, past in [(1, 1, 7), (2, 1, 31), (3, 1, 128), (1, 5, 0), (2, 17, 3), (1, 2, 2),
                                     (4, 4, 60)]:
            inputs = step(rng, rows, sequence, past, kv_heads)
            answer = infer(client, "decoder", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs), f"{rows, sequence, past}")


def test_one_new_position_is_not_padded(repository, rng):
    repository.add("decoder", models.cached_decoder())
    with Daemon(repository) as daemon:
        client = daemon.client()
        one = [infer(client, "decoder", step(rng, 2, 1, 9, 2)) for _ in range(2)]
        assert {answer.bucket for answer in one} == {"exact"}
        assert one[0].recipe == one[1].recipe


# A row that hides all it has, or holds values that masks do not: padding would be seen.
@pytest.mark.parametrize("total", ["total", "past + sequence"])
@pytest.mark.parametrize("value", [0, -1, -7, 2])
def test_rows_that_hide_all_are_not_padded(repository, rng, value, total):
    path = repository.add("decoder", models.cached_decoder(kv_heads=4, total=total))
    with Daemon(repository) as daemon:
        client = daemon.client()
        for sequence, past in [(5, 3), (1, 7), (20, 3)]:
            inputs = step(rng, 2, sequence, past, kv_heads=4)
            inputs["attention_mask"][1] = value
            answer = infer(client, "decoder", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs), f"{value, sequence, past}")


def test_check_reports_on_a_decoder(tmp_path):
    import onnx

    path = tmp_path / "model.onnx"
    onnx.save(models.cached_decoder(), path)
    report = reprise("check", str(path))
    assert "past + sequence" in report and "attention" in report
