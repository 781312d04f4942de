// Models that make one of all tokens: sums, averages, extremes, norms.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

inline const PaddingCase kSumTraps[] = {
    {.name = "SumsSoFar",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "along", 1);
           b.Node("CumSum", {"x", "along"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "SumsFromTheEnd",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "along", 1);
           SetAttribute(b.Node("CumSum", {"x", "along"}, {"y"}), "reverse", int64_t{1});
         },
     .batch = true,
     .sequence = true},
    {
        .name = "SumsFromTheEndOfMaskedTokens",
        .build =
            [](ModelBuilder& b) {
              b.Node("Mul", {"x", "mask3"}, {"masked"});
              AddInteger(b, "along", 1);
              SetAttribute(b.Node("CumSum", {"masked", "along"}, {"y"}), "reverse", int64_t{1});
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "PlaceOfTheLargest",
     .build =
         [](ModelBuilder& b) {
           auto& node = b.Node("ArgMax", {"x"}, {"place"});
           SetAttribute(node, "axis", int64_t{1});
           AddCast(b, "place", "y");
         },
     .batch = true,
     .sequence = true},
    {.name = "LabelOfEachToken",
     .build =
         [](ModelBuilder& b) {
           SetAttribute(b.Node("ArgMax", {"x"}, {"label"}), "axis", int64_t{2});
           AddCast(b, "label", "y");
         },
     .batch = true,
     .sequence = true},
    {.name = "LargestOfMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           AddReduce(b, "ReduceMax", "masked", "y", {1});
         },
     .batch = true,
     .sequence = true},
    {.name = "LargestUnderAMaskOfFifty",
     .build =
         [](ModelBuilder& b) {
           AddNumber(b, "none", 0);
           AddNumber(b, "low", -50);
           b.Node("Greater", {"mask3", "none"}, {"counts"});
           b.Node("Where", {"counts", "x", "low"}, {"left"});
           AddReduce(b, "ReduceMax", "left", "y", {1});
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {
        .name = "LargestOfTokensThatCount",
        .build =
            [](ModelBuilder& b) {
              AddNumber(b, "none", 0);
              AddNumber(b, "lowest", -1e9f);
              b.Node("Greater", {"mask3", "none"}, {"counts"});
              b.Node("Where", {"counts", "x", "lowest"}, {"left"});
              AddReduce(b, "ReduceMax", "left", "y", {1});
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "LargestToken",
     .build =
         [](ModelBuilder& b) {
           AddIntegers(b, "k", {1});
           SetAttribute(b.Node("TopK", {"x", "k"}, {"y", "places"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = true},
    {.name = "CentredOverTheSequence",
     .build =
         [](ModelBuilder& b) {
           AddReduce(b, "ReduceMean", "x", "mean", {1}, true);
           b.Node("Sub", {"x", "mean"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "NormOfAllTokens",
     .build =
         [](ModelBuilder& b) {
           AddReduce(b, "ReduceL2", "x", "norm", {1, 2}, true);
           b.Node("Div", {"x", "norm"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "NormOfBatchesAsLearnt",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddWeights(b, "scale", {kHidden});
           b.Floats("variance", {kHidden}, std::vector<float>(kHidden, 0.5f));
           b.Node("BatchNormalization", {"turned", "scale", "scale", "scale", "variance"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "TokenWithTheLargestId",
     .build =
         [](ModelBuilder& b) {
           SetAttribute(b.Node("ArgMax", {"input_ids"}, {"end"}), "axis", int64_t{1});
           SetAttribute(b.Node("GatherND", {"x", "end"}, {"y"}), "batch_dims", int64_t{1});
         },
     .batch = true,
     .sequence = false},
    {.name = "NumberOfSevens",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "seven", 7);
           b.Node("Equal", {"input_ids", "seven"}, {"is_seven"});
           AddCast(b, "is_seven", "sevens");
           AddSum(b, "sevens", "number");
           b.Node("Unsqueeze", {"number", "one"}, {"column"});
           AddMaskedMean(b, "mean");
           b.Node("Add", {"mean", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "NumberOfOneTokenAmongMany",
     // No hostile filling need hold that token, so that nothing but the ops tells.
     .build =
         [](ModelBuilder& b) {
           AddIsRare(b);
           AddCast(b, "is_rare", "rares");
           AddSum(b, "rares", "number");
           b.Node("Unsqueeze", {"number", "one"}, {"column"});
           AddMaskedMean(b, "mean");
           b.Node("Add", {"mean", "column"}, {"y"});
         },
     .vocabulary = kLargeVocabulary,
     .batch = true,
     .sequence = true},
    {.name = "NumberOfZeros",
     .build =
         [](ModelBuilder& b) {
           b.Node("Equal", {"input_ids", "zero"}, {"is_zero"});
           AddCast(b, "is_zero", "zeros");
           AddSum(b, "zeros", "number");
           b.Node("Unsqueeze", {"number", "one"}, {"column"});
           AddMaskedMean(b, "mean");
           b.Node("Add", {"mean", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "MaskTheWrongWayRound",
     .build =
         [](ModelBuilder& b) {
           AddNumber(b, "1.0", 1);
           b.Node("Sub", {"1.0", "mask3"}, {"left_out"});
           b.Node("Mul", {"x", "left_out"}, {"others"});
           AddSum(b, "others", "y");
         },
     .batch = true,
     .sequence = true},
    {.name = "MaskOfTheIds",
     .build =
         [](ModelBuilder& b) {
           b.Node("Equal", {"input_ids", "zero"}, {"is_padding"});
           AddNumber(b, "nothing", 0);
           b.Node("Unsqueeze", {"is_padding", "two"}, {"is_padding3"});
           b.Node("Where", {"is_padding3", "nothing", "x"}, {"left"});
           AddSum(b, "left", "y");
         },
     .batch = true,
     .sequence = true},
    {.name = "ExponentialsOfAll",
     .build = [](ModelBuilder& b) { AddReduce(b, "ReduceLogSumExp", "x", "y", {1}); },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "MeanOfMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           AddReduce(b, "ReduceMean", "masked", "y", {1});
         },
     .batch = true,
     .sequence = true},
    {
        .name = "LargestOfPositiveMaskedTokens",
        .build =
            [](ModelBuilder& b) {
              b.Node("Relu", {"x"}, {"positive"});
              b.Node("Mul", {"positive", "mask3"}, {"masked"});
              AddReduce(b, "ReduceMax", "masked", "y", {1});
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "SumOfNormalisedMaskedTokens",
     .build =
         [](ModelBuilder& b) {
           AddWeights(b, "scale", {kHidden});
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           b.Node("LayerNormalization", {"masked", "scale", "scale"}, {"normal"});
           AddSum(b, "normal", "y");
         },
     .batch = true,
     .sequence = true},
    {.name = "SummedByEinsum",
     .build =
         [](ModelBuilder& b) {
           SetAttribute(b.Node("Einsum", {"x", "mask"}, {"y"}), "equation", "bsh,bs->bh");
         },
     .batch = true,
     .sequence = false},
    {.name = "SummedByEinsumWithoutAMask",
     .build =
         [](ModelBuilder& b) {
           SetAttribute(b.Node("Einsum", {"x"}, {"y"}), "equation", "bsh->bh");
         },
     .batch = true,
     .sequence = false},
    {.name = "GatedByTheMeanOfAll",
     .build =
         [](ModelBuilder& b) {
           AddReduce(b, "ReduceMean", "x", "mean", {1}, true);
           b.Node("Sigmoid", {"mean"}, {"gate"});
           b.Node("Mul", {"x", "gate"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "CountedInAFewBits",
     // A sum that saturates: further addends do not show.
     .build =
         [](ModelBuilder& b) {
           AddNumber(b, "least", 0);
           AddNumber(b, "most", 1e-3f);
           AddSum(b, "x", "sum");
           b.Node("Clip", {"sum", "least", "most"}, {"y"});
         },
     .batch = true,
     .sequence = true},
};

}  // namespace reprise
