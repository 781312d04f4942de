"""Writes a model with float32 weights again as users quantise it, by onnxruntime's own tools.

quantize.py MODEL.onnx TO.onnx FORM, where FORM is `dynamic` (the range of activations is found at
each call), `qdq` or `qoperator` (fixed ranges, as pairs of nodes or as ops of their own; of products
alone), `qdq-all` (of every op), `float16`, or `int4` and `int4-int8` (MatMulNBits, nbits.py; the
second lets onnxruntime round activations to int8).
"""

import os
import pathlib
import sys

import numpy as np
import onnx
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                      quantize_dynamic, quantize_static)

import nbits


class Sentences(CalibrationDataReader):
    """The inputs by which ranges are found: ids of tokens, all of which count."""

    def __init__(self, model):
        random = np.random.default_rng(0)
        names = [value.name for value in model.graph.input]
        self._feeds = iter([
            {name: random.integers(1000, 30000, (1, length)) if "ids" in name and "type" not in name
             else np.full((1, length), int("mask" in name)) for name in names}
            for length in (16, 32, 64)])

    def get_next(self):
        return next(self._feeds, None)


def main():
    source, to, form = sys.argv[1:]
    pathlib.Path(to).parent.mkdir(parents=True, exist_ok=True)
    written = to + ".new"
    if form == "dynamic":
        quantize_dynamic(source, written, weight_type=QuantType.QInt8)
    elif form in ("qdq", "qdq-all", "qoperator"):
        quantize_static(
            source, written, Sentences(onnx.load(source)), weight_type=QuantType.QInt8,
            quant_format=QuantFormat.QOperator if form == "qoperator" else QuantFormat.QDQ,
            op_types_to_quantize=None if form == "qdq-all" else ["MatMul"])
    elif form == "float16":
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), written)
    elif form in ("int4", "int4-int8"):
        level = 4 if form == "int4-int8" else 0
        onnx.save(nbits.quantize(onnx.load(source), accuracy_level=level), written)
    else:
        sys.exit(f"quantize.py: there is no form '{form}', only dynamic, qdq, qdq-all, qoperator, "
                 "float16, int4, int4-int8")
    os.replace(written, to)


main()
