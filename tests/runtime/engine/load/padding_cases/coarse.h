// Models whose answers are too coarse to show the effect of padding: comparisons, whole numbers,
// functions that saturate, and answers that are always the same.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// `edged`: the tokens of `x` and the last one once more, which padding moves.
inline void AddEdged(ModelBuilder& b) {
  AddIntegers(b, "edges", {0, 0, 0, 0, 1, 0});
  SetAttribute(b.Node("Pad", {"x", "edges"}, {"edged"}), "mode", std::string("edge"));
}

inline const PaddingCase kCoarseTraps[] = {
    // No element of the table is 0, so that the last token looks as padding does.
    {.name = "PlacesThatMoveBehindACastToBool",
     .build =
         [](ModelBuilder& b) {
           AddEdged(b);
           AddCast(b, "edged", "held", onnx::TensorProto::BOOL);
           AddCast(b, "held", "y");
         },
     .batch = true,
     .sequence = false,
     .words = "moves elements across the positions of sequence"},
    {.name = "PlacesThatMoveBehindACastLikeBool",
     .build =
         [](ModelBuilder& b) {
           AddEdged(b);
           b.Initializer<uint8_t>("like", onnx::TensorProto::BOOL, {}, {1});
           b.Node("CastLike", {"edged", "like"}, {"held"});
           AddCast(b, "held", "y");
         },
     .batch = true,
     .sequence = false,
     .words = "moves elements across the positions of sequence"},
    // Rows see each other in a sum that is far beyond 1.
    {.name = "RowsThatMeetBehindATanhThatSaturates",
     .build =
         [](ModelBuilder& b) {
           b.Node("ReduceMean", {"x", "one"}, {"mean"});
           b.Node("Squeeze", {"mean", "one"}, {"pooled"});
           AddNumber(b, "many", 1000);
           b.Node("Mul", {"pooled", "pooled"}, {"squares"});
           SetAttribute(b.Node("Einsum", {"squares", "squares"}, {"meets"}), "equation",
                        std::string("ab,cb->ac"));
           SetAttribute(b.Node("Gemm", {"meets", "meets"}, {"all"}), "transB", int64_t{1});
           b.Node("Mul", {"all", "many"}, {"large"});
           b.Node("Tanh", {"large"}, {"y"});
         },
     .batch = false,
     .sequence = true,
     .words = ""},
    {.name = "AnswersThatAreAlwaysZero",
     .build =
         [](ModelBuilder& b) {
           AddEdged(b);
           b.Node("Abs", {"edged"}, {"above"});
           b.Node("Neg", {"above"}, {"below"});
           b.Node("Relu", {"below"}, {"y"});
         },
     .batch = true,
     .sequence = false,
     .words = "moves elements across the positions of sequence"},
};

}  // namespace reprise
