// Models with convolutions and pools in front, as exporters write them, with weights at random.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"

namespace reprise {

class LiveModel {
 public:
  explicit LiveModel(int64_t opset = 17) : b_(opset) {}

  ModelBuilder& builder() { return b_; }
  std::string Bytes() const { return b_.Bytes(); }

  std::string Weight(const std::vector<int64_t>& shape, double scale = 0) {
    int64_t count = 1, inner = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      count *= shape[d];
      if (d > 0) inner *= shape[d];
    }
    const double deviation = scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(inner));
    std::normal_distribution<float> normal(0, static_cast<float>(deviation));
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    const std::string name = Name("w");
    b_.Floats(name, shape, values);
    return name;
  }
  std::string Ints(const std::vector<int64_t>& values) {
    const std::string name = Name("i");
    b_.Initializer(name, onnx::TensorProto::INT64, {static_cast<int64_t>(values.size())}, values);
    return name;
  }
  std::string Scalar(float value) {
    const std::string name = Name("s");
    b_.Floats(name, {}, {value});
    return name;
  }
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   onnx::NodeProto** node = nullptr) {
    const std::string name = Name("v");
    onnx::NodeProto& added = b_.Node(op, inputs, {name}, name);
    if (node != nullptr) *node = &added;
    return name;
  }

  struct Windows {
    std::vector<int64_t> kernel, strides, pads;
    int64_t group = 1;
  };
  std::string Conv(const std::string& x, int64_t in, int64_t out, const Windows& w) {
    std::vector<int64_t> shape = {out, in / w.group};
    shape.insert(shape.end(), w.kernel.begin(), w.kernel.end());
    onnx::NodeProto* node = nullptr;
    const std::string y = Node("Conv", {x, Weight(shape), Weight({out}, 0.3)}, &node);
    SetWindows(*node, w);
    SetAttribute(*node, "group", w.group);
    return y;
  }
  std::string MaxPool(const std::string& x, const Windows& w) {
    onnx::NodeProto* node = nullptr;
    const std::string y = Node("MaxPool", {x}, &node);
    SetWindows(*node, w);
    return y;
  }
  std::string AveragePool(const std::string& x, const Windows& w, bool counts_pads = false,
                          bool rounds_up = false) {
    onnx::NodeProto* node = nullptr;
    const std::string y = Node("AveragePool", {x}, &node);
    SetWindows(*node, w);
    SetAttribute(*node, "count_include_pad", int64_t{counts_pads});
    SetAttribute(*node, "ceil_mode", int64_t{rounds_up});
    return y;
  }
  std::string Gelu(const std::string& x) {
    const std::string half = Node("Erf", {Node("Div", {x, Scalar(std::sqrt(2.0F))})});
    return Node("Mul", {Node("Mul", {x, Node("Add", {half, Scalar(1)})}), Scalar(0.5)});
  }
  std::string Transpose(const std::string& x, const std::vector<int64_t>& perm) {
    onnx::NodeProto* node = nullptr;
    const std::string y = Node("Transpose", {x}, &node);
    SetAttribute(*node, "perm", perm);
    return y;
  }
  std::string Linear(const std::string& x, int64_t in, int64_t out) {
    return Node("Add", {Node("MatMul", {x, Weight({in, out}, 1 / std::sqrt(double(in)))}),
                        Weight({out}, 0.2)});
  }
  std::string LayerNorm(const std::string& x, int64_t width) {
    return Node("LayerNormalization", {x, Weight({width}, 1), Weight({width}, 0.2)});
  }
  // Returns a dim of x as the graph computes it.
  std::string DimOf(const std::string& x, int64_t dim) {
    return Node("Gather", {Node("Shape", {x}), Ints({dim})});
  }
  // Takes and gives [batch, positions, width].
  std::string Attention(const std::string& x, int64_t width, int64_t heads) {
    const auto apart = [&](const std::string& value) {
      onnx::NodeProto* concat = nullptr;
      const std::string shape =
          Node("Concat", {DimOf(x, 0), DimOf(x, 1), Ints({heads}), Ints({width / heads})}, &concat);
      SetAttribute(*concat, "axis", int64_t{0});
      return Node("Reshape", {value, shape});
    };
    const std::string q = Transpose(apart(Linear(x, width, width)), {0, 2, 1, 3});
    const std::string k = Transpose(apart(Linear(x, width, width)), {0, 2, 3, 1});
    const std::string v = Transpose(apart(Linear(x, width, width)), {0, 2, 1, 3});
    const float scale = 1 / std::sqrt(static_cast<float>(width / heads));
    onnx::NodeProto* softmax = nullptr;
    const std::string scores = Node("Mul", {Node("MatMul", {q, k}), Scalar(scale)});
    const std::string shares = Node("Softmax", {scores}, &softmax);
    SetAttribute(*softmax, "axis", int64_t{-1});
    const std::string joined = Transpose(Node("MatMul", {shares, v}), {0, 2, 1, 3});
    onnx::NodeProto* concat = nullptr;
    const std::string shape = Node("Concat", {DimOf(x, 0), DimOf(x, 1), Ints({width})}, &concat);
    SetAttribute(*concat, "axis", int64_t{0});
    return Linear(Node("Reshape", {joined, shape}), width, width);
  }
  void Output(const std::string& value) {
    b_.Node("Identity", {value}, {"y"}, "y");
    b_.Output("y");
  }

 private:
  std::string Name(const char* prefix) { return prefix + std::to_string(next_++); }
  static void SetWindows(onnx::NodeProto& node, const Windows& w) {
    SetAttribute(node, "kernel_shape", w.kernel);
    if (!w.strides.empty()) SetAttribute(node, "strides", w.strides);
    if (!w.pads.empty()) SetAttribute(node, "pads", w.pads);
  }

  ModelBuilder b_;
  std::mt19937 random_{7};
  int next_ = 0;
};

// Residual blocks after a stem with a pool, averaged over the whole image.
inline std::string ResNetLike() {
  LiveModel m;
  m.builder().Input("x", {"batch", "3", "height", "width"});
  std::string x = m.Node("Relu", {m.Conv("x", 3, 8, {{7, 7}, {2, 2}, {3, 3, 3, 3}})});
  x = m.MaxPool(x, {{3, 3}, {2, 2}, {1, 1, 1, 1}});
  std::string y = m.Node("Relu", {m.Conv(x, 8, 8, {{3, 3}, {1, 1}, {1, 1, 1, 1}})});
  y = m.Conv(y, 8, 8, {{3, 3}, {1, 1}, {1, 1, 1, 1}});
  x = m.Node("Relu", {m.Node("Add", {x, y})});
  y = m.Node("Relu", {m.Conv(x, 8, 16, {{3, 3}, {2, 2}, {1, 1, 1, 1}})});
  y = m.Conv(y, 16, 16, {{3, 3}, {1, 1}, {1, 1, 1, 1}});
  x = m.Node("Relu", {m.Node("Add", {y, m.Conv(x, 8, 16, {{1, 1}, {2, 2}, {0, 0, 0, 0}})})});
  x = m.Node("Flatten", {m.Node("GlobalAveragePool", {x})});
  m.Output(m.Linear(x, 16, 10));
  return m.Bytes();
}

// Averages of the elements in the window, with pads that count and pads that do not, rounded down
// and up.
inline std::string InceptionLike() {
  LiveModel m;
  m.builder().Input("x", {"batch", "3", "height", "width"});
  std::string x = m.Node("Relu", {m.Conv("x", 3, 8, {{3, 3}, {2, 2}, {1, 1, 1, 1}})});
  x = m.AveragePool(x, {{3, 3}, {1, 1}, {1, 1, 1, 1}});
  x = m.AveragePool(m.Conv(x, 8, 8, {{1, 1}, {}, {}}), {{3, 2}, {2, 2}, {1, 0, 1, 0}}, false, true);
  x = m.AveragePool(m.Conv(x, 8, 8, {{1, 1}, {}, {}}), {{3, 3}, {1, 2}, {1, 1, 1, 1}}, true, true);
  x = m.AveragePool(m.Conv(x, 8, 8, {{1, 1}, {}, {}}), {{5, 3}, {2, 1}, {2, 1, 2, 1}}, true);
  x = m.AveragePool(m.Conv(x, 8, 8, {{1, 1}, {}, {}}), {{2, 3}, {1, 1}, {1, 1, 0, 1}});
  x = m.Node("Flatten", {m.Node("GlobalAveragePool", {x})});
  m.Output(m.Linear(x, 8, 10));
  return m.Bytes();
}

// Lines through an average over windows, each place an answer of its own.
inline std::string AveragedLineLike() {
  LiveModel m;
  m.builder().Input("x", {"batch", "4", "sequence"});
  std::string x = m.AveragePool("x", {{3}, {2}, {1, 1}}, false, true);
  x = m.AveragePool(m.Conv(x, 4, 8, {{3}, {1}, {1, 1}}), {{3}, {2}, {1, 1}}, true, true);
  m.Output(m.AveragePool(x, {{4}, {2}, {1, 2}}));
  return m.Bytes();
}

// Samples through convolutions without pads, the first normalised over time, then attention.
inline std::string SpeechLike() {
  LiveModel m;
  m.builder().Input("x", {"batch", "sequence"});
  std::string x = m.Conv(m.Node("Unsqueeze", {"x", m.Ints({1})}), 1, 16, {{10}, {5}, {0, 0}});
  const std::string lines = m.Node("Reshape", {x, m.Ints({0, 16, -1})});
  const std::string norm =
      m.Node("InstanceNormalization", {lines, m.Weight({16}, 1), m.Weight({16}, 1)});
  x = m.Node("Reshape", {norm, m.Node("Shape", {x})});
  x = m.Gelu(m.Node("Add", {m.Node("Mul", {x, m.Weight({16, 1}, 1)}), m.Weight({16, 1}, 1)}));
  x = m.Gelu(m.Conv(x, 16, 16, {{3}, {2}, {0, 0}}));
  x = m.Gelu(m.Conv(x, 16, 16, {{2}, {2}, {0, 0}}));
  x = m.Linear(m.LayerNorm(m.Transpose(x, {0, 2, 1}), 16), 16, 16);
  std::string places = m.Conv(m.Transpose(x, {0, 2, 1}), 16, 16, {{4}, {1}, {2, 2}, 2});
  places = m.Node("Slice", {places, m.Ints({0}), m.Ints({-1}), m.Ints({2}), m.Ints({1})});
  x = m.Node("Add", {x, m.Transpose(m.Gelu(places), {0, 2, 1})});
  x = m.LayerNorm(m.Node("Add", {x, m.Attention(x, 16, 2)}), 16);
  m.Output(m.Linear(x, 16, 12));
  return m.Bytes();
}

// Samples through seven convolutions, which take none below 400 of them.
inline std::string LongStridesLike() {
  LiveModel m;
  m.builder().Input("x", {"batch", "sequence"});
  std::string x = m.Node("Unsqueeze", {"x", m.Ints({1})});
  int64_t channels = 1;
  for (const auto& [kernel, stride] :
       {std::pair<int64_t, int64_t>{10, 5}, {3, 2}, {3, 2}, {3, 2}, {3, 2}, {2, 2}, {2, 2}}) {
    x = m.Gelu(m.Conv(x, channels, 8, {{kernel}, {stride}, {0, 0}}));
    channels = 8;
  }
  x = m.LayerNorm(m.Transpose(x, {0, 2, 1}), 8);
  x = m.Node("Add", {x, m.Attention(x, 8, 2)});
  m.Output(m.Linear(x, 8, 5));
  return m.Bytes();
}

// Mel frames through two convolutions, one of them with a stride, positions from a table.
inline std::string ListenerLike() {
  LiveModel m;
  m.builder().Input("x", {"batch", "12", "frames"});
  std::string x = m.Gelu(m.Conv("x", 12, 16, {{3}, {1}, {1, 1}}));
  x = m.Gelu(m.Conv(x, 16, 16, {{3}, {2}, {1, 1}}));
  x = m.Transpose(x, {0, 2, 1});
  const std::string places =
      m.Node("Slice", {m.Weight({600, 16}, 1), m.Ints({0}), m.DimOf(x, 1), m.Ints({0})});
  x = m.Node("Add", {x, places});
  x = m.Node("Add", {x, m.Attention(m.LayerNorm(x, 16), 16, 2)});
  m.Output(m.LayerNorm(x, 16));
  return m.Bytes();
}

// Lines of text: pools that halve the width, then a layer that runs both ways.
inline std::string TextLineLike() {
  LiveModel m;
  m.builder().Input("x", {"batch", "1", "16", "width"});
  std::string x = m.Node("Relu", {m.Conv("x", 1, 8, {{3, 3}, {1, 1}, {1, 1, 1, 1}})});
  x = m.MaxPool(x, {{2, 2}, {2, 2}, {0, 0, 0, 0}});
  x = m.Node("Relu", {m.Conv(x, 8, 8, {{3, 3}, {1, 1}, {1, 1, 1, 1}})});
  x = m.MaxPool(x, {{2, 2}, {2, 1}, {0, 1, 0, 1}});
  x = m.Node("Relu", {m.Conv(x, 8, 8, {{4, 2}, {1, 1}, {0, 0, 0, 0}})});
  x = m.Transpose(m.Node("Squeeze", {x, m.Ints({2})}), {2, 0, 1});
  onnx::NodeProto* lstm = nullptr;
  x = m.Node("LSTM",
             {x, m.Weight({2, 24, 8}, 0.3), m.Weight({2, 24, 6}, 0.3), m.Weight({2, 48}, 0.3)},
             &lstm);
  SetAttribute(*lstm, "hidden_size", int64_t{6});
  SetAttribute(*lstm, "direction", std::string("bidirectional"));
  x = m.Node("Reshape", {m.Transpose(x, {0, 2, 1, 3}), m.Ints({0, 0, -1})});
  m.Output(m.Transpose(m.Linear(x, 12, 7), {1, 0, 2}));
  return m.Bytes();
}

// Windows over words, the largest of each.
inline std::string TextWindowsLike() {
  LiveModel m;
  m.builder().Input("ids", {"batch", "sequence"}, onnx::TensorProto::INT64);
  const std::string x = m.Transpose(m.Node("Gather", {m.Weight({50, 8}, 1), "ids"}), {0, 2, 1});
  std::vector<std::string> largest;
  for (const int64_t width : {3, 4, 5}) {
    onnx::NodeProto* reduce = nullptr;
    const std::string maps = m.Node("Relu", {m.Conv(x, 8, 6, {{width}, {1}, {0, 0}})});
    largest.push_back(m.Node("ReduceMax", {maps}, &reduce));
    SetAttribute(*reduce, "axes", std::vector<int64_t>{2});
    SetAttribute(*reduce, "keepdims", int64_t{0});
  }
  onnx::NodeProto* concat = nullptr;
  const std::string joined = m.Node("Concat", largest, &concat);
  SetAttribute(*concat, "axis", int64_t{1});
  m.Output(m.Linear(joined, 18, 3));
  return m.Bytes();
}

}  // namespace reprise
