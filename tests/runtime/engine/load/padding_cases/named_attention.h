// Attention that is one node, and places of extremes by which tokens are picked.
#pragma once

#include <string>
#include <vector>

#include "tests/runtime/engine/load/padding_cases/padding_case.h"

namespace reprise {

// Attention of ONNX over the tokens; `mask` may be left out.
inline onnx::NodeProto& AddNamedAttention(ModelBuilder& b, const std::string& mask) {
  b.model().mutable_opset_import(0)->set_version(23);
  std::vector<std::string> inputs = {"x", "x", "x"};
  if (!mask.empty()) inputs.push_back(mask);
  auto& node = b.Node("Attention", inputs, {"y"}, "attention");
  SetAttribute(node, "q_num_heads", int64_t{2});
  SetAttribute(node, "kv_num_heads", int64_t{2});
  return node;
}

// Bools [batch, 1, 1, sequence].
inline void AddKeysToSee(ModelBuilder& b) {
  AddCast(b, "attention_mask", "counts", onnx::TensorProto::BOOL);
  AddIntegers(b, "heads_and_queries", {1, 2});
  b.Node("Unsqueeze", {"counts", "heads_and_queries"}, {"keys"});
}

inline onnx::NodeProto& AddMultiHead(ModelBuilder& b, const std::vector<std::string>& more) {
  std::vector<std::string> inputs = {"x", "x", "x"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  auto& node = b.Node("MultiHeadAttention", inputs, {"y"}, "attention", kMicrosoft);
  SetAttribute(node, "num_heads", int64_t{2});
  return node;
}

inline void AddProjected(ModelBuilder& b, const std::vector<std::string>& more) {
  std::vector<float> weights;
  for (int i = 0; i < kHidden * 3 * kHidden; ++i) weights.push_back(0.1f * ((i * 7) % 11 - 5));
  b.Floats("weights", {kHidden, 3 * kHidden}, weights);
  b.Floats("bias", {3 * kHidden}, std::vector<float>(3 * kHidden, 0.25f));
  std::vector<std::string> inputs = {"x", "weights", "bias"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  auto& node = b.Node("Attention", inputs, {"y"}, "attention", kMicrosoft);
  SetAttribute(node, "num_heads", int64_t{2});
}

// The token at `place`, [batch, 1], of each row.
inline void AddTokenAt(ModelBuilder& b, const std::string& place) {
  b.Node("Unsqueeze", {place, "two"}, {"place3"});
  AddIntegers(b, "width", {1, 1, kHidden});
  b.Node("Expand", {"place3", "width"}, {"places"});
  SetAttribute(b.Node("GatherElements", {"x", "places"}, {"y"}), "axis", int64_t{1});
}

inline const PaddingCase kNamedCases[] = {
    {.name = "NamedAttention",
     .build = [](ModelBuilder& b) { AddNamedAttention(b, ""); },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "NamedAttentionThatLooksBack",
     .build =
         [](ModelBuilder& b) { SetAttribute(AddNamedAttention(b, ""), "is_causal", int64_t{1}); },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "NamedAttentionUnderBools",
     .build =
         [](ModelBuilder& b) {
           AddKeysToSee(b);
           AddNamedAttention(b, "keys");
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "NamedAttentionUnderAWeakMask",
     .build =
         [](ModelBuilder& b) {
           AddLowMask(b, -10, "low_mask");
           b.Node("Unsqueeze", {"low_mask", "one"}, {"mask4"});
           AddNamedAttention(b, "mask4");
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "MultiHeadAttention",
     .build = [](ModelBuilder& b) { AddMultiHead(b, {}); },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "MultiHeadAttentionUnderAMask",
     .build =
         [](ModelBuilder& b) {
           AddCast(b, "attention_mask", "mask32", onnx::TensorProto::INT32);
           AddMultiHead(b, {"", "mask32"});
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "MultiHeadAttentionThatLooksBackUnderABias",
     .build =
         [](ModelBuilder& b) {
           AddLowMask(b, -3, "low_mask");
           b.Node("Unsqueeze", {"low_mask", "one"}, {"mask4"});
           SetAttribute(AddMultiHead(b, {"", "", "mask4"}), "unidirectional", int64_t{1});
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "ProjectedAttention",
     .build = [](ModelBuilder& b) { AddProjected(b, {}); },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "ProjectedAttentionUnderAMask",
     .build =
         [](ModelBuilder& b) {
           AddCast(b, "attention_mask", "mask32", onnx::TensorProto::INT32);
           AddProjected(b, {"mask32"});
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "TokenOfTheLargestId",
     .build =
         [](ModelBuilder& b) {
           SetAttribute(b.Node("ArgMax", {"input_ids"}, {"place"}), "axis", int64_t{1});
           AddTokenAt(b, "place");
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "TokenOfTheSmallestId",
     .build =
         [](ModelBuilder& b) {
           SetAttribute(b.Node("ArgMin", {"input_ids"}, {"place"}), "axis", int64_t{1});
           AddTokenAt(b, "place");
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "TokenOfTheLastOfEqualLargestIds",
     .build =
         [](ModelBuilder& b) {
           auto& node = b.Node("ArgMax", {"input_ids"}, {"place"});
           SetAttribute(node, "axis", int64_t{1});
           SetAttribute(node, "select_last_index", int64_t{1});
           AddTokenAt(b, "place");
         },
     .batch = true,
     .sequence = false,
     .packs = true},
    {.name = "WeightsByTheirLogarithms",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "keys_of_tokens", {0, 2, 1});
           b.Node("MatMul", {"x", "keys_of_tokens"}, {"scores"});
           b.Node("LogSoftmax", {"scores"}, {"logarithms"});
           b.Node("Exp", {"logarithms"}, {"weights"});
           b.Node("MatMul", {"weights", "x"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "TheTokenOfTheHighestScore",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "keys_of_tokens", {0, 2, 1});
           b.Node("MatMul", {"x", "keys_of_tokens"}, {"scores"});
           b.Node("Hardmax", {"scores"}, {"chosen"});
           b.Node("MatMul", {"chosen", "x"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "AnyTokenOfAKind",
     .build =
         [](ModelBuilder& b) {
           b.model().mutable_opset_import(0)->set_version(20);
           AddInteger(b, "kind", 7);
           b.Node("Equal", {"input_ids", "kind"}, {"is_kind"});
           b.Node("ReduceMax", {"is_kind", "one"}, {"any"});
           AddCast(b, "any", "number");
           b.Node("Unsqueeze", {"number", "two"}, {"number3"});
           b.Node("Add", {"x", "number3"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "LargestAndSmallestId",
     .build =
         [](ModelBuilder& b) {
           AddReduce(b, "ReduceMax", "input_ids", "largest", {1});
           AddReduce(b, "ReduceMin", "input_ids", "smallest", {1});
           b.Node("Sub", {"largest", "smallest"}, {"range"});
           AddCast(b, "range", "numbers");
           AddReduce(b, "ReduceMean", "x", "mean", {1, 2});
           b.Node("Add", {"numbers", "mean"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    // NaN counts as larger than what is past the end.
    {.name = "SmallestTokensOfAll",
     .build =
         [](ModelBuilder& b) {
           AddIntegers(b, "k", {1});
           auto& node = b.Node("TopK", {"x", "k"}, {"y", "places"});
           SetAttribute(node, "axis", int64_t{1});
           SetAttribute(node, "largest", int64_t{0});
         },
     .batch = true,
     .sequence = false},
};

}  // namespace reprise
