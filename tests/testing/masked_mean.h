// The smallest model of sentences: the mean of the embeddings of the tokens that count.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/engine/types/request.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/temp_folder.h"

namespace reprise {

inline constexpr int64_t kMeanVocabulary = 50;
inline constexpr int64_t kMeanHidden = 8;

// A further part of the model, which shows in long requests alone.
enum class LateTokens {
  kLikeOthers,  // nothing: the ops prove that it may be padded
  kTwice,       // late tokens count twice: right, but the ops alone do not prove it
  kUnmasked,    // plus the late tokens that the mask leaves out, padding among them
};

// input_ids, attention_mask [batch, sequence] -> y [batch, 8]. Tokens are late from `first_late`
// on.
inline std::string MaskedMeanModel(LateTokens late = LateTokens::kLikeOthers,
                                   int64_t first_late = 40) {
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
  b.Node("Div", {"sum", "count"}, {late == LateTokens::kLikeOthers ? "y" : "mean"});
  if (late != LateTokens::kLikeOthers) {
    b.Initializer<int64_t>("first_late", onnx::TensorProto::INT64, {1}, {first_late});
    b.Initializer<int64_t>("end", onnx::TensorProto::INT64, {1}, {100000});
    b.Node("Sub", {"x", "masked"}, {"left_out"});
    // The values are reversed, so that the ops do not tell where each value lies.
    b.Initializer<int64_t>("along", onnx::TensorProto::INT64, {1}, {1});
    SetAttribute(b.Node("ReduceSum", {"attention_mask", "along"}, {"lengths"}), "keepdims",
                 int64_t{0});
    auto& turn = b.Node("ReverseSequence", {"left_out", "lengths"}, {"turned"});
    SetAttribute(turn, "batch_axis", int64_t{0});
    SetAttribute(turn, "time_axis", int64_t{1});
    b.Node("Slice", {late == LateTokens::kTwice ? "masked" : "turned", "first_late", "end", "one"},
           {"late"});
    SetAttribute(b.Node("ReduceSum", {"late", "one"}, {"more"}), "keepdims", int64_t{0});
    b.Node("Add", {"mean", "more"}, {"y"});
  }
  b.Output("y");
  return b.Bytes();
}

// Loads a model, as "mean" unless the options name it, from a file that is gone afterwards. Null,
// and the test has failed, where it cannot be loaded.
inline std::shared_ptr<Model> LoadBytes(Engine& engine, const std::string& bytes,
                                        ModelOptions options = {}) {
  const TempFolder folder;
  if (options.id.name.empty()) options.id = {"mean", 1};
  options.path = folder.Write("model.onnx", bytes);
  auto model = engine.Load(std::move(options));
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
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
