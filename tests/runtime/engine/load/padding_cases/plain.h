// Forms that most models have: pooling, tables of positions, convolutions, recurrences.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// y [batch, hidden, sequence] = a window of three tokens around each, over `from`.
inline void AddConv(ModelBuilder& b, const std::string& from, int64_t stride) {
  AddTurned(b, from, "turned", {0, 2, 1});
  AddWeights(b, "kernel", {kHidden, kHidden, 3});
  auto& conv = b.Node("Conv", {"turned", "kernel"}, {"y"});
  SetAttribute(conv, "pads", std::vector<int64_t>{1, 1});
  SetAttribute(conv, "strides", std::vector<int64_t>{stride});
}

// Adds a recurrent layer over the tokens, with the inputs after its three weights. States
// [sequence, directions, batch, hidden] and the last of them.
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
  SetAttribute(node, "direction", direction);
  return node;
}

// Adds the number of positions of each row that count, as the client's mask says.
inline void AddLengths(ModelBuilder& b, int64_t type, const std::string& result) {
  SetAttribute(b.Node("ReduceSum", {"attention_mask", "one"}, {"counted"}), "keepdims", int64_t{0});
  AddCast(b, "counted", result, type);
}

inline const PaddingCase kPlainCases[] = {
    {.name = "MaskedMean",
     .build = [](ModelBuilder& b) { AddMaskedMean(b, "y"); },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "MaskedMeanOfUnnamedDims",
     .build = [](ModelBuilder& b) { AddMaskedMean(b, "y"); },
     .named_axes = false,
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "UnmaskedMean",
     .build = [](ModelBuilder& b) { AddReduce(b, "ReduceMean", "x", "y", {1}); },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "CentredOverTheBatch",
     .build =
         [](ModelBuilder& b) {
           AddReduce(b, "ReduceMean", "x", "mean", {0}, true);
           b.Node("Sub", {"x", "mean"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "TableOfPositions",
     .build =
         [](ModelBuilder& b) {
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Node("Slice", {"shape", "one", "two"}, {"length"});
           b.Node("Slice", {"positions", "zero", "length", "zero"}, {"used"});
           b.Node("Add", {"x", "used"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .longest = kPositions,
     .largest_bucket = 32,
     .packs = true},
    {.name = "FlattenedTokens",
     .build =
         [](ModelBuilder& b) {
           AddIntegers(b, "flat", {-1, kHidden});
           b.Node("Reshape", {"x", "flat"}, {"y"});
         },
     .batch = false,
     .sequence = false},
    {.name = "ReversedTokens",
     .build =
         [](ModelBuilder& b) {
           AddIntegers(b, "start", {-1});
           AddIntegers(b, "end", {-100000});
           b.Node("Slice", {"x", "start", "end", "one", "start"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "LengthCutAtThirtyTwo",
     .build =
         [](ModelBuilder& b) {
           AddIntegers(b, "most", {32});
           b.Node("Slice", {"x", "zero", "most", "one"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "SqueezedAtOne",
     .build = [](ModelBuilder& b) { b.Node("Squeeze", {"x"}, {"y"}); },
     .batch = false,
     .sequence = false},
    {.name = "IdsOfTransposedTokens",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "input_ids", "turned", {1, 0});
           b.Node("Gather", {"table", "turned"}, {"looked_up"});
           AddTurned(b, "looked_up", "y", {1, 0, 2});
         },
     .batch = true,
     .sequence = true},
    {.name = "StridedConvolution",
     .build = [](ModelBuilder& b) { AddConv(b, "x", 2); },
     .batch = true,
     .sequence = true},
    {.name = "ConvolutionOverTheEdge",
     .build = [](ModelBuilder& b) { AddConv(b, "x", 1); },
     .batch = true,
     .sequence = true},
    {.name = "ConvolutionOfMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           AddConv(b, "masked", 1);
         },
     .batch = true,
     .sequence = true},
    {.name = "PooledOverTheEdge",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           auto& pool = b.Node("AveragePool", {"turned"}, {"y"});
           SetAttribute(pool, "kernel_shape", std::vector<int64_t>{3});
           SetAttribute(pool, "strides", std::vector<int64_t>{2});
           SetAttribute(pool, "pads", std::vector<int64_t>{0, 2});
         },
     .batch = true,
     .sequence = true},
    {.name = "RecurrenceForward",
     .build =
         [](ModelBuilder& b) {
           AddRecurrent(b, "LSTM", 4, "forward");
           AddTurned(b, "states", "y", {2, 0, 1, 3});
         },
     .batch = true,
     .sequence = true},
    {.name = "RecurrenceReversed",
     .build =
         [](ModelBuilder& b) {
           AddRecurrent(b, "LSTM", 4, "reverse");
           AddTurned(b, "states", "y", {2, 0, 1, 3});
         },
     .batch = true,
     .sequence = true},
    {.name = "RecurrenceUpToTheMask",
     .build =
         [](ModelBuilder& b) {
           AddLengths(b, onnx::TensorProto::INT32, "lengths");
           AddRecurrent(b, "GRU", 3, "bidirectional", {"", "lengths"});
           AddTurned(b, "last", "y", {1, 0, 2});
         },
     .batch = true,
     .sequence = false},
    {.name = "LastStatesAlone",
     .build =
         [](ModelBuilder& b) {
           AddLengths(b, onnx::TensorProto::INT32, "lengths");
           // The states of all steps are left out.
           AddRecurrent(b, "GRU", 3, "bidirectional", {"", "lengths"}).set_output(0, "");
           AddTurned(b, "last", "y", {1, 0, 2});
         },
     .batch = true,
     .sequence = false},
    {.name = "LastState",
     .build =
         [](ModelBuilder& b) {
           AddRecurrent(b, "RNN", 1, "forward");
           AddTurned(b, "last", "y", {1, 0, 2});
         },
     .batch = true,
     .sequence = true},
    {.name = "StatisticsOfTheSequence",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddWeights(b, "scale", {kHidden});
           b.Node("InstanceNormalization", {"turned", "scale", "scale"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "ReversedUpToTheMask",
     .build =
         [](ModelBuilder& b) {
           AddLengths(b, onnx::TensorProto::INT64, "lengths");
           auto& node = b.Node("ReverseSequence", {"x", "lengths"}, {"y"});
           SetAttribute(node, "batch_axis", int64_t{0});
           SetAttribute(node, "time_axis", int64_t{1});
         },
     .batch = true,
     .sequence = true},
    {.name = "SampledAtTwoThirds",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           b.Floats("scales", {3}, {1, 1, 1.5f});
           b.Node("Resize", {"turned", "", "scales"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "SimilarityOfRows",
     .build =
         [](ModelBuilder& b) {
           AddMaskedMean(b, "pooled");
           AddTurned(b, "pooled", "transposed", {1, 0});
           b.Node("MatMul", {"pooled", "transposed"}, {"y"});
         },
     .batch = true,
     .sequence = true},
};

}  // namespace reprise
