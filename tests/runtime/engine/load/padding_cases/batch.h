// Models whose rows see each other, which no batch of several requests may have.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

inline const PaddingCase kBatchTraps[] = {
    {.name = "SumsOverTheBatch",
     .build =
         [](ModelBuilder& b) {
           AddInteger(b, "along", 0);
           b.Node("CumSum", {"x", "along"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "SharesOfTheBatch",
     .build =
         [](ModelBuilder& b) { SetAttribute(b.Node("Softmax", {"x"}, {"y"}), "axis", int64_t{0}); },
     .batch = false,
     .sequence = true},
    {.name = "ComparedWithTheFirstRow",
     .build =
         [](ModelBuilder& b) {
           AddSlice(b, "x", "first_row", 0, 1, 0);
           b.Node("Sub", {"x", "first_row"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "DividedByTheBatch",
     .build =
         [](ModelBuilder& b) {
           b.Node("Shape", {"input_ids"}, {"shape"});
           AddInteger(b, "none", 0);
           b.Node("Gather", {"shape", "none"}, {"rows"});
           AddCast(b, "rows", "rows.float");
           b.Node("Div", {"x", "rows.float"}, {"y"});
         },
     .batch = false,
     .sequence = true},
    {.name = "OneScaleForAll",
     .build =
         [](ModelBuilder& b) {
           b.Node("DynamicQuantizeLinear", {"x"}, {"q", "q.scale", "q.zero"}, "/q/Quantize");
           b.Node("DequantizeLinear", {"q", "q.scale", "q.zero"}, {"y"});
         },
     .batch = false,
     .sequence = false,
     .words = "takes its scale from the range of all elements over sequence"},
    {.name = "RowsByTheirPlace",
     .build =
         [](ModelBuilder& b) {
           b.Node("Shape", {"input_ids"}, {"shape"});
           AddInteger(b, "none", 0);
           AddInteger(b, "step", 1);
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
           AddMaskedMean(b, "pooled");
           AddTurned(b, "pooled", "turned", {1, 0});
           b.Node("MatMul", {"pooled", "turned"}, {"similarity"});
           b.Node("Softmax", {"similarity"}, {"y"});
         },
     .batch = false,
     .sequence = true},
};

}  // namespace reprise
