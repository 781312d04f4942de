"""quantized.py MODEL.onnx TO.onnx: onnxruntime's dynamic quantisation, int8 weights by channel."""

import os
import sys

from onnxruntime.quantization import QuantType, quantize_dynamic

source, to = sys.argv[1:]
quantize_dynamic(source, to + ".new", weight_type=QuantType.QInt8, per_channel=True)
os.replace(to + ".new", to)
