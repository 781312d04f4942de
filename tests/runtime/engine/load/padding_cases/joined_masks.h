// Models that join the mask of a request with one of their own, so that a query may be left without
// any key it sees.
#pragma once

#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// `distance`, [sequence, sequence]: how many positions the key lies from the query.
inline void AddDistances(ModelBuilder& b) {
  AddPlaces(b);
  b.Node("Unsqueeze", {"places", "zero"}, {"place_of_key"});
  b.Node("Unsqueeze", {"places", "one"}, {"place_of_query"});
  b.Node("Sub", {"place_of_query", "place_of_key"}, {"distance"});
}

// `causal`, bool: no key after the query.
inline void AddCausal(ModelBuilder& b) {
  AddDistances(b);
  b.Node("GreaterOrEqual", {"distance", "none"}, {"causal"});
}

// `window`, bool: keys at most `reach` away.
inline void AddWindow(ModelBuilder& b, int64_t reach) {
  AddDistances(b);
  AddInteger(b, "reach", reach);
  b.Node("Abs", {"distance"}, {"apart"});
  b.Node("LessOrEqual", {"apart", "reach"}, {"window"});
}

// `keys`, bool [batch, 1, sequence]: the keys that count.
inline void AddKeys(ModelBuilder& b) {
  b.Node("Unsqueeze", {"attention_mask", "one"}, {"mask_of_keys"});
  AddCast(b, "mask_of_keys", "keys", onnx::TensorProto::BOOL);
}

// `to`: attention that sees where `seen` is true, [.., sequence, sequence]; the rest gets the
// lowest float.
inline void AddSeeing(ModelBuilder& b, const std::string& seen, const std::string& to = "y") {
  AddNumber(b, "lowest", kLowestFloat);
  AddTurned(b, "x", "turned", {0, 2, 1});
  b.Node("MatMul", {"x", "turned"}, {"scores"});
  b.Node("Where", {seen, "scores", "lowest"}, {"masked"});
  b.Node("Softmax", {"masked"}, {"weights"}, "/attention/Softmax");
  b.Node("MatMul", {"weights", "x"}, {to});
}

// `low.keys` and `low.behind`: the lowest float, else 0, where the mask of the request hides and
// where the causal one does.
inline void AddBothAsNumbers(ModelBuilder& b) {
  AddLowMask(b, kLowestFloat, "low.keys");
  AddCausalMask(b, kLowestFloat, "low.behind");
}

inline const PaddingCase kJoinedTraps[] = {
    {
        .name = "CausalAndPaddingInOneWhere",
        .build =
            [](ModelBuilder& b) {
              AddCausal(b);
              AddKeys(b);
              b.Node("And", {"causal", "keys"}, {"seen"});
              AddSeeing(b, "seen");
            },
        .batch = true,
        .sequence = true,
        .packs = true,
        .words = "",
    },
    {
        .name = "WindowAndPaddingInOneWhere",
        // The window is wider than the sizes measured first: its effect shows at long sizes alone.
        .build =
            [](ModelBuilder& b) {
              AddWindow(b, 20);
              AddKeys(b);
              b.Node("And", {"window", "keys"}, {"seen"});
              AddSeeing(b, "seen");
            },
        .batch = true,
        .sequence = true,
        .packs = true,
    },
    {
        .name = "WindowBeforeWhatHidesPadding",
        // ModernBERT does this: the lowest float outside the window, else the mask of padding.
        .build =
            [](ModelBuilder& b) {
              AddWindow(b, 20);
              b.Node("Unsqueeze", {"attention_mask", "one"}, {"mask_of_keys"});
              AddCast(b, "mask_of_keys", "counts", onnx::TensorProto::BOOL);
              AddNumber(b, "nothing", 0);
              AddNumber(b, "lowest", kLowestFloat);
              b.Node("Where", {"counts", "nothing", "lowest"}, {"of_keys"});
              b.Node("Not", {"window"}, {"outside"});
              b.Node("Where", {"outside", "lowest", "of_keys"}, {"both"});
              AddAttention(b, "both", "y");
            },
        .batch = true,
        .sequence = true,
        .packs = true,
    },
    {.name = "BiasOfDistancesCutByAsManyFromItsEnd",
     // T5 takes the biases of the last queries in this way, as many as there are keys.
     .build =
         [](ModelBuilder& b) {
           AddDistances(b);
           AddCast(b, "distance", "bias");
           b.Node("Slice", {"shape", "one", "two"}, {"queries"});
           b.Node("Neg", {"queries"}, {"from_end"});
           AddIntegers(b, "no_end", {kNoEnd});
           b.Node("Slice", {"bias", "from_end", "no_end", "zero"}, {"cut"});
           AddLowMask(b, kLowestFloat, "low.keys");
           b.Node("Add", {"low.keys", "cut"}, {"both"});
           AddAttention(b, "both", "y");
         },
     .batch = true,
     .sequence = true,
     .packs = true},
    {.name = "BiasOfDistancesCutByFewerFromItsEnd",
     .build =
         [](ModelBuilder& b) {
           AddDistances(b);
           AddCast(b, "distance", "bias");
           b.Node("Slice", {"shape", "one", "two"}, {"queries"});
           b.Node("Sub", {"one", "queries"}, {"from_end"});
           AddIntegers(b, "no_end", {kNoEnd});
           b.Node("Slice", {"bias", "from_end", "no_end", "zero"}, {"cut"});
           AddIntegers(b, "first", {-1});
           b.Node("Slice", {"cut", "first", "no_end", "zero"}, {"of_last"});
           AddLowMask(b, kLowestFloat, "low.keys");
           b.Node("Add", {"low.keys", "of_last"}, {"both"});
           AddAttention(b, "both", "y");
         },
     .batch = true,
     .sequence = false,
     .words = "takes numbers that follow the size of sequence"},
    {
        .name = "QueriesAndKeysThatCountInOneWhere",
        .build =
            [](ModelBuilder& b) {
              AddKeys(b);
              AddTurned(b, "keys", "queries", {0, 2, 1});
              b.Node("And", {"queries", "keys"}, {"seen"});
              AddSeeing(b, "seen");
            },
        .batch = true,
        .sequence = true,
        .packs = true,
        .words = "",
    },
    {
        .name = "CausalAddedToPadding",
        // Keys that both hide lie twice as deep: padding comes after every query, and stays hidden.
        .build =
            [](ModelBuilder& b) {
              AddBothAsNumbers(b);
              b.Node("Add", {"low.keys", "low.behind"}, {"low.both"});
              AddAttention(b, "low.both", "y");
            },
        .batch = true,
        .sequence = true,
        .packs = true,
    },
    {
        .name = "CausalAddedToPaddingAndCapped",
        .build =
            [](ModelBuilder& b) {
              AddBothAsNumbers(b);
              AddNumber(b, "lowest", kLowestFloat);
              b.Node("Add", {"low.keys", "low.behind"}, {"low.both"});
              b.Node("Max", {"low.both", "lowest"}, {"capped"});
              AddAttention(b, "capped", "y");
            },
        .batch = true,
        .sequence = true,
    },
    {
        .name = "CausalAndIdsThatAreNotPadding",
        .build =
            [](ModelBuilder& b) {
              AddCausal(b);
              b.Node("Equal", {"input_ids", "none"}, {"is_padding"});
              b.Node("Not", {"is_padding"}, {"counts"});
              b.Node("Unsqueeze", {"counts", "one"}, {"keys"});
              b.Node("And", {"causal", "keys"}, {"seen"});
              AddSeeing(b, "seen");
            },
        .batch = true,
        .sequence = true,
        .packs = true,
    },
    {.name = "LastTokenOfCausalAndPadding",
     .build =
         [](ModelBuilder& b) {
           AddCausal(b);
           AddKeys(b);
           b.Node("And", {"causal", "keys"}, {"seen"});
           AddSeeing(b, "seen", "context");
           AddLast(b);
           SetAttribute(b.Node("GatherND", {"context", "last"}, {"y"}), "batch_dims", int64_t{1});
         },
     .batch = true,
     .sequence = false,
     .packs = true},
};

}  // namespace reprise
