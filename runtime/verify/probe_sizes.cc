#include "runtime/verify/probe_sizes.h"

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// The length of the other axes, while one is measured at its largest size.
constexpr int64_t kOtherLength = 5;

// Steps of models that make maps smaller and larger again, ascending.
constexpr int64_t kTriedSteps[] = {1, 2, 3, 4, 6, 8, 12, 14, 16, 24, 28, 32, 48, 64, 96, 128, 256};
// The multiples that are tried of each, behind the size that the other axes have.
constexpr int64_t kMultiples[] = {1, 2, 3, 4, 7};

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

void SetOtherSizes(const std::vector<ModelAxis>& axes, size_t position, ProbeOptions& options) {
  for (const auto& [symbol, size] : SmallBinding(axes, position, 0).axes) {
    if (symbol != axes[position].symbol) options.sizes[symbol] = size;
  }
}

int64_t FindStep(const Graph& graph, const std::vector<ModelAxis>& axes, size_t position) {
  const auto takes = [&](int64_t size, int64_t other) {
    Binding binding;
    for (size_t i = 0; i < axes.size(); ++i) {
      binding.axes[axes[i].symbol] = i == position ? size : axes[i].is_batch ? kFitBatch : other;
    }
    return Specialize(graph, binding, kOnlyRead).ok();
  };
  for (const int64_t other : kFitLengths) {
    if (!takes(other, other)) continue;
    for (const int64_t step : kTriedSteps) {
      if (other % step != 0) continue;
      const auto is_taken = [&](int64_t times) { return takes(other + times * step, other); };
      if (absl::c_all_of(kMultiples, is_taken)) return step;
    }
  }
  return 1;
}

int64_t LargestTaken(const std::vector<ModelAxis>& axes, const Graph& graph, size_t position,
                     const std::vector<int64_t>& buckets) {
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    if (Specialize(graph, SmallBinding(axes, position, *bucket)).ok()) return *bucket;
  }
  return 0;
}

}  // namespace reprise
