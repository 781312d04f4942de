"""Writes a case for every op and dtype that onnxruntime runs, with its answers.

    make_grid.py FOLDER

A case is a model of several nodes of one op and dtype, over random shapes: scalars, dims of size 0 and
1, operands that broadcast. Which pairs exist is found by trying them: pairs that onnxruntime has no kernel
for are left out.
"""
import os
import shutil
import sys

import numpy as np
import onnxruntime
from onnx import ValueInfoProto, helper

import case_folder

RANDOM = np.random.default_rng(29)
EXPECTED = 766  # pairs that onnxruntime 1.31 runs
FLOATS = ["float32", "float64", "float16"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
DTYPES = FLOATS + SIGNED + UNSIGNED + ["bool"]
SHAPES = [(), (5,), (3, 4), (2, 0, 3), (2, 1, 3, 2)]
PAIRS = [((), ()), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((), (2, 3))]


def draw(dtype, shape, low=-4, high=5):
    if dtype == "bool":
        return RANDOM.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return np.asarray(RANDOM.uniform(low, high, shape)).astype(dtype)
    return RANDOM.integers(0 if dtype in UNSIGNED else low, high, shape).astype(dtype)


def longs(*values):
    return np.array(values, np.int64)


def unary(low=-4, high=5, **attributes):
    return lambda dtype: [([draw(dtype, shape, low, high)], attributes) for shape in SHAPES]


def binary(low=-4, high=5, **attributes):
    def nodes(dtype):
        for a, b in PAIRS:
            second = draw(dtype, b, low, high)
            yield [draw(dtype, a, low, high), second], attributes
    return nodes


def divided(**attributes):
    """Divisors that are not zero."""
    return lambda dtype: [([draw(dtype, a), draw(dtype, b, 1, 5)], attributes) for a, b in PAIRS]


def many(dtype):
    for a, b in PAIRS:
        yield [draw(dtype, a, 1), draw(dtype, b, 1), draw(dtype, b, 1)], {}


def reduction(dtype):
    for keep in (0, 1):
        yield [draw(dtype, (2, 3, 4), 1, 5), longs(1)], {"keepdims": keep}
        yield [draw(dtype, (2, 3, 4), 1, 5), longs(0, -1)], {"keepdims": keep}
        yield [draw(dtype, (2, 3), 1, 5)], {"keepdims": keep}
    yield [draw(dtype, (3,), 1, 5), np.array([], np.int64)], {"noop_with_empty_axes": 1}


def reduction_of_floats(dtype):
    """Opset 28 took integers away from these two: nothing says how they round."""
    return reduction(dtype) if dtype in FLOATS else []


def arg(dtype):
    for axis in (0, -1):
        for last in (0, 1):
            yield [draw(dtype, (3, 5))], {"axis": axis, "select_last_index": last, "keepdims": last}


def gather(dtype):
    yield [draw(dtype, (4, 3)), longs(0, -1, 2)], {"axis": 0}
    yield [draw(dtype, (4, 3)), np.array(1, np.int32)], {"axis": 1}
    yield [draw(dtype, (4, 3)), np.zeros((0, 2), np.int64)], {"axis": 0}


def gather_elements(dtype):
    yield [draw(dtype, (3, 4)), RANDOM.integers(-3, 3, (2, 4))], {"axis": 0}


def gather_nd(dtype):
    yield [draw(dtype, (3, 4, 2)), longs(0, 1, 2, 3).reshape(2, 2)], {}


def scatter_elements(dtype):
    yield [draw(dtype, (3, 4)), longs(2, 0, 1, 1).reshape(1, 4), draw(dtype, (1, 4))], {"axis": 0}


def scatter_nd(dtype):
    yield [draw(dtype, (4, 2)), longs(3, 0).reshape(2, 1), draw(dtype, (2, 2))], {}


def concat(dtype):
    yield [draw(dtype, (2, 3)), draw(dtype, (2, 0)), draw(dtype, (2, 2))], {"axis": -1}
    yield [draw(dtype, (1,)), draw(dtype, (4,))], {"axis": 0}


def split(dtype):
    yield [draw(dtype, (5, 2)), longs(2, 0, 3)], {"axis": 0}, 3


def shaped(*rest):
    """Ops over a tensor and integer operands: (shape, operands, attributes)."""
    def nodes(dtype):
        for shape, operands, attributes in rest:
            yield [draw(dtype, shape), *operands], attributes
    return nodes


def where(dtype):
    for a, b in PAIRS:
        yield [draw("bool", a), draw(dtype, b), draw(dtype, a)], {}


def clip(dtype):
    yield [draw(dtype, (3, 4)), draw(dtype, (), 0, 1), draw(dtype, (), 2, 4)], {}
    yield [draw(dtype, ()), draw(dtype, (), 0, 1)], {}


def matmul(dtype):
    for a, b in [((3, 4), (4, 2)), ((4,), (4, 2)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (5, 4, 2)),
                 ((0, 4), (4, 2)), ((3, 0), (0, 2))]:
        yield [draw(dtype, a), draw(dtype, b)], {}


def gemm(dtype):
    operands = [draw(dtype, shape, 1) for shape in ((4, 3), (2, 4), (2,))]
    yield operands, {"transA": 1, "transB": 1}


def casts(to):
    return lambda dtype: [([draw(dtype, shape, 0, 5)], {"to": to}) for shape in SHAPES]


def top_k(dtype):
    for largest in (0, 1):
        yield [RANDOM.permutation(12).astype(dtype).reshape(2, 6), longs(3)], {"largest": largest}, 2


def ranges(dtype):
    yield [np.array(x, dtype) for x in (1, 9, 2)], {}


def one_hot(dtype):
    yield [RANDOM.integers(-3, 3, (2, 3)), longs(4), draw(dtype, (2,))], {"axis": -1}


def norm(dtype):
    yield [draw(dtype, (2, 3, 4)), draw(dtype, (4,)), draw(dtype, (4,))], {"axis": -1}


def prelu(dtype):
    yield [draw(dtype, (2, 3)), draw(dtype, (3,))], {}


def einsum(dtype):
    yield [draw(dtype, (2, 3, 4)), draw(dtype, (2, 4, 5))], {"equation": "bij,bjk->bik"}


def cumulate(dtype):
    for exclusive in (0, 1):
        yield [draw(dtype, (3, 4)), np.array(1, np.int32)], {"exclusive": exclusive, "reverse": 1}


OPS = {op: unary() for op in (
    "Abs Neg Sign Relu Ceil Floor Round Exp Sin Cos Tan Erf Sigmoid Tanh Gelu Softplus Softsign Mish "
    "Elu Selu LeakyRelu HardSigmoid HardSwish Not IsNaN IsInf Identity Shape Size Celu Sinh Cosh Atan "
    "Asinh ThresholdedRelu").split()}
OPS |= {op: unary(0.1, 5) for op in ("Sqrt", "Reciprocal", "Log")}
OPS |= {op: unary(-1, 1) for op in ("Asin", "Acos", "Atanh")} | {"Acosh": unary(1, 5)}
OPS |= {op: binary() for op in ("Add Sub Mul Equal Less LessOrEqual Greater GreaterOrEqual And Or "
                                "Xor").split()}
OPS |= {"Div": divided(), "Mod": divided(), "Mod fmod": divided(fmod=1), "Pow": binary(1, 4)}
OPS |= {op: many for op in ("Max", "Min", "Sum", "Mean")}
OPS |= {op: reduction for op in (
    "ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceMax "
    "ReduceMin").split()}
OPS |= {op: reduction_of_floats for op in ("ReduceLogSum", "ReduceLogSumExp")}
OPS |= {"ArgMax": arg, "ArgMin": arg, "Gather": gather, "GatherElements": gather_elements,
        "GatherND": gather_nd, "ScatterElements": scatter_elements, "ScatterND": scatter_nd,
        "Concat": concat, "Split": split, "Where": where, "Clip": clip, "MatMul": matmul,
        "Gemm": gemm, "TopK": top_k, "Range": ranges, "OneHot": one_hot, "PRelu": prelu,
        "LayerNormalization": norm, "Einsum": einsum, "CumSum": cumulate,
        "Softmax": shaped(((2, 3), [], {}), ((2, 3, 4), [], {"axis": 1}), ((0, 3), [], {})),
        "LogSoftmax": shaped(((2, 3), [], {}), ((2, 3, 4), [], {"axis": 1})),
        "Hardmax": shaped(((2, 3), [], {})),
        "Reshape": shaped(((2, 6), [longs(3, -1)], {}), ((0, 6), [longs(0, 3, 2)], {}),
                          ((1,), [np.array([], np.int64)], {})),
        "Transpose": shaped(((2, 3, 4), [], {"perm": [2, 0, 1]}), ((), [], {}), ((3, 0), [], {})),
        "Slice": shaped(((5, 4), [longs(4, 0), longs(-9, 3), longs(0, 1), longs(-2, 1)], {}),
                        ((5,), [longs(3), longs(3)], {})),
        "Expand": shaped(((3, 1), [longs(2, 1, 4)], {}), ((), [longs(2, 2)], {}),
                         ((1, 3), [longs(0, 3)], {})),
        "Tile": shaped(((2, 3), [longs(2, 1)], {}), ((2,), [longs(0)], {})),
        "Squeeze": shaped(((1, 3, 1), [longs(0, -1)], {}), ((1, 1), [], {})),
        "Unsqueeze": shaped(((3,), [longs(0, 2)], {}), ((), [longs(0)], {})),
        "Flatten": shaped(((2, 3, 4), [], {"axis": 2}), ((), [], {"axis": 0})),
        "Trilu": shaped(((3, 4), [np.array(1, np.int64)], {"upper": 0}), ((2, 3, 3), [], {})),
        "Pad": shaped(((2, 3), [longs(1, 0, 0, 2)], {}), ((3,), [longs(1, 1)], {"mode": "reflect"})),
        "EyeLike": shaped(((3, 4), [], {"k": 1}))}
OPS |= {f"Cast {name}": casts(helper.np_dtype_to_tensor_dtype(np.dtype(name))) for name in DTYPES}


def make_model(op, nodes):
    """Makes one model of `nodes`, its inputs by name."""
    given, made, outputs = {}, [], []
    for number, (operands, attributes, *count) in enumerate(nodes):
        names = [f"i{number}_{k}" for k in range(len(operands))]
        results = [f"o{number}_{k}" for k in range(count[0] if count else 1)]
        given |= dict(zip(names, operands))
        outputs += results
        made.append(helper.make_node(op, names, results, f"node{number}", **attributes))
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for n, v in given.items()]
    graph = helper.make_graph(made, op, infos, [ValueInfoProto(name=name) for name in outputs])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), given


def write_case(folder, name, op, nodes):
    if not nodes:
        return False
    model, given = make_model(op, nodes)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        results = session.run(None, given)
    except Exception:  # pylint: disable=broad-except
        return False
    case_folder.write(os.path.join(folder, name), model, list(given.values()), results)
    return True


def main():
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    written = sum(write_case(folder, f"{name.replace(' ', '_')}_{dtype}", name.split()[0],
                             list(nodes(dtype)))
                  for name, nodes in OPS.items() for dtype in DTYPES)
    print(f"{written} pairs of op and dtype, of {len(OPS) * len(DTYPES)} tried")
    if written < EXPECTED:
        sys.exit(f"onnxruntime ran {EXPECTED} pairs before")


if __name__ == "__main__":
    main()
