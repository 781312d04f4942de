"""A small BERT as onnxruntime's quantiser writes it, in every form that it offers.

`write_all(folder)` gives name -> path. The base is float; `static` models are calibrated on random
ids, `dynamic` ones find their ranges in each request. Names that end in `_optimised` are the output of
onnxruntime's graph optimiser for the model: QLinearAdd, QGemm, DynamicQuantizeMatMul and the
like, in the domain com.microsoft.
"""

import logging
import pathlib
import re

import numpy as np
import onnx
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization import QuantFormat, QuantType

from testing import models

TYPES = {"s8": QuantType.QInt8, "u8": QuantType.QUInt8}
VOCABULARY = 200

# On a CPU without an instruction for products of bytes onnxruntime sums two of them in int16, which saturates. Weights
# of seven bits do not.
SEVEN_BITS = not re.search(r"\bavx(512)?_vnni\b", pathlib.Path("/proc/cpuinfo").read_text())


class Calibration(quantization.CalibrationDataReader):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.batches = iter([
            {"input_ids": rng.integers(1, VOCABULARY, (4, 24)),
             "attention_mask": np.ones((4, 24), np.int64)} for _ in range(2)])

    def get_next(self):
        return next(self.batches, None)


def optimise(path, to):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(to)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def dynamic(folder, layers=1):
    """Makes one model of `quantize_dynamic`, whose range covers a whole tensor."""
    base, path = folder / "base.onnx", folder / "dynamic.onnx"
    onnx.save(models.bert(opset=17, layers=layers), base)
    logging.disable(logging.WARNING)
    quantization.quantize_dynamic(base, path, reduce_range=SEVEN_BITS)
    logging.disable(logging.NOTSET)
    return path


def write_all(folder):
    logging.disable(logging.WARNING)  # It advises to pre-process, which changes no arithmetic.
    base = folder / "base.onnx"
    onnx.save(models.bert(opset=17, layers=1), base)
    paths = {}

    def path(name):
        paths[name] = folder / f"{name}.onnx"
        return paths[name]

    for form in (QuantFormat.QDQ, QuantFormat.QOperator):
        for activations, weights in (("u8", "u8"), ("u8", "s8"), ("s8", "s8")):
            for per_channel in (False, True):
                for symmetric in (False, True):
                    name = "_".join([form.name.lower(), activations + weights,
                                     "channel" if per_channel else "tensor",
                                     "symmetric" if symmetric else "asymmetric"])
                    quantization.quantize_static(
                        base, path(name), Calibration(), quant_format=form,
                        activation_type=TYPES[activations], weight_type=TYPES[weights],
                        per_channel=per_channel, reduce_range=SEVEN_BITS,
                        extra_options={"ActivationSymmetric": symmetric,
                                       "WeightSymmetric": symmetric})
    for weights, weight_type in TYPES.items():
        for per_channel in (False, True):
            for reduced in (False, True):
                name = "_".join(["dynamic", weights, "channel" if per_channel else "tensor",
                                 "7bit" if reduced else "8bit"])
                quantization.quantize_dynamic(base, path(name), weight_type=weight_type,
                                              per_channel=per_channel, reduce_range=reduced or SEVEN_BITS)
    for name in ("qdq_u8s8_channel_asymmetric", "qoperator_s8s8_tensor_symmetric",
                 "dynamic_s8_channel_8bit", "dynamic_u8_tensor_8bit"):
        optimise(paths[name], path(f"{name}_optimised"))
    optimise(base, path("float_optimised"))
    quantization.quantize_dynamic(paths["float_optimised"], path("optimised_dynamic"), reduce_range=SEVEN_BITS,
                                  extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    logging.disable(logging.NOTSET)
    return paths
