"""Writes cases of whole models for conformance_runner --models: FOLDER/<case>/model.onnx with
inputs and onnxruntime's answers.

    make_models.py FOLDER [MODEL.onnx ...]

The models are a small BERT in the style of the older torch exporter (opset 11, LayerNorm and GELU
decomposed, softmax along a positive axis, attributes that later became inputs), a model that puts
its steps into sequences, and every file named on the command line.
"""
import os
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SHAPES = [(1, 1), (1, 7), (2, 16), (3, 33)]


class TorchStyle:
    """Collects nodes and weights as the exporter of torch 1.x wrote them."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def node(self, op, inputs, outputs=1, **attributes):
        names = [f"{self.count + i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, f"{op}_{self.count}", **attributes))
        self.count += outputs
        return names[0] if outputs == 1 else names

    def constant(self, value, dtype):
        tensor = numpy_helper.from_array(np.array(value, dtype))
        return self.node("Constant", [], value=tensor)

    def weight(self, name, *shape, scale=0.1, offset=0.0):
        value = (self.random.standard_normal(shape) * scale + offset).astype(np.float32)
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def size(self, value, axis):
        return self.node("Gather", [self.node("Shape", [value]), self.constant(axis, np.int64)],
                         axis=0)

    def shape(self, *parts):
        parts = [p if isinstance(p, str) else self.constant(p, np.int64) for p in parts]
        return self.node("Concat", [self.node("Unsqueeze", [p], axes=[0]) for p in parts], axis=0)

    def linear(self, x, name, k, n):
        product = self.node("MatMul", [x, self.weight(name + ".weight", k, n)])
        return self.node("Add", [product, self.weight(name + ".bias", n)])

    def layer_norm(self, x, name, n):
        mean = self.node("ReduceMean", [x], axes=[-1])
        centred = self.node("Sub", [x, mean])
        square = self.node("Pow", [centred, self.constant(2, np.float32)])
        variance = self.node("ReduceMean", [square], axes=[-1])
        shifted = self.node("Add", [variance, self.constant(1e-12, np.float32)])
        scaled = self.node("Div", [centred, self.node("Sqrt", [shifted])])
        scaled = self.node("Mul", [scaled, self.weight(name + ".gamma", n, offset=1.0)])
        return self.node("Add", [scaled, self.weight(name + ".beta", n)])

    def gelu(self, x):
        erf = self.node("Erf", [self.node("Div", [x, self.constant(2**0.5, np.float32)])])
        product = self.node("Mul", [x, self.node("Add", [erf, self.constant(1, np.float32)])])
        return self.node("Mul", [product, self.constant(0.5, np.float32)])

    def heads(self, x, heads, size, perm):
        shape = self.shape(self.size(x, 0), self.size(x, 1), heads, size)
        return self.node("Transpose", [self.node("Reshape", [x, shape])], perm=perm)

    def attention(self, x, mask, name, hidden, heads):
        size = hidden // heads
        q = self.heads(self.linear(x, name + ".query", hidden, hidden), heads, size, [0, 2, 1, 3])
        k = self.heads(self.linear(x, name + ".key", hidden, hidden), heads, size, [0, 2, 3, 1])
        v = self.heads(self.linear(x, name + ".value", hidden, hidden), heads, size, [0, 2, 1, 3])
        scores = self.node("MatMul", [q, k])
        scores = self.node("Div", [scores, self.constant(size**0.5, np.float32)])
        weights = self.node("Softmax", [self.node("Add", [scores, mask])], axis=3)
        context = self.node("Transpose", [self.node("MatMul", [weights, v])], perm=[0, 2, 1, 3])
        shape = self.shape(self.size(context, 0), self.size(context, 1), hidden)
        return self.linear(self.node("Reshape", [context, shape]), name + ".output", hidden, hidden)

    def mask(self, mask):
        wide = self.node("Unsqueeze", [self.node("Unsqueeze", [mask], axes=[1])], axes=[2])
        wide = self.node("Cast", [wide], to=TensorProto.FLOAT)
        inverse = self.node("Sub", [self.constant(1, np.float32), wide])
        return self.node("Mul", [inverse, self.constant(-10000, np.float32)])

    def embeddings(self, vocabulary, positions, hidden):
        words = self.node("Gather", [self.weight("words", vocabulary, hidden), "input_ids"])
        types = self.node("Gather", [self.weight("types", 2, hidden), "token_type_ids"])
        numbers = numpy_helper.from_array(np.arange(positions, dtype=np.int64)[None], "positions")
        self.weights.append(numbers)
        length = self.node("Unsqueeze", [self.size("input_ids", 1)], axes=[0])
        zero, one = self.constant([0], np.int64), self.constant([1], np.int64)
        ids = self.node("Slice", ["positions", zero, length, one, one])
        places = self.node("Gather", [self.weight("places", positions, hidden), ids])
        return self.node("Add", [self.node("Add", [words, places]), types])


def torch_style_bert(hidden=48, heads=4, layers=2, vocabulary=200):
    b = TorchStyle(3)
    mask = b.mask("attention_mask")
    x = b.layer_norm(b.embeddings(vocabulary, 64, hidden), "embeddings", hidden)
    for i in range(layers):
        attention = b.attention(x, mask, f"layer.{i}.attention", hidden, heads)
        x = b.layer_norm(b.node("Add", [attention, x]), f"layer.{i}.norm1", hidden)
        inner = b.gelu(b.linear(x, f"layer.{i}.inner", hidden, 4 * hidden))
        outer = b.linear(inner, f"layer.{i}.outer", 4 * hidden, hidden)
        x = b.layer_norm(b.node("Add", [outer, x]), f"layer.{i}.norm2", hidden)
    first = b.node("Gather", [x, b.constant(0, np.int64)], axis=1)
    w = b.weight("pooler.weight", hidden, hidden)
    pooled = b.node("Gemm", [first, w, b.weight("pooler.bias", hidden)], alpha=1.0, beta=1.0,
                    transB=1)
    pooled = b.node("Tanh", [pooled])
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
              for name in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [
        helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", "sequence", hidden]),
        helper.make_tensor_value_info(pooled, TensorProto.FLOAT, ["batch", hidden]),
    ]
    graph = helper.make_graph(b.nodes, "torch-jit-export", inputs, outputs, b.weights)
    return helper.make_model(graph, producer_name="pytorch", producer_version="1.7", ir_version=6,
                             opset_imports=[helper.make_opsetid("", 11)])


def lists_of_tensors():
    """Pieces of a sequence of any length, taken from both ends, counted, and put together again."""
    b = TorchStyle(4)
    x = b.node("Cast", ["input_ids"], to=TensorProto.FLOAT)
    at = {number: b.constant(number, np.int64) for number in (-1, 0, 1, 2)}
    five = b.constant(5, np.int64)
    pieces = b.node("SplitToSequence", [x, five], axis=1)
    ends = [b.node("ReduceSum", [b.node("SequenceAt", [pieces, at[place]])], axes=[1])
            for place in (0, -1)]
    count = b.node("Cast", [b.node("SequenceLength", [pieces])], to=TensorProto.FLOAT)
    columns = b.node("SplitToSequence", [x], axis=1, keepdims=0)
    last = b.node("SequenceAt", [columns, at[-1]])
    first = b.node("SequenceAt", [b.node("SplitToSequence", [x], axis=1), at[0]])
    whole = b.node("Neg", [b.node("ConcatFromSequence", [columns], axis=1, new_axis=1)])
    made = b.node("SequenceConstruct", [last, b.node("Neg", [last])])
    made = b.node("SequenceInsert", [made, b.node("Exp", [b.node("Neg", [last])]), at[1]])
    made = b.node("SequenceErase", [made, at[2]])
    stacked = b.node("ConcatFromSequence", [made], axis=-1, new_axis=1)
    sizes = b.constant([1, 1], np.int64)
    halves = b.node("SplitToSequence", [stacked, sizes], axis=-1)
    half = b.node("SequenceAt", [halves, at[1]])
    joined = b.node("ConcatFromSequence", [b.node("SequenceConstruct", ends + [first])], axis=1)
    outputs = [whole, joined, b.node("Mul", [half, count]), b.node("SequenceLength", [made])]
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])]
    infos = [helper.make_tensor_value_info(
        name, TensorProto.INT64 if name == outputs[3] else TensorProto.FLOAT, None)
        for name in outputs]
    graph = helper.make_graph(b.nodes, "lists", inputs, infos, b.weights)
    return helper.make_model(graph, ir_version=6, opset_imports=[helper.make_opsetid("", 11)])


def make_input(random, name, batch, sequence):
    if "mask" in name:
        lengths = random.integers(1, sequence + 1, batch)
        return (np.arange(sequence) < lengths[:, None]).astype(np.int64)
    limit = 2 if "type" in name else 100
    return random.integers(0, limit, (batch, sequence)).astype(np.int64)


def write_case(folder, model_path):
    os.makedirs(folder)
    os.symlink(os.path.abspath(model_path), os.path.join(folder, "model.onnx"))
    session = onnxruntime.InferenceSession(model_path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(1)
    for number, (batch, sequence) in enumerate(SHAPES):
        inputs = {i.name: make_input(random, i.name, batch, sequence) for i in session.get_inputs()}
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data)
        for prefix, tensors in (("input", list(inputs.values())),
                                ("output", session.run(None, inputs))):
            for i, tensor in enumerate(tensors):
                with open(os.path.join(data, f"{prefix}_{i}.pb"), "wb") as file:
                    file.write(numpy_helper.from_array(tensor).SerializeToString())


def main():
    folder, models = sys.argv[1], sys.argv[2:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + ".models", exist_ok=True)
    made = []
    for make in (torch_style_bert, lists_of_tensors):
        made.append(os.path.join(folder + ".models", make.__name__ + ".onnx"))
        onnx.save(make(), made[-1])
    for path in made + models:
        case = os.path.splitext(os.path.basename(path))[0]
        if case == "model":
            case = os.path.basename(os.path.dirname(os.path.abspath(path)))
        write_case(os.path.join(folder, case), path)


if __name__ == "__main__":
    main()
