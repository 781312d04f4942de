"""Models that keep state between requests, and the config.pbtxt that says so."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, I32, I64, U64, BOOL = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64,
                            TensorProto.UINT64, TensorProto.BOOL)
STRING = TensorProto.STRING


def model(nodes, inputs, outputs, weights=(), opset=17):
    def values(infos):
        return [helper.make_tensor_value_info(*info) for info in infos]
    graph = helper.make_graph(nodes, "stateful", values(inputs), values(outputs),
                              [numpy_helper.from_array(array, name) for name, array in weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def totals():
    """y and total_out are the sum of all x so far."""
    return model([helper.make_node("Add", ["x", "total"], ["total_out"]),
                  helper.make_node("Identity", ["total_out"], ["y"])],
                 [("x", F32, ["batch", 4]), ("total", F32, ["batch", 4])],
                 [("y", F32, ["batch", 4]), ("total_out", F32, ["batch", 4])])


def state(name, output, dims, initial="", dtype="TYPE_FP32"):
    return (f'state [ {{ input_name: "{name}" output_name: "{output}" data_type: {dtype} '
            f'dims: [ {", ".join(map(str, dims))} ] {initial} }} ]')


def totals_config(more="", batching="", initial=""):
    return (f"max_batch_size: 8\nsequence_batching {{ {batching} "
            f"{state('total', 'total_out', [4], initial)} }}\n{more}")


CONTROLS = {
    "START": (I32, 'kind: CONTROL_SEQUENCE_START int32_false_true: [ 10, 11 ]'),
    "END": (F32, 'kind: CONTROL_SEQUENCE_END fp32_false_true: [ -1, 2.5 ]'),
    "READY": (BOOL, 'kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ]'),
    "CORRID": (U64, 'kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64'),
}


def controls():
    """flags [batch, 4]: the controls as the model sees them."""
    nodes = [helper.make_node("Cast", [name], [f"{name}_f"], to=F32) for name in CONTROLS]
    nodes.append(helper.make_node("Concat", [f"{name}_f" for name in CONTROLS], ["all"], axis=1))
    nodes.append(helper.make_node("Add", ["all", "x"], ["flags"]))
    return model(nodes, [("x", F32, ["batch", 1])] +
                 [(name, dtype, ["batch", 1]) for name, (dtype, _) in CONTROLS.items()],
                 [("flags", F32, ["batch", 4])])


def controls_config():
    inputs = ", ".join(f'{{ name: "{name}" control [ {{ {text} }} ] }}'
                       for name, (_, text) in CONTROLS.items())
    return f"max_batch_size: 8\nsequence_batching {{ control_input [ {inputs} ] }}\n"


def named():
    """Makes y = -x, with the text that names the sequence as the output `who`."""
    return model([helper.make_node("Identity", ["CORRID"], ["who"]),
                  helper.make_node("Neg", ["x"], ["y"])],
                 [("CORRID", STRING, ["batch", 1]), ("x", F32, ["batch", 1])],
                 [("who", STRING, ["batch", 1]), ("y", F32, ["batch", 1])])


NAMED_CONFIG = ('sequence_batching { control_input [ { name: "CORRID" control [ { kind: '
                'CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } ] } ] }\n')


def recurrent(width=8, hidden=16, seed=3):
    """Makes a GRU over x [batch, time, width] that goes on where the last request ended."""
    rng = np.random.default_rng(seed)

    def weight(*shape):
        return rng.normal(0, 0.4, shape).astype(np.float32)
    nodes = [
        helper.make_node("Transpose", ["x"], ["x_t"], perm=[1, 0, 2]),
        helper.make_node("Unsqueeze", ["h", "zero"], ["h_0"]),
        helper.make_node("GRU", ["x_t", "w", "r", "b", "", "h_0"], ["y_t", "h_n"],
                         hidden_size=hidden, linear_before_reset=1),
        helper.make_node("Squeeze", ["y_t", "one"], ["y_s"]),
        helper.make_node("Transpose", ["y_s"], ["y"], perm=[1, 0, 2]),
        helper.make_node("Squeeze", ["h_n", "zero"], ["h_out"]),
    ]
    weights = [("w", weight(1, 3 * hidden, width)), ("r", weight(1, 3 * hidden, hidden)),
               ("b", weight(1, 6 * hidden)), ("zero", np.array([0])), ("one", np.array([1]))]
    return model(nodes, [("x", F32, ["batch", "time", width]), ("h", F32, ["batch", hidden])],
                 [("y", F32, ["batch", "time", hidden]), ("h_out", F32, ["batch", hidden])],
                 weights)


RECURRENT_CONFIG = f"sequence_batching {{ {state('h', 'h_out', [-1, 16])} }}\n"


def growing():
    """Makes a state that is all of the requests so far; y is its mean."""
    return model([helper.make_node("Concat", ["past", "x"], ["present"], axis=1),
                  helper.make_node("ReduceMean", ["present"], ["y"], axes=[1], keepdims=0)],
                 [("x", F32, ["batch", "new", 4]), ("past", F32, ["batch", "seen", 4])],
                 [("y", F32, ["batch", 4]), ("present", F32, ["batch", "all", 4])])


GROWING_CONFIG = ("sequence_batching { " + state(
    "past", "present", [-1, -1, 4],
    'initial_state [ { data_type: TYPE_FP32 dims: [ 0, 4 ] zero_data: true name: "none" } ]') +
    " }\n")
