// Models whose numbers are harmless, or not, by their later use: averages that are divided by each
// other, indices of rows, zeros that meet an overflow, padding that is no zero.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// `average.x` and `average.mask`: over all positions, of those that the mask leaves.
inline void AddAverages(ModelBuilder& b) {
  b.Node("Mul", {"x", "mask3"}, {"masked"});
  AddReduce(b, "ReduceMean", "masked", "average.x", {1});
  AddReduce(b, "ReduceMean", "mask3", "average.mask", {1});
}

// `rows`, [batch, 1]: 0, 1, 2 ... and `more`.
inline void AddRows(ModelBuilder& b, int64_t more) {
  b.Node("Shape", {"input_ids"}, {"shape"});
  AddInteger(b, "at_zero", 0);
  AddInteger(b, "step", 1);
  AddInteger(b, "more", more);
  b.Node("Gather", {"shape", "at_zero"}, {"batch"});
  b.Node("Range", {"at_zero", "batch", "step"}, {"counted.rows"});
  b.Node("Add", {"counted.rows", "more"}, {"moved.rows"});
  b.Node("Unsqueeze", {"moved.rows", "one"}, {"rows"});
}

// y: the sum of `of` over the tokens that count.
inline void AddMaskedSum(ModelBuilder& b, const std::string& of) {
  b.Node("Mul", {of, "mask3"}, {"left"});
  AddSum(b, "left", "y");
}

inline const PaddingCase kNumberTraps[] = {
    {
        .name = "AverageDividedByTheAverageOfTheMask",
        .build =
            [](ModelBuilder& b) {
              AddAverages(b);
              AddNumber(b, "least", 1e-9f);
              b.Node("Max", {"average.mask", "least"}, {"bounded"});
              b.Node("Div", {"average.x", "bounded"}, {"y"});
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "AverageDividedByMoreThanTheAverageOfTheMask",
     .build =
         [](ModelBuilder& b) {
           AddAverages(b);
           AddNumber(b, "half", 0.5f);
           b.Node("Add", {"average.mask", "half"}, {"more"});
           b.Node("Div", {"average.x", "more"}, {"y"});
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "AverageTimesTheAverageOfTheMask",
     .build =
         [](ModelBuilder& b) {
           AddAverages(b);
           b.Node("Mul", {"average.x", "average.mask"}, {"y"});
         },
     .batch = true,
     .sequence = true},
    {.name = "LastTokenOfTheRowBefore",
     .build =
         [](ModelBuilder& b) {
           AddLast(b);
           AddRows(b, -1);
           SetAttribute(b.Node("Concat", {"rows", "last"}, {"where"}), "axis", int64_t{1});
           b.Node("GatherND", {"x", "where"}, {"y"});
         },
     .batch = false,
     .sequence = false},
    {.name = "NumberOfTheRowAsAnAnswer",
     .build =
         [](ModelBuilder& b) {
           AddRows(b, 0);
           AddCast(b, "rows", "number");
           AddMaskedMean(b, "mean");
           b.Node("Add", {"mean", "number"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "ZerosBesideInfinity",
     // An id that only padding holds: were any padding of ids as good, zero would meet infinity.
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "last_id", kLargeVocabulary - 1);
           AddNumber(b, "huge", 3e38f);
           b.Node("Equal", {"input_ids", "last_id"}, {"is_last"});
           b.Node("Unsqueeze", {"is_last", "two"}, {"column"});
           b.Node("Where", {"column", "huge", "x"}, {"loud"});
           b.Node("Mul", {"loud", "loud"}, {"squared"});
           AddMaskedSum(b, "squared");
         },
     .vocabulary = kLargeVocabulary,
     .batch = true,
     .sequence = true},
    {.name = "ZerosBesideWhatDataMayMakeInfinite",
     // A query of padding sees clients' numbers; its result need not stay finite.
     .build =
         [](ModelBuilder& b) {
           AddLowMask(b, kLowestFloat, "mask_to_add");
           AddAttention(b, "mask_to_add", "context");
           b.Node("Exp", {"context"}, {"grown"});
           AddMaskedSum(b, "grown");
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {
        .name = "ZerosBesideWhatStaysFinite",
        // Normalised: divided by the root of a variance and a little.
        .build =
            [](ModelBuilder& b) {
              AddLowMask(b, kLowestFloat, "mask_to_add");
              AddAttention(b, "mask_to_add", "context");
              AddNumber(b, "power", 2);
              AddNumber(b, "little", 1e-5f);
              AddReduce(b, "ReduceMean", "context", "mean", {2}, true);
              b.Node("Sub", {"context", "mean"}, {"centred"});
              b.Node("Pow", {"centred", "power"}, {"squares"});
              AddReduce(b, "ReduceMean", "squares", "variance", {2}, true);
              b.Node("Add", {"variance", "little"}, {"more"});
              b.Node("Sqrt", {"more"}, {"deviation"});
              b.Node("Div", {"centred", "deviation"}, {"normal"});
              AddMaskedSum(b, "normal");
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "IdsThatAreNotOneCount",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "padding", 1);
           b.Node("Equal", {"input_ids", "padding"}, {"is_padding"});
           b.Node("Not", {"is_padding"}, {"counts"});
           AddCast(b, "counts", "counting");
           b.Node("Unsqueeze", {"counting", "two"}, {"column"});
           b.Node("Mul", {"x", "column"}, {"left"});
           AddSum(b, "left", "y");
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "MaskOfWhatDoesNotCount",
     .build =
         [](ModelBuilder& b) {
           AddNumber(b, "lowest", kLowestFloat);
           b.Node("Unsqueeze", {"mask", "one"}, {"hidden"});
           b.Node("Mul", {"hidden", "lowest"}, {"mask_to_add"});
           AddAttention(b, "mask_to_add", "y");
         },
     .batch = true,
     .sequence = true,
     .words = ""},
};

}  // namespace reprise
