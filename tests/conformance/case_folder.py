"""Writes a case as ONNX's own suite lays it out: the model, and its inputs and outputs as tensors."""

import os

import numpy as np
from onnx import numpy_helper


def write(folder, model, inputs, outputs):
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    for prefix, tensors in (("input", inputs), ("output", outputs)):
        for i, tensor in enumerate(tensors):
            with open(os.path.join(data, f"{prefix}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(np.asarray(tensor)).SerializeToString())
