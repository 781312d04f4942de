// Attention that a model names as one op: its mask hides the keys past the end of each row.

#include "absl/algorithm/container.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/windows/live_op.h"
#include "runtime/passes/live/live_rewrite.h"

namespace reprise {
namespace {

// Operands of an op that attends. `keys`: [batch, keys, ...], or [batch, heads, keys, size].
struct Operands {
  size_t keys, mask;
  std::vector<size_t> others;  // any of these adds to the keys, or counts them
};

Operands OperandsOf(const Node& node) {
  if (node.op == MicrosoftAttentionOp::kName) return {.keys = 0, .mask = 5, .others = {4, 6}};
  if (node.op == MultiHeadAttentionOp::kName) return {.keys = 1, .mask = 5, .others = {6, 7, 8, 9}};
  return {.keys = 1, .mask = 3, .others = {4, 5, 6}};
}

}  // namespace

ValueId LiveRewrite::MaskAfter(ValueId value, const LiveDim& dim, int64_t rank) {
  return Add(LiveMaskOp::kName, {ExtentOf(dim.extent, value, dim.dim), SizeOf(value, dim.dim)},
             {{"rank", rank}, {"value", -kInfinity}});
}

void LiveRewrite::VisitAttention(NodeId id) {
  const Node node = graph_.node(id);
  const Operands operands = OperandsOf(node);
  const ValueId keys = node.input(operands.keys);
  const bool known =
      absl::c_none_of(operands.others, [&](size_t other) { return node.input(other) != kNone; });
  if (!known || keys == kNone || extents_.SizesOf(keys) == nullptr) return;
  const auto live = extents_.At(keys, extents_.RankOf(keys) == 4 ? 2 : 1);
  if (!live.has_value() || !CanFill(keys, *live)) return;
  constexpr int64_t kRankOfScores = 4;
  ValueId mask = MaskAfter(keys, *live, kRankOfScores);
  if (const ValueId given = node.input(operands.mask); given != kNone) {
    const DType dtype = extents_.TypeOf(given);
    if (dtype != DType::kBool && dtype != DType::kFloat32) return;
    mask = dtype == DType::kFloat32
               ? Add(AddOp::kName, {given, mask})
               : Add(WhereOp::kName,
                     {given, mask, graph_.AddConstant("", Tensor::FloatScalar(-kInfinity))});
  }
  std::vector<ValueId> inputs = node.inputs;
  inputs.resize(std::max(inputs.size(), operands.mask + 1), kNone);
  inputs[operands.mask] = mask;
  SetInputs(id, std::move(inputs));
}

}  // namespace reprise
