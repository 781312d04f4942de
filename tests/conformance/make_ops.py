"""Writes single-op cases with onnxruntime's answers for ops that the ONNX suite does not cover.

    make_ops.py FOLDER

They are the ops that onnxruntime's optimiser writes (com.microsoft) and the newest of ONNX. Each
case is a folder for conformance_runner --models.
"""
import os
import pathlib
import re
import shutil
import sys

import numpy as np
import onnxruntime
from onnx import ValueInfoProto, helper, numpy_helper

import case_folder
from attention_cases import attention_cases
from draws import MICROSOFT, RANDOM, f32, ints, lengths_mask

CONSTANTS = {"STFT": (1, 2, 3), "DFT": (1, 2), "GroupQueryAttention": (6,)}  # operands that files hold
OPSETS = {"RoiAlign": 21}  # the newest that onnxruntime has a kernel for, where that is not the newest of all


def cases():
    """(name, domain, op, inputs by position, attributes, outputs by name or "")."""
    x = f32(2, 5, 12)
    yield "gelu", MICROSOFT, "Gelu", [x], {}, ["y"]
    yield "bias_gelu", MICROSOFT, "BiasGelu", [x, f32(12)], {}, ["y"]
    yield "fast_gelu", MICROSOFT, "FastGelu", [x], {}, ["y"]
    yield "fast_gelu_bias", MICROSOFT, "FastGelu", [x, f32(12)], {}, ["y"]
    yield "quick_gelu", MICROSOFT, "QuickGelu", [x], {"alpha": 1.5}, ["y"]
    yield "fused_matmul", MICROSOFT, "FusedMatMul", [f32(2, 3, 4), f32(2, 5, 4)], {
        "transB": 1, "alpha": 0.5}, ["y"]
    yield "fused_matmul_a", MICROSOFT, "FusedMatMul", [f32(2, 4, 3), f32(4, 5)], {
        "transA": 1}, ["y"]
    skip = [x, f32(2, 5, 12), f32(12)]
    yield "skip_layer_norm", MICROSOFT, "SkipLayerNormalization", skip + [f32(12), f32(12)], {
        "epsilon": 1e-5}, ["y", "", "", "sum"]
    yield "skip_layer_norm_plain", MICROSOFT, "SkipLayerNormalization", skip, {}, ["y"]
    yield "skip_simplified", MICROSOFT, "SkipSimplifiedLayerNormalization", skip + [f32(12)], {
        "epsilon": 1e-5}, ["y", "", "", "sum"]
    yield "simplified", "", "SimplifiedLayerNormalization", [x, f32(12)], {
        "epsilon": 1e-5, "axis": -1}, ["y"]
    yield "rms_norm", "", "RMSNormalization", [x, f32(12)], {"epsilon": 1e-5}, ["y"]
    yield from attention_cases(x)
    yield from recurrent_cases()
    yield from window_cases()
    yield from pool_cases()
    yield from sampling_cases()
    yield from quantized_conv_cases()
    yield from dynamic_recurrent_cases()
    yield from signal_cases()
    yield from quantized_cases()
    yield from qlinear_cases()
    yield from embedding_cases()


def quantized_cases():
    a = f32(2, 3, 16)
    b = ints(-127, 128, (16, 6), np.int8)
    scale = (RANDOM.random(6) * 0.1).astype(np.float32)
    yield "dynamic_quantize_matmul", MICROSOFT, "DynamicQuantizeMatMul", [
        a, b, scale[:1], None, f32(6)], {}, ["y"]
    yield "dynamic_quantize_columns", MICROSOFT, "DynamicQuantizeMatMul", [
        a, b, scale, ints(-5, 5, 6, np.int8)], {}, ["y"]
    bytes_a = ints(0, 256, (2, 3, 16), np.uint8)
    yield "matmul_integer_to_float", MICROSOFT, "MatMulIntegerToFloat", [
        bytes_a, b, np.float32([0.02]), scale, np.uint8([120]), None, f32(6)], {}, ["y"]
    for bits, size in ((4, 8), (8, 16)):
        attrs = {"K": 32, "N": 6, "bits": bits, "block_size": 16}
        weights = [f32(2, 3, 32), ints(0, 256, (6, 2, size), np.uint8), np.abs(f32(12)) * 0.1]
        yield f"matmul_{bits}_bits", MICROSOFT, "MatMulNBits", weights, attrs, ["y"]
        zeros = ints(0, 256, 6 * (1 if bits == 4 else 2), np.uint8)
        yield f"matmul_{bits}_bits_zeros", MICROSOFT, "MatMulNBits", weights + [zeros], attrs, ["y"]
        yield f"matmul_{bits}_bits_bias", MICROSOFT, "MatMulNBits", weights + [
            zeros, None, f32(6)], attrs, ["y"]
        yield f"gather_{bits}_bits", MICROSOFT, "GatherBlockQuantized", [
            ints(0, 256, (9, 4 * bits), np.uint8), ints(0, 9, (2, 3), np.int64),
            np.abs(f32(9, 2)) * 0.1], {"bits": bits, "block_size": 16}, ["y"]
    w = ints(-127, 128, (12, 36), np.int8)
    yield "qattention", MICROSOFT, "QAttention", [
        ints(0, 256, (2, 5, 12), np.uint8), w, f32(36), np.array(0.01, np.float32), np.array(0.02, np.float32),
        lengths_mask(2, 5), np.array(128, np.uint8), np.array(0, np.int8)], {"num_heads": 3}, ["y"]


def qlinear_cases():
    for dtype, low, high, zero in ((np.uint8, 0, 256, 120), (np.int8, -128, 128, -3)):
        kind = np.dtype(dtype).name

        def q(shape, scale, point=zero):
            return [ints(low, high, shape, dtype)] + to(scale, point)

        def to(scale, point=zero):
            return [np.array(scale, np.float32), np.array(point, dtype)]

        for op in ("QLinearAdd", "QLinearMul"):
            yield f"{op.lower()}_{kind}", MICROSOFT, op, q((3, 1, 4), 0.0301) + q((5, 4), 0.0173) + to(
                0.0407 if op == "QLinearAdd" else 0.0511), {}, ["y"]
        x = q((4, 7), 0.035)
        yield f"qlinearsigmoid_{kind}", MICROSOFT, "QLinearSigmoid", x + to(1 / 250), {}, ["y"]
        yield f"qlinearleakyrelu_{kind}", MICROSOFT, "QLinearLeakyRelu", x + to(0.03), {
            "alpha": 0.2}, ["y"]
        yield f"qlinearsoftmax_{kind}", MICROSOFT, "QLinearSoftmax", x + to(1 / 255, low), {
            "axis": -1, "opset": 13}, ["y"]
        yield f"qlinearconcat_{kind}", MICROSOFT, "QLinearConcat", to(0.05) + q((2, 3), 0.03) + q(
            (2, 4), 0.06), {"axis": 1}, ["y"]
        yield f"qlinearwhere_{kind}", MICROSOFT, "QLinearWhere", [
            ints(0, 2, (3, 1)) > 0] + q((3, 4), 0.03) + q((4,), 0.05) + to(0.04), {}, ["y"]
        product = q((6, 5), 0.02) + [ints(-127, 128, (5, 4), np.int8),
                                     np.float32([0.01, 0.02, 0.03, 0.01]), np.zeros(4, np.int8)]
        bias = ints(-900, 900, 4, np.int32)
        yield f"qgemm_{kind}", MICROSOFT, "QGemm", product + [bias] + to(0.07), {
            "alpha": 1.0}, ["y"]
        yield f"qgemm_float_{kind}", MICROSOFT, "QGemm", product + [bias], {"alpha": 1.0}, ["y"]
    yield "fused_gemm", MICROSOFT, "FusedGemm", [f32(3, 4), f32(5, 4), f32(5)], {
        "transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.2}, ["y"]


def embedding_cases():
    ids, segments = ints(0, 20, (2, 5), np.int32), ints(0, 2, (2, 5), np.int32)
    tables = [f32(20, 12), f32(8, 12)]
    norm = [f32(12), f32(12)]
    yield "embed", MICROSOFT, "EmbedLayerNormalization", [
        ids, segments] + tables + [f32(2, 12)] + norm + [lengths_mask(2, 5)], {
            "epsilon": 1e-5}, ["y", "mask"]
    yield "embed_plain", MICROSOFT, "EmbedLayerNormalization", [
        ids, None] + tables + [None] + norm, {}, ["y", "mask"]


def recurrent_cases():
    sequence, batch, size, hidden = 5, 3, 4, 6
    lengths = np.array([5, 2, 0], np.int32)
    for op, gates, outputs in (("LSTM", 4, ["y", "h", "c"]), ("GRU", 3, ["y", "h"]),
                               ("RNN", 1, ["y", "h"])):
        for direction in ("forward", "reverse", "bidirectional"):
            n = 2 if direction == "bidirectional" else 1
            inputs = [f32(sequence, batch, size), f32(n, gates * hidden, size),
                      f32(n, gates * hidden, hidden) / 2, f32(n, 2 * gates * hidden), lengths,
                      f32(n, batch, hidden)]
            if op == "LSTM":
                inputs += [f32(n, batch, hidden), f32(n, 3 * hidden)]
            form = {"hidden_size": hidden, "direction": direction}
            name = f"{op.lower()}_{direction}"
            yield name, "", op, inputs, form, outputs
            yield f"{name}_clip", "", op, inputs[:4], {**form, "clip": 0.4}, outputs
            if op == "GRU":
                yield f"{name}_linear", "", op, inputs, {**form, "linear_before_reset": 1}, outputs
            if op == "LSTM":
                names = ["HardSigmoid", "Softsign", "LeakyRelu"] * n
                yield f"{name}_activations", "", op, inputs[:3], {
                    **form, "activations": names, "activation_alpha": [0.3, 0.2] * n,
                    "activation_beta": [0.4] * n}, ["", "h", ""]


def window_cases():
    x, kernel = f32(2, 4, 9), f32(6, 2, 3)
    for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        yield f"conv_{auto.lower()}", "", "Conv", [x, kernel, f32(6)], {
            "group": 2, "strides": [2], "auto_pad": auto}, ["y"]
    yield "conv_dilated", "", "Conv", [x, kernel], {
        "group": 2, "dilations": [2], "pads": [3, 1]}, ["y"]
    plane = f32(2, 3, 7, 6)
    yield "conv_2d", "", "Conv", [plane, f32(5, 3, 3, 2), f32(5)], {
        "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]}, ["y"]
    yield "conv_depthwise", "", "Conv", [plane, f32(3, 1, 3, 3)], {
        "group": 3, "pads": [1, 1, 1, 1]}, ["y"]
    yield from transposed_cases(plane)
    yield "max_pool", "", "MaxPool", [plane], {
        "kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1}, [
            "y", "where"]
    for p in (1, 2, 3):
        yield f"lp_pool_{p}", "", "LpPool", [plane], {
            "p": p, "kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}, ["y"]
    yield "lp_pool_dilated", "", "LpPool", [plane], {
        "kernel_shape": [3, 2], "dilations": [2, 3], "strides": [2, 1], "ceil_mode": 1}, ["y"]
    yield "lp_pool_same", "", "LpPool", [plane], {
        "kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, ["y"]
    for mode in ("nearest", "linear", "cubic"):
        for at in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            yield f"resize_{mode}_{at}", "", "Resize", [
                plane, None, None, np.array([2, 3, 11, 4])], {
                    "mode": mode, "coordinate_transformation_mode": at}, ["y"]


def transposed_cases(plane):
    row = f32(2, 4, 9)
    for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        yield f"conv_transpose_{auto.lower()}", "", "ConvTranspose", [row, f32(4, 3, 4), f32(6)], {
            "group": 2, "strides": [3], "auto_pad": auto}, ["y"]
        yield f"conv_transpose_{auto.lower()}_shape", "", "ConvTranspose", [row, f32(4, 3, 4)], {
            "strides": [3], "auto_pad": auto, "output_shape": [25]}, ["y"]
    yield "conv_transpose_2d", "", "ConvTranspose", [plane, f32(3, 40, 4, 4), f32(40)], {
        "strides": [2, 2], "pads": [1, 1, 1, 1]}, ["y"]
    yield "conv_transpose_2d_uneven", "", "ConvTranspose", [plane, f32(3, 5, 3, 2), f32(5)], {
        "strides": [2, 3], "pads": [1, 0, 2, 1], "dilations": [1, 2], "output_padding": [1, 2]}, ["y"]
    yield "conv_transpose_depthwise", "", "ConvTranspose", [plane, f32(3, 1, 3, 3)], {
        "group": 3, "strides": [2, 2]}, ["y"]
    yield "conv_transpose_3d", "", "ConvTranspose", [f32(2, 6, 3, 4, 5), f32(6, 4, 3, 3, 2)], {
        "strides": [2, 1, 2], "pads": [1, 0, 1, 1, 1, 0], "output_shape": [5, 5, 9]}, ["y"]


def pool_cases():
    """Windows larger than their input: less than a stride is one, less than two is none."""
    row = f32(2, 3, 5)
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for kernel, stride, pads in ((7, 3, [0, 0]), (7, 3, [1, 0]), (8, 2, [1, 1]), (9, 2, [0, 0])):
            if kernel - 5 - sum(pads) >= 2 * stride:
                continue
            for ceil in (0, 1):
                yield f"{op.lower()}_large_{kernel}_{sum(pads)}_{ceil}", "", op, [row], {
                    "kernel_shape": [kernel], "strides": [stride], "pads": pads, "ceil_mode": ceil}, [
                        "y"]
    yield "lrn", "", "LRN", [f32(2, 7, 3, 4)], {"size": 3, "alpha": 0.3, "beta": 0.6, "bias": 1.5}, ["y"]
    yield "lrn_wide", "", "LRN", [f32(2, 4, 3, 4)], {"size": 15, "alpha": 0.3}, ["y"]
    zeros = f32(3, 4, 5)
    zeros[1, 2] = 0
    for norm in (1, 2):
        for axis in (-1, 1):
            yield f"lp_normalization_{norm}_{axis}", "", "LpNormalization", [zeros], {
                "p": norm, "axis": axis}, ["y"]
    yield "mean_variance", "", "MeanVarianceNormalization", [f32(2, 3, 4, 5)], {}, ["y"]
    yield "mean_variance_axes", "", "MeanVarianceNormalization", [f32(2, 3, 4, 5)], {
        "axes": [2, 3]}, ["y"]


def sampling_cases():
    plane = f32(2, 3, 5, 7)
    grid = (RANDOM.random((2, 4, 6, 2)) * 3.2 - 1.6).astype(np.float32)
    grid[0, 0, :4] = [[-1, -1], [1, 1], [1, -1], [0, 1]]
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                yield f"grid_sample_{mode}_{padding}_{corners}", "", "GridSample", [plane, grid], {
                    "mode": mode, "padding_mode": padding, "align_corners": corners}, ["y"]
    room = (RANDOM.random((2, 3, 2, 4, 3)) * 3 - 1.5).astype(np.float32)
    for mode in ("linear", "nearest"):
        yield f"grid_sample_3d_{mode}", "", "GridSample", [f32(2, 2, 4, 3, 5), room], {
            "mode": mode, "padding_mode": "border"}, ["y"]
    corner = RANDOM.random((6, 2)) * 20 - 4
    regions = np.concatenate([corner, corner + RANDOM.random((6, 2)) * 16], 1).astype(np.float32)
    image = f32(2, 3, 9, 11)
    for mode in ("avg", "max"):
        for at in ("half_pixel", "output_half_pixel"):
            for ratio in (0, 2):
                yield f"roi_align_{mode}_{at}_{ratio}", "", "RoiAlign", [
                    image, regions, ints(0, 2, 6)], {
                        "mode": mode, "coordinate_transformation_mode": at, "sampling_ratio": ratio,
                        "output_height": 3, "output_width": 2, "spatial_scale": 0.7}, ["y"]


def quantized_conv_cases():
    weight = ints(-127, 128, (6, 2, 3, 3), np.int8)
    windows = {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}
    for dtype, low, high, zero in ((np.uint8, 0, 256, 120), (np.int8, -128, 128, -3)):
        kind = np.dtype(dtype).name
        x = ints(low, high, (2, 4, 7, 6), dtype)
        point = np.array(zero, dtype)
        y = [np.array(0.43, np.float32), point]
        scale = (RANDOM.random(6) * 0.02 + 0.01).astype(np.float32)
        bias = ints(-900, 900, 6, np.int32)
        yield f"qlinear_conv_{kind}", "", "QLinearConv", [
            x, np.array(0.031, np.float32), point, weight, scale, np.zeros(6, np.int8), *y,
            bias], windows, ["y"]
        yield f"qlinear_conv_one_scale_{kind}", "", "QLinearConv", [
            x, np.array(0.031, np.float32), point, weight, scale[:1], np.array([0], np.int8),
            *y], windows, ["y"]
        pool = [x, np.array(0.031, np.float32), point, np.array(0.0237, np.float32), point]
        yield f"qlinear_average_pool_{kind}", MICROSOFT, "QLinearAveragePool", pool, {
            "kernel_shape": [3, 2], "strides": [2, 2]}, ["y"]
        yield f"qlinear_global_average_pool_{kind}", MICROSOFT, "QLinearGlobalAveragePool", pool, {}, [
            "y"]
    bytes_x = ints(0, 256, (2, 4, 7, 6), np.uint8)
    for kind, w, points in (("vector", weight.view(np.uint8), np.array([0], np.uint8)),
                            ("scalar", ints(0, 256, (6, 2, 3, 3), np.uint8), np.array(7, np.uint8))):
        yield f"conv_integer_{kind}", "", "ConvInteger", [
            bytes_x, w, np.array(120, np.uint8), points], windows, ["y"]
    yield "conv_integer_plain", "", "ConvInteger", [bytes_x, weight.view(np.uint8)], windows, ["y"]
    conv = [f32(2, 3, 7, 6), f32(5, 3, 3, 3), f32(5)]
    for activation, numbers in (("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.2]),
                                ("Clip", [-0.5, 1.0]), ("HardSigmoid", [0.3, 0.4])):
        yield f"fused_conv_{activation.lower()}", MICROSOFT, "FusedConv", conv, {
            "activation": activation, "activation_params": numbers} if numbers else {
                "activation": activation}, ["y"]
    yield "fused_conv_added", MICROSOFT, "FusedConv", conv + [f32(2, 5, 5, 4)], {
        "activation": "Relu"}, ["y"]


def dynamic_recurrent_cases():
    """Quantised layers; onnxruntime rounds their inputs as well, so that an LSTM has the answer."""
    hidden, size, step, batch = 6, 5, 7, 3
    for direction, ways in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for kind, dtype, point in (("s8", np.int8, 0), ("u8", np.uint8, 131)):
            for columns in ((), (4 * hidden,)):
                low, high = (-127, 128) if dtype == np.int8 else (0, 256)
                weights = [ints(low, high, (ways, rows, 4 * hidden), dtype)
                           for rows in (size, hidden)]
                scales = [(RANDOM.random((ways, *columns)) * 0.01 + 0.002).astype(np.float32)
                          for _ in weights]
                points = [np.full((ways, *columns), point, dtype) for _ in weights]
                floats = [np.ascontiguousarray((
                    (w.astype(np.float32) - point) * s.reshape(ways, 1, -1)).transpose(0, 2, 1))
                    for w, s in zip(weights, scales)]
                x, bias = f32(step, batch, size), f32(ways, 8 * hidden)
                rest = [bias, np.array([7, 3, 5], np.int32), f32(ways, batch, hidden),
                        f32(ways, batch, hidden), f32(ways, 3 * hidden)]
                quantised = [scales[0], points[0], scales[1], points[1]]
                name = f"dynamic_quantize_lstm_{direction}_{kind}_{len(columns)}"
                yield (name, MICROSOFT, "DynamicQuantizeLSTM", [x, *weights, *rest, *quantised], {
                    "direction": direction, "hidden_size": hidden}, ["y", "h", "c"],
                       ("LSTM", [x, *floats, *rest]))
    yield ("dynamic_quantize_lstm_plain", MICROSOFT, "DynamicQuantizeLSTM", [
        x, *weights, *[None] * 5, *quantised], {
            "direction": direction, "hidden_size": hidden}, ["y"], ("LSTM", [x, *floats]))


def signal_cases():
    signal, step = f32(2, 150, 1), np.array(7, np.int64)
    for onesided in (0, 1):
        yield f"stft_{onesided}", "", "STFT", [signal, step, None, np.array(32, np.int64)], {
            "onesided": onesided}, ["y"]
    yield "stft_window", "", "STFT", [signal, step, f32(32), np.array(32, np.int64)], {}, ["y"]
    yield "stft_window_alone", "", "STFT", [signal, step, f32(25)], {}, ["y"]
    yield "stft_rank_2", "", "STFT", [f32(2, 150), step, f32(25)], {}, ["y"]
    yield "stft_complex", "", "STFT", [f32(2, 150, 2), step, f32(24)], {"onesided": 0}, ["y"]
    size = lambda n: np.array(n, np.int64)
    for parts in (1, 2):
        signal = f32(3, 12, 5, parts)
        for axis in (0, 1, 2, -2, -3):
            yield f"dft_{parts}_axis_{axis}", "", "DFT", [signal, None, size(axis)], {}, ["y"]
            for length in (4, 7, 16):
                for inverse in (0, 1):
                    yield (f"dft_{parts}_axis_{axis}_of_{length}_{inverse}", "", "DFT",
                           [signal, size(length), size(axis)], {"inverse": inverse}, ["y"])
    for length in (None, size(8), size(13), size(40)):
        name = "all" if length is None else int(length)
        yield f"dft_onesided_{name}", "", "DFT", [f32(2, 3, 20, 1), length], {"onesided": 1}, ["y"]
    for periodic in (0, 1):
        for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
            yield f"{op.lower()}_{periodic}", "", op, [np.array(13, np.int64)], {
                "periodic": periodic}, ["y"]


def make_model(name, domain, op, values, attributes, outputs):
    given = {f"i{i}": v for i, v in enumerate(values) if v is not None}
    inputs = [f"i{i}" if v is not None else "" for i, v in enumerate(values)]
    known = [numpy_helper.from_array(given.pop(f"i{i}"), f"i{i}")
             for i in CONSTANTS.get(op, ()) if f"i{i}" in given]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for n, v in given.items()]
    node = helper.make_node(op, inputs, outputs, name, domain=domain, **attributes)
    made = [ValueInfoProto(name=n) for n in outputs if n]  # onnxruntime infers the types
    graph = helper.make_graph([node], name, infos, made, known)
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", OPSETS.get(op, 23)), helper.make_opsetid(MICROSOFT, 1)]), given


def seven_bits(value):
    """Bytes that two products sum in int16 without saturating, as onnxruntime does where the CPU has no VNNI."""
    has_vnni = re.search(r"\bavx(512)?_vnni\b", pathlib.Path("/proc/cpuinfo").read_text())
    is_signed = isinstance(value, np.ndarray) and value.dtype == np.int8
    return value if has_vnni or not is_signed else np.array(value // 2)


def write_case(folder, name, domain, op, values, attributes, outputs, stands_for=None):
    """`stands_for`: op and inputs of ONNX whose answers the case must give, else its own."""
    if stands_for is None:  # else floats of the same bytes give the answers, which saturate nowhere
        values = [seven_bits(value) for value in values]
    model, given = make_model(name, domain, op, values, attributes, outputs)
    asked, feed = model, given
    if stands_for is not None:
        asked, feed = make_model(name, "", *stands_for, attributes, outputs)
    session = onnxruntime.InferenceSession(asked.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    results = session.run([n for n in outputs if n], feed)
    case_folder.write(os.path.join(folder, name), model, list(given.values()), results)


def main():
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    failed = []
    for case in cases():
        try:
            write_case(folder, *case)
        except Exception as error:  # pylint: disable=broad-except
            failed.append(f"{case[0]}: {str(error)[:300]}")
    if failed:
        sys.exit("onnxruntime cannot run\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
