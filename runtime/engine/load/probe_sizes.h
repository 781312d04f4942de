// The sizes at which a model's axes are measured.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/certify/probe.h"
#include "runtime/engine/model/model.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

// More cases for a model of which the ops do not say that it may be padded.
inline constexpr int kSweeps = 8;

// The axis at `position` of Model::axes() at `size`, every other one small, one request.
Binding SmallBinding(const Model& model, size_t position, int64_t size);

// Sets the sizes of the other axes, while that at `position` is measured at its largest size.
void SetOtherSizes(const Model& model, size_t position, ProbeOptions& options);

// The largest of `buckets` that the model takes (those beyond are dropped later); 0 without one.
int64_t LargestTaken(const Model& model, const Graph& graph, size_t position,
                     const std::vector<int64_t>& buckets);

}  // namespace reprise
