#include "runtime/verify/proof_sizes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/graph/graph.h"
#include "runtime/passes/read/size_regions.h"
#include "runtime/passes/read/value_shapes.h"

namespace reprise {
namespace {

// The length of the other axes, while one is looked at.
constexpr int64_t kOtherLength = 5;

// The largest step that is looked for, and how many multiples of one are looked at.
constexpr int64_t kMostStep = 256;
constexpr int64_t kMultiples = 64;

}  // namespace

Binding SmallBinding(const std::vector<ModelAxis>& axes, size_t position, int64_t size) {
  Binding binding;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ModelAxis& axis = axes[i];
    binding.axes[axis.symbol] = i == position   ? size
                                : axis.is_batch ? 1
                                                : axis.Fitting(kOtherLength);
  }
  return binding;
}

int64_t FindStep(const Graph& graph, const std::vector<ModelAxis>& axes, size_t position) {
  for (const int64_t other : kFitLengths) {
    Binding binding;
    for (const ModelAxis& axis : axes) {
      binding.axes[axis.symbol] = axis.is_batch ? kFitBatch : other;
    }
    const std::string& symbol = axes[position].symbol;
    binding.axes[symbol] = other;
    SizeRegions regions(graph, std::move(binding));
    const auto takes = [&](int64_t size) { return regions.Takes({{symbol, size}}).ok(); };
    if (!takes(other)) continue;
    for (int64_t step = 1; step <= std::min(kMostStep, other); ++step) {
      if (other % step != 0) continue;
      bool all = true;
      for (int64_t times = 1; times <= kMultiples && all; ++times) {
        all = takes(other + times * step);
      }
      if (all) return step;
    }
  }
  return 1;
}

bool IsTaken(const Graph& graph, const Binding& sizes) {
  return ValueShapes(graph).Takes(sizes.axes).ok();
}

int64_t LargestTaken(const std::vector<ModelAxis>& axes, const Graph& graph, size_t position,
                     const std::vector<int64_t>& buckets) {
  ValueShapes shapes(graph, SmallBinding(axes, position, 0));
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    if (shapes.Takes({{axes[position].symbol, *bucket}}).ok()) return *bucket;
  }
  return 0;
}

}  // namespace reprise
