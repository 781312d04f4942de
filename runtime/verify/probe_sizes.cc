#include "runtime/verify/probe_sizes.h"

#include <algorithm>

#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// The length of the other axes, while one is measured at its largest size.
constexpr int64_t kOtherLength = 5;

}  // namespace

Binding SmallBinding(const std::vector<ModelAxis>& axes, size_t position, int64_t size) {
  Binding binding;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ModelAxis& axis = axes[i];
    binding.axes[axis.symbol] = i == position   ? size
                                : axis.is_batch ? 1
                                                : std::max(kOtherLength, axis.smallest);
  }
  return binding;
}

void SetOtherSizes(const std::vector<ModelAxis>& axes, size_t position, ProbeOptions& options) {
  for (const auto& [symbol, size] : SmallBinding(axes, position, 0).axes) {
    if (symbol != axes[position].symbol) options.sizes[symbol] = size;
  }
}

int64_t LargestTaken(const std::vector<ModelAxis>& axes, const Graph& graph, size_t position,
                     const std::vector<int64_t>& buckets) {
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    if (Specialize(graph, SmallBinding(axes, position, *bucket)).ok()) return *bucket;
  }
  return 0;
}

}  // namespace reprise
