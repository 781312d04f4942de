// A model of sentences as a dynamic quantiser writes them: the tokens are quantised by the range of
// the whole tensor, and so is the mean of each row after them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"

namespace reprise {

// Ids of the test's TokenRequest.
inline constexpr int64_t kQuantisedVocabulary = 21000;

// A further part of the model.
enum class MoreMixing {
  kNothing,
  kOverRows,  // the mean of all rows is added to each
};

// input_ids, attention_mask [batch, sequence] -> tokens [batch, sequence, 16], y [batch, 4]. Each
// table row has a size of its own, so that one id decides the range of a request.
inline std::string QuantisedMeanModel(MoreMixing more = MoreMixing::kNothing) {
  constexpr int64_t kWidth = 8, kHidden = 16, kOut = 4;
  ModelBuilder b;
  b.Input("input_ids", {"batch", "sequence"}, onnx::TensorProto::INT64);
  b.Input("attention_mask", {"batch", "sequence"}, onnx::TensorProto::INT64);
  std::vector<float> table(kQuantisedVocabulary * kWidth);
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t row = i / kWidth;
    table[i] = (static_cast<float>(i * 37 % 101) - 50) * static_cast<float>(1 + row % 13) * 0.01f;
  }
  b.Floats("table", {kQuantisedVocabulary, kWidth}, table);
  b.Initializer<int64_t>("one", onnx::TensorProto::INT64, {1}, {1});
  b.Initializer<int64_t>("two", onnx::TensorProto::INT64, {1}, {2});
  b.Initializer<int64_t>("zero", onnx::TensorProto::INT64, {1}, {0});
  const auto product = [&](const std::string& x, int64_t from, int64_t to, const std::string& y) {
    std::vector<int8_t> weights(from * to);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<int8_t>(i * 53 % 251 - 125);
    b.Initializer<int8_t>(y + "_w", onnx::TensorProto::INT8, {from, to}, weights);
    b.Initializer<int8_t>(y + "_z", onnx::TensorProto::INT8, {}, {0});
    b.Floats(y + "_s", {}, {0.01f});
    b.Node("DynamicQuantizeLinear", {x}, {y + "_q", y + "_qs", y + "_qz"}, y + "_quantise");
    b.Node("MatMulInteger", {y + "_q", y + "_w", y + "_qz", y + "_z"}, {y + "_sum"});
    SetAttribute(b.Node("Cast", {y + "_sum"}, {y + "_f"}), "to", int64_t{onnx::TensorProto::FLOAT});
    b.Node("Mul", {y + "_qs", y + "_s"}, {y + "_scale"});
    b.Node("Mul", {y + "_f", y + "_scale"}, {y});
  };
  b.Node("Gather", {"table", "input_ids"}, {"x"});
  product("x", kWidth, kHidden, "tokens");
  b.Node("Tanh", {"tokens"}, {"bent"});
  SetAttribute(b.Node("Cast", {"attention_mask"}, {"mask"}), "to",
               int64_t{onnx::TensorProto::FLOAT});
  b.Node("Unsqueeze", {"mask", "two"}, {"mask3"});
  b.Node("Mul", {"bent", "mask3"}, {"masked"});
  SetAttribute(b.Node("ReduceSum", {"masked", "one"}, {"sum"}), "keepdims", int64_t{0});
  SetAttribute(b.Node("ReduceSum", {"mask3", "one"}, {"count"}), "keepdims", int64_t{0});
  b.Node("Div", {"sum", "count"}, {"mean"});
  std::string pooled = "mean";
  if (more == MoreMixing::kOverRows) {
    b.Node("ReduceSum", {"mean", "zero"}, {"all_rows"}, "over_rows");
    b.Node("Add", {"mean", "all_rows"}, {"mixed"});
    pooled = "mixed";
  }
  product(pooled, kHidden, kOut, "y");
  b.Output("tokens");
  b.Output("y");
  return b.Bytes();
}

}  // namespace reprise
