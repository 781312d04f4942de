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


# Kernels and strides; of the whole one 400 samples are the fewest.
SHORT_STACK = ((10, 5), (3, 2), (3, 2), (2, 2))
WHOLE_STACK = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))


def wav2vec(large=False, width=32, features=32, stack=SHORT_STACK, places=(16, 4), layers=2, heads=4):
    """Samples through a stack of convolutions without pads; the base one is normalised over time, the large one over
    its channels. Then positions by a grouped convolution, and attention."""
    g = Net(1)
    x = g.unsqueeze("x", 1)
    channels = 1
    for i, (kernel, stride) in enumerate(stack):
        x = g.conv(x, channels, features, [kernel], [stride])
        channels = features
        if large:
            x = g.turned(g.layer_norm(g.turned(x), features))
        elif i == 0:
            lines = g.node("Reshape", x, g.ints(0, features, -1))
            normal = g.node("InstanceNormalization", lines, g.const(np.ones(features)),
                            g.const(np.zeros(features)), epsilon=1e-5)
            x = g.node("Reshape", normal, g.node("Shape", x))
            x = g.node("Add", g.node("Mul", x, g.weight(features, 1, scale=1)),
                       g.weight(features, 1, scale=0.3))
        x = g.gelu(x)
    x = g.linear(g.layer_norm(g.turned(x), features), features, width)
    kernel, group = places
    places = g.conv(g.turned(x), width, width, [kernel], [1], [kernel // 2] * 2, group=group)
    places = g.node("Slice", places, g.ints(0), g.ints(-1), g.ints(2), g.ints(1))
    x = g.node("Add", x, g.turned(g.gelu(places)))
    for _ in range(layers):
        x = g.layer_norm(g.node("Add", x, g.attention(x, width, heads)), width)
        x = g.layer_norm(g.node("Add", x, g.feed_forward(x, width)), width)
    return g.finish(g.linear(x, width, 12), ["batch", "sequence"], 3)


def listener(width=32, mels=16, positions=700, layers=2, heads=4):
    """Returns the encoder of a transcriber: mel frames, two convolutions, a table of positions."""
    g = Net(2)
    x = g.gelu(g.conv("x", mels, width, [3], [1], [1, 1]))
    x = g.turned(g.gelu(g.conv(x, width, width, [3], [2], [1, 1])))
    table = g.weight(positions, width, scale=0.5)
    x = g.node("Add", x, g.node("Slice", table, g.ints(0), g.dim(x, 1), g.ints(0)))
    for _ in range(layers):
        x = g.node("Add", x, g.attention(g.layer_norm(x, width), width, heads))
        x = g.node("Add", x, g.feed_forward(g.layer_norm(x, width), width))
    return g.finish(g.layer_norm(x, width), ["batch", mels, "frames"], 3)


def conformer(width=32, mels=16, maps=8, layers=1):
    """Frames made fewer by convolutions of two dims, then attention and depthwise convolutions with gates."""
    g = Net(3)
    x = g.node("Relu", g.conv(g.unsqueeze("x", 1), 1, maps, [3, 3], [2, 2]))
    x = g.node("Relu", g.conv(x, maps, maps, [3, 3], [2, 2]))
    x = g.node("Transpose", x, perm=[0, 2, 1, 3])
    columns = maps * (((mels - 1) // 2 - 1) // 2)
    x = g.node("Reshape", x, g.node("Concat", g.dim(x, 0), g.dim(x, 1), g.ints(columns), axis=0))
    x = g.linear(x, columns, width)
    for _ in range(layers):
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


def resnet(width=8):
    """Makes residual blocks after a stem with a pool, the average of all places."""
    g = Net(4)

    def block(x, channels, maps, stride):
        y = g.node("Relu", g.batch_norm(
            g.conv(x, channels, maps, [3, 3], [stride, stride], [1, 1, 1, 1]), maps))
        y = g.batch_norm(g.conv(y, maps, maps, [3, 3], [1, 1], [1, 1, 1, 1]), maps)
        if stride != 1:
            x = g.batch_norm(g.conv(x, channels, maps, [1, 1], [stride, stride]), maps)
        return g.node("Relu", g.node("Add", y, x))

    x = g.node("Relu", g.batch_norm(g.conv("x", 3, width, [7, 7], [2, 2], [3, 3, 3, 3]), width))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = block(block(block(x, width, width, 1), width, 2 * width, 2), 2 * width, 4 * width, 2)
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    return g.finish(g.node("Gemm", x, g.weight(4 * width, 10), g.weight(10, scale=0.1)),
                    ["batch", 3, "height", "width"], 2)


def inception():
    """Averages over windows: with pads that count and pads that do not, rounded down and up."""
    g = Net(7)

    def pool(x, kernel, strides, pads, **more):
        return g.node("AveragePool", x, kernel_shape=kernel, strides=strides, pads=pads, **more)

    x = g.node("Relu", g.conv("x", 3, 8, [3, 3], [2, 2], [1, 1, 1, 1]))
    for counts in (0, 1):
        pooled = pool(x, [3, 3], [1, 1], [1, 1, 1, 1], count_include_pad=counts)
        both = g.node("Concat", g.conv(x, 8, 4, [1, 1]), g.conv(pooled, 8, 4, [1, 1]), axis=1)
        x = pool(g.node("Relu", both), [3, 3], [2, 2], [1, 1, 1, 1], count_include_pad=1 - counts)
    # The shortcut of a residual block that averages where it halves.
    x = g.conv(pool(x, [2, 2], [2, 2], [0, 0, 0, 0], ceil_mode=1, count_include_pad=0), 8, 8, [1, 1])
    # Where rounding up asks for a window after all positions, none is made.
    both = g.node("Concat", g.node("MaxPool", x, kernel_shape=[2, 1], strides=[2, 2], ceil_mode=1,
                                   pads=[1, 0, 1, 0]),
                  pool(x, [2, 1], [2, 2], [1, 0, 1, 0], ceil_mode=1, count_include_pad=0), axis=1)
    x = g.node("Flatten", g.node("GlobalAveragePool", g.conv(both, 16, 8, [1, 1])))
    return g.finish(g.node("Gemm", x, g.weight(8, 10), g.weight(10, scale=0.1)),
                    ["batch", 3, "height", "width"], 2)


def text_line(width=8):
    """Lines of text: pools that halve their width, then a layer that runs both ways."""
    g = Net(5)
    x = g.node("Relu", g.conv("x", 1, width, [3, 3], [1, 1], [1, 1, 1, 1]))
    x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.node("Relu", g.batch_norm(g.conv(x, width, 2 * width, [3, 3], [1, 1], [1, 1, 1, 1]),
                                    2 * width))
    x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 1], pads=[0, 1, 0, 1])
    x = g.node("Relu", g.conv(x, 2 * width, 2 * width, [4, 2]))
    x = g.node("Transpose", g.node("Squeeze", x, g.ints(2)), perm=[2, 0, 1])
    x, _, _ = g.node("LSTM", x, g.weight(2, 4 * width, 2 * width), g.weight(2, 4 * width, width),
                     g.weight(2, 8 * width, scale=0.1), outputs=3, hidden_size=width,
                     direction="bidirectional")
    x = g.node("Reshape", g.node("Transpose", x, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
    y = g.node("Transpose", g.linear(x, 2 * width, 7), perm=[1, 0, 2])
    return g.finish(y, ["batch", 1, 16, "width"], 3)


def detector(width=8):
    """Features at three strides, each an output of its own."""
    g = Net(6)

    def conv(x, channels, maps, stride=2):
        return g.swish(g.batch_norm(
            g.conv(x, channels, maps, [3, 3], [stride, stride], [1, 1, 1, 1]), maps))

    x = conv(conv(conv("x", 3, width), width, width), width, 2 * width)
    for name in ("fine", "middle", "coarse"):
        pooled = x
        for _ in range(2):
            pooled = g.node("MaxPool", pooled, kernel_shape=[5, 5], strides=[1, 1],
                            pads=[2, 2, 2, 2])
        both = g.node("Concat", x, pooled, axis=1)
        g.rename(g.conv(both, 4 * width, 12, [1, 1]), name)
        x = conv(x, 2 * width, 2 * width)
    return g.model([("x", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
                   [(name, TensorProto.FLOAT, [None] * 4) for name in ("fine", "middle", "coarse")])


def neck(g, width):
    """Features at strides 8, 16 and 32, which meet coarser ones that are made twice as large."""
    def conv(x, channels, maps, kernel=3, stride=1):
        pads = [kernel // 2] * 4
        return g.swish(g.batch_norm(
            g.conv(x, channels, maps, [kernel] * 2, [stride] * 2, pads), maps))

    def doubled(x):
        return g.node("Resize", x, "", g.const([1, 1, 2, 2]), mode="nearest", nearest_mode="floor",
                      coordinate_transformation_mode="asymmetric")

    def joined(*parts):
        return g.node("Concat", *parts, axis=1)

    x = conv(conv(conv("x", 3, width, stride=2), width, width, stride=2), width, width, stride=2)
    fine = x
    middle = conv(fine, width, width, stride=2)
    x = conv(middle, width, width, stride=2)
    pools = [x]
    for _ in range(3):
        pools.append(g.node("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1],
                            pads=[2, 2, 2, 2]))
    coarse = conv(joined(*pools), 4 * width, width, 1)
    middle = conv(joined(doubled(coarse), middle), 2 * width, width)
    fine = conv(joined(doubled(middle), fine), 2 * width, width)
    middle = conv(joined(conv(fine, width, width, stride=2), middle), 2 * width, width)
    coarse = conv(joined(conv(middle, width, width, stride=2), coarse), 2 * width, width)
    return fine, middle, coarse


def yolo(width=8, classes=3, decodes=True):
    """Makes a detector of stride 32 with a neck: heads lie over height times width one after another, and boxes are
    counted from the middles of a grid."""
    g = Net(8)
    heads = [g.conv(x, width, 4 + classes, [1, 1]) for x in neck(g, width)]
    if not decodes:
        names = ("fine", "middle", "coarse")
        for head, name in zip(heads, names):
            g.rename(head, name)
        return g.model([("x", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
                       [(name, TensorProto.FLOAT, [None] * 4) for name in names])
    zero, one, half = (g.scalar(0, np.int64), g.scalar(1, np.int64), g.scalar(0.5))
    grids, strides, rows = [], [], []
    for head, stride in zip(heads, (8, 16, 32)):
        size = [g.node("Squeeze", g.dim(head, dim), g.ints(0)) for dim in (2, 3)]
        down, across = (g.node("Add", g.node("Cast", g.node("Range", zero, count, one), to=1), half)
                        for count in size)
        both = g.node("Concat", g.dim(head, 2), g.dim(head, 3), axis=0)
        places = [g.node("Reshape", g.node("Expand", g.unsqueeze(line, axis), both), g.ints(1, -1))
                  for line, axis in ((across, 0), (down, 1))]
        grid = g.node("Concat", *places, axis=0)
        grids.append(grid)
        strides.append(g.node("Expand", g.const([[float(stride)]]),
                              g.node("Concat", g.ints(1), g.dim(grid, 1), axis=0)))
        shape = g.node("Concat", g.dim(head, 0), g.ints(4 + classes, -1), axis=0)
        rows.append(g.node("Reshape", head, shape))
    grid, stride = (g.node("Concat", *parts, axis=1) for parts in (grids, strides))
    boxes, scores = g.node("Split", g.node("Concat", *rows, axis=2), g.ints(4, classes), outputs=2,
                           axis=1)
    near, far = g.node("Split", boxes, outputs=2, axis=1)
    corners = g.node("Sub", grid, near), g.node("Add", grid, far)
    middles = g.node("Div", g.node("Add", *corners), g.scalar(2))
    sizes = g.node("Sub", corners[1], corners[0])
    boxes = g.node("Mul", g.node("Concat", middles, sizes, axis=1), stride)
    y = g.node("Concat", boxes, g.node("Sigmoid", scores), axis=1)
    return g.finish(y, ["batch", 3, "height", "width"], 3)


def anchored(width=8, classes=3, anchors=3):
    """Makes the same with boxes for several anchors at each place, which come before its row and column."""
    g = Net(9)
    numbers = 5 + classes
    zero, one = g.scalar(0, np.int64), g.scalar(1, np.int64)
    rows = []
    for x, stride in zip(neck(g, width), (8, 16, 32)):
        head = g.conv(x, width, anchors * numbers, [1, 1])
        down, across = g.dim(head, 2), g.dim(head, 3)
        apart = g.node("Concat", g.dim(head, 0), g.ints(anchors, numbers), down, across, axis=0)
        head = g.node("Sigmoid", g.node("Transpose", g.node("Reshape", head, apart),
                                        perm=[0, 1, 3, 4, 2]))
        middle, size, rest = g.node("Split", head, g.ints(2, 2, 1 + classes), outputs=3, axis=4)
        both = g.node("Concat", down, across, axis=0)
        lines = [g.node("Cast", g.node("Range", zero, g.node("Squeeze", count, g.ints(0)), one), to=1)
                 for count in (across, down)]
        grid = g.node("Concat", *(g.unsqueeze(g.node("Expand", g.unsqueeze(line, axis), both), 2)
                                  for line, axis in zip(lines, (0, 1))), axis=2)
        middle = g.node("Mul", g.node("Add", middle, grid), g.scalar(float(stride)))
        size = g.node("Mul", size, g.weight(anchors, 1, 1, 2, scale=1))
        boxes = g.node("Concat", middle, size, rest, axis=4)
        rows.append(g.node("Reshape", boxes, g.node("Concat", g.dim(head, 0), g.ints(-1, numbers),
                                                    axis=0)))
    return g.finish(g.node("Concat", *rows, axis=1), ["batch", 3, "height", "width"], 3)
