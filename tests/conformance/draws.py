"""Random operands of the cases, in the order of their draws."""

import numpy as np


RANDOM = np.random.default_rng(11)
MICROSOFT = "com.microsoft"


def f32(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def ints(low, high, shape, dtype=np.int64):
    return RANDOM.integers(low, high, shape).astype(dtype)


def lengths_mask(batch, sequence):
    return (np.arange(sequence) < RANDOM.integers(1, sequence + 1, (batch, 1))).astype(np.int32)


def caches(rows, half):
    angles = np.arange(rows)[:, None] / 100 ** (np.arange(half) / half)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
