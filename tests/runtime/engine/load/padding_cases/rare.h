// Models in which padding shows for few contents alone, which no measurement need draw, and their
// harmless neighbours.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// `to`, [batch, sequence]: -1 where there is a token that hardly any text holds, else 0.
inline void AddPlacesOfARareToken(ModelBuilder& b, const std::string& to) {
  AddIsRare(b);
  AddInteger(b, "last", -1);
  AddInteger(b, "first", 0);
  b.Node("Where", {"is_rare", "last", "first"}, {to});
}

// `logarithms`: log(relu(x) + `more`).
inline void AddLogarithms(ModelBuilder& b, float more) {
  AddNumber(b, "more", more);
  b.Node("Relu", {"x"}, {"above"});
  b.Node("Add", {"above", "more"}, {"grown"});
  b.Node("Log", {"grown"}, {"logarithms"});
}

// `place`, [batch]: where the first end token is, 0 where there is none.
inline void AddPlaceOfTheEnd(ModelBuilder& b) {
  AddInteger(b, "end_id", 49);
  b.Node("Equal", {"input_ids", "end_id"}, {"is_end"});
  AddCast(b, "is_end", "ends", onnx::TensorProto::INT32);
  SetAttribute(b.Node("ArgMax", {"ends"}, {"place"}), "axis", int64_t{1});
}

inline const PaddingCase kRareTraps[] = {
    {.name = "CappedBehindTheMask",
     // tanh makes -50 of a mask of -1e9, which contents of some loudness see through.
     .build =
         [](ModelBuilder& b) {
           AddLowMask(b, -1e9f, "mask_to_add");
           AddNumber(b, "cap", 50);
           AddTurned(b, "x", "keys", {0, 2, 1});
           b.Node("MatMul", {"x", "keys"}, {"products"});
           b.Node("Add", {"products", "mask_to_add"}, {"masked"});
           b.Node("Div", {"masked", "cap"}, {"small"});
           b.Node("Tanh", {"small"}, {"bent"});
           b.Node("Mul", {"bent", "cap"}, {"capped"});
           b.Node("Softmax", {"capped"}, {"weights"}, "/attention/Softmax");
           b.Node("MatMul", {"weights", "x"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {
        .name = "CappedInFrontOfTheMask",
        .build =
            [](ModelBuilder& b) {
              AddLowMask(b, kLowestFloat, "mask_to_add");
              AddNumber(b, "cap", 50);
              AddTurned(b, "x", "keys", {0, 2, 1});
              b.Node("MatMul", {"x", "keys"}, {"products"});
              b.Node("Div", {"products", "cap"}, {"small"});
              b.Node("Tanh", {"small"}, {"bent"});
              b.Node("Mul", {"bent", "cap"}, {"capped"});
              b.Node("Add", {"capped", "mask_to_add"}, {"masked"});
              b.Node("Softmax", {"masked"}, {"weights"}, "/attention/Softmax");
              b.Node("MatMul", {"weights", "x"}, {"y"});
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "ClippedBehindTheMask",
     .build =
         [](ModelBuilder& b) {
           AddLowMask(b, -1e9f, "mask_to_add");
           AddNumber(b, "least", -40);
           AddTurned(b, "x", "keys", {0, 2, 1});
           b.Node("MatMul", {"x", "keys"}, {"products"});
           b.Node("Add", {"products", "mask_to_add"}, {"masked"});
           b.Node("Clip", {"masked", "least"}, {"clipped"});
           b.Node("Softmax", {"clipped"}, {"weights"}, "/attention/Softmax");
           b.Node("MatMul", {"weights", "x"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "ARareTokenTimesTheLength",
     .build =
         [](ModelBuilder& b) {
           AddLength(b, "length.float");
           AddIsRare(b);
           b.Node("Unsqueeze", {"is_rare", "two"}, {"column"});
           b.Node("Mul", {"x", "length.float"}, {"longer"});
           b.Node("Where", {"column", "longer", "x"}, {"y"});
         },
     .vocabulary = kLargeVocabulary,
     .batch = true,
     .sequence = true},
    {.name = "ARareTokenSeesTheLast",
     .build =
         [](ModelBuilder& b) {
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           AddSlice(b, "masked", "last", -1, kNoEnd);
           AddIsRare(b);
           b.Node("Unsqueeze", {"is_rare", "two"}, {"column"});
           b.Node("Where", {"column", "last", "masked"}, {"y"});
         },
     .vocabulary = kLargeVocabulary,
     .batch = true,
     .sequence = false,
     .words = "takes elements counted from the end of sequence"},
    {
        .name = "BiasesByTheDistanceFromTheLastKey",
        // Off by one number for all keys at another length, which no softmax sees.
        .build =
            [](ModelBuilder& b) {
              AddPlaces(b);
              b.Node("Sub", {"places", "length"}, {"from_end"});
              AddCast(b, "from_end", "distance");
              AddNumber(b, "slope", 0.125f);
              b.Node("Mul", {"distance", "slope"}, {"bias"});
              AddLowMask(b, kLowestFloat, "mask_to_add");
              b.Node("Add", {"bias", "mask_to_add"}, {"mask_and_bias"});
              AddAttention(b, "mask_and_bias", "y");
            },
        .batch = true,
        .sequence = false,
    },
    {.name = "DistanceFromTheLastAsAnAnswer",
     .build =
         [](ModelBuilder& b) {
           AddPlaces(b);
           b.Node("Sub", {"places", "length"}, {"from_end"});
           AddCast(b, "from_end", "distance");
           b.Node("Unsqueeze", {"distance", "one"}, {"column"});
           b.Node("Add", {"x", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "MeanOfWhatIsRarelyAboveZero",
     .build =
         [](ModelBuilder& b) {
           AddNumber(b, "far", 50);
           b.Node("Sub", {"x", "far"}, {"below"});
           b.Node("Relu", {"below"}, {"above"});
           AddReduce(b, "ReduceMean", "above", "y", {1});
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "OneScaleOfWhatIsRarelyAboveZero",
     .build =
         [](ModelBuilder& b) {
           AddNumber(b, "far", 50);
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           AddWeights(b, "weights", {kHidden, kHidden});
           b.Node("MatMul", {"masked", "weights"}, {"mixed"});
           AddNumber(b, "near", -1);
           b.Node("Sub", {"mixed", "near"}, {"shifted"});
           b.Node("Relu", {"shifted"}, {"above"});
           b.Node("DynamicQuantizeLinear", {"above"}, {"q", "q.scale", "q.zero"});
           b.Node("DequantizeLinear", {"q", "q.scale", "q.zero"}, {"y"});
         },
     .batch = false,
     .sequence = false},
    {.name = "SharesOfARareToken",
     .build =
         [](ModelBuilder& b) {
           AddIsRare(b);
           AddCast(b, "is_rare", "rares");
           SetAttribute(b.Node("Softmax", {"rares"}, {"shares"}), "axis", int64_t{1});
           b.Node("Unsqueeze", {"shares", "two"}, {"column"});
           b.Node("Mul", {"x", "column"}, {"y"});
         },
     .vocabulary = kLargeVocabulary,
     .batch = true,
     .sequence = true},
    {.name = "PlaceOfTheEndToken",
     .build =
         [](ModelBuilder& b) {
           AddPlaceOfTheEnd(b);
           SetAttribute(b.Node("GatherND", {"x", "place"}, {"y"}), "batch_dims", int64_t{1});
         },
     .batch = true,
     .sequence = false},
    {.name = "ARareTokenPicksTheLast",
     // No filling need hold that token, and any other one picks the first.
     .build =
         [](ModelBuilder& b) {
           AddPlacesOfARareToken(b, "places");
           AddCast(b, "input_ids", "ids.float");
           SetAttribute(b.Node("GatherElements", {"ids.float", "places"}, {"picked"}), "axis",
                        int64_t{1});
           b.Node("Unsqueeze", {"picked", "two"}, {"column"});
           b.Node("Add", {"x", "column"}, {"y"});
         },
     .vocabulary = kLargeVocabulary,
     .batch = true,
     .sequence = false,
     .words = "picks by data, which may count from the end, among the positions of sequence"},
    {.name = "ARareTokenPicksTheLastOfAllRows",
     .build =
         [](ModelBuilder& b) {
           AddPlacesOfARareToken(b, "places");
           AddSlice(b, "places", "place", 0, 1);
           SetAttribute(b.Node("GatherND", {"x", "place"}, {"y"}), "batch_dims", int64_t{1});
         },
     .vocabulary = kLargeVocabulary,
     .batch = true,
     .sequence = false,
     .words = "picks by data, which may count from the end, among the positions of sequence"},
    {.name = "ARareTokenMarksTheLast",
     .build =
         [](ModelBuilder& b) {
           AddPlacesOfARareToken(b, "places");
           AddSlice(b, "places", "place", 0, 1);
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Node("Slice", {"shape", "one", "two"}, {"length"});
           b.Floats("off_and_on", {2}, {0, 1});
           b.Node("OneHot", {"place", "length", "off_and_on"}, {"marks"});
           b.Node("MatMul", {"marks", "x"}, {"y"});
         },
     .vocabulary = kLargeVocabulary,
     .batch = true,
     .sequence = false,
     .words = "picks by data, which may count from the end, among the positions of sequence"},
    {.name = "PlaceBeforeTheEndToken",
     // -1 where the first token is the end, which is the last position.
     .build =
         [](ModelBuilder& b) {
           AddPlaceOfTheEnd(b);
           b.Node("Sub", {"place", "one"}, {"before"});
           SetAttribute(b.Node("GatherND", {"x", "before"}, {"y"}), "batch_dims", int64_t{1});
         },
     .batch = true,
     .sequence = false},
    {.name = "PlaceBeforeTheEndTokenOrTheFirst",
     .build =
         [](ModelBuilder& b) {
           AddPlaceOfTheEnd(b);
           AddInteger(b, "none", 0);
           b.Node("Sub", {"place", "one"}, {"before"});
           b.Node("Max", {"before", "none"}, {"place_to_read"});
           SetAttribute(b.Node("GatherND", {"x", "place_to_read"}, {"y"}), "batch_dims",
                        int64_t{1});
         },
     .batch = true,
     .sequence = false},
    {.name = "LastTokenThatCountsByRows",
     // PyTorch writes x[arange(rows), last] in this way: every row finds itself, wherever it lies.
     .build =
         [](ModelBuilder& b) {
           b.Node("Shape", {"input_ids"}, {"shape"});
           AddInteger(b, "at_zero", 0);
           AddInteger(b, "by_one", 1);
           b.Node("Gather", {"shape", "at_zero"}, {"rows"});
           b.Node("Range", {"at_zero", "rows", "by_one"}, {"each_row"});
           b.Node("Unsqueeze", {"each_row", "one"}, {"row"});
           AddLast(b);
           SetAttribute(b.Node("Concat", {"row", "last"}, {"places"}), "axis", int64_t{-1});
           b.Node("GatherND", {"x", "places"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "LastTokenBehindAMaskThatRowsFindByTheirPlace",
     // Causal models of PyTorch do both: mask[rows, keys], and x[arange(rows), last].
     .build =
         [](ModelBuilder& b) {
           b.Node("Shape", {"input_ids"}, {"shape"});
           AddInteger(b, "at_zero", 0);
           AddInteger(b, "at_one", 1);
           b.Node("Gather", {"shape", "at_zero"}, {"rows"});
           b.Node("Gather", {"shape", "at_one"}, {"keys"});
           b.Node("Range", {"at_zero", "rows", "at_one"}, {"each_row"});
           b.Node("Range", {"at_zero", "keys", "at_one"}, {"each_key"});
           b.Node("Unsqueeze", {"each_row", "one"}, {"row"});
           b.Node("Expand", {"row", "shape"}, {"all_rows"});
           b.Node("Expand", {"each_key", "shape"}, {"all_keys"});
           b.Node("Unsqueeze", {"all_rows", "two"}, {"wide_rows"});
           b.Node("Unsqueeze", {"all_keys", "two"}, {"wide_keys"});
           SetAttribute(b.Node("Concat", {"wide_rows", "wide_keys"}, {"pairs"}), "axis",
                        int64_t{-1});
           b.Node("GatherND", {"mask3", "pairs"}, {"found"});
           b.Node("Mul", {"x", "found"}, {"masked"});
           AddLast(b);
           SetAttribute(b.Node("Concat", {"row", "last"}, {"places"}), "axis", int64_t{-1});
           b.Node("GatherND", {"masked", "places"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {
        .name = "LargestOfLogarithmsThatCount",
        // SPLADE pools in this way: log(1 + relu(x)) is never below the zeros of the mask.
        .build =
            [](ModelBuilder& b) {
              AddLogarithms(b, 1);
              b.Node("Mul", {"logarithms", "mask3"}, {"masked"});
              AddReduce(b, "ReduceMax", "masked", "y", {1});
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "LargestOfLogarithmsBelowZero",
     .build =
         [](ModelBuilder& b) {
           AddLogarithms(b, 0.001f);
           b.Node("Mul", {"logarithms", "mask3"}, {"masked"});
           AddReduce(b, "ReduceMax", "masked", "y", {1});
         },
     .batch = true,
     .sequence = true},
    {
        .name = "SmallestOfTokensThatCount",
        .build =
            [](ModelBuilder& b) {
              AddNumber(b, "none", 0);
              AddNumber(b, "highest", 1e9f);
              b.Node("Greater", {"mask3", "none"}, {"counts"});
              b.Node("Where", {"counts", "x", "highest"}, {"left"});
              AddReduce(b, "ReduceMin", "left", "y", {1});
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "RowsTurnedRoundBySizesAlone",
     .build =
         [](ModelBuilder& b) {
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Node("Slice", {"shape", "one", "two"}, {"length"});
           b.Node("Slice", {"shape", "zero", "one"}, {"rows"});
           b.Node("Expand", {"length", "rows"}, {"lengths"});
           auto& node = b.Node("ReverseSequence", {"x", "lengths"}, {"y"});
           SetAttribute(node, "batch_axis", int64_t{0});
           SetAttribute(node, "time_axis", int64_t{1});
         },
     .batch = true,
     .sequence = false},
};

}  // namespace reprise
