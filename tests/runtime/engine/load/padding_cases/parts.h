// The parts that the models of this folder are made of.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"

namespace reprise {

inline constexpr int64_t kVocabulary = 50;
inline constexpr int64_t kLargeVocabulary = 20000;
inline constexpr int64_t kHidden = 8;
inline constexpr int64_t kPositions = 40;
inline constexpr float kLowestFloat = -3.4028234663852886e38f;
inline constexpr int64_t kNoEnd = 1 << 30;

// Integers, a scalar and a list.
inline void AddInteger(ModelBuilder& b, const std::string& name, int64_t value) {
  b.Initializer<int64_t>(name, onnx::TensorProto::INT64, {}, {value});
}
inline void AddIntegers(ModelBuilder& b, const std::string& name,
                        const std::vector<int64_t>& values) {
  b.Initializer(name, onnx::TensorProto::INT64, {static_cast<int64_t>(values.size())}, values);
}

inline void AddNumber(ModelBuilder& b, const std::string& name, float value) {
  b.Floats(name, {}, {value});
}

inline void AddCast(ModelBuilder& b, const std::string& from, const std::string& to,
                    int64_t type = onnx::TensorProto::FLOAT) {
  SetAttribute(b.Node("Cast", {from}, {to}), "to", type);
}

// `input_ids` and `attention_mask`, [batch, sequence], and the values that most models make of
// them: `x` [batch, sequence, kHidden], the mask as floats, `mask`, and `mask3` [batch, sequence,
// 1].
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
  AddIntegers(b, "one", {1});
  AddIntegers(b, "two", {2});
  AddIntegers(b, "zero", {0});
  b.Node("Gather", {"table", "input_ids"}, {"x"});
  AddCast(b, "attention_mask", "mask");
  b.Node("Unsqueeze", {"mask", "two"}, {"mask3"});
}

// `result` [batch, kHidden]: the mean of the tokens that count.
inline void AddMaskedMean(ModelBuilder& b, const std::string& result) {
  b.Node("Mul", {"x", "mask3"}, {"masked"});
  SetAttribute(b.Node("ReduceSum", {"masked", "one"}, {"sum"}), "keepdims", int64_t{0});
  SetAttribute(b.Node("ReduceSum", {"mask3", "one"}, {"count"}), "keepdims", int64_t{0});
  b.Node("Div", {"sum", "count"}, {result});
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

inline void AddReduce(ModelBuilder& b, const std::string& op, const std::string& from,
                      const std::string& to, const std::vector<int64_t>& axes, bool keep = false) {
  auto& node = b.Node(op, {from}, {to}, "/pool/" + op);
  SetAttribute(node, "axes", axes);
  SetAttribute(node, "keepdims", int64_t{keep});
}

inline void AddSum(ModelBuilder& b, const std::string& from, const std::string& to,
                   const std::string& axis = "one") {
  SetAttribute(b.Node("ReduceSum", {from, axis}, {to}, "/pool/ReduceSum"), "keepdims", int64_t{0});
}

// `length`, a scalar, and `to`: the same as a float.
inline void AddLength(ModelBuilder& b, const std::string& to) {
  b.Node("Shape", {"input_ids"}, {"shape"});
  AddInteger(b, "at_one", 1);
  b.Node("Gather", {"shape", "at_one"}, {"length"});
  AddCast(b, "length", to);
}

// `places`: 0, 1, 2 ... to the end of the sequence; and the values of AddLength.
inline void AddPlaces(ModelBuilder& b) {
  AddLength(b, "length.float");
  AddInteger(b, "none", 0);
  b.Node("Range", {"none", "length", "at_one"}, {"places"});
}

// `last`, [batch, 1]: the place of the last token that counts, where these come first.
inline void AddLast(ModelBuilder& b) {
  SetAttribute(b.Node("ReduceSum", {"attention_mask", "one"}, {"counted"}), "keepdims", int64_t{1});
  b.Node("Sub", {"counted", "one"}, {"last"});
}

// `is_rare`, bool [batch, sequence]: where there is a token that hardly any text holds, of a large
// vocabulary.
inline void AddIsRare(ModelBuilder& b) {
  AddInteger(b, "rare", 12345);
  b.Node("Equal", {"input_ids", "rare"}, {"is_rare"});
}

inline void AddSlice(ModelBuilder& b, const std::string& from, const std::string& to, int64_t start,
                     int64_t end, int64_t axis = 1) {
  AddIntegers(b, to + ".start", {start});
  AddIntegers(b, to + ".end", {end});
  AddIntegers(b, to + ".axis", {axis});
  b.Node("Slice", {from, to + ".start", to + ".end", to + ".axis"}, {to}, "/" + to + "/Slice");
}

// Adds one head of attention over the tokens, [batch, sequence, hidden]; `mask` is added to the
// scores [batch, sequence, sequence].
inline void AddAttention(ModelBuilder& b, const std::string& mask, const std::string& to) {
  AddTurned(b, "x", "keys", {0, 2, 1});
  b.Node("MatMul", {"x", "keys"}, {"products"});
  AddNumber(b, "scale", 1.0f / 3);
  b.Node("Mul", {"products", "scale"}, {"scores"});
  b.Node("Add", {"scores", mask}, {"masked_scores"});
  b.Node("Softmax", {"masked_scores"}, {"weights"}, "/attention/Softmax");
  b.Node("MatMul", {"weights", "x"}, {to});
}

// (1 - mask) * `low`, [batch, 1, sequence].
inline void AddLowMask(ModelBuilder& b, float low, const std::string& to) {
  AddNumber(b, "1.0", 1);
  AddNumber(b, "low", low);
  b.Node("Unsqueeze", {"mask", "one"}, {"mask_of_keys"});
  b.Node("Sub", {"1.0", "mask_of_keys"}, {"left_out"});
  b.Node("Mul", {"left_out", "low"}, {to});
}

// Adds a causal mask of the length, 0 and `low`, [sequence, sequence].
inline void AddCausalMask(ModelBuilder& b, float low, const std::string& to) {
  b.Node("Shape", {"input_ids"}, {"shape"});
  b.Node("Slice", {"shape", "one", "two"}, {"length"});
  SetAttribute(b.Node("Concat", {"length", "length"}, {"square"}), "axis", int64_t{0});
  auto& all = b.Node("ConstantOfShape", {"square"}, {"all"});
  auto* attribute = all.add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  attribute->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  attribute->mutable_t()->add_dims(1);
  attribute->mutable_t()->add_float_data(low);
  AddInteger(b, "diagonal", 1);
  b.Node("Trilu", {"all", "diagonal"}, {to});
}

}  // namespace reprise
