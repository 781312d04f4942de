// Models in which the size of an axis decides something, and models in which it only looks so.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// `length` and `rows`, scalars.
inline void AddSizes(ModelBuilder& b) {
  b.Node("Shape", {"input_ids"}, {"shape"});
  AddInteger(b, "at_one", 1);
  AddInteger(b, "at_zero", 0);
  b.Node("Gather", {"shape", "at_one"}, {"length"}, "/length/Gather");
  b.Node("Gather", {"shape", "at_zero"}, {"rows"}, "/rows/Gather");
}

// y is -x where the scalar `condition` holds.
inline void AddTurn(ModelBuilder& b, const std::string& condition) {
  b.Node("Neg", {"x"}, {"other"});
  b.Node("Where", {condition, "other", "x"}, {"y"}, "/turn/Where");
}

// y is x times the scalar integer `factor`.
inline void AddFactor(ModelBuilder& b, const std::string& factor) {
  AddCast(b, factor, factor + ".float");
  b.Node("Mul", {"x", factor + ".float"}, {"y"}, "/factor/Mul");
}

inline const PaddingCase kSizeTraps[] = {
    {.name = "DividedByTheLength",
     .build =
         [](ModelBuilder& b) {
           AddLength(b, "length.float");
           b.Node("Div", {"x", "length.float"}, {"y"}, "/scale/Div");
         },
     .batch = true,
     .sequence = true},
    {.name = "OtherAboveThreeHundred",
     .build =
         [](ModelBuilder& b) {
           AddLength(b, "length.float");
           AddNumber(b, "limit", 300);
           b.Node("Greater", {"length.float", "limit"}, {"is_long"});
           b.Node("Neg", {"x"}, {"other"});
           b.Node("Where", {"is_long", "other", "x"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "SumFromPositionHundredOn",
     .build =
         [](ModelBuilder& b) {
           AddMaskedMean(b, "mean");
           AddSlice(b, "x", "late", 100, 110);
           AddSum(b, "late", "more");
           b.Node("Add", {"mean", "more"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "SizesAsNumbersOfALayer",
     .build =
         [](ModelBuilder& b) {
           AddSum(b, "mask3", "count");
           AddReduce(b, "ReduceMean", "x", "mean", {1});
           AddLength(b, "length.float");
           b.Node("Mul", {"mean", "length.float"}, {"sum"});
           b.Node("Div", {"sum", "count"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "PlacesAsShareOfTheLength",
     .build =
         [](ModelBuilder& b) {
           AddPlaces(b);
           AddCast(b, "places", "places.float");
           b.Node("Div", {"places.float", "length.float"}, {"shares"});
           b.Node("Unsqueeze", {"shares", "one"}, {"column"});
           b.Node("Add", {"x", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "OtherAtLengthHundred",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "hundred", 100);
           b.Node("Equal", {"length", "hundred"}, {"is_it"}, "/hundred/Equal");
           AddTurn(b, "is_it");
         },
     .batch = true,
     .sequence = true,
     .longest = 120},
    {.name = "OtherBetweenHundredAndTwoHundred",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "low", 99);
           AddInteger(b, "high", 200);
           b.Node("Less", {"low", "length"}, {"above"});
           b.Node("Less", {"length", "high"}, {"below"});
           b.Node("And", {"above", "below"}, {"is_between"});
           AddTurn(b, "is_between");
         },
     .batch = true,
     .sequence = false,
     .words = "decides by the size of sequence"},
    {.name = "ABranchForLongRequests",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "hundred", 100);
           b.Node("Greater", {"length", "hundred"}, {"is_long"});
           AddChoice(b, "is_long");
         },
     .batch = true,
     .sequence = false,
     .words = "node 'choice' (If) takes a branch"},
    {.name = "OtherAboveSixRows",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "six", 6);
           b.Node("Greater", {"rows", "six"}, {"are_many"});
           AddTurn(b, "are_many");
         },
     .batch = false,
     .sequence = true},
    {.name = "OtherOfEightRows",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "eight", 8);
           b.Node("Equal", {"rows", "eight"}, {"are_eight"});
           AddTurn(b, "are_eight");
         },
     .batch = false,
     .sequence = true},
    {.name = "OtherOfSixHundredTokens",
     .build =
         [](ModelBuilder& b) {
           b.Node("Size", {"input_ids"}, {"tokens"});
           AddInteger(b, "most", 600);
           b.Node("Equal", {"tokens", "most"}, {"are_as_many"});
           AddTurn(b, "are_as_many");
         },
     .batch = false,
     .sequence = false},
    {.name = "TheSmallerOfTwoSizesAsANumber",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "most", 90);
           AddInteger(b, "least", 90);
           b.Node("Max", {"length", "least"}, {"limited"});
           b.Node("Sub", {"limited", "most"}, {"more"});
           AddFactor(b, "more");
         },
     .batch = true,
     .sequence = true,
     .longest = 120},
    {.name = "WhatIsLeftOfTheLength",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "four", 4);
           b.Node("Mod", {"length", "four"}, {"rest"}, "/rest/Mod");
           AddFactor(b, "rest");
         },
     .batch = true,
     .sequence = true},
    {.name = "HundredsOfTheLength",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "hundred", 100);
           b.Node("Div", {"length", "hundred"}, {"hundreds"});
           AddFactor(b, "hundreds");
         },
     .batch = true,
     .sequence = true,
     .longest = 120},
    {.name = "ClippedLength",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "least", 80);
           AddInteger(b, "most", 90);
           b.Node("Clip", {"length", "least", "most"}, {"clipped"});
           b.Node("Sub", {"clipped", "least"}, {"factor"});
           AddFactor(b, "factor");
         },
     .batch = true,
     .sequence = true,
     .longest = 120},
    {.name = "ATableOfLengths",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           std::vector<int64_t> table(600, 1);
           table[100] = 2;
           b.Initializer<int64_t>("table_of_lengths", onnx::TensorProto::INT64, {600}, table);
           b.Node("Gather", {"table_of_lengths", "length"}, {"factor"});
           AddFactor(b, "factor");
         },
     .batch = true,
     .sequence = true,
     .longest = 120,
     .largest_bucket = 512},
    {.name = "HowManyPlacesLieBehindNinety",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "ninety", 90);
           b.Node("Range", {"at_zero", "length", "at_one"}, {"places"});
           b.Node("Greater", {"places", "ninety"}, {"are_late"});
           AddCast(b, "are_late", "late", onnx::TensorProto::INT64);
           SetAttribute(b.Node("ReduceSum", {"late"}, {"number"}), "keepdims", int64_t{0});
           AddFactor(b, "number");
         },
     .batch = true,
     .sequence = false},
    {.name = "ThePlaceCountedFromTheEndIsHundred",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "hundred", 100);
           b.Node("Range", {"at_zero", "length", "at_one"}, {"places"});
           b.Node("Sub", {"length", "places"}, {"from_end"});
           b.Node("Equal", {"from_end", "hundred"}, {"are_it"});
           AddCast(b, "are_it", "late");
           b.Node("Unsqueeze", {"late", "one"}, {"column"});
           b.Node("Add", {"x", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .longest = 120},
    {.name = "CutWhereTheLengthDecides",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "hundred", 100);
           AddInteger(b, "fifty", 50);
           b.Node("Equal", {"length", "hundred"}, {"is_it"});
           b.Node("Where", {"is_it", "fifty", "length"}, {"end"});
           b.Node("Unsqueeze", {"end", "zero"}, {"end1"});
           b.Node("Mul", {"x", "mask3"}, {"masked"});
           b.Node("Slice", {"masked", "zero", "end1", "one"}, {"left"});
           AddSum(b, "left", "y");
         },
     .batch = true,
     .sequence = false},
    // Harmless ones: nodes that exporters write around Expand and Reshape, and constant truths.
    {.name = "SpreadToAShapeWithMinusOnes",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           b.Node("Unsqueeze", {"rows", "zero"}, {"rows1"});
           b.Node("Unsqueeze", {"length", "zero"}, {"length1"});
           AddIntegers(b, "all", {-1});
           SetAttribute(b.Node("Concat", {"rows1", "length1", "all"}, {"wanted"}), "axis",
                        int64_t{0});
           AddIntegers(b, "ones", {1, 1, 1});
           AddIntegers(b, "minus", {-1, -1, -1});
           b.Node("Equal", {"wanted", "minus"}, {"are_open"});
           b.Node("Where", {"are_open", "ones", "wanted"}, {"spread"});
           AddWeights(b, "row", {1, 1, kHidden});
           b.Node("Expand", {"row", "spread"}, {"rows_of_it"});
           b.Node("Add", {"x", "rows_of_it"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "NeverLongerThanTheTable",
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           AddInteger(b, "most", kPositions);
           b.Node("Min", {"length", "most"}, {"end"});
           b.Node("Unsqueeze", {"end", "zero"}, {"end1"});
           b.Node("Slice", {"positions", "zero", "end1", "zero"}, {"used"});
           b.Node("Add", {"x", "used"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .longest = kPositions,
     .largest_bucket = 32},
    {
        .name = "BucketsOfDistances",
        .build =
            [](ModelBuilder& b) {
              AddSizes(b);
              b.Node("Range", {"at_zero", "length", "at_one"}, {"places"});
              b.Node("Unsqueeze", {"places", "zero"}, {"keys_at"});
              b.Node("Unsqueeze", {"places", "one"}, {"queries_at"});
              b.Node("Sub", {"keys_at", "queries_at"}, {"apart"});
              b.Node("Abs", {"apart"}, {"distance"});
              AddInteger(b, "furthest", 7);
              b.Node("Min", {"distance", "furthest"}, {"bucket"});
              std::vector<float> biases;
              for (int i = 0; i < 8; ++i) biases.push_back(0.25f * static_cast<float>(i % 3));
              b.Floats("biases", {8}, biases);
              b.Node("Gather", {"biases", "bucket"}, {"bias"});
              AddLowMask(b, kLowestFloat, "mask_to_add");
              b.Node("Add", {"bias", "mask_to_add"}, {"mask_and_bias"});
              AddAttention(b, "mask_and_bias", "y");
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "HalfTheChannels",
     .build =
         [](ModelBuilder& b) {
           b.Node("Shape", {"x"}, {"shape"});
           AddInteger(b, "at_two", 2);
           AddInteger(b, "half", 2);
           b.Node("Gather", {"shape", "at_two"}, {"channels"});
           b.Node("Div", {"channels", "half"}, {"middle"});
           b.Node("Unsqueeze", {"middle", "zero"}, {"middle1"});
           AddIntegers(b, "end", {kNoEnd});
           b.Node("Slice", {"x", "zero", "middle1", "two"}, {"first"});
           b.Node("Slice", {"x", "middle1", "end", "two"}, {"second"});
           b.Node("Neg", {"second"}, {"turned"});
           SetAttribute(b.Node("Concat", {"turned", "first"}, {"y"}), "axis", int64_t{2});
         },
     .batch = true,
     .sequence = true},
    {.name = "HeadsFromTheNumberOfElements",
     // Folds the rows away and back, by quotients that are whole at every size.
     .build =
         [](ModelBuilder& b) {
           AddSizes(b);
           b.Node("Size", {"x"}, {"elements"});
           b.Node("Mul", {"rows", "length"}, {"tokens"});
           b.Node("Div", {"elements", "tokens"}, {"channels"});
           AddInteger(b, "heads", 2);
           b.Node("Div", {"channels", "heads"}, {"per_head"});
           for (const char* one : {"rows", "length", "heads", "per_head"}) {
             b.Node("Unsqueeze", {one, "zero"}, {std::string(one) + ".1"});
           }
           SetAttribute(
               b.Node("Concat", {"rows.1", "length.1", "heads.1", "per_head.1"}, {"split"}), "axis",
               int64_t{0});
           b.Node("Reshape", {"x", "split"}, {"y"});
         },
     .batch = true,
     .sequence = true},
};

}  // namespace reprise
