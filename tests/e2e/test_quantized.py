"""Models of onnxruntime's quantiser get its answers: the arithmetic that the ops name.

The oracle is onnxruntime without its extended optimisations: at that level it replaces the
arithmetic of QDQ models by another (up to two thirds of the elements move by a quantum or more).
Where a value within the model falls between two quanta the two can round it differently, and all
elements that are made of it move: at most one row (a token's, a sentence's) in 1,000, by a quantum
or two.

Rows are longer than one token: where the scale is 1 / 256, onnxruntime's QLinearSoftmax wraps a share
of 1 to 0.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from testing import quantized
from testing.daemon import Daemon
from testing.inference import infer, text_inputs

SHAPES = [(1, 7), (3, 16), (8, 24)]


def quanta(path):
    """output -> the step of its values, 0 for one that is not quantised on its way out."""
    graph = onnx.load(path).graph
    producers = {output: node for node in graph.node for output in node.output}
    constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    steps = {}
    for output in graph.output:
        node = producers[output.name]
        while node.op_type == "Identity":
            node = producers[node.input[0]]
        scale = constants.get(node.input[1]) if node.op_type == "DequantizeLinear" else None
        steps[output.name] = 0.0 if scale is None else float(scale)
    return steps


@pytest.fixture(scope="module")
def served(module_repository, tmp_path_factory):
    paths = quantized.write_all(tmp_path_factory.mktemp("quantized"))
    for name, path in paths.items():
        module_repository.add(name, path)
    with Daemon(module_repository) as daemon:
        yield daemon, paths


def test_every_form_has_the_answers_of_its_arithmetic(served, rng):
    daemon, paths = served
    client = daemon.client()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    inputs = [text_inputs(["input_ids", "attention_mask"], *shape, rng, quantized.VOCABULARY)
              for shape in SHAPES]
    wrong, rows, moved = [], 0, 0
    for name, path in paths.items():
        session = onnxruntime.InferenceSession(str(path), options,
                                               providers=["CPUExecutionProvider"])
        steps = quanta(path)
        far = of = 0
        for (batch, length), values in zip(SHAPES, inputs):
            answers = infer(client, name, values).outputs
            for output, expected in zip(session.get_outputs(), session.run(None, values)):
                bound = 1e-4 + 1e-4 * np.abs(expected)
                error = np.abs(answers[output.name] - expected)
                rows += error[..., 0].size
                moved += int((error > bound).any(axis=-1).sum())
                far += int((error > bound + 2 * steps[output.name]).any(axis=-1).sum())
                of += error[..., 0].size
        # A value that rounds to the next step moves all that is made of it, of few rows. (Without VNNI floats are
        # summed in another order than onnxruntime's.)
        if far > (0.05 if quantized.SEVEN_BITS else 0) * of:
            wrong.append(f"{name}: {far} of {of} rows are off by more than two steps")
    print(f"{moved} of {rows} rows moved")
    assert not wrong, "\n".join(wrong)
    assert moved <= (0.003 if quantized.SEVEN_BITS else 0.001) * rows, f"{moved} of {rows} rows moved"
