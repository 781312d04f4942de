"""Infinity, NaN and the ends of types, where ONNX leaves it open as onnxruntime has them."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

from testing.daemon import Daemon
from testing.inference import infer

INF, NAN = np.inf, np.nan
EDGES = np.array([[INF, -INF, NAN, 3e38, -3e38, 0., -0., 1e-40, 127.5, -128.5, 255.5, 2147483648.,
                   -2147483649., 9.3e18, -9.3e18, 0.5, 1.5, 2.5, -0.5, 65519.]], np.float32)
FLOAT = TensorProto.FLOAT
TYPES = ["FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64", "UINT32",
         "UINT64", "BOOL", "DOUBLE"]
BY_ELEMENT = ["Sign", "Erf", "Tanh", "Sigmoid", "Softplus", "HardSwish", "Mish", "Round", "Ceil",
              "Relu", "Softmax", "LogSoftmax", "Exp", "Log", "Sqrt", "Reciprocal"]


def case(nodes, constants=(), inputs=None, opset=20):
    inputs = inputs or {"x": EDGES}
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype),
                                       value.shape) for name, value in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(np.array(value), name) for name, value in constants])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), inputs


def made():
    node = helper.make_node
    cases = {f"gelu_{how}": case([node("Gelu", ["x"], ["y"], approximate=how)])
             for how in ["none", "tanh"]}
    for op in ["Gelu", "FastGelu", "QuickGelu"]:
        cases[f"ms_{op.lower()}"] = case([node(op, ["x"], ["y"], domain="com.microsoft")])
    for op in BY_ELEMENT:
        cases[op.lower()] = case([node(op, ["x"], ["y"])])
    for name in TYPES:
        to = getattr(TensorProto, name)
        cases[f"cast_{name.lower()}"] = case(
            [node("Cast", ["x"], ["c"], to=to), node("Cast", ["c"], ["y"], to=FLOAT)])
    for dtype in [np.uint8, np.int8]:
        cases[f"quantize_{dtype.__name__}"] = case(
            [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["y"])],
            [("s", np.float32(.5)), ("z", dtype(3))])
    norm = [node("LayerNormalization", ["x", "s"], ["y"])]
    ones = [("s", np.ones(20, np.float32))]
    cases["layer_norm"] = case(norm, ones)
    large = (np.arange(20)[None] * 1e18).astype(np.float32)
    cases["layer_norm_large"] = case(norm, ones, {"x": large})
    cases["pad"] = case([node("Pad", ["x", "p", "c"], ["y"])],
                        [("p", np.array([0, 2, 0, 3])), ("c", np.float32(-INF))])
    for mode in ["edge", "reflect"]:
        cases[f"pad_{mode}"] = case([node("Pad", ["x", "p"], ["y"], mode=mode)],
                                    [("p", np.array([0, 2, 0, 3]))])
    cases["clip"] = case([node("Clip", ["x", "low", "high"], ["y"])],
                         [("low", np.float32(-1)), ("high", np.float32(1))])
    cases["clip_open_half"] = case([node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
                                    node("Clip", ["h"], ["c"]), node("Cast", ["c"], ["y"], to=FLOAT)])
    sums = {"x": np.array([[-3, 1], [2, 5], [-7, 7]], np.int64)}
    cases["log_of_integers"] = case([node("ReduceLogSum", ["x", "axes"], ["r"]),
                                     node("Cast", ["r"], ["y"], to=FLOAT)],
                                    [("axes", np.array([1]))], sums)
    pixels = np.arange(70, dtype=np.float32).reshape(1, 2, 5, 7)
    for mode in ["round_prefer_floor", "round_prefer_ceil"]:
        cases[f"resize_symmetric_{mode}"] = case(
            [node("Resize", ["x", "", "by"], ["y"], nearest_mode=mode,
                  coordinate_transformation_mode="half_pixel_symmetric")],
            [("by", np.array([1, 1, .6, 1.7], np.float32))], {"x": pixels})
    for by in [[1, 1, .5, .6], [1, 1, .9, .3], [1, 1, .5, 2], [1, 1, 1.5, 1.3]]:
        cases[f"resize_10_{by[2]}_{by[3]}"] = case([node("Resize", ["x", "by"], ["y"])],
                                                   [("by", np.array(by, np.float32))], {"x": pixels}, 10)
    ties = np.array([-1, 1, 0, .5, -1.5, 1.25, -1e-8, 1 + 1e-6, 2, 3, 5, -7.3, 11.1, -99], np.float32)
    grid = np.stack(np.meshgrid(ties, ties), -1)[None]
    for padding in ["zeros", "border", "reflection"]:
        for align in [0, 1]:
            cases[f"grid_ties_{padding}_{align}"] = case(
                [node("GridSample", ["x", "g"], ["y"], mode="nearest", padding_mode=padding,
                      align_corners=align)], inputs={"x": pixels[..., :4, :5].copy(), "g": grid})
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    cases["gather_below_zero"] = case([node("Gather", ["t", "i"], ["y"])], [("t", table)],
                                      {"i": np.array([-1, -4, 0])})
    cases["one_hot"] = case([node("OneHot", ["i", "d", "v"], ["y"])],
                            [("d", np.array(4)), ("v", np.array([0, 1], np.float32))],
                            {"i": np.array([-1, -4, -5, 9])})
    return cases


CASES = made()


@pytest.fixture(scope="module")
def daemon(module_repository):
    for name, (model, _) in CASES.items():
        module_repository.add(name, model)
    with Daemon(module_repository) as running:
        yield running


@pytest.mark.parametrize("name", CASES)
def test_edges_are_answered_as_onnxruntime_answers_them(daemon, name):
    model, inputs = CASES[name]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    want = session.run(None, inputs)[0]
    got = infer(daemon.client(), name, inputs).outputs["y"]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_an_output_without_a_declared_type_has_that_of_its_node(repository):
    graph = helper.make_graph(
        [helper.make_node("Range", ["zero", "n", "one"], ["y"])], "g",
        [helper.make_tensor_value_info("n", TensorProto.INT32, [])], [ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.array(i, np.int32), name) for i, name in enumerate(["zero", "one"])])
    repository.add("range", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    with Daemon(repository) as daemon:
        client = daemon.client()
        assert client.get_model_metadata("range").outputs[0].datatype == "INT32"
        answer = infer(client, "range", {"n": np.array(3, np.int32)}).outputs["y"]
        assert answer.dtype == np.int32 and answer.tolist() == [0, 1, 2]


def grid_sample(mode, padding):
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=padding)
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    return case([node], inputs={"x": image, "g": np.array([[[[INF, 0], [-INF, 1]]]], np.float32)})


# onnxruntime turns infinity into an integer, which is nothing that C++ defines; here it lies beyond
# the border, where zeros are, or the border's own values.
@pytest.mark.parametrize("mode, padding, want", [
    ("linear", "zeros", [0, 0]), ("nearest", "zeros", [0, 0]), ("cubic", "zeros", [0, 0]),
    ("linear", "border", [9, 12]), ("cubic", "border", [9, 12.375])])
def test_infinite_place_of_a_grid_lies_beyond_the_border(repository, mode, padding, want):
    model, inputs = grid_sample(mode, padding)
    repository.add("grid", model)
    with Daemon(repository) as daemon:
        assert infer(daemon.client(), "grid", inputs).outputs["y"].ravel().tolist() == want
