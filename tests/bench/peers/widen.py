"""Writes a model again with its constants computed: weights that it stores as int8 become float32.

widen.py MODEL.onnx TO.onnx. Done by onnxruntime's optimizer at the level that keeps to ONNX's own
operators, so that every side can read it.
"""

import os
import pathlib
import sys

import onnxruntime


def main():
    model, to = sys.argv[1:]
    pathlib.Path(to).parent.mkdir(parents=True, exist_ok=True)
    written = to + ".new"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = written
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    os.replace(written, to)


main()
