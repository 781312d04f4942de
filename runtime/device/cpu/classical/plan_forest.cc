// Ensembles of trees.
#include <algorithm>
#include <memory>

#include "runtime/device/cpu/classical/classical_plans.h"
#include "runtime/device/cpu/classical/forest.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/classical/forest.h"

namespace reprise::cpu {
namespace {

struct ForestParams {
  const ForestKernels* kernels = nullptr;
  ops::ForestShape shape;
  int64_t rows = 0, columns = 0;
  int64_t batch_rows = 0;
  int64_t groups = 0;  // groups of rows that are prepared at once
  int scratch_parts = 1;
};

// Bytes of a part's scratch.
int64_t ScratchBytes(const ForestParams& p, int64_t element) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = p.shape.columns() * kForestLanes * p.groups * element;
  return (bytes + kLine - 1) / kLine * kLine;
}

// Items are blocks of rows in a chunk of trees, all of one chunk after another.
template <typename T>
void RunForest(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ForestParams*>(launch.params);
  const int parts = PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  const ops::ForestView<T> forest(p.shape, launch.operands[1]);
  const auto* x = static_cast<const T*>(launch.operands[0]);
  auto* sums = static_cast<double*>(launch.operands[2]);
  auto* scratch = reinterpret_cast<T*>(static_cast<std::byte*>(launch.operands[3]) +
                                       launch.part * ScratchBytes(p, sizeof(T)));
  const int64_t rows = LiveOf(p.rows, p.batch_rows, *launch.frame);
  const int64_t share = (rows + parts - 1) / parts;
  const int64_t block =
      std::min(p.groups * kForestLanes, (share + kForestLanes - 1) / kForestLanes * kForestLanes);
  if (rows == 0) return;
  const int64_t blocks = (rows + block - 1) / block;
  const ItemRange range = RangeOfPart(p.shape.chunks * blocks, 1, launch.part, parts);
  const auto kernel = [&] {
    if constexpr (sizeof(T) == sizeof(double)) {
      return p.kernels->doubles;
    } else {
      return p.kernels->floats;
    }
  }();
  for (int64_t item = range.begin; item < range.end; ++item) {
    const int64_t first = item % blocks * block;
    kernel(forest, {.x = x + first * p.columns,
                    .stride = p.columns,
                    .rows = std::min(block, rows - first),
                    .chunk = item / blocks,
                    .sums = sums + first * p.shape.chunks * p.shape.targets,
                    .scratch = scratch});
  }
}

}  // namespace

std::vector<Candidate> PlanForest(const CpuTarget& target, const NodeView& node) {
  const bool is_double = node.dtype(0) == DType::kFloat64;
  const int64_t element = static_cast<int64_t>(DTypeSize(node.dtype(0)));
  ForestParams params;
  params.kernels = &ForestKernelsFor(target.isa);
  params.shape = ops::ForestShape::From(node.attributes());
  params.rows = node.shape(0)[0];
  params.columns = node.shape(0)[1];
  params.batch_rows = node.batch_rows();
  params.groups = ForestGroups(params.shape.columns(), element);
  params.scratch_parts = target.scratch_parts;
  Candidate candidate = MakeCandidate(target, node, "forest",
                                      is_double ? RunForest<double> : RunForest<float>, params, 0);
  candidate.option.workspace_bytes =
      static_cast<size_t>(params.scratch_parts * ScratchBytes(params, element));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  // A row reads one node of each tree at each level.
  constexpr double kNodeBytes = 8, kStepNs = 0.7;
  const double steps = static_cast<double>(params.rows * params.shape.trees) *
                       static_cast<double>(std::min<int64_t>(params.shape.deepest, 12));
  LaunchWork& work = candidate.bound.work;
  work.weight_bytes = std::min(work.weight_bytes, steps * kNodeBytes);
  work.bytes = work.weight_bytes + static_cast<double>(NumElements(node.shape(0)) * element);
  work.branches = steps;
  candidate.option.estimate_ns = steps * kStepNs;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
