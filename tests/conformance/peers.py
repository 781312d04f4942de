"""Runs the cases in scope on onnxruntime and OpenVINO, with the bound that ours have.

    conformance_runner --environment VENV --print-cases | peers.py [--failures]
    peers.py [--failures] CASE_FOLDER...

For the table in README.md, by hand: needs onnx, onnxruntime and openvino. Each case runs in a process
of its own, since some end it.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STEPS = {TensorProto.FLOAT16: 2.0**-9, TensorProto.BFLOAT16: 2.0**-6}


def read(folder, prefix):
    tensors = []
    while os.path.exists(path := os.path.join(folder, f"{prefix}_{len(tensors)}.pb")):
        tensor = TensorProto()
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        tensors.append(numpy_helper.to_array(tensor))
    return tensors


def without_bfloat16(model):
    """bfloat16 inputs and outputs as float32 with a Cast, because numpy has no such dtype."""
    graph = model.graph
    initializers = {tensor.name for tensor in graph.initializer}
    for info in graph.input:
        if info.type.tensor_type.elem_type != TensorProto.BFLOAT16 or info.name in initializers:
            continue
        name = info.name
        info.name, info.type.tensor_type.elem_type = f"{name}_f32", TensorProto.FLOAT
        graph.node.insert(0, helper.make_node("Cast", [info.name], [name], to=TensorProto.BFLOAT16))
    for info in graph.output:
        if info.type.tensor_type.elem_type != TensorProto.BFLOAT16:
            continue
        name = info.name
        info.name, info.type.tensor_type.elem_type = f"{name}_f32", TensorProto.FLOAT
        graph.node.append(helper.make_node("Cast", [name], [info.name], to=TensorProto.FLOAT))
    return model


def agree(actual, expected, onnx_type):
    if expected.dtype.kind not in "fV" and expected.dtype.name != "bfloat16":
        return actual.shape == expected.shape and np.array_equal(actual, expected)
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    largest = finite.max() if finite.size else 0.0
    bound = max(1e-3, STEPS.get(onnx_type, 0.0)) * np.abs(b) + 1e-5 * largest
    with np.errstate(invalid="ignore"):
        close = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(b) & (np.abs(a - b) <= bound))
    return a.shape == b.shape and bool(close.all())


def run_onnxruntime(model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda inputs: session.run(None, dict(zip(names, inputs)))


def run_openvino(model):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU",
                                  {"INFERENCE_PRECISION_HINT": "f32"})
    names = [value.name for value in model.graph.input]
    outputs = [value.name for value in model.graph.output]

    def run(inputs):
        result = compiled(dict(zip(names, inputs)))
        return [result[name] for name in outputs]

    return run


def passes(folder, prepare):
    model = onnx.load(os.path.join(folder, "model.onnx"))
    types = [value.type.tensor_type.elem_type for value in model.graph.output]
    run = prepare(without_bfloat16(model))
    number = 0
    while os.path.isdir(data := os.path.join(folder, f"test_data_set_{number}")):
        inputs = [x.astype(np.float32) if x.dtype.name == "bfloat16" else x
                  for x in read(data, "input")]
        actual, expected = run(inputs), read(data, "output")
        if len(actual) != len(expected):
            return False
        if not all(agree(np.asarray(a), b, t) for a, b, t in zip(actual, expected, types)):
            return False
        number += 1
    return number > 0


def passes_apart(folder, prepare):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1), os.dup2(null, 2)
            code = 0 if passes(folder, prepare) else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def main():
    arguments = sys.argv[1:]
    list_failures = "--failures" in arguments
    folders = [a for a in arguments if not a.startswith("--")] or sys.stdin.read().split()
    for name, prepare in (("onnxruntime", run_onnxruntime), ("openvino", run_openvino)):
        failures = [folder for folder in folders if not passes_apart(folder, prepare)]
        print(f"{name}: {len(folders) - len(failures)} of {len(folders)} cases pass")
        if list_failures:
            print("\n".join(f"  {os.path.basename(folder)}" for folder in failures))


if __name__ == "__main__":
    main()
