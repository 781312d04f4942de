// The sizes at which a model is looked at for proofs.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/graph/node.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/verify/proof_subject.h"

namespace reprise {

// Sizes at which a model is looked at: small, distinct, and not 1, which broadcasts.
inline constexpr int64_t kFitBatch = 2;
// The first of these that a model takes: of ids and steps, sides of pictures, samples of a
// recording.
inline constexpr int64_t kFitLengths[] = {5, 16, 64, 96, 224, 256, 512, 1024, 4096, 16384};

// A graph that is only read takes no memory: it is made even for many rows of large pictures.
inline constexpr SpecializeOptions kOnlyRead = {.max_value_bytes = int64_t{1} << 50};

// Returns the axis at `position` at `size`, every other one small, one request.
Binding SmallBinding(const std::vector<ModelAxis>& axes, size_t position, int64_t size);

// Returns by symbol, for the axes at `positions`, the number whose multiples the model takes, where
// it takes no others between them: 32 for a detector that joins maps at strides 8, 16 and 32. 1:
// any size, or none is known to be right.
std::map<std::string, int64_t> FindSteps(const Graph& graph, const std::vector<ModelAxis>& axes,
                                         const std::vector<size_t>& positions);

// Returns whether the model takes the sizes, within the limits of one that is compiled.
bool IsTaken(const Graph& graph, const Binding& sizes);

// Returns the largest of `buckets` that the model takes (those beyond are dropped later); 0 without
// one.
int64_t LargestTaken(const std::vector<ModelAxis>& axes, const Graph& graph, size_t position,
                     const std::vector<int64_t>& buckets);

}  // namespace reprise
