// Decoders for tests: embeddings, causal attention with a cache, a head.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/onnx/model_builder.h"

namespace reprise {

inline constexpr int64_t kTinyVocabulary = 40;
inline constexpr int64_t kTinyHidden = 32;
// The scores after this id are no numbers.
inline constexpr int64_t kTinyPoison = 39;

// Returns numbers in [-scale, scale], the same for each `seed`.
inline std::vector<float> TinyNumbers(int64_t count, uint32_t seed, float scale) {
  std::vector<float> numbers(static_cast<size_t>(count));
  uint32_t state = seed * 2654435761u + 1;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = scale * (static_cast<float>(state >> 8) / 8388608.0f - 1);
  }
  return numbers;
}

// input_ids [batch, sequence], past_key, past_value [batch, 2, past, 16] -> logits, present_key,
// present_value. `causal`: else several new tokens of a request see each other.
inline std::string TinyDecoderModel(bool causal = true) {
  ModelBuilder b;
  auto* contrib = b.model().add_opset_import();
  contrib->set_domain("com.microsoft");
  contrib->set_version(1);
  b.Input("input_ids", {"batch", "sequence"}, onnx::TensorProto::INT64);
  b.Input("past_key", {"batch", "2", "past", "16"});
  b.Input("past_value", {"batch", "2", "past", "16"});
  std::vector<float> table = TinyNumbers(kTinyVocabulary * kTinyHidden, 1, 1);
  table[kTinyPoison * kTinyHidden] = std::numeric_limits<float>::quiet_NaN();
  b.Floats("table", {kTinyVocabulary, kTinyHidden}, table);
  b.Node("Gather", {"table", "input_ids"}, {"x"}, "embed");
  uint32_t seed = 2;
  for (const std::string name : {"q", "k", "v"}) {
    b.Floats("w_" + name, {kTinyHidden, kTinyHidden},
             TinyNumbers(kTinyHidden * kTinyHidden, seed++, 0.4f));
    b.Node("MatMul", {"x", "w_" + name}, {name}, "product_" + name);
  }
  auto& attention =
      b.Node("MultiHeadAttention", {"q", "k", "v", "", "", "", "past_key", "past_value"},
             {"attended", "present_key", "present_value"}, "attention", "com.microsoft");
  for (const auto& [name, value] :
       {std::pair{"num_heads", 2}, std::pair{"unidirectional", causal ? 1 : 0}}) {
    auto* attribute = attention.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  b.Node("Add", {"x", "attended"}, {"sum"}, "add");
  b.Floats("w_head", {kTinyHidden, kTinyVocabulary},
           TinyNumbers(kTinyHidden * kTinyVocabulary, seed, 0.6f));
  b.Node("MatMul", {"sum", "w_head"}, {"logits"}, "head");
  for (const char* output : {"logits", "present_key", "present_value"}) b.Output(output);
  return b.Bytes();
}

// The same with a product after attention and a gated layer, each with its residual. `weights`: a
// factor of one of them. With several `layers` the caches of all but the first are past_key_1 and
// so on.
inline std::string TinyLayersModel(float weights = 1, int layers = 1) {
  constexpr int64_t kInner = 96;
  ModelBuilder b;
  auto* contrib = b.model().add_opset_import();
  contrib->set_domain("com.microsoft");
  contrib->set_version(1);
  b.Input("input_ids", {"batch", "sequence"}, onnx::TensorProto::INT64);
  const auto suffix = [](int layer) { return layer == 0 ? "" : "_" + std::to_string(layer); };
  for (int layer = 0; layer < layers; ++layer) {
    b.Input("past_key" + suffix(layer), {"batch", "2", "past", "16"});
    b.Input("past_value" + suffix(layer), {"batch", "2", "past", "16"});
  }
  b.Floats("table", {kTinyVocabulary, kTinyHidden},
           TinyNumbers(kTinyVocabulary * kTinyHidden, 1, 1));
  b.Node("Gather", {"table", "input_ids"}, {"x"}, "embed");
  uint32_t seed = 2;
  const auto product = [&](const std::string& x, const std::string& y, int64_t rows,
                           int64_t columns, float scale) {
    b.Floats("w_" + y, {rows, columns}, TinyNumbers(rows * columns, seed++, scale));
    b.Node("MatMul", {x, "w_" + y}, {y}, "product_" + y);
  };
  std::vector<std::string> outputs = {"logits"};
  std::string x = "x";
  for (int layer = 0; layer < layers; ++layer) {
    const std::string at = suffix(layer);
    for (const char* name : {"q", "k", "v"}) {
      product(x, name + at, kTinyHidden, kTinyHidden, 0.4f);
    }
    const std::vector<std::string> present = {"present_key" + at, "present_value" + at};
    auto& attention =
        b.Node("MultiHeadAttention",
               {"q" + at, "k" + at, "v" + at, "", "", "", "past_key" + at, "past_value" + at},
               {"attended" + at, present[0], present[1]}, "attention" + at, "com.microsoft");
    for (const auto& [name, value] : {std::pair{"num_heads", 2}, std::pair{"unidirectional", 1}}) {
      auto* attribute = attention.add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(value);
    }
    product("attended" + at, "o" + at, kTinyHidden, kTinyHidden, 0.5f);
    b.Node("Add", {x, "o" + at}, {"sum" + at}, "add" + at);
    product("sum" + at, "gate" + at, kTinyHidden, kInner, 0.3f);
    product("sum" + at, "up" + at, kTinyHidden, kInner, 0.3f);
    b.Node("Sigmoid", {"gate" + at}, {"opened" + at}, "open" + at);
    b.Node("Mul", {"gate" + at, "opened" + at}, {"active" + at}, "activate" + at);
    b.Node("Mul", {"active" + at, "up" + at}, {"inner" + at}, "gated" + at);
    product("inner" + at, "down" + at, kInner, kTinyHidden, 0.2f * weights);
    b.Node("Add", {"sum" + at, "down" + at}, {"last" + at}, "add_down" + at);
    outputs.insert(outputs.end(), present.begin(), present.end());
    x = "last" + at;
  }
  product(x, "logits", kTinyHidden, kTinyVocabulary, 0.6f);
  for (const std::string& output : outputs) b.Output(output);
  return b.Bytes();
}

}  // namespace reprise
