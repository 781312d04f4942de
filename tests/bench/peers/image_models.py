"""Writes image models with random weights, of the architectures that exporters meet most.

python image_models.py FOLDER: resnet18.onnx, resnet50.onnx and mobilenet_v2.onnx, BatchNormalization
folded into the convolutions as exporters do it, input [batch, 3, 224, 224]. Weights are drawn so that
numbers keep their size from layer to layer: answers can be compared.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from testing.models import Graph  # noqa: E402


class Layers(Graph):
    def __init__(self):
        super().__init__(13)
        self.random = np.random.default_rng(1)

    def conv(self, x, channels, maps, kernel, stride=1, groups=1, activation=None):
        deviation = np.sqrt(2 / (channels // groups * kernel * kernel))
        weights = self.random.normal(0, deviation, (maps, channels // groups, kernel, kernel))
        y = self.node("Conv", x, self.const(weights), self.const(self.random.normal(0, 0.1, maps)),
                      kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
                      group=groups)
        if activation == "relu6":
            return self.node("Clip", y, self.scalar(0.0), self.scalar(6.0))
        return self.node("Relu", y) if activation == "relu" else y

    def classes(self, x, channels, count=1000):
        pooled = self.node("Flatten", self.node("GlobalAveragePool", x), axis=1)
        weights = self.random.normal(0, np.sqrt(1 / channels), (count, channels))
        return self.node("Gemm", pooled, self.const(weights), self.const(np.zeros(count)), transB=1)


def resnet(stages, bottleneck):
    g = Layers()
    x = g.conv("pixels", 3, 64, 7, stride=2, activation="relu")
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, blocks in enumerate(stages):
        width = 64 << stage
        maps = 4 * width if bottleneck else width
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            if bottleneck:
                y = g.conv(x, channels, width, 1, activation="relu")
                y = g.conv(y, width, width, 3, stride, activation="relu")
                y = g.conv(y, width, maps, 1)
            else:
                y = g.conv(x, channels, width, 3, stride, activation="relu")
                y = g.conv(y, width, maps, 3)
            if stride != 1 or channels != maps:
                x = g.conv(x, channels, maps, 1, stride)
            x = g.node("Relu", g.node("Add", y, x))
            channels = maps
    return g, g.classes(x, channels)


def mobilenet_v2():
    g = Layers()
    x = g.conv("pixels", 3, 32, 3, stride=2, activation="relu6")
    channels = 32
    for factor, maps, blocks, first_stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                               (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                               (6, 320, 1, 1)]:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            wide = channels * factor
            y = x if factor == 1 else g.conv(x, channels, wide, 1, activation="relu6")
            y = g.conv(y, wide, wide, 3, stride, groups=wide, activation="relu6")
            y = g.conv(y, wide, maps, 1)
            x = g.node("Add", y, x) if stride == 1 and channels == maps else y
            channels = maps
    x = g.conv(x, channels, 1280, 1, activation="relu6")
    return g, g.classes(x, 1280)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (graph, out) in {"resnet18": resnet([2, 2, 2, 2], bottleneck=False),
                               "resnet50": resnet([3, 4, 6, 3], bottleneck=True),
                               "mobilenet_v2": mobilenet_v2()}.items():
        graph.rename(out, "classes")
        onnx.save(graph.model([("pixels", TensorProto.FLOAT, ["batch", 3, 224, 224])],
                              [("classes", TensorProto.FLOAT, ["batch", 1000])]),
                  folder / f"{name}.onnx")


main()
