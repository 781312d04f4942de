// The smallest model of sentences: the mean of the embeddings of the tokens that count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/request.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise {

inline constexpr int64_t kMeanVocabulary = 50;
inline constexpr int64_t kMeanHidden = 8;

// input_ids, attention_mask [batch, sequence] -> y [batch, 8]
inline std::string MaskedMeanModel() {
  ModelBuilder b;
  b.Input("input_ids", {"batch", "sequence"}, onnx::TensorProto::INT64);
  b.Input("attention_mask", {"batch", "sequence"}, onnx::TensorProto::INT64);
  std::vector<float> table(kMeanVocabulary * kMeanHidden);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i % 17) - 8;
  b.Floats("table", {kMeanVocabulary, kMeanHidden}, table);
  b.Initializer<int64_t>("one", onnx::TensorProto::INT64, {1}, {1});
  b.Initializer<int64_t>("two", onnx::TensorProto::INT64, {1}, {2});
  b.Node("Gather", {"table", "input_ids"}, {"x"});
  SetAttribute(b.Node("Cast", {"attention_mask"}, {"mask"}), "to",
               int64_t{onnx::TensorProto::FLOAT});
  b.Node("Unsqueeze", {"mask", "two"}, {"mask3"});
  b.Node("Mul", {"x", "mask3"}, {"masked"});
  SetAttribute(b.Node("ReduceSum", {"masked", "one"}, {"sum"}), "keepdims", int64_t{0});
  SetAttribute(b.Node("ReduceSum", {"mask3", "one"}, {"count"}), "keepdims", int64_t{0});
  b.Node("Div", {"sum", "count"}, {"y"});
  b.Output("y");
  return b.Bytes();
}

struct MeanRequest {
  MeanRequest(int64_t rows, int64_t length) : ids(rows * length), mask(rows * length, 1) {
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 7 % kMeanVocabulary);
    request.inputs = {{{rows, length}, ids.data()}, {{rows, length}, mask.data()}};
  }
  MeanRequest(const MeanRequest&) = delete;

  std::vector<int64_t> ids, mask;
  Request request;
};

}  // namespace reprise
