// Attention that hides padding well enough, and attention that does not.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// y: a mean weighted by the softmax of one score a token, `scale` times the usual one.
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

inline const PaddingCase kAttentionTraps[] = {
    {
        .name = "AttentionUnderTheLowestMask",
        .build =
            [](ModelBuilder& b) {
              AddLowMask(b, kLowestFloat, "mask_to_add");
              AddAttention(b, "mask_to_add", "y");
            },
        .batch = true,
        .sequence = true,
    },
    {.name = "AttentionUnderAMaskOfThousands",
     .build =
         [](ModelBuilder& b) {
           AddLowMask(b, -10000, "mask_to_add");
           AddAttention(b, "mask_to_add", "y");
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "AttentionUnderAMaskOfTen",
     .build =
         [](ModelBuilder& b) {
           AddLowMask(b, -10, "mask_to_add");
           AddAttention(b, "mask_to_add", "y");
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "LoudPoolingUnderAMaskOfThousands",
     .build = [](ModelBuilder& b) { AddPooling(b, -10000, -1e4f); },
     .batch = true,
     .sequence = true},
    {.name = "PoolingUnderAMaskOfThousands",
     .build = [](ModelBuilder& b) { AddPooling(b, -10000, 1); },
     .batch = true,
     .sequence = true},
    {.name = "AttentionWithoutAMask",
     .build =
         [](ModelBuilder& b) {
           AddNumber(b, "nothing", 0);
           AddAttention(b, "nothing", "y");
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "CausalAttention",
     .build =
         [](ModelBuilder& b) {
           AddCausalMask(b, kLowestFloat, "causal");
           AddAttention(b, "causal", "y");
         },
     .batch = true,
     .sequence = true},
    {.name = "WeaklyCausalAttention",
     .build =
         [](ModelBuilder& b) {
           AddCausalMask(b, -12, "causal");
           AddAttention(b, "causal", "y");
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "MaskedAttentionAndThenTheMeanOfAll",
     .build =
         [](ModelBuilder& b) {
           AddLowMask(b, kLowestFloat, "mask_to_add");
           AddAttention(b, "mask_to_add", "context");
           AddReduce(b, "ReduceMean", "context", "y", {1});
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "MaskOfQueriesInsteadOfKeys",
     .build =
         [](ModelBuilder& b) {
           AddNumber(b, "1.0", 1);
           AddNumber(b, "low", -1e9f);
           b.Node("Sub", {"1.0", "mask3"}, {"left_out"});
           b.Node("Mul", {"left_out", "low"}, {"mask_to_add"});
           AddAttention(b, "mask_to_add", "y");
         },
     .batch = true,
     .sequence = true,
     .words = ""},
    {.name = "SharesMaskedAfterTheyWereMade",
     .build =
         [](ModelBuilder& b) {
           SetAttribute(b.Node("Softmax", {"x"}, {"shares"}), "axis", int64_t{1});
           b.Node("Mul", {"shares", "mask3"}, {"y"});
         },
     .batch = true,
     .sequence = true},
};

}  // namespace reprise
