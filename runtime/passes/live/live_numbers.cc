// Numbers that are made of sizes: a mean that divides by the length, positions as shares of it,
// positions counted from the end, an unbiased deviation.
//
// In a padded batch such a number differs from row to row. Where the rows of a batch meet it, it is
// computed again for each of them: every value on the way gets one more dim in front, the rows, and
// begins with the numbers of positions of the rows instead of the size.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/live/live_rewrite.h"

namespace reprise {
namespace {

constexpr int kMostOps = 24;    // that a number is followed back
constexpr int kMostScores = 3;  // additions in front of a softmax

// Returns whether its operands broadcast with each other.
bool Broadcasts(const Node& node) {
  constexpr absl::string_view kOps[] = {AddOp::kName,
                                        SubOp::kName,
                                        MulOp::kName,
                                        DivOp::kName,
                                        ModOp::kName,
                                        PowOp::kName,
                                        MaxOp::kName,
                                        MinOp::kName,
                                        WhereOp::kName,
                                        LessOp::kName,
                                        LessOrEqualOp::kName,
                                        GreaterOp::kName,
                                        GreaterOrEqualOp::kName,
                                        EqualOp::kName};
  return absl::c_linear_search(kOps, node.op);
}

bool IsElementwise(const Node& node) {
  const OpRow* row = FindOp(node.op);
  return row != nullptr && row->Has(kElementwise);
}

// Returns the only integer of an operand; nullopt where it is not known, or there are several.
std::optional<int64_t> KnownInt(const Graph& graph, ValueId value) {
  const Tensor* known = value == kNone ? nullptr : KnownConstant(graph, value);
  const auto ints = known == nullptr ? absl::UnknownError("") : known->ToInt64s();
  return ints.ok() && ints->size() == 1 ? std::optional((*ints)[0]) : std::nullopt;
}

// Returns the dims that a Squeeze or an Unsqueeze names, of `rank`, each plus one; nullopt where
// they are not known.
std::optional<std::vector<int64_t>> DimsAfterRows(const Graph& graph, const Node& node,
                                                  int64_t rank) {
  const Tensor* known = node.input(1) == kNone ? nullptr : KnownConstant(graph, node.input(1));
  const auto ints = known == nullptr ? absl::UnknownError("") : known->ToInt64s();
  if (!ints.ok()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const int64_t dim : *ints) dims.push_back((dim < 0 ? dim + rank : dim) + 1);
  absl::c_sort(dims);
  return dims;
}

}  // namespace

std::optional<std::pair<ValueId, int64_t>> LiveRewrite::SizeRead(const Node& node) const {
  const bool gathers = node.op == GatherOp::kName, cuts = node.op == SliceOp::kName;
  const Node* shape = nullptr;
  std::optional<int64_t> dim;
  if (gathers || cuts) {
    shape = graph_.ProducerIf(node.inputs[0], ShapeOp::kName);
    dim = KnownInt(graph_, node.input(1));
    if (cuts) {
      const auto end = KnownInt(graph_, node.input(SliceOp::kEnds));
      const bool by_one = node.input(SliceOp::kSteps) == kNone ||
                          KnownInt(graph_, node.input(SliceOp::kSteps)) == 1;
      if (!dim.has_value() || !end.has_value() || *end != *dim + 1 || !by_one) return std::nullopt;
    }
  } else if (node.op == ShapeOp::kName) {
    shape = &node;
    dim = 0;
  }
  if (shape == nullptr || !dim.has_value()) return std::nullopt;
  const int64_t rank = extents_.RankOf(shape->inputs[0]);
  const auto clamped = [rank](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = clamped(shape->attributes.Int("start", 0));
  const int64_t end = clamped(shape->attributes.Int("end", rank));
  if (shape == &node && end != start + 1) return std::nullopt;
  const int64_t at = (*dim < 0 ? end : start) + *dim;
  if (at < start || at >= end) return std::nullopt;
  return std::pair(shape->inputs[0], at);
}

ValueId LiveRewrite::WithRank(ValueId by_row, int64_t rank, int64_t wanted) {
  if (rank == wanted) return by_row;
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < wanted - rank; ++d) dims.push_back(d + 1);
  return Add(UnsqueezeOp::kName, {by_row, Ints(dims)});
}

std::optional<bool> LiveRewrite::FollowsRows(ValueId value, int steps) {
  if (const auto known = numbers_.find(value); known != numbers_.end()) return known->second;
  const std::optional<bool> follows = LookForRows(value, steps);
  numbers_[value] = follows;
  return follows;
}

std::optional<bool> LiveRewrite::LookForRows(ValueId value, int steps) {
  if (value == kNone || IsWeight(graph_, value)) return false;
  const NodeId producer = ProducerOf(graph_, value);
  if (producer == kNone || steps == 0 || extents_.SizesOf(value) == nullptr) return std::nullopt;
  const Node& node = graph_.node(producer);
  const int64_t rank = extents_.RankOf(value);
  if (const auto size = SizeRead(node); size.has_value()) {
    if (!extents_.FollowsAt(size->first, size->second)) return false;
    const auto live = extents_.At(size->first, size->second);
    const bool known = live.has_value() && live->repeats == 1 && rank <= 1;
    return known ? std::optional(true) : std::nullopt;
  }
  const bool counts = node.op == RangeOp::kName, reshapes = node.op == ReshapeOp::kName;
  std::vector<bool> follows;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    // Where a Range ends, and a Reshape puts elements, has no say in the elements.
    if (i == 1 && (counts || reshapes)) {
      follows.push_back(false);
      continue;
    }
    const auto input = FollowsRows(node.inputs[i], steps - 1);
    if (!input.has_value()) return std::nullopt;
    follows.push_back(*input);
  }
  const bool any = absl::c_linear_search(follows, true);
  const auto only = [&](bool can) { return !any || can ? std::optional(any) : std::nullopt; };
  const bool first_alone = absl::c_count(follows, true) == 1 && follows[0];
  if (counts) return only(first_alone && extents_.At(value, 0).has_value());
  if (IsElementwise(node)) return only(first_alone || Broadcasts(node));
  if (Unpacks(node, rank) || reshapes) return only(true);
  if (node.op == UnsqueezeOp::kName || node.op == SqueezeOp::kName) {
    return only(
        DimsAfterRows(graph_, node,
                      node.op == UnsqueezeOp::kName ? rank : extents_.RankOf(node.inputs[0]))
            .has_value());
  }
  const bool looks_up = node.op == GatherOp::kName && GatherOp::From(node).axis == 0;
  return looks_up && !follows[0] ? std::optional(any) : std::nullopt;
}

bool LiveRewrite::Unpacks(const Node& node, int64_t rank) const {
  const bool can = node.op == "ReduceProd" || node.op == SqueezeOp::kName;
  if (!can || rank != 0) return false;
  const SizeList* sizes = extents_.SizesOf(node.inputs[0]);
  return sizes != nullptr && sizes->size() == 1 && (*sizes)[0].Same(1);
}

ValueId LiveRewrite::ByRow(ValueId value) {
  if (const auto known = by_row_.find(value); known != by_row_.end()) return known->second;
  const ValueId made = MakeByRow(value);
  by_row_[value] = made;
  return made;
}

ValueId LiveRewrite::MakeByRow(ValueId value) {
  const Node node = graph_.node(ProducerOf(graph_, value));
  const int64_t rank = extents_.RankOf(value);
  const auto follows = [&](ValueId of) { return FollowsRows(of, kMostOps) == true; };
  if (const auto size = SizeRead(node); size.has_value()) {
    const LiveDim live = *extents_.At(size->first, size->second);
    const ValueId count = Add(CastOp::kName, {ExtentOf(live.extent, size->first, live.dim)},
                              {{"to", ops::OnnxNumber(DType::kInt64)}});
    return WithRank(count, 0, rank);
  }
  if (node.op == RangeOp::kName) {
    // It counts on from another beginning in each row.
    const ValueId start = node.inputs[RangeOp::kStart];
    const ValueId from_start = Add(SubOp::kName, {value, start});
    return Add(AddOp::kName, {WithRank(ByRow(start), 0, 1), from_start});
  }
  if (IsElementwise(node)) {
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) {
      operands.push_back(follows(input) ? WithRank(ByRow(input), extents_.RankOf(input), rank)
                                        : input);
    }
    return Add(node.op, std::move(operands), node.attributes);
  }
  if (node.op == GatherOp::kName) {
    return Add(GatherOp::kName, {node.inputs[GatherOp::kX], ByRow(node.inputs[GatherOp::kPlaces])});
  }
  const ValueId x = ByRow(node.inputs[0]);
  if (Unpacks(node, rank)) return Add(ReshapeOp::kName, {x, Ints({-1})});
  if (node.op == ReshapeOp::kName) {
    const ValueId shape = Add(ShapeOp::kName, {value});
    return Add(ReshapeOp::kName,
               {x, Add(ConcatOp::kName, {Ints({-1}), shape}, {{"axis", int64_t{0}}})});
  }
  return Add(node.op,
             {x, Ints(*DimsAfterRows(
                     graph_, node,
                     node.op == UnsqueezeOp::kName ? rank : extents_.RankOf(node.inputs[0])))});
}

bool LiveRewrite::IsScore(ValueId value, int additions) const {
  const auto& users = graph_.value(value).users;
  return !users.empty() && absl::c_all_of(users, [&](NodeId user) {
    const Node& node = graph_.node(user);
    if (node.op == SoftmaxOp::kName) return true;
    return additions > 0 && node.op == AddOp::kName && IsScore(node.outputs[0], additions - 1);
  });
}

void LiveRewrite::VisitNumbers(NodeId id) {
  const Node node = graph_.node(id);
  const ValueId output = node.outputs[0];
  if (!Broadcasts(node) || extents_.SizesOf(output) == nullptr || !HasRowsOfBatch(output)) return;
  // One number for all rows would be the first request's. No fill says so to the walk of the batch.
  if (axes_.batch.empty()) return;
  // A softmax does not see what is added to all of its operands.
  if (node.op == AddOp::kName && IsScore(output, kMostScores)) return;
  const int64_t rank = extents_.RankOf(output);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const SizeList* sizes = extents_.SizesOf(node.inputs[i]);
    if (sizes == nullptr || rank == 0) continue;
    const auto own = static_cast<int64_t>(sizes->size());
    if (own > rank || (own == rank && !(*sizes)[0].Same(1))) continue;
    if (FollowsRows(node.inputs[i], kMostOps) != true) continue;
    const ValueId number = ByRow(node.inputs[i]);
    graph_.SetInput(
        id, i,
        own == rank ? Add(SqueezeOp::kName, {number, Ints({1})}) : WithRank(number, own + 1, rank));
  }
}

}  // namespace reprise
