// Determinants of a stack of matrices, each by one thread.
#include <algorithm>

#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/simd/parts.h"
#include "runtime/ops/products/det.h"

namespace reprise::cpu {
namespace {

// Matrices up to this size are eliminated on the stack.
constexpr int64_t kSmall = 8;

struct DetParams {
  int64_t matrices = 0, n = 0;
  int64_t batch_rows = 0;
  int scratch_parts = 1;
};

int64_t ScratchElements(int64_t n) { return n <= kSmall ? 0 : n * n; }

// Operands: the matrices, their determinants, and scratch where they are large.
template <typename T>
void RunDet(const LaunchArgs& launch) {
  const auto& p = *static_cast<const DetParams*>(launch.params);
  const int64_t scratch_elements = ScratchElements(p.n);
  const int parts =
      scratch_elements == 0 ? launch.parts : PartsWithScratch(launch, p.scratch_parts);
  if (launch.part >= parts) return;
  constexpr int64_t kGrain = 4;
  const ItemRange range =
      RangeOfPart(LiveOf(p.matrices, p.batch_rows, *launch.frame), kGrain, launch.part, parts);
  double small[kSmall * kSmall];
  double* m = small;
  if (scratch_elements > 0) {
    m = static_cast<double*>(static_cast<void*>(launch.operands[2])) +
        launch.part * scratch_elements;
  }
  const auto* from = static_cast<const T*>(launch.operands[0]) + range.begin * p.n * p.n;
  auto* to = static_cast<T*>(launch.operands[1]);
  for (int64_t i = range.begin; i < range.end; ++i, from += p.n * p.n) {
    std::copy(from, from + p.n * p.n, m);
    to[i] = static_cast<T>(ops::Determinant(m, p.n));
  }
}

}  // namespace

std::vector<Candidate> PlanDet(const CpuTarget& target, const NodeView& node) {
  const DType dtype = node.dtype(0);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return {};
  DetParams params;
  params.matrices = NumElements(node.out_shape());
  params.n = node.shape(0).back();
  params.batch_rows = WholeBatchRows(node, params.matrices);
  params.scratch_parts = target.scratch_parts;
  const double n = static_cast<double>(params.n);
  Candidate candidate = MakeCandidate(target, node, "determinants",
                                      dtype == DType::kFloat32 ? RunDet<float> : RunDet<double>,
                                      params, static_cast<double>(params.matrices) * n * n * n);
  candidate.option.workspace_bytes = static_cast<size_t>(
      params.scratch_parts * ScratchElements(params.n) * static_cast<int64_t>(sizeof(double)));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
