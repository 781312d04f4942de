"""Detectors and classifiers made by hand, in the forms that exporters of YOLO and DETR write.

They look at cells of 8 x 8 pixels: a cell that is red, or blue, is an object of 16 x 16 pixels around its middle.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CELL, BOX = 8, 16
LABELS = ["red", "blue"]


def _model(nodes, inputs, outputs, constants, names=None):
    graph = helper.make_graph(nodes, "made", inputs, outputs,
                              [numpy_helper.from_array(np.asarray(value), name)
                               for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if names:
        helper.set_model_props(model, {"names": str(dict(enumerate(names))), "task": "detect"})
    onnx.checker.check_model(model)
    return model


def _cells(nodes, source, side):
    """Makes the mean of red and of blue over the others in each cell: [batch, 2, cells]."""
    nodes += [helper.make_node("AveragePool", [source], ["pooled"], kernel_shape=[CELL, CELL], strides=[CELL, CELL]),
              helper.make_node("Reshape", ["pooled", "as_cells"], ["cells"]),
              helper.make_node("Gather", ["cells", "red_blue"], ["chosen"], axis=1),
              helper.make_node("Gather", ["cells", "blue_red"], ["others"], axis=1),
              helper.make_node("Sub", ["chosen", "others"], ["raw_scores"]),
              helper.make_node("Clip", ["raw_scores", "zero", "one"], ["scores"])]
    return {"as_cells": np.array([0, 3, -1], np.int64), "red_blue": np.array([0, 2], np.int64),
            "blue_red": np.array([2, 0], np.int64), "zero": np.float32(0), "one": np.float32(1)}


def _boxes(side):
    """Centre, size of each cell's object, [4, cells]."""
    middles = np.arange(CELL / 2, side, CELL, dtype=np.float32)
    y, x = np.meshgrid(middles, middles, indexing="ij")
    size = np.full(x.size, BOX, np.float32)
    return np.stack([x.ravel(), y.ravel(), size, size])


def yolo(version, side=64, names=LABELS, batch="batch"):
    """v8: output0 [batch, 4 + 2, cells]; v5: output0 [batch, cells, 5 + 2]."""
    nodes, cells = [], (side // CELL) ** 2
    constants = _cells(nodes, "images", side)
    nodes += [helper.make_node("Mul", ["scores", "zero"], ["nothing"]),
              helper.make_node("ReduceMax", ["nothing"], ["none"], axes=[1], keepdims=1),
              helper.make_node("Add", ["none", "boxes"], ["all_boxes"])]
    constants["boxes"] = _boxes(side)[None]
    if version == 8:
        nodes.append(helper.make_node("Concat", ["all_boxes", "scores"], ["output0"], axis=1))
        shape = [batch, 4 + len(LABELS), cells]
    else:
        nodes += [helper.make_node("Add", ["none", "one"], ["objectness"]),
                  helper.make_node("Concat", ["all_boxes", "objectness", "scores"], ["columns"], axis=1),
                  helper.make_node("Transpose", ["columns"], ["output0"], perm=[0, 2, 1])]
        shape = [batch, cells, 5 + len(LABELS)]
    return _model(nodes, [helper.make_tensor_value_info("images", TensorProto.FLOAT, [batch, 3, side, side])],
                  [helper.make_tensor_value_info("output0", TensorProto.FLOAT, shape)], constants, names)


def detr(side=64):
    """logits [batch, cells, 2 + 1] and pred_boxes [batch, cells, 4], parts of the picture."""
    nodes, cells = [], (side // CELL) ** 2
    constants = _cells(nodes, "pixel_values", side)
    nodes += [helper.make_node("Mul", ["scores", "twenty"], ["sure"]),
              helper.make_node("Mul", ["scores", "zero"], ["nothing"]),
              helper.make_node("ReduceMax", ["nothing"], ["none"], axes=[1], keepdims=1),
              helper.make_node("Add", ["none", "ten"], ["no_object"]),
              helper.make_node("Concat", ["sure", "no_object"], ["columns"], axis=1),
              helper.make_node("Transpose", ["columns"], ["logits"], perm=[0, 2, 1]),
              helper.make_node("Add", ["none", "boxes"], ["all_boxes"]),
              helper.make_node("Transpose", ["all_boxes"], ["pred_boxes"], perm=[0, 2, 1])]
    constants |= {"twenty": np.float32(20), "ten": np.float32(10), "boxes": _boxes(side)[None] / side}
    value = helper.make_tensor_value_info
    return _model(nodes, [value("pixel_values", TensorProto.FLOAT, ["batch", 3, side, side])],
                  [value("logits", TensorProto.FLOAT, ["batch", cells, 3]),
                   value("pred_boxes", TensorProto.FLOAT, ["batch", cells, 4])], constants)


def classifier(side="height", width="width"):
    """logits [batch, 3]: ten times the mean of each channel."""
    nodes = [helper.make_node("GlobalAveragePool", ["pixel_values"], ["means"]),
             helper.make_node("Flatten", ["means"], ["flat"], axis=1),
             helper.make_node("Mul", ["flat", "ten"], ["logits"])]
    return _model(nodes, [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["batch", 3, side, width])],
                  [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
                  {"ten": np.float32(10)})
