#include "runtime/passes/paged/whole_tables.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Returns whether `longer` begins with all of `shorter` along `dim`.
bool BeginsWith(const Tensor& longer, const Tensor& shorter, int64_t dim) {
  const Shape &a = shorter.shape(), &b = longer.shape();
  if (a.size() != b.size() || shorter.dtype() != longer.dtype() ||
      !absl::c_equal(absl::MakeConstSpan(a).first(dim), absl::MakeConstSpan(b).first(dim)) ||
      !absl::c_equal(absl::MakeConstSpan(a).subspan(dim + 1),
                     absl::MakeConstSpan(b).subspan(dim + 1)) ||
      a[dim] > b[dim]) {
    return false;
  }
  const size_t inner = static_cast<size_t>(NumElements(absl::MakeConstSpan(a).subspan(dim + 1))) *
                       DTypeSize(a.empty() ? DType::kUndefined : shorter.dtype());
  const int64_t outer = NumElements(absl::MakeConstSpan(a).first(dim));
  const auto* from = static_cast<const char*>(shorter.data());
  const auto* of = static_cast<const char*>(longer.data());
  const size_t width = inner * static_cast<size_t>(a[dim]);
  const size_t step = inner * static_cast<size_t>(b[dim]);
  for (int64_t i = 0; i < outer; ++i) {
    if (std::memcmp(from + static_cast<size_t>(i) * width, of + static_cast<size_t>(i) * step,
                    width) != 0) {
      return false;
    }
  }
  return true;
}

// Ops that compute each row along a dim of a result from the same row of their operands.
bool KeepsRowsApart(const Node& node, const OpRow& row, int64_t dim, int64_t rank) {
  if (row.Has(kElementwise)) return true;
  if (node.op == ConcatOp::kName) {
    const int64_t axis = node.attributes.Int("axis", 0);
    return (axis < 0 ? axis + rank : axis) != dim;
  }
  return node.op == UnsqueezeOp::kName || node.op == SqueezeOp::kName ||
         node.op == TransposeOp::kName || node.op == MatMulOp::kName || node.op == EinsumOp::kName;
}

}  // namespace

ValueId WholeTables::Of(ValueId value) {
  if (!values_.IsStatic(value)) return kNone;
  if (!values_.Depends(value)) return value;
  const auto [known, added] = whole_.try_emplace(value, kNone);
  if (!added) return known->second;
  const std::optional<int64_t> dim = values_.GrowingDim(value);
  if (!dim.has_value()) return kNone;
  ValueId whole = kNone;
  if (values_.IsKnown(value)) {
    const Tensor* all = longest_ == nullptr ? nullptr : PastValues::ConstantAt(*longest_, value);
    const bool begins = all != nullptr &&
                        BeginsWith(*all, *PastValues::ConstantAt(values_.a(), value), *dim) &&
                        BeginsWith(*all, *PastValues::ConstantAt(values_.b(), value), *dim);
    if (begins) whole = graph_.AddConstant("", *all);
  } else {
    whole = Computed(value, *dim);
  }
  whole_[value] = whole;
  return whole;
}

ValueId WholeTables::Computed(ValueId value, int64_t dim) {
  const Node node = graph_.node(ProducerOf(graph_, value));  // A copy: adding nodes moves them.
  const OpRow* row = FindOp(node.op);
  const auto rank = static_cast<int64_t>(PastValues::ShapeAt(values_.a(), value)->size());
  if (node.op == SliceOp::kName) {
    const ValueId table = node.inputs[SliceOp::kX];
    const auto begin = values_.BeginOf(node, dim);
    const std::optional<Shape> all = values_.ShapeOf(table);
    const std::optional<Shape> cut = PastValues::ShapeAt(values_.a(), value);
    if (!begin.has_value() || begin->from_past || begin->place != 0 || !all.has_value() ||
        values_.Depends(table)) {
      return kNone;
    }
    for (int64_t d = 0; d < rank; ++d) {
      if (d != dim && (*all)[d] != (*cut)[d]) return kNone;
    }
    return table;
  }
  if (row == nullptr || !KeepsRowsApart(node, *row, dim, rank)) return kNone;
  std::vector<ValueId> inputs;
  ValueId growing = kNone;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    inputs.push_back(input == kNone || row->IsValueInput(i) ? input : Of(input));
    if (inputs.back() == input) continue;
    // Two tables may differ in their number of rows.
    if (inputs.back() == kNone || (growing != kNone && growing != inputs.back())) return kNone;
    growing = inputs.back();
  }
  if (growing == kNone) return kNone;
  const NodeId again = graph_.AddNode(node.op, std::move(inputs), node.attributes, 1, node.name);
  return graph_.node(again).outputs[0];
}

int64_t PositionsOfCuts(const Graph& graph, const PastValues& values) {
  int64_t smallest = 0;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != SliceOp::kName) continue;
    const std::optional<Shape> all = values.ShapeOf(node.inputs[SliceOp::kX]);
    const std::optional<Shape> cut = PastValues::ShapeAt(values.a(), node.outputs[0]);
    if (!all.has_value() || !cut.has_value()) continue;
    const std::optional<int64_t> growing = values.GrowingDim(node.outputs[0]);
    for (int64_t dim = 0; dim < static_cast<int64_t>(all->size()); ++dim) {
      const auto begin = values.BeginOf(node, dim);
      if (growing != dim && !(begin.has_value() && begin->from_past)) continue;
      // It ends there at the shorter past, and as many rows later as the past is longer. Where it
      // is cut from its end it has that many rows.
      int64_t end = (*cut)[dim];
      if (begin.has_value()) end += begin->place + (begin->from_past ? values.a().past : 0);
      const int64_t positions = (*all)[dim] - end + values.a().past + 1;
      smallest = smallest == 0 ? positions : std::min(smallest, positions);
    }
  }
  return smallest;
}

}  // namespace reprise
