// Models that look harmless to pad and are not, and models that look dangerous and are not.
#pragma once

#include "tests/runtime/engine/habits.h"

namespace reprise {

inline void AddNumber(ModelBuilder& b, const std::string& name, float value) {
  b.Floats(name, {}, {value});
}

inline onnx::NodeProto& AddReduce(ModelBuilder& b, const std::string& op, const std::string& from,
                                  const std::string& to, const std::vector<int64_t>& axes,
                                  bool keep = false) {
  auto& node = b.Node(op, {from}, {to}, "/pool/" + op);
  SetAttribute(node, "axes", axes);
  SetAttribute(node, "keepdims", int64_t{keep});
  return node;
}

inline void AddSum(ModelBuilder& b, const std::string& from, const std::string& to,
                   const std::string& axis = "one") {
  SetAttribute(b.Node("ReduceSum", {from, axis}, {to}, "/pool/ReduceSum"), "keepdims", int64_t{0});
}

// `to`: the length as a float.
inline void AddLength(ModelBuilder& b, const std::string& to) {
  b.Node("Shape", {"input_ids"}, {"shape"});
  b.Initializer<int64_t>("at_one", onnx::TensorProto::INT64, {}, {1});
  b.Node("Gather", {"shape", "at_one"}, {"length"});
  SetAttribute(b.Node("Cast", {"length"}, {to}), "to", int64_t{onnx::TensorProto::FLOAT});
}

// One head of attention over the tokens, [batch, sequence, hidden]; `mask` is added to the scores
// [batch, sequence, sequence].
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

// y: a mean weighted by what a softmax makes of one score a token, `scale` times what is usual.
inline void AddPooling(ModelBuilder& b, float low, float scale) {
  AddNumber(b, "1.0", 1);
  AddNumber(b, "low", low);
  AddNumber(b, "scale", scale);
  AddWeights(b, "query", {kHidden});
  b.Node("MatMul", {"x", "query"}, {"products"});
  b.Node("Mul", {"products", "scale"}, {"scores"});
  b.Node("Sub", {"1.0", "mask"}, {"left_out"});
  b.Node("Mul", {"left_out", "low"}, {"mask_to_add"});
  b.Node("Add", {"scores", "mask_to_add"}, {"masked_scores"});
  b.Node("Softmax", {"masked_scores"}, {"weights"}, "/pool/Softmax");
  b.Node("Unsqueeze", {"weights", "two"}, {"column"});
  b.Node("Mul", {"x", "column"}, {"weighted"});
  AddSum(b, "weighted", "y");
}

// A causal mask of the length, 0 and `low`, [sequence, sequence].
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
  b.Initializer<int64_t>("diagonal", onnx::TensorProto::INT64, {}, {1});
  b.Node("Trilu", {"all", "diagonal"}, {to});
}

inline void AddSlice(ModelBuilder& b, const std::string& from, const std::string& to, int64_t start,
                     int64_t end, int64_t axis = 1) {
  b.Initializer<int64_t>(to + ".start", onnx::TensorProto::INT64, {1}, {start});
  b.Initializer<int64_t>(to + ".end", onnx::TensorProto::INT64, {1}, {end});
  b.Initializer<int64_t>(to + ".axis", onnx::TensorProto::INT64, {1}, {axis});
  b.Node("Slice", {from, to + ".start", to + ".end", to + ".axis"}, {to}, "/" + to + "/Slice");
}

inline constexpr int64_t kNoEnd = 1 << 30;

inline const HabitCase kTraps[] = {
    {.name = "AttentionUnderTheLowestMask",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLowMask(b, -3.4028234663852886e38f, "mask_to_add");
           AddAttention(b, "mask_to_add", "y");
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"},
     .proved = true},
    {.name = "AttentionUnderAMaskOfThousands",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLowMask(b, -10000, "mask_to_add");
           AddAttention(b, "mask_to_add", "y");
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"},
     .words = "(Softmax) normalises under a mask of -10000"},
    {.name = "AttentionUnderAMaskOfTen",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLowMask(b, -10, "mask_to_add");
           AddAttention(b, "mask_to_add", "y");
         },
     .batch = true,
     .sequence = false,
     .words = "normalises over sequence under a mask of only -10"},
    {.name = "LoudPoolingUnderAMaskOfThousands",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddPooling(b, -10000, -1e4f);
         },
     .batch = true,
     .sequence = false},
    {.name = "PoolingUnderAMaskOfThousands",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddPooling(b, -10000, 1);
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"}},
    {.name = "AttentionWithoutAMask",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddNumber(b, "nothing", 0);
           AddAttention(b, "nothing", "y");
         },
     .batch = true,
     .sequence = false,
     .words = "node '/attention/Softmax' (Softmax) normalises over sequence without a mask"},
    {.name = "CausalAttention",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddCausalMask(b, -3.4028234663852886e38f, "causal");
           AddAttention(b, "causal", "y");
         },
     .batch = true,
     .sequence = true,
     .proved = true},
    {.name = "WeaklyCausalAttention",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddCausalMask(b, -12, "causal");
           AddAttention(b, "causal", "y");
         },
     .batch = true,
     .sequence = false,
     .words = "normalises over sequence under a mask of only -12"},
    {.name = "MaskedAttentionAndThenTheMeanOfAll",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLowMask(b, -3.4028234663852886e38f, "mask_to_add");
           AddAttention(b, "mask_to_add", "context");
           AddReduce(b, "ReduceMean", "context", "y", {1});
         },
     .batch = true,
     .sequence = false,
     .words = "node '/pool/ReduceMean' (ReduceMean) averages over sequence without a mask"},
    {.name = "LastToken",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("last", onnx::TensorProto::INT64, {}, {-1});
           SetAttribute(b.Node("Gather", {"x", "last"}, {"y"}, "/last/Gather"), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = false,
     .words = "node '/last/Gather' (Gather) takes elements counted from the end of sequence"},
    {.name = "LastTokenThatCounts",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           SetAttribute(b.Node("ReduceSum", {"attention_mask", "one"}, {"counted"}), "keepdims",
                        int64_t{1});
           b.Node("Sub", {"counted", "one"}, {"last"});
           auto& node = b.Node("GatherND", {"x", "last"}, {"y"});
           SetAttribute(node, "batch_dims", int64_t{1});
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"}},
    {.name = "FirstToken",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("first", onnx::TensorProto::INT64, {}, {0});
           SetAttribute(b.Node("Gather", {"x", "first"}, {"y"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = true,
     .proved = true},
    {.name = "DividedByTheLength",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLength(b, "length.float");
           b.Node("Div", {"x", "length.float"}, {"y"}, "/scale/Div");
         },
     .batch = true,
     .sequence = false,
     .words = "node '/scale/Div' (Div) computes with a number that depends on the length"},
    {.name = "OtherAboveThreeHundred",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLength(b, "length.float");
           AddNumber(b, "limit", 300);
           b.Node("Greater", {"length.float", "limit"}, {"is_long"});
           b.Node("Neg", {"x"}, {"other"});
           b.Node("Where", {"is_long", "other", "x"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "SumFromPositionHundredOn",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddMaskedMean(b, "mean");
           AddSlice(b, "x", "late", 100, 110);
           AddSum(b, "late", "more");
           b.Node("Add", {"mean", "more"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "PositionsCountedFromTheEnd",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("none", onnx::TensorProto::INT64, {}, {0});
           b.Initializer<int64_t>("step", onnx::TensorProto::INT64, {}, {-1});
           AddLength(b, "unused");
           b.Node("Add", {"length", "step"}, {"last"});
           b.Node("Range", {"last", "step", "step"}, {"backwards"});
           b.Node("Gather", {"positions", "backwards"}, {"places"});
           b.Node("Add", {"x", "places"}, {"y"});
         },
     .batch = true,
     .sequence = false,
     .longest = kPositions},
    {.name = "SumsSoFar",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("along", onnx::TensorProto::INT64, {}, {1});
           b.Node("CumSum", {"x", "along"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .proved = true},
    {.name = "SumsFromTheEnd",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("along", onnx::TensorProto::INT64, {}, {1});
           SetAttribute(b.Node("CumSum", {"x", "along"}, {"y"}), "reverse", int64_t{1});
         },
     .batch = true,
     .sequence = false,
     .words = "from the end"},
    {.name = "SumsFromTheEndOfMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           b.Initializer<int64_t>("along", onnx::TensorProto::INT64, {}, {1});
           SetAttribute(b.Node("CumSum", {"masked", "along"}, {"y"}), "reverse", int64_t{1});
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"},
     .proved = true},
    {.name = "SumsOverTheBatch",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("along", onnx::TensorProto::INT64, {}, {0});
           b.Node("CumSum", {"x", "along"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "PlaceOfTheLargest",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           auto& node = b.Node("ArgMax", {"x"}, {"place"});
           SetAttribute(node, "axis", int64_t{1});
           SetAttribute(b.Node("Cast", {"place"}, {"y"}), "to", int64_t{onnx::TensorProto::FLOAT});
         },
     .batch = true,
     .sequence = false,
     .words = "(ArgMax) looks for an extreme over sequence without a mask"},
    {.name = "LabelOfEachToken",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           SetAttribute(b.Node("ArgMax", {"x"}, {"label"}), "axis", int64_t{2});
           SetAttribute(b.Node("Cast", {"label"}, {"y"}), "to", int64_t{onnx::TensorProto::FLOAT});
         },
     .batch = true,
     .sequence = true,
     .proved = true},
    {.name = "LargestOfMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           AddReduce(b, "ReduceMax", "masked", "y", {1});
         },
     .batch = true,
     .sequence = false},
    {.name = "LargestUnderAMaskOfFifty",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddNumber(b, "none", 0);
           AddNumber(b, "low", -50);
           b.Node("Greater", {"mask3", "none"}, {"counts"});
           b.Node("Where", {"counts", "x", "low"}, {"left"});
           AddReduce(b, "ReduceMax", "left", "y", {1});
         },
     .batch = true,
     .sequence = false,
     .words = "under a mask of only -50"},
    {.name = "LargestOfTokensThatCount",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddNumber(b, "none", 0);
           AddNumber(b, "lowest", -1e9f);
           b.Node("Greater", {"mask3", "none"}, {"counts"});
           b.Node("Where", {"counts", "x", "lowest"}, {"left"});
           AddReduce(b, "ReduceMax", "left", "y", {1});
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"},
     .proved = true},
    {.name = "LargestToken",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("k", onnx::TensorProto::INT64, {1}, {1});
           SetAttribute(b.Node("TopK", {"x", "k"}, {"y", "places"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = false},
    {.name = "SortedTokens",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Node("Slice", {"shape", "one", "two"}, {"length"});
           SetAttribute(b.Node("TopK", {"x", "length"}, {"y", "places"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = false},
    {.name = "CentredOverTheSequence",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddReduceMean(b, 1, "mean", true);
           b.Node("Sub", {"x", "mean"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "NormOfAllTokens",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddReduce(b, "ReduceL2", "x", "norm", {1, 2}, true);
           b.Node("Div", {"x", "norm"}, {"y"});
         },
     .batch = true,
     .sequence = false,
     .words = "takes a norm over sequence without a mask"},
    {.name = "WindowOfTwo",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddWeights(b, "kernel", {kHidden, kHidden, 2});
           SetAttribute(b.Node("Conv", {"turned", "kernel"}, {"y"}), "pads",
                        std::vector<int64_t>{0, 1});
         },
     .batch = true,
     .sequence = false,
     .words = "reads 1 position ahead"},
    {.name = "CausalConvolution",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddWeights(b, "kernel", {kHidden, kHidden, 3});
           SetAttribute(b.Node("Conv", {"turned", "kernel"}, {"y"}), "pads",
                        std::vector<int64_t>{2, 0});
         },
     .batch = true,
     .sequence = true,
     .proved = true},
    {.name = "CausalConvolutionBehindAPad",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddTurned(b, "x", "turned", {0, 2, 1});
           b.Initializer<int64_t>("pads", onnx::TensorProto::INT64, {6}, {0, 0, 2, 0, 0, 0});
           b.Node("Pad", {"turned", "pads"}, {"wide"});
           AddWeights(b, "kernel", {kHidden, kHidden, 3});
           b.Node("Conv", {"wide", "kernel"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "NormOfBatchesAsLearnt",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddWeights(b, "scale", {kHidden});
           b.Floats("variance", {kHidden}, std::vector<float>(kHidden, 0.5f));
           b.Node("BatchNormalization", {"turned", "scale", "scale", "scale", "variance"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .proved = true},
    {.name = "SharesOfTheBatch",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           SetAttribute(b.Node("Softmax", {"x"}, {"y"}), "axis", int64_t{0});
         },
     .batch = false,
     .sequence = true},
    {.name = "ComparedWithTheFirstRow",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddSlice(b, "x", "first_row", 0, 1, 0);
           b.Node("Sub", {"x", "first_row"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "DividedByTheBatch",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Initializer<int64_t>("none", onnx::TensorProto::INT64, {}, {0});
           b.Node("Gather", {"shape", "none"}, {"rows"});
           SetAttribute(b.Node("Cast", {"rows"}, {"rows.float"}), "to",
                        int64_t{onnx::TensorProto::FLOAT});
           b.Node("Div", {"x", "rows.float"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "PlacesCountedByTheMask",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("along", onnx::TensorProto::INT64, {}, {1});
           b.Node("CumSum", {"attention_mask", "along"}, {"counted"});
           b.Node("Mul", {"counted", "attention_mask"}, {"places"});
           b.Node("Gather", {"positions", "places"}, {"embedded"});
           b.Node("Add", {"x", "embedded"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .longest = kPositions - 1},
    {.name = "TokenWithTheLargestId",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           SetAttribute(b.Node("ArgMax", {"input_ids"}, {"end"}), "axis", int64_t{1});
           SetAttribute(b.Node("GatherND", {"x", "end"}, {"y"}), "batch_dims", int64_t{1});
         },
     .batch = true,
     .sequence = true,
     .guards = {"input_ids"}},
    {.name = "NumberOfSevens",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("seven", onnx::TensorProto::INT64, {}, {7});
           b.Node("Equal", {"input_ids", "seven"}, {"is_seven"});
           SetAttribute(b.Node("Cast", {"is_seven"}, {"sevens"}), "to",
                        int64_t{onnx::TensorProto::FLOAT});
           AddSum(b, "sevens", "number");
           b.Node("Unsqueeze", {"number", "one"}, {"column"});
           AddMaskedMean(b, "mean");
           b.Node("Add", {"mean", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .guards = {"input_ids", "attention_mask"}},
    {.name = "NumberOfOneTokenAmongMany",
     // No hostile filling need hold that token, so that nothing but the ops tells.
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence", 20000);
           b.Initializer<int64_t>("rare", onnx::TensorProto::INT64, {}, {12345});
           b.Node("Equal", {"input_ids", "rare"}, {"is_rare"});
           SetAttribute(b.Node("Cast", {"is_rare"}, {"rares"}), "to",
                        int64_t{onnx::TensorProto::FLOAT});
           AddSum(b, "rares", "number");
           b.Node("Unsqueeze", {"number", "one"}, {"column"});
           AddMaskedMean(b, "mean");
           b.Node("Add", {"mean", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .guards = {"input_ids", "attention_mask"}},
    {.name = "NumberOfZeros",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Equal", {"input_ids", "zero"}, {"is_zero"});
           SetAttribute(b.Node("Cast", {"is_zero"}, {"zeros"}), "to",
                        int64_t{onnx::TensorProto::FLOAT});
           AddSum(b, "zeros", "number");
           b.Node("Unsqueeze", {"number", "one"}, {"column"});
           AddMaskedMean(b, "mean");
           b.Node("Add", {"mean", "column"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "RolledByOne",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddSlice(b, "x", "last", -1, kNoEnd);
           AddSlice(b, "x", "others", 0, -1);
           SetAttribute(b.Node("Concat", {"last", "others"}, {"y"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = false,
     .words = "takes elements counted from the end of sequence"},
    {.name = "FlattenedPerRequest",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddTurned(b, "x", "turned", {0, 2, 1});
           b.Node("Flatten", {"turned"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "MaskTheWrongWayRound",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddNumber(b, "1.0", 1);
           b.Node("Sub", {"1.0", "mask3"}, {"left_out"});
           b.Node("Mul", {"x", "left_out"}, {"others"});
           AddSum(b, "others", "y");
         },
     .batch = true,
     .sequence = false},
    {.name = "MaskOfTheIds",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Equal", {"input_ids", "zero"}, {"is_padding"});
           AddNumber(b, "nothing", 0);
           b.Node("Unsqueeze", {"is_padding", "two"}, {"is_padding3"});
           b.Node("Where", {"is_padding3", "nothing", "x"}, {"left"});
           AddSum(b, "left", "y");
         },
     .batch = true,
     .sequence = true,
     .guards = {"input_ids"}},
    {.name = "SizesAsNumbersOfALayer",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddSum(b, "mask3", "count");
           AddReduce(b, "ReduceMean", "x", "mean", {1});
           AddLength(b, "length.float");
           b.Node("Mul", {"mean", "length.float"}, {"sum"});
           b.Node("Div", {"sum", "count"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "ExponentialsOfAll",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddReduce(b, "ReduceLogSumExp", "x", "y", {1});
         },
     .batch = true,
     .sequence = false,
     .words = "adds up exponentials over sequence without a mask"},
    {.name = "OneScaleForAll",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("DynamicQuantizeLinear", {"x"}, {"q", "q.scale", "q.zero"}, "/q/Quantize");
           b.Node("DequantizeLinear", {"q", "q.scale", "q.zero"}, {"y"});
         },
     .batch = false,
     .sequence = false,
     .words = "takes its scale from the range of all elements over sequence"},
    {.name = "NeighboursCompared",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddSlice(b, "x", "behind", 1, kNoEnd);
           AddSlice(b, "x", "before", 0, -1);
           b.Node("Sub", {"behind", "before"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "MeanOfMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           AddReduce(b, "ReduceMean", "masked", "y", {1});
         },
     .batch = true,
     .sequence = false},
    {.name = "LargestOfPositiveMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Relu", {"x"}, {"positive"});
           b.Node("Mul", {"positive", "mask3"}, {"masked"});
           AddReduce(b, "ReduceMax", "masked", "y", {1});
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"},
     .proved = true},
    {.name = "MaskOfQueriesInsteadOfKeys",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddNumber(b, "1.0", 1);
           AddNumber(b, "low", -1e9f);
           b.Node("Sub", {"1.0", "mask3"}, {"left_out"});
           b.Node("Mul", {"left_out", "low"}, {"mask_to_add"});
           AddAttention(b, "mask_to_add", "y");
         },
     .batch = true,
     .sequence = false,
     .words = "node '/attention/Softmax' (Softmax) normalises over sequence without a mask"},
    {.name = "SharesMaskedAfterTheyWereMade",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           SetAttribute(b.Node("Softmax", {"x"}, {"shares"}), "axis", int64_t{1});
           b.Node("Mul", {"shares", "mask3"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "SumOfNormalisedMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddWeights(b, "scale", {kHidden});
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           b.Node("LayerNormalization", {"masked", "scale", "scale"}, {"normal"});
           AddSum(b, "normal", "y");
         },
     .batch = true,
     .sequence = false},
    {.name = "PlacesAsShareOfTheLength",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLength(b, "length.float");
           b.Initializer<int64_t>("none", onnx::TensorProto::INT64, {}, {0});
           b.Node("Range", {"none", "length", "at_one"}, {"places"});
           SetAttribute(b.Node("Cast", {"places"}, {"places.float"}), "to",
                        int64_t{onnx::TensorProto::FLOAT});
           b.Node("Div", {"places.float", "length.float"}, {"shares"});
           b.Node("Unsqueeze", {"shares", "one"}, {"column"});
           b.Node("Add", {"x", "column"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "PlacesAsAWave",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLength(b, "length.float");
           b.Initializer<int64_t>("none", onnx::TensorProto::INT64, {}, {0});
           b.Node("Range", {"none", "length", "at_one"}, {"places"});
           SetAttribute(b.Node("Cast", {"places"}, {"places.float"}), "to",
                        int64_t{onnx::TensorProto::FLOAT});
           b.Node("Sin", {"places.float"}, {"waves"});
           b.Node("Unsqueeze", {"waves", "one"}, {"column"});
           b.Node("Add", {"x", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .proved = true},
    {.name = "AllButTheLastToken",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddLength(b, "length.float");
           b.Initializer<int64_t>("none", onnx::TensorProto::INT64, {}, {0});
           b.Node("Sub", {"length", "at_one"}, {"last"});
           b.Node("Range", {"none", "length", "at_one"}, {"places"});
           b.Node("Less", {"places", "last"}, {"is_before"});
           b.Node("Unsqueeze", {"is_before", "one"}, {"column"});
           AddNumber(b, "nothing", 0);
           b.Node("Where", {"column", "x", "nothing"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "RowsByTheirPlace",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Initializer<int64_t>("none", onnx::TensorProto::INT64, {}, {0});
           b.Initializer<int64_t>("step", onnx::TensorProto::INT64, {}, {1});
           b.Node("Gather", {"shape", "none"}, {"rows"});
           b.Node("Range", {"none", "rows", "step"}, {"places"});
           b.Node("Gather", {"positions", "places"}, {"embedded"});
           b.Node("Unsqueeze", {"embedded", "one"}, {"column"});
           b.Node("Add", {"x", "column"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "SharesOfSimilarity",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddMaskedMean(b, "pooled");
           AddTurned(b, "pooled", "turned", {1, 0});
           b.Node("MatMul", {"pooled", "turned"}, {"similarity"});
           b.Node("Softmax", {"similarity"}, {"y"});
         },
     .batch = false,
     .sequence = true,
     .guards = {"attention_mask"}},
    {.name = "SummedByEinsum",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           auto& node = b.Node("Einsum", {"x", "mask"}, {"y"});
           auto* attribute = node.add_attribute();
           attribute->set_name("equation");
           attribute->set_type(onnx::AttributeProto::STRING);
           attribute->set_s("bsh,bs->bh");
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"}},
    {.name = "SummedByEinsumWithoutAMask",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           auto& node = b.Node("Einsum", {"x"}, {"y"});
           auto* attribute = node.add_attribute();
           attribute->set_name("equation");
           attribute->set_type(onnx::AttributeProto::STRING);
           attribute->set_s("bsh->bh");
         },
     .batch = true,
     .sequence = false},
    {.name = "EverySecondToken",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("end", onnx::TensorProto::INT64, {1}, {kNoEnd});
           b.Node("Slice", {"x", "zero", "end", "one", "two"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "LastTokenThatCountsByItsPlace",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           SetAttribute(b.Node("ReduceSum", {"attention_mask", "one"}, {"counted"}), "keepdims",
                        int64_t{1});
           b.Node("Sub", {"counted", "one"}, {"last"});
           AddLength(b, "unused");
           b.Initializer<int64_t>("none", onnx::TensorProto::INT64, {}, {0});
           b.Node("Range", {"none", "length", "at_one"}, {"places"});
           b.Node("Equal", {"places", "last"}, {"is_last"});
           SetAttribute(b.Node("Cast", {"is_last"}, {"chosen"}), "to",
                        int64_t{onnx::TensorProto::FLOAT});
           b.Node("Unsqueeze", {"chosen", "two"}, {"column"});
           b.Node("Mul", {"x", "column"}, {"left"});
           AddSum(b, "left", "y");
         },
     .batch = true,
     .sequence = true,
     .guards = {"attention_mask"}},
    {.name = "TheTokenBefore",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddSlice(b, "x", "others", 0, -1);
           AddSlice(b, "x", "first", 0, 1);
           SetAttribute(b.Node("Concat", {"first", "others"}, {"before"}), "axis", int64_t{1});
           b.Node("Add", {"x", "before"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "TheTokenBehind",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddSlice(b, "x", "others", 1, kNoEnd);
           AddSlice(b, "x", "first", 0, 1);
           SetAttribute(b.Node("Concat", {"others", "first"}, {"behind"}), "axis", int64_t{1});
           b.Node("Add", {"x", "behind"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "TheIdBehind",
     // The last one is followed by a 0, as padding is.
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           b.Initializer<int64_t>("pads", onnx::TensorProto::INT64, {4}, {0, 0, 0, 1});
           b.Initializer<int64_t>("start", onnx::TensorProto::INT64, {1}, {1});
           b.Initializer<int64_t>("end", onnx::TensorProto::INT64, {1}, {kNoEnd});
           b.Node("Pad", {"input_ids", "pads"}, {"longer"});
           b.Node("Slice", {"longer", "start", "end", "one"}, {"next"});
           b.Node("Gather", {"table", "next"}, {"followers"});
           b.Node("Add", {"x", "followers"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .guards = {"input_ids"}},
    {.name = "GatedByTheMeanOfAll",
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddReduceMean(b, 1, "mean", true);
           b.Node("Sigmoid", {"mean"}, {"gate"});
           b.Node("Mul", {"x", "gate"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "CountedInAFewBits",
     // A sum that saturates: what is added to it beyond that does not show.
     .build =
         [](ModelBuilder& b) {
           AddInputs(b, "batch", "sequence");
           AddNumber(b, "least", 0);
           AddNumber(b, "most", 1e-3f);
           AddSum(b, "x", "sum");
           b.Node("Clip", {"sum", "least", "most"}, {"y"});
         },
     .batch = true,
     .sequence = false},
};

}  // namespace reprise
