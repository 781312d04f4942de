"""Makes the models of docs/recompilation.md in a folder: MNIST, a speech encoder, a detector.

    python3 examples/recompilation/make_models.py walk

Their weights are made up: compiles, and their causes, depend on shapes alone. Needs the packages onnx and numpy.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(0)


def weights(name, *shape):
    return numpy_helper.from_array(RNG.normal(0, 0.1, shape).astype(np.float32), name)


def save(path, name, nodes, inputs, outputs, initializers):
    def info(name, dims):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, name, [info(*i) for i in inputs], [info(*o) for o in outputs],
                              initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def mnist(path):
    """784 pixels, two layers, ten digits."""
    nodes = [
        helper.make_node("Gemm", ["pixels", "w1", "b1"], ["h1"], name="/fc1/Gemm"),
        helper.make_node("Relu", ["h1"], ["h2"], name="/act/Relu"),
        helper.make_node("Gemm", ["h2", "w2", "b2"], ["digits"], name="/fc2/Gemm"),
    ]
    save(path, "mnist", nodes, [("pixels", ["batch", 784])], [("digits", ["batch", 10])],
         [weights("w1", 784, 128), weights("b1", 128), weights("w2", 128, 10), weights("b2", 10)])


def speech(path):
    """Features of sounds of any length, around their mean: it divides by the length itself."""
    nodes = [
        helper.make_node("ReduceSum", ["sound", "time"], ["sum"], keepdims=1, name="/norm/ReduceSum"),
        helper.make_node("Shape", ["sound"], ["sizes"], name="/norm/Shape"),
        helper.make_node("Gather", ["sizes", "time"], ["samples"], name="/norm/Gather"),
        helper.make_node("Cast", ["samples"], ["count"], to=TensorProto.FLOAT, name="/norm/Cast"),
        helper.make_node("Div", ["sum", "count"], ["mean"], name="/norm/Div"),
        helper.make_node("Sub", ["sound", "mean"], ["centred"], name="/norm/Sub"),
        helper.make_node("Conv", ["centred", "w"], ["frames"], strides=[5], name="/encoder/conv/Conv"),
        helper.make_node("Tanh", ["frames"], ["features"], name="/encoder/act/Tanh"),
    ]
    save(path, "speech", nodes, [("sound", ["batch", 1, "samples"])],
         [("features", ["batch", 8, "frames"])],
         [weights("w", 8, 1, 10), numpy_helper.from_array(np.array([2], np.int64), "time")])


def detector(path):
    """Makes the sum of the scores above zero: which these are, data decide."""
    zero = numpy_helper.from_array(np.array(0, np.float32), "zero")
    nodes = [
        helper.make_node("MatMul", ["boxes", "w"], ["scores"], name="/head/MatMul"),
        helper.make_node("Greater", ["scores", "zero"], ["found"], name="/select/Greater"),
        helper.make_node("NonZero", ["found"], ["where"], name="/select/NonZero"),
        helper.make_node("Transpose", ["where"], ["places"], perm=[1, 0], name="/select/Transpose"),
        helper.make_node("GatherND", ["scores", "places"], ["kept"], name="/select/GatherND"),
        helper.make_node("ReduceSum", ["kept"], ["total"], keepdims=0, name="/select/ReduceSum"),
    ]
    save(path, "detector", nodes, [("boxes", ["boxes", 4])], [("total", [])],
         [weights("w", 4, 3), zero])


def main(folder):
    folder = pathlib.Path(folder)
    for make in (mnist, speech, detector):
        make(folder / f"{make.__name__}.onnx")
    # Two repositories with MNIST: as a graph of fixed shapes would serve it, and as Reprise does.
    mnist(folder / "exact/mnist/1/model.onnx")
    mnist(folder / "buckets/mnist/1/model.onnx")
    (folder / "exact/mnist/config.pbtxt").write_text(
        'parameters { key: "reprise.padding.batch" value { string_value: "off" } }\n')
    speech(folder / "buckets/speech/1/model.onnx")


if __name__ == "__main__":
    main(sys.argv[1])
