"""Models with convolutions and pools in front, with weights at random, as torch exports them."""

import numpy as np
from onnx import TensorProto

from testing.models import Graph


class Net(Graph):
    """A graph that draws its weights."""

    def __init__(self, seed=0, opset=17):
        super().__init__(opset)
        self.rng = np.random.default_rng(seed)

    def weight(self, *shape, scale=None):
        scale = scale or 1 / np.sqrt(np.prod(shape[1:]) or 1)
        return self.const(self.rng.normal(0, scale, shape), hint="weight")

    def conv(self, x, channels, maps, kernel, strides=None, pads=None, group=1, **more):
        attributes = {"kernel_shape": kernel, "group": group, **more}
        if strides:
            attributes["strides"] = strides
        if pads:
            attributes["pads"] = pads
        return self.node("Conv", x, self.weight(maps, channels // group, *kernel),
                         self.weight(maps, scale=0.3), **attributes)

    def batch_norm(self, x, channels):
        numbers = [self.const(self.rng.uniform(0.5, 1.5, channels)) for _ in range(4)]
        return self.node("BatchNormalization", x, *numbers)

    def gelu(self, x):
        gate = self.node("Erf", self.node("Div", x, self.scalar(np.sqrt(2))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", gate, self.scalar(1))),
                         self.scalar(0.5))

    def swish(self, x):
        return self.node("Mul", x, self.node("Sigmoid", x))

    def turned(self, x):
        return self.node("Transpose", x, perm=[0, 2, 1])

    def linear(self, x, rows, columns):
        return self.node("Add", self.node("MatMul", x, self.weight(rows, columns, scale=rows**-0.5)),
                         self.weight(columns, scale=0.1))

    def layer_norm(self, x, width):
        return self.node("LayerNormalization", x, self.weight(width, scale=1),
                         self.weight(width, scale=0.1), axis=-1)

    def attention(self, x, width, heads):
        def apart(value):
            shape = self.node("Concat", self.dim(x, 0), self.dim(x, 1), self.ints(heads),
                              self.ints(width // heads), axis=0)
            return self.node("Reshape", value, shape)
        query, key, value = (
            self.node("Transpose", apart(self.linear(x, width, width)), perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = self.node("Mul", self.node("MatMul", query, key),
                           self.scalar((width // heads) ** -0.5))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), value)
        shape = self.node("Concat", self.dim(x, 0), self.dim(x, 1), self.ints(width), axis=0)
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), shape)
        return self.linear(joined, width, width)

    def feed_forward(self, x, width):
        return self.linear(self.gelu(self.linear(x, width, 2 * width)), 2 * width, width)

    def finish(self, y, shape, rank):
        self.rename(y, "y")
        return self.model([("x", TensorProto.FLOAT, shape)],
                          [("y", TensorProto.FLOAT, [None] * rank)])


def wav2vec(large=False, width=32):
    """Samples through a stack of convolutions without pads; the base one is normalised over time, the large one over
    its channels. Then positions by a grouped convolution, and attention."""
    g = Net(1)
    x = g.unsqueeze("x", 1)
    channels = 1
    for i, (kernel, stride) in enumerate([(10, 5), (3, 2), (3, 2), (2, 2)]):
        x = g.conv(x, channels, width, [kernel], [stride])
        channels = width
        if large:
            x = g.turned(g.layer_norm(g.turned(x), width))
        elif i == 0:
            lines = g.node("Reshape", x, g.ints(0, width, -1))
            normal = g.node("InstanceNormalization", lines, g.const(np.ones(width)),
                            g.const(np.zeros(width)), epsilon=1e-5)
            x = g.node("Reshape", normal, g.node("Shape", x))
            x = g.node("Add", g.node("Mul", x, g.weight(width, 1, scale=1)),
                       g.weight(width, 1, scale=0.3))
        x = g.gelu(x)
    x = g.linear(g.layer_norm(g.turned(x), width), width, width)
    places = g.conv(g.turned(x), width, width, [16], [1], [8, 8], group=4)
    places = g.node("Slice", places, g.ints(0), g.ints(-1), g.ints(2), g.ints(1))
    x = g.node("Add", x, g.turned(g.gelu(places)))
    for _ in range(2):
        x = g.layer_norm(g.node("Add", x, g.attention(x, width, 4)), width)
        x = g.layer_norm(g.node("Add", x, g.feed_forward(x, width)), width)
    return g.finish(g.linear(x, width, 12), ["batch", "sequence"], 3)


def listener(width=32, mels=16, positions=700):
    """The encoder of a transcriber: mel frames, two convolutions, a table of positions."""
    g = Net(2)
    x = g.gelu(g.conv("x", mels, width, [3], [1], [1, 1]))
    x = g.turned(g.gelu(g.conv(x, width, width, [3], [2], [1, 1])))
    table = g.weight(positions, width, scale=0.5)
    x = g.node("Add", x, g.node("Slice", table, g.ints(0), g.dim(x, 1), g.ints(0)))
    for _ in range(2):
        x = g.node("Add", x, g.attention(g.layer_norm(x, width), width, 4))
        x = g.node("Add", x, g.feed_forward(g.layer_norm(x, width), width))
    return g.finish(g.layer_norm(x, width), ["batch", mels, "frames"], 3)


def conformer(width=32, mels=16):
    """Frames made fewer by convolutions of two dims, then attention and depthwise convolutions with gates."""
    g = Net(3)
    x = g.node("Relu", g.conv(g.unsqueeze("x", 1), 1, 8, [3, 3], [2, 2]))
    x = g.node("Relu", g.conv(x, 8, 8, [3, 3], [2, 2]))
    x = g.node("Transpose", x, perm=[0, 2, 1, 3])
    x = g.node("Reshape", x, g.node("Concat", g.dim(x, 0), g.dim(x, 1), g.ints(24), axis=0))
    x = g.linear(x, 24, width)
    x = g.node("Add", x, g.attention(g.layer_norm(x, width), width, 4))
    y = g.turned(g.layer_norm(x, width))
    y = g.conv(y, width, 2 * width, [1])
    first, gate = g.node("Split", y, outputs=2, axis=1)
    y = g.node("Mul", first, g.node("Sigmoid", gate))
    y = g.conv(y, width, width, [7], [1], [3, 3], group=width)
    y = g.conv(g.swish(g.batch_norm(y, width)), width, width, [1])
    x = g.node("Add", x, g.turned(y))
    x = g.node("Add", x, g.feed_forward(g.layer_norm(x, width), width))
    return g.finish(g.linear(x, width, 9), ["batch", "frames", mels], 3)


def resnet():
    """Residual blocks behind a stem with a pool, the average of all places."""
    g = Net(4)

    def block(x, channels, maps, stride):
        y = g.node("Relu", g.batch_norm(
            g.conv(x, channels, maps, [3, 3], [stride, stride], [1, 1, 1, 1]), maps))
        y = g.batch_norm(g.conv(y, maps, maps, [3, 3], [1, 1], [1, 1, 1, 1]), maps)
        if stride != 1:
            x = g.batch_norm(g.conv(x, channels, maps, [1, 1], [stride, stride]), maps)
        return g.node("Relu", g.node("Add", y, x))

    x = g.node("Relu", g.batch_norm(g.conv("x", 3, 8, [7, 7], [2, 2], [3, 3, 3, 3]), 8))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = block(block(block(x, 8, 8, 1), 8, 16, 2), 16, 32, 2)
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    return g.finish(g.node("Gemm", x, g.weight(32, 10), g.weight(10, scale=0.1)),
                    ["batch", 3, "height", "width"], 2)


def inception():
    """Averages of what is there: pools that leave their pads out of the divisor."""
    g = Net(7)
    x = g.node("Relu", g.conv("x", 3, 8, [3, 3], [2, 2], [1, 1, 1, 1]))
    for _ in range(2):
        pooled = g.node("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        both = g.node("Concat", g.conv(x, 8, 4, [1, 1]), g.conv(pooled, 8, 4, [1, 1]), axis=1)
        x = g.node("AveragePool", g.node("Relu", both), kernel_shape=[3, 3], strides=[2, 2],
                   pads=[1, 1, 1, 1])
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    return g.finish(g.node("Gemm", x, g.weight(8, 10), g.weight(10, scale=0.1)),
                    ["batch", 3, "height", "width"], 2)


def text_line():
    """Lines of text: pools that halve their width, then a layer that runs both ways."""
    g = Net(5)
    x = g.node("Relu", g.conv("x", 1, 8, [3, 3], [1, 1], [1, 1, 1, 1]))
    x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.node("Relu", g.batch_norm(g.conv(x, 8, 16, [3, 3], [1, 1], [1, 1, 1, 1]), 16))
    x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 1], pads=[0, 1, 0, 1])
    x = g.node("Relu", g.conv(x, 16, 16, [4, 2]))
    x = g.node("Transpose", g.node("Squeeze", x, g.ints(2)), perm=[2, 0, 1])
    x, _, _ = g.node("LSTM", x, g.weight(2, 32, 16), g.weight(2, 32, 8), g.weight(2, 64, scale=0.1),
                     outputs=3, hidden_size=8, direction="bidirectional")
    x = g.node("Reshape", g.node("Transpose", x, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
    y = g.node("Transpose", g.linear(x, 16, 7), perm=[1, 0, 2])
    return g.finish(y, ["batch", 1, 16, "width"], 3)


def detector():
    """Features at three strides, each an output of its own."""
    g = Net(6)

    def conv(x, channels, maps, stride=2):
        return g.swish(g.batch_norm(
            g.conv(x, channels, maps, [3, 3], [stride, stride], [1, 1, 1, 1]), maps))

    x = conv(conv(conv("x", 3, 8), 8, 8), 8, 16)
    for name in ("fine", "middle", "coarse"):
        pooled = x
        for _ in range(2):
            pooled = g.node("MaxPool", pooled, kernel_shape=[5, 5], strides=[1, 1],
                            pads=[2, 2, 2, 2])
        both = g.node("Concat", x, pooled, axis=1)
        g.rename(g.conv(both, 32, 12, [1, 1]), name)
        x = conv(x, 16, 16)
    return g.model([("x", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
                   [(name, TensorProto.FLOAT, [None] * 4) for name in ("fine", "middle", "coarse")])
