"""CPUs without the instructions of this one: emulated, they plan and run the same kernels' baseline.

A function that is compiled for an instruction set and called without it ends the process; on the CPU
of its writer nothing shows.
"""

import numpy as np
import pytest
from onnx import TensorProto

from testing import models
from testing.daemon import Daemon
from testing.inference import infer

ROWS, WIDTH, HEADS = 8, 16, 2


def block():
    """Makes a convolution, products, attention, a norm, products of bytes: shapes are fixed, so that nothing but the
    recipe itself runs."""
    rng = np.random.default_rng(0)
    g = models.Graph(17)

    def weights(*shape):
        return g.const(rng.standard_normal(shape).astype(np.float32) / 4)

    pictures = g.node("Relu", g.node("Conv", "pictures", weights(WIDTH, 3, 3, 3), pads=[1, 1, 1, 1]))
    pooled = g.node("Flatten", g.node("GlobalAveragePool", pictures))
    x = g.node("Add", "x", pooled)
    heads = [g.node("Transpose", g.node("Reshape", g.node("MatMul", x, weights(WIDTH, WIDTH)),
                                        g.ints(1, ROWS, HEADS, WIDTH // HEADS)), perm=perm)
             for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
    scores = g.node("Softmax", g.node("MatMul", heads[0], heads[1]), axis=-1)
    mixed = g.node("Reshape", g.node("Transpose", g.node("MatMul", scores, heads[2]), perm=[0, 2, 1, 3]),
                   g.ints(ROWS, WIDTH))
    normal = g.node("LayerNormalization", g.node("Add", x, mixed), weights(WIDTH), weights(WIDTH), axis=-1)
    quantised, scale, zero = g.node("DynamicQuantizeLinear", normal, outputs=3)
    sums = g.node("MatMulInteger", quantised, g.const(rng.integers(-9, 9, (WIDTH, WIDTH)), np.int8), zero)
    g.rename(g.node("Mul", g.node("Cast", sums, to=TensorProto.FLOAT), scale), "y")
    return g.model([("x", TensorProto.FLOAT, [ROWS, WIDTH]), ("pictures", TensorProto.FLOAT, [1, 3, 8, 8])],
                   [("y", TensorProto.FLOAT, [ROWS, WIDTH])])


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(1)
    return {"x": rng.standard_normal((ROWS, WIDTH)).astype(np.float32),
            "pictures": rng.standard_normal((1, 3, 8, 8)).astype(np.float32)}


@pytest.fixture(scope="module")
def usual(module_repository, inputs):
    """Returns the answer of this machine's CPU."""
    module_repository.add("block", block())
    with Daemon(module_repository) as daemon:
        return infer(daemon.client(), "block", inputs).outputs["y"]


@pytest.mark.parametrize("cpu, isa", [("Nehalem", "baseline"), ("Haswell", "avx2")])
def test_a_cpu_with_fewer_instructions_gives_the_same_answers(module_repository, inputs, usual, cpu, isa):
    with Daemon(module_repository, cpu=cpu) as daemon:
        answer = infer(daemon.client(), "block", inputs)
        assert answer.capture == "captured"
        np.testing.assert_allclose(answer.outputs["y"], usual, rtol=1e-3, atol=1e-2)
        assert f"norm_{isa}" in daemon.reprise("dump", "--recipe", answer.recipe)
