// Models that take tokens by their places, from where padding may lie or from where it never does.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

inline const PaddingCase kPlaceTraps[] = {
    {.name = "LastToken",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "last", -1);
           SetAttribute(b.Node("Gather", {"x", "last"}, {"y"}, "/last/Gather"), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = true},
    {.name = "LastTokenThatCounts",
     .build =
         [](ModelBuilder& b) {
           AddLast(b);
           auto& node = b.Node("GatherND", {"x", "last"}, {"y"});
           SetAttribute(node, "batch_dims", int64_t{1});
         },
     .batch = true,
     .sequence = false,
     .packs = true},
    {.name = "TokenOfTheLargestId",
     .build =
         [](ModelBuilder& b) {
           SetAttribute(b.Node("ArgMax", {"input_ids"}, {"place"}), "axis", int64_t{-1});
           SetAttribute(b.Node("GatherND", {"x", "place"}, {"y"}), "batch_dims", int64_t{1});
         },
     .batch = true,
     .sequence = false,
     .packs = true},
    {.name = "LastTokenOfEachCountedRow",
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
     .sequence = false,
     .packs = true},
    {.name = "FirstToken",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "first", 0);
           SetAttribute(b.Node("Gather", {"x", "first"}, {"y"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = true},
    {.name = "LastTokenOfTheRow",
     // Padding is not the last one; packed, each request has its own.
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "end", -1);
           SetAttribute(b.Node("Gather", {"x", "end"}, {"y"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "PositionsCountedFromTheEnd",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "none", 0);
           AddInteger(b, "step", -1);
           AddLength(b, "unused");
           b.Node("Add", {"length", "step"}, {"last"});
           b.Node("Range", {"last", "step", "step"}, {"backwards"});
           b.Node("Gather", {"positions", "backwards"}, {"places"});
           b.Node("Add", {"x", "places"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .longest = kPositions},
    {.name = "SortedTokens",
     .build =
         [](ModelBuilder& b) {
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Node("Slice", {"shape", "one", "two"}, {"length"});
           SetAttribute(b.Node("TopK", {"x", "length"}, {"y", "places"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = true},
    {
        .name = "WindowOfTwo",
        .build =
            [](ModelBuilder& b) {
              AddTurned(b, "x", "turned", {0, 2, 1});
              AddWeights(b, "kernel", {kHidden, kHidden, 2});
              SetAttribute(b.Node("Conv", {"turned", "kernel"}, {"y"}), "pads",
                           std::vector<int64_t>{0, 1});
            },
        .batch = true,
        .sequence = true,  // In its live form, which ends with zeros where the request does.
    },
    {.name = "CausalConvolution",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddWeights(b, "kernel", {kHidden, kHidden, 3});
           SetAttribute(b.Node("Conv", {"turned", "kernel"}, {"y"}), "pads",
                        std::vector<int64_t>{2, 0});
         },
     .batch = true,
     .sequence = true},
    {.name = "CausalConvolutionBehindAPad",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddIntegers(b, "pads", {0, 0, 2, 0, 0, 0});
           b.Node("Pad", {"turned", "pads"}, {"wide"});
           AddWeights(b, "kernel", {kHidden, kHidden, 3});
           b.Node("Conv", {"wide", "kernel"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "PlacesCountedByTheMask",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "along", 1);
           b.Node("CumSum", {"attention_mask", "along"}, {"counted"});
           b.Node("Mul", {"counted", "attention_mask"}, {"places"});
           b.Node("Gather", {"positions", "places"}, {"embedded"});
           b.Node("Add", {"x", "embedded"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .longest = kPositions - 1},
    {.name = "RolledByOne",
     .build =
         [](ModelBuilder& b) {
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
           AddTurned(b, "x", "turned", {0, 2, 1});
           b.Node("Flatten", {"turned"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "NeighboursCompared",
     .build =
         [](ModelBuilder& b) {
           AddSlice(b, "x", "behind", 1, kNoEnd);
           AddSlice(b, "x", "before", 0, -1);
           b.Node("Sub", {"behind", "before"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "PlacesAsAWave",
     .build =
         [](ModelBuilder& b) {
           AddPlaces(b);
           AddCast(b, "places", "places.float");
           b.Node("Sin", {"places.float"}, {"waves"});
           b.Node("Unsqueeze", {"waves", "one"}, {"column"});
           b.Node("Add", {"x", "column"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "AllButTheLastToken",
     .build =
         [](ModelBuilder& b) {
           AddLength(b, "length.float");
           AddInteger(b, "none", 0);
           b.Node("Sub", {"length", "at_one"}, {"last"});
           b.Node("Range", {"none", "length", "at_one"}, {"places"});
           b.Node("Less", {"places", "last"}, {"is_before"});
           b.Node("Unsqueeze", {"is_before", "one"}, {"column"});
           AddNumber(b, "nothing", 0);
           b.Node("Where", {"column", "x", "nothing"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "EverySecondToken",
     .build =
         [](ModelBuilder& b) {
           AddIntegers(b, "end", {kNoEnd});
           b.Node("Slice", {"x", "zero", "end", "one", "two"}, {"y"});
         },
     .batch = true,
     .sequence = false},
    {.name = "LastTokenThatCountsByItsPlace",
     .build =
         [](ModelBuilder& b) {
           AddLast(b);
           AddPlaces(b);
           b.Node("Equal", {"places", "last"}, {"is_last"});
           AddCast(b, "is_last", "chosen");
           b.Node("Unsqueeze", {"chosen", "two"}, {"column"});
           b.Node("Mul", {"x", "column"}, {"left"});
           AddSum(b, "left", "y");
         },
     .batch = true,
     .sequence = true},
    {.name = "TheTokenBefore",
     .build =
         [](ModelBuilder& b) {
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
           AddIntegers(b, "pads", {0, 0, 0, 1});
           AddIntegers(b, "start", {1});
           AddIntegers(b, "end", {kNoEnd});
           b.Node("Pad", {"input_ids", "pads"}, {"longer"});
           b.Node("Slice", {"longer", "start", "end", "one"}, {"next"});
           b.Node("Gather", {"table", "next"}, {"followers"});
           b.Node("Add", {"x", "followers"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "LastTokenOfALine",
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddIntegers(b, "last", {-1});
           AddIntegers(b, "end", {std::numeric_limits<int64_t>::max()});
           b.Node("Slice", {"turned", "last", "end", "two"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "CausalConvolutionCutAtTheLength",
     // Pads on both sides, the results cut as long as the operand is.
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddWeights(b, "kernel", {kHidden, kHidden, 3});
           SetAttribute(b.Node("Conv", {"turned", "kernel"}, {"wide"}), "pads",
                        std::vector<int64_t>{2, 2});
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Node("Slice", {"shape", "one", "two"}, {"length"});
           b.Node("Slice", {"wide", "zero", "length", "two"}, {"cut"});
           AddWeights(b, "next", {kHidden, kHidden, 3});
           SetAttribute(b.Node("Conv", {"cut", "next"}, {"y"}), "pads", std::vector<int64_t>{1, 1});
         },
     .batch = true,
     .sequence = true},
    {.name = "CutBeforeTheEndOfLongRowsAlone",
     // Half the length and four: more than a short row has.
     .build =
         [](ModelBuilder& b) {
           AddTurned(b, "x", "turned", {0, 2, 1});
           AddIntegers(b, "half", {2});
           AddIntegers(b, "more", {4});
           b.Node("Shape", {"input_ids"}, {"shape"});
           b.Node("Slice", {"shape", "one", "two"}, {"length"});
           b.Node("Div", {"length", "half"}, {"halved"});
           b.Node("Add", {"halved", "more"}, {"end"});
           b.Node("Slice", {"turned", "zero", "end", "two"}, {"cut"});
           AddReduce(b, "ReduceMax", "cut", "y", {2});
         },
     .batch = true,
     .sequence = false},
    {.name = "ZerosAfterEachRow",
     .build =
         [](ModelBuilder& b) {
           AddIntegers(b, "pads", {0, 1, 0, 0, 2, 0});
           b.Node("Pad", {"x", "pads"}, {"wide"});
           AddReduce(b, "ReduceMax", "wide", "y", {1});
         },
     .batch = true,
     .sequence = true},
    {.name = "EdgesAfterEachRow",
     .build =
         [](ModelBuilder& b) {
           AddIntegers(b, "pads", {0, 0, 0, 0, 2, 0});
           SetAttribute(b.Node("Pad", {"x", "pads"}, {"wide"}), "mode", std::string("edge"));
           AddReduce(b, "ReduceMean", "wide", "y", {1});
         },
     .batch = true,
     .sequence = false},
    {.name = "TwoTokensInFront",
     // Attended to by all, and read by their places.
     .build =
         [](ModelBuilder& b) {
           AddWeights(b, "prompt", {1, 2, kHidden});
           b.Node("Shape", {"x"}, {"whole_shape"});
           AddInteger(b, "at_zero", 0);
           AddIntegers(b, "rest", {1, 1});
           AddIntegers(b, "first_dim", {0});
           b.Node("Gather", {"whole_shape", "first_dim"}, {"rows"});
           SetAttribute(b.Node("Concat", {"rows", "rest"}, {"copies"}), "axis", int64_t{0});
           b.Node("Tile", {"prompt", "copies"}, {"prompts"});
           SetAttribute(b.Node("Concat", {"prompts", "x"}, {"joined"}), "axis", int64_t{1});
           AddTurned(b, "joined", "turned", {0, 2, 1});
           b.Node("MatMul", {"joined", "turned"}, {"scores"});
           SetAttribute(b.Node("Softmax", {"scores"}, {"shares"}), "axis", int64_t{-1});
           b.Node("MatMul", {"shares", "joined"}, {"mixed"});
           AddInteger(b, "second", 1);
           SetAttribute(b.Node("Gather", {"mixed", "second"}, {"y"}), "axis", int64_t{1});
         },
     .batch = true,
     .sequence = true},
    {.name = "TwoTokensAtTheEnd",
     .build =
         [](ModelBuilder& b) {
           AddSlice(b, "x", "first", 0, 1);
           SetAttribute(b.Node("Concat", {"x", "first"}, {"joined"}), "axis", int64_t{1});
           AddReduce(b, "ReduceMax", "joined", "most", {1}, true);
           b.Node("Sub", {"joined", "most"}, {"y"});
         },
     .batch = true,
     .sequence = false},
};

}  // namespace reprise
