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

std::map<std::string, int64_t> FindSteps(const Graph& graph, const std::vector<ModelAxis>& axes,
                                         const std::vector<size_t>& positions) {
  std::map<std::string, int64_t> steps;
  for (const int64_t other : kFitLengths) {
    if (steps.size() == positions.size()) break;
    Binding binding;
    for (const ModelAxis& axis : axes) {
      binding.axes[axis.symbol] = axis.is_batch ? kFitBatch : other;
    }
    SizeRegions regions(graph, binding);
    for (const size_t position : positions) {
      const std::string& symbol = axes[position].symbol;
      if (steps.contains(symbol) || !regions.Takes({{symbol, other}}).ok()) continue;
      const auto takes_multiples = [&](int64_t step) {
        const int64_t last = other + kMultiples * step;
        int64_t size = other;
        // Where it may be refused as others were, no step is said to be right.
        while (size <= last && !regions.IsRefused({{symbol, size}}) &&
               regions.Takes({{symbol, size}}).ok()) {
          size = regions.EndAlong(symbol, size, last, step);
        }
        return size > last;
      };
      for (int64_t step = 1; step <= std::min(kMostStep, other); ++step) {
        if (other % step != 0 || !takes_multiples(step)) continue;
        steps[symbol] = step;
        break;
      }
    }
  }
  for (const size_t position : positions) steps.emplace(axes[position].symbol, 1);
  return steps;
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
