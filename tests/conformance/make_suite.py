"""Writes the backend cases of the onnx package that PYTHONPATH names, for conformance_runner --suite.

    make_suite.py FOLDER

Newer onnx packages have no files for their node cases: they build them in memory. They go to
FOLDER/node; the cases that are files (simple, pytorch-converted, pytorch-operator) are linked
beside them. A folder that the same package wrote before stays as it is.
"""
import hashlib
import os
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test import loader

KINDS = ["simple", "pytorch-converted", "pytorch-operator"]  # `real` needs downloads


def write_tensors(folder, prefix, values):
    for i, value in enumerate(values):
        if isinstance(value, list) or value is None:
            continue  # A sequence or an optional: out of scope, which the model already says.
        proto = value if isinstance(value, TensorProto) else numpy_helper.from_array(
            np.asarray(value))
        with open(os.path.join(folder, f"{prefix}_{i}.pb"), "wb") as file:
            file.write(proto.SerializeToString())


def write_case(folder, case):
    os.makedirs(folder)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data)
        write_tensors(data, "input", inputs)
        write_tensors(data, "output", outputs)


def main():
    folder = os.path.abspath(sys.argv[1])
    with open(__file__, "rb") as file:
        stamp = f"{onnx.__version__} {hashlib.sha256(file.read()).hexdigest()}\n"
    stamp_path = os.path.join(folder, "stamp")
    if os.path.exists(stamp_path):
        with open(stamp_path, encoding="utf-8") as file:
            if file.read() == stamp:
                return
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    warnings.simplefilter("ignore")  # Some cases divide by zero on purpose.
    for case in loader.load_node_model_tests():
        write_case(os.path.join(folder, "node", case.name), case)
    for kind in KINDS:
        os.symlink(os.path.join(loader.DATA_DIR, kind), os.path.join(folder, kind))
    with open(stamp_path, "w", encoding="utf-8") as file:
        file.write(stamp)


if __name__ == "__main__":
    main()
