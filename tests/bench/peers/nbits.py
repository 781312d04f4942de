"""Products with weights become MatMulNBits: numbers of four bits, a factor for each block of them.

The same form as onnxruntime's and Hugging Face's tools write: symmetric, blocks of 32 along k.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

BITS, BLOCK = 4, 32


def pack(weights):
    """[k, n] floats as the numbers [n, blocks, bytes] and the scales [n * blocks]."""
    k, n = weights.shape
    blocks = -(-k // BLOCK)
    padded = np.zeros((n, blocks * BLOCK), np.float32)
    padded[:, :k] = weights.T
    padded = padded.reshape(n, blocks, BLOCK)
    at = np.abs(padded).argmax(axis=2, keepdims=True)
    scales = np.take_along_axis(padded, at, 2) / -8  # the largest becomes -8
    inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales != 0)
    numbers = np.clip(np.rint(padded * inverse) + 8, 0, 15).astype(np.uint8)
    return numbers[..., 0::2] | numbers[..., 1::2] << 4, scales.reshape(-1)


def quantize(model, accuracy_level=0):
    """`model` with every product by a matrix of weights in this form."""
    weights = {w.name: w for w in model.graph.initializer}
    replaced = set()
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in weights:
            continue
        matrix = numpy_helper.to_array(weights[node.input[1]])
        if matrix.ndim != 2 or matrix.dtype != np.float32:
            continue
        k, n = matrix.shape
        name = node.input[1]
        if name not in replaced:
            numbers, scales = pack(matrix)
            model.graph.initializer.append(numpy_helper.from_array(numbers, name + "_q4"))
            model.graph.initializer.append(numpy_helper.from_array(scales, name + "_scales"))
            replaced.add(name)
        made = helper.make_node(
            "MatMulNBits", [node.input[0], name + "_q4", name + "_scales"], node.output, node.name,
            domain="com.microsoft", K=k, N=n, bits=BITS, block_size=BLOCK,
            accuracy_level=accuracy_level)
        node.CopyFrom(made)
    used = {name for node in model.graph.node for name in node.input}
    kept = [w for w in model.graph.initializer if w.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    if all(opset.domain != "com.microsoft" for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model
