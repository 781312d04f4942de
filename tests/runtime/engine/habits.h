// Small models with one habit each, for tests of what may be padded.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "runtime/ops/axis_rule.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise {

inline constexpr int64_t kVocabulary = 50;
inline constexpr int64_t kHidden = 8;
inline constexpr int64_t kPositions = 40;

inline void AddInputs(ModelBuilder& b, const std::string& batch, const std::string& sequence,
                      int64_t vocabulary = kVocabulary) {
  b.Input("input_ids", {batch, sequence}, onnx::TensorProto::INT64);
  b.Input("attention_mask", {batch, sequence}, onnx::TensorProto::INT64);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto table = [&](const std::string& name, int64_t rows) {
    std::vector<float> values(rows * kHidden);
    for (float& value : values) value = normal(random);
    b.Floats(name, {rows, kHidden}, values);
  };
  table("table", vocabulary);
  table("positions", kPositions);
  b.Initializer<int64_t>("one", onnx::TensorProto::INT64, {1}, {1});
  b.Initializer<int64_t>("two", onnx::TensorProto::INT64, {1}, {2});
  b.Initializer<int64_t>("zero", onnx::TensorProto::INT64, {1}, {0});
  b.Node("Gather", {"table", "input_ids"}, {"x"});
  SetAttribute(b.Node("Cast", {"attention_mask"}, {"mask"}), "to",
               int64_t{onnx::TensorProto::FLOAT});
  b.Node("Unsqueeze", {"mask", "two"}, {"mask3"});
}

inline void AddMaskedMean(ModelBuilder& b, const std::string& result) {
  b.Node("Mul", {"x", "mask3"}, {"masked"});
  SetAttribute(b.Node("ReduceSum", {"masked", "one"}, {"sum"}), "keepdims", int64_t{0});
  SetAttribute(b.Node("ReduceSum", {"mask3", "one"}, {"count"}), "keepdims", int64_t{0});
  b.Node("Div", {"sum", "count"}, {result});
}

inline void AddReduceMean(ModelBuilder& b, int64_t axis, const std::string& result, bool keep) {
  auto& node = b.Node("ReduceMean", {"x"}, {result});
  SetAttribute(node, "axes", std::vector<int64_t>{axis});
  SetAttribute(node, "keepdims", int64_t{keep});
}

inline void AddTurned(ModelBuilder& b, const std::string& from, const std::string& to,
                      const std::vector<int64_t>& permutation) {
  SetAttribute(b.Node("Transpose", {from}, {to}), "perm", permutation);
}

inline void AddWeights(ModelBuilder& b, const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 37) % 23 - 11) / 16);
  b.Floats(name, dims, values);
}

// y [batch, hidden, sequence] = a window of three tokens around each, over `from`.
inline void AddConv(ModelBuilder& b, const std::string& from, int64_t stride) {
  AddTurned(b, from, "turned", {0, 2, 1});
  AddWeights(b, "kernel", {kHidden, kHidden, 3});
  auto& conv = b.Node("Conv", {"turned", "kernel"}, {"y"});
  SetAttribute(conv, "pads", std::vector<int64_t>{1, 1});
  SetAttribute(conv, "strides", std::vector<int64_t>{stride});
}

// A recurrent layer over the tokens, with what comes behind its three weights. States [sequence,
// directions, batch, hidden] and the last of them.
inline onnx::NodeProto& AddRecurrent(ModelBuilder& b, const std::string& op, int64_t gates,
                                     const std::string& direction,
                                     const std::vector<std::string>& more = {}) {
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  AddTurned(b, "x", "steps", {1, 0, 2});
  AddWeights(b, "w", {directions, gates * kHidden, kHidden});
  AddWeights(b, "r", {directions, gates * kHidden, kHidden});
  std::vector<std::string> inputs = {"steps", "w", "r"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  auto& node = b.Node(op, inputs, {"states", "last"});
  SetAttribute(node, "hidden_size", kHidden);
  auto* attribute = node.add_attribute();
  attribute->set_name("direction");
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(direction);
  return node;
}

// How many positions of each row count, as the client's mask says.
inline void AddLengths(ModelBuilder& b, int64_t type, const std::string& result) {
  SetAttribute(b.Node("ReduceSum", {"attention_mask", "one"}, {"counted"}), "keepdims", int64_t{0});
  SetAttribute(b.Node("Cast", {"counted"}, {result}), "to", type);
}

struct HabitCase {
  const char* name;
  void (*build)(ModelBuilder&);
  bool batch;
  bool sequence;
  std::vector<std::string> guards = {};
  int64_t longest = 60;  // the model takes no longer requests
  int64_t largest_bucket = 512;
  bool packs = false;
  std::string words = "";  // among those of the certificate of the sequence
  bool proved = false;     // the ops alone prove that the sequence may be padded
  // What rows of a guard must hold; set: requests are drawn with any masks, whole rows of zeros
  // too.
  std::optional<CountingPlaces> must_count = std::nullopt;
  const char* mask = "attention_mask";  // of which input
};

inline void PrintTo(const HabitCase& c, std::ostream* out) { *out << c.name; }

}  // namespace reprise
