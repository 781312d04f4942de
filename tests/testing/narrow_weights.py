"""The weights of a model's products in forms that take fewer bytes, as quantisers write them.

`narrow(model, form)` changes each MatMul by an initializer of two dims: `int8` (DequantizeLinear, a scale for each
column), `half` (a Cast of float16), `blocks` (MatMulNBits, four bits, a scale for each 32 of a column).
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FORMS = ("int8", "half", "blocks")
BLOCK = 32


def _int8(name, weights):
    scales = np.abs(weights).max(0).astype(np.float32) / 127
    numbers = np.clip(np.round(weights / scales), -127, 127).astype(np.int8)
    tensors = [numpy_helper.from_array(numbers, f"{name}.int8"), numpy_helper.from_array(scales, f"{name}.scales")]
    node = helper.make_node("DequantizeLinear", [f"{name}.int8", f"{name}.scales"], [f"{name}.wide"], axis=1)
    return tensors, [node]


def _half(name, weights):
    tensors = [numpy_helper.from_array(weights.astype(np.float16), f"{name}.half")]
    return tensors, [helper.make_node("Cast", [f"{name}.half"], [f"{name}.wide"], to=TensorProto.FLOAT)]


def _blocks(node, weights):
    """MatMulNBits in place of the product."""
    depth, columns = weights.shape
    blocks = weights.T.reshape(columns, depth // BLOCK, BLOCK)
    scales = np.maximum(np.abs(blocks).max(2), 1e-6).astype(np.float32) / 7
    numbers = np.clip(np.round(blocks / scales[..., None]) + 8, 0, 15).astype(np.uint8)
    packed = numbers[..., 0::2] | numbers[..., 1::2] << 4
    name = node.input[1]
    tensors = [numpy_helper.from_array(packed, f"{name}.blocks"),
               numpy_helper.from_array(scales.reshape(-1), f"{name}.scales")]
    product = helper.make_node("MatMulNBits", [node.input[0], *(one.name for one in tensors)], node.output,
                               name=node.name, domain="com.microsoft", K=depth, N=columns, bits=4, block_size=BLOCK)
    return tensors, product


def narrow(model, form):
    graph = model.graph
    weights = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    nodes, tensors, made = [], [], set()
    for node in graph.node:
        matrix = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if matrix is None or matrix.ndim != 2 or matrix.dtype != np.float32:
            nodes.append(node)
            continue
        name = node.input[1]
        if form == "blocks":
            added, product = _blocks(node, matrix)
            nodes.append(product)
        else:
            added, widening = (_int8 if form == "int8" else _half)(name, matrix)
            nodes += [] if name in made else widening
            node.input[1] = f"{name}.wide"
            nodes.append(node)
        tensors += [] if name in made else added
        made.add(name)
    kept = [one for one in graph.initializer if one.name not in made]
    graph.ClearField("node")
    graph.node.extend(nodes)
    graph.ClearField("initializer")
    graph.initializer.extend([*kept, *tensors])
    return model
