// Single elements and blocks chosen by indices, and those that are replaced: GatherElements,
// GatherND, ScatterElements, ScatterND. See indices.h.
#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/device/cpu/movement/indices.h"
#include "runtime/device/cpu/movement/movement_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/plan/strided.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/scatter_op.h"
#include "runtime/ops/movement/scatter_reduction.h"

namespace reprise::cpu {
namespace {

using ops::Reduction;

// The elements of the indices, and the data with stride 0 along the axis that they count along.
struct ElementsParams {
  Walk<1> walk;
  int64_t size = 0;  // the size of the axis
  int64_t step = 0;  // elements of the data between neighbours along it
  bool wide = false;
  // For ScatterElements: the blocks of the data, and of the indices, that are independent of one
  // another.
  int64_t data_blocks = 1, index_blocks = 1;
  int64_t block = 0;  // elements of the data
};

template <class T>
void RunGatherElements(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ElementsParams*>(launch.params);
  const T* from = static_cast<const T*>(launch.operands[0]);
  const Indices indices = {launch.operands[1], p.wide};
  T* to = static_cast<T*>(launch.operands[2]);
  const int64_t stride = p.walk.inner_stride(0);
  ForEachRun(p.walk, p.walk.elements, launch.part, launch.parts,
             [&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
               for (int64_t i = 0; i < count; ++i) {
                 const int64_t index = CheckedIndex(launch, 1, indices, position + i, p.size);
                 to[position + i] = from[offsets[0] + i * stride + index * p.step];
               }
             });
}

template <class T, Reduction kReduction>
void RunScatterElements(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ElementsParams*>(launch.params);
  const T* data = static_cast<const T*>(launch.operands[0]);
  const Indices indices = {launch.operands[1], p.wide};
  const T* updates = static_cast<const T*>(launch.operands[2]);
  T* to = static_cast<T*>(launch.operands[3]);
  const ItemRange blocks = RangeOfPart(p.data_blocks, 1, launch.part, launch.parts);
  if (blocks.begin >= blocks.end) return;
  if (data != to) {
    std::copy(data + blocks.begin * p.block, data + blocks.end * p.block,
              to + blocks.begin * p.block);
  }
  const int64_t stride = p.walk.inner_stride(0);
  const int64_t of_block = p.walk.elements / std::max<int64_t>(p.index_blocks, 1);
  const int64_t first = blocks.begin * of_block;
  const int64_t end = std::min(blocks.end, p.index_blocks) * of_block;
  // Elements go in the order of the indices: where two name one element, the later one stays, or is
  // added later.
  ForEachRunOf(p.walk, {first, end},
               [&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
                 for (int64_t i = 0; i < count; ++i) {
                   const int64_t index = CheckedIndex(launch, 1, indices, position + i, p.size);
                   T& element = to[offsets[0] + i * stride + index * p.step];
                   element = ops::Combine(kReduction, element, updates[position + i]);
                 }
               });
}

constexpr size_t kMaxDepth = 8;

struct ScatterNdParams {
  size_t depth = 0;  // indices of a block
  int64_t sizes[kMaxDepth] = {};
  int64_t strides[kMaxDepth] = {};  // bytes
  int64_t rows = 0;
  int64_t block_bytes = 0;
  int64_t bytes = 0;
};

template <class T, Reduction kReduction>
void RunScatterNd(const LaunchArgs& launch) {
  const auto& p = *static_cast<const ScatterNdParams*>(launch.params);
  const auto* data = static_cast<const std::byte*>(launch.operands[0]);
  const Indices indices = {launch.operands[1], /*wide=*/true};
  const auto* updates = static_cast<const std::byte*>(launch.operands[2]);
  auto* to = static_cast<std::byte*>(launch.operands[3]);
  // Each part owns a stretch of the result, and reads all indices to find those that hit it.
  const ItemRange range = RangeOfPart(p.bytes, 4096, launch.part, launch.parts);
  if (data != to && range.begin < range.end) {
    std::memcpy(to + range.begin, data + range.begin, range.end - range.begin);
  }
  for (int64_t row = 0; row < p.rows; ++row) {
    int64_t at = 0;
    for (size_t d = 0; d < p.depth; ++d) {
      const int64_t element = row * static_cast<int64_t>(p.depth) + static_cast<int64_t>(d);
      int64_t index = indices[element];
      if (index < 0) index += p.sizes[d];
      if (index < 0 || index >= p.sizes[d]) {
        // Said once, by the part that is always there.
        if (launch.part == 0) CheckedIndex(launch, 1, indices, element, p.sizes[d]);
        index = 0;
      }
      at += index * p.strides[d];
    }
    const int64_t begin = std::max(at, range.begin);
    const int64_t end = std::min(at + p.block_bytes, range.end);
    if (begin >= end) continue;
    const std::byte* from = updates + row * p.block_bytes + (begin - at);
    if constexpr (kReduction == Reduction::kNone) {
      std::memcpy(to + begin, from, end - begin);
    } else {
      const auto* values = reinterpret_cast<const T*>(from);
      auto* elements = reinterpret_cast<T*>(to + begin);
      const int64_t count = (end - begin) / static_cast<int64_t>(sizeof(T));
      for (int64_t i = 0; i < count; ++i) {
        elements[i] = ops::Combine(kReduction, elements[i], values[i]);
      }
    }
  }
}

struct GatherNdParams {
  size_t depth = 0;  // indices of a block
  int64_t sizes[kMaxDepth] = {};
  int64_t strides[kMaxDepth] = {};  // bytes
  int64_t rows = 0;                 // blocks of the result
  int64_t of_batch = 1;             // blocks for one entry of the batch dims
  int64_t batch_bytes = 0;          // bytes of the data for one entry
  int64_t block_bytes = 0;
  int64_t batch_rows = 0;
};

void RunGatherNd(const LaunchArgs& launch) {
  const auto& p = *static_cast<const GatherNdParams*>(launch.params);
  const auto* data = static_cast<const std::byte*>(launch.operands[0]);
  const Indices indices = {launch.operands[1], /*wide=*/true};
  auto* to = static_cast<std::byte*>(launch.operands[2]);
  const int64_t live = LiveOf(p.rows, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 1, launch.part, launch.parts);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const std::byte* block = data + row / p.of_batch * p.batch_bytes;
    for (size_t d = 0; d < p.depth; ++d) {
      const int64_t element = row * static_cast<int64_t>(p.depth) + static_cast<int64_t>(d);
      block += CheckedIndex(launch, 1, indices, element, p.sizes[d]) * p.strides[d];
    }
    std::memcpy(to + row * p.block_bytes, block, p.block_bytes);
  }
}

// Returns the walk over input 1's elements; none where there is no axis, element or index.
std::optional<ElementsParams> ElementsOf(const NodeView& node) {
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(ScatterElementsOp::From(node.attributes()).axis, node.rank(0));
  if (!axis.ok() || !IsIndex(node.dtype(1)) || NumElements(node.shape(0)) == 0) {
    return std::nullopt;
  }
  Shape strides = Strides(node.shape(0));
  ElementsParams params;
  params.size = node.shape(0)[*axis];
  params.step = strides[*axis];
  strides[*axis] = 0;
  const auto walk = MakeWalk<1>(node.shape(1), {strides});
  if (!walk.has_value()) return std::nullopt;
  params.walk = *walk;
  params.wide = node.dtype(1) == DType::kInt64;
  // Dims before the axis that both have whole; of the very first the indices may have less.
  for (int64_t d = 0; d < *axis; ++d) {
    const bool whole = node.shape(0)[d] == node.shape(1)[d];
    if (!whole && d > 0) break;
    params.data_blocks *= node.shape(0)[d];
    params.index_blocks *= node.shape(1)[d];
    if (!whole) break;
  }
  params.block = NumElements(node.shape(0)) / params.data_blocks;
  return params;
}

template <template <class> class Run>
KernelFn RunOfSize(DType dtype) {
  KernelFn run = nullptr;
  ops::DispatchSize(dtype, [&]<typename T>() { run = Run<T>::kRun; });
  return run;
}

template <class T>
struct GatherElementsRun {
  static constexpr KernelFn kRun = RunGatherElements<T>;
};
template <class T>
struct ScatterElementsRun {
  static constexpr KernelFn kRun = RunScatterElements<T, Reduction::kNone>;
};

// Returns the kernel of ScatterElements or ScatterND with a reduction, for usual dtypes; null for
// others.
template <template <class, Reduction> class Run>
KernelFn RunOfReduction(Reduction reduction, DType dtype) {
  const auto of_dtype = [&]<class T>() -> KernelFn {
    switch (reduction) {
      case Reduction::kNone:
        return nullptr;
      case Reduction::kAdd:
        return Run<T, Reduction::kAdd>::kRun;
      case Reduction::kMul:
        return Run<T, Reduction::kMul>::kRun;
      case Reduction::kMax:
        return Run<T, Reduction::kMax>::kRun;
      case Reduction::kMin:
        return Run<T, Reduction::kMin>::kRun;
    }
    return nullptr;
  };
  switch (dtype) {
    case DType::kFloat32:
      return of_dtype.template operator()<float>();
    case DType::kInt32:
      return of_dtype.template operator()<int32_t>();
    case DType::kInt64:
      return of_dtype.template operator()<int64_t>();
    default:
      return nullptr;
  }
}

template <class T, Reduction kReduction>
struct ReducingElementsRun {
  static constexpr KernelFn kRun = RunScatterElements<T, kReduction>;
};
template <class T, Reduction kReduction>
struct ReducingNdRun {
  static constexpr KernelFn kRun = RunScatterNd<T, kReduction>;
};

}  // namespace

std::vector<Candidate> PlanGatherElements(const CpuTarget& target, const NodeView& node) {
  std::optional<ElementsParams> params = ElementsOf(node);
  const KernelFn run = RunOfSize<GatherElementsRun>(node.out_dtype());
  if (!params.has_value() || run == nullptr) return {};
  return {MakeCandidate(target, node, "gather_elements", run, *params, 0)};
}

std::vector<Candidate> PlanGatherNd(const CpuTarget& target, const NodeView& node) {
  const absl::Span<const int64_t> shape = node.shape(0);
  const absl::Span<const int64_t> of_indices = node.shape(1);
  const auto batch = static_cast<size_t>(GatherNdOp::From(node.attributes()).batch_dims);
  GatherNdParams params;
  params.depth = static_cast<size_t>(of_indices.back());
  if (node.dtype(1) != DType::kInt64 || NumElements(shape) == 0 || params.depth > kMaxDepth) {
    return {};
  }
  const auto size = static_cast<int64_t>(DTypeSize(node.out_dtype()));
  const Shape strides = Strides(node.shape(0));
  for (size_t d = 0; d < params.depth; ++d) {
    params.sizes[d] = shape[batch + d];
    params.strides[d] = strides[batch + d] * size;
  }
  params.rows = NumElements(of_indices.first(of_indices.size() - 1));
  params.of_batch = NumElements(of_indices.subspan(batch, of_indices.size() - 1 - batch));
  params.batch_bytes = NumElements(shape.subspan(batch)) * size;
  params.block_bytes = NumElements(shape.subspan(batch + params.depth)) * size;
  params.batch_rows = node.batch_rows();
  if (params.rows == 0) return {};
  Candidate candidate = MakeCandidate(target, node, "gather_nd", RunGatherNd, params, 0);
  // The data is not read as a whole.
  LaunchWork& work = candidate.bound.work;
  work.bytes = 2.0 * static_cast<double>(params.rows) * static_cast<double>(params.block_bytes);
  work.weight_bytes = node.is_parameter(0) ? work.bytes / 2 : 0;
  candidate.option.estimate_ns = work.bytes / 10;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanScatterElements(const CpuTarget& target, const NodeView& node) {
  std::optional<ElementsParams> params = ElementsOf(node);
  const absl::StatusOr<Reduction> reduction = ops::ReductionOf(node.node());
  if (!params.has_value() || !reduction.ok()) return {};
  const KernelFn run = *reduction == Reduction::kNone
                           ? RunOfSize<ScatterElementsRun>(node.out_dtype())
                           : RunOfReduction<ReducingElementsRun>(*reduction, node.out_dtype());
  if (run == nullptr) return {};
  Candidate candidate = MakeCandidate(target, node, "scatter_elements", run, *params, 0);
  candidate.option.in_place = 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanScatterNd(const CpuTarget& target, const NodeView& node) {
  const absl::Span<const int64_t> shape = node.shape(0);
  const absl::Span<const int64_t> of_indices = node.shape(1);
  ScatterNdParams params;
  params.depth = static_cast<size_t>(of_indices.back());
  const absl::StatusOr<Reduction> reduction = ops::ReductionOf(node.node());
  if (node.dtype(1) != DType::kInt64 || NumElements(shape) == 0 || params.depth > kMaxDepth ||
      !reduction.ok()) {
    return {};
  }
  const KernelFn run = *reduction == Reduction::kNone
                           ? RunScatterNd<std::byte, Reduction::kNone>
                           : RunOfReduction<ReducingNdRun>(*reduction, node.out_dtype());
  if (run == nullptr) return {};
  const auto size = static_cast<int64_t>(DTypeSize(node.out_dtype()));
  const Shape strides = Strides(node.shape(0));
  for (size_t d = 0; d < params.depth; ++d) {
    params.sizes[d] = shape[d];
    params.strides[d] = strides[d] * size;
  }
  params.rows = NumElements(of_indices.first(of_indices.size() - 1));
  params.block_bytes = NumElements(shape.subspan(params.depth)) * size;
  params.bytes = NumElements(shape) * size;
  Candidate candidate = MakeCandidate(target, node, "scatter", run, params, 0);
  candidate.option.in_place = 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
