// Positions that are counted from the end of a row, and such as are set around it.
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/graph/elements.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/windows/live_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/live/live_rewrite.h"

namespace reprise {
namespace {

constexpr size_t kPads = 1, kPadValue = 2, kPadAxes = 3;  // operands of Pad

// Returns a scalar zero of the type, where sums over it are known to be right.
std::optional<Tensor> ZeroOf(DType dtype) {
  if (dtype == DType::kFloat32) return Tensor::FloatScalar(0);
  if (dtype == DType::kInt64) return Tensor::Int64Scalar(0);
  return std::nullopt;
}

}  // namespace

// Puts zeros before and after each row's last position, so that the sum over all is that one.
void LiveRewrite::TakeLast(NodeId id, ValueId x, int64_t dim, bool keepdims) {
  const auto live = extents_.At(x, dim);
  const std::optional<Tensor> zero = ZeroOf(extents_.TypeOf(x));
  if (!live.has_value() || !CanFill(x, *live) || !HasRowsOfBatch(x) || !zero.has_value()) return;
  // A row without positions has no last one.
  if (live->extent.At(extents_.smallest()) < 1) return;
  const int64_t rank = extents_.RankOf(x);
  const ValueId last = Add(
      SubOp::kName, {ExtentOf(live->extent, x, dim),
                     graph_.AddConstant("", Tensor::FromVector<int32_t>(DType::kInt32, {}, {1}))});
  const ValueId places =
      Add(LiveMaskOp::kName, {last, SizeOf(x, dim)}, {{"rank", int64_t{2}}, {"value", -1.0F}});
  const ValueId none = graph_.AddConstant("", Tensor::FloatScalar(0));
  ValueId from_last = Add(LessOp::kName, {places, none});
  std::vector<int64_t> others;
  for (int64_t d = 1; d < rank; ++d) {
    if (d != dim) others.push_back(d);
  }
  if (!others.empty()) from_last = Add(UnsqueezeOp::kName, {from_last, Ints(others)});
  const ValueId chosen = Add(WhereOp::kName, {from_last, x, graph_.AddConstant("", *zero)});
  const ValueId own = FillNode(chosen, dim, live->extent, 0);
  ReplaceOutput(id, Add(ReduceSumOp::kName, {own, Ints({dim})}, {{"keepdims", int64_t{keepdims}}}));
}

// Fills the end of each row with the number that a Pad sets after all positions.
void LiveRewrite::VisitPad(NodeId id) {
  const Node node = graph_.node(id);
  if (node.attributes.String("mode", "constant") != "constant") return;
  const auto ints = [&](size_t i) {
    const Tensor* known = node.input(i) == kNone ? nullptr : KnownConstant(graph_, node.input(i));
    const auto values = known == nullptr ? absl::UnknownError("") : known->ToInt64s();
    return values.ok() ? *values : std::vector<int64_t>();
  };
  const int64_t rank = extents_.RankOf(node.inputs[0]);
  const std::vector<int64_t> pads = ints(kPads);
  std::vector<int64_t> axes = ints(kPadAxes);
  if (node.input(kPadAxes) == kNone) {
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  }
  if (pads.empty() || pads.size() != 2 * axes.size()) return;
  float value = 0;
  if (node.input(kPadValue) != kNone) {
    const Tensor* known = KnownConstant(graph_, node.input(kPadValue));
    if (known == nullptr || known->num_elements() != 1) return;
    value = static_cast<float>(known->ToDoubles()[0]);
    if (static_cast<double>(value) != known->ToDoubles()[0]) return;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (pads[i + axes.size()] <= 0) continue;
    const ValueId x = graph_.node(id).inputs[0];
    const auto live = extents_.At(x, axes[i] < 0 ? axes[i] + rank : axes[i]);
    if (live.has_value() && CanFill(x, *live)) graph_.SetInput(id, 0, Filled(x, *live, value));
  }
}

}  // namespace reprise
