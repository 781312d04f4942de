#include "runtime/passes/match/pick.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/position_operands.h"

namespace reprise {
namespace {

std::optional<std::vector<int64_t>> KnownInts(const Graph& graph, ValueId value) {
  const Tensor* constant = value == kNone ? nullptr : KnownConstant(graph, value);
  if (constant == nullptr || constant->shape().size() > 1) return std::nullopt;
  auto ints = constant->ToInt64s();
  if (!ints.ok()) return std::nullopt;
  return *std::move(ints);
}

// Returns the positions that a Gather, or a Slice along one axis, takes; nullopt where data
// decides.
std::optional<std::vector<int64_t>> PositionsOf(const Graph& graph, const Node& node, Pick& pick) {
  const Shape& data = *ShapeOf(graph, node.inputs[0]);
  const int64_t rank = static_cast<int64_t>(data.size());
  if (node.op == GatherOp::kName) {
    pick.axis = NormalizeAxis(GatherOp::From(node.attributes).axis, rank).value_or(-1);
    return KnownInts(graph, node.input(1));
  }
  const auto starts = KnownInts(graph, node.input(1)), axes = KnownInts(graph, node.input(3));
  const auto steps =
      node.input(4) == kNone ? std::vector<int64_t>{1} : KnownInts(graph, node.input(4));
  if (node.op != SliceOp::kName || !starts || !axes || !steps || starts->size() != 1 ||
      axes->size() != 1 || steps->size() != 1) {
    return std::nullopt;
  }
  pick.axis = NormalizeAxis((*axes)[0], rank).value_or(-1);
  if (pick.axis < 0 || (*steps)[0] <= 0) return std::nullopt;
  const int64_t size = data[pick.axis];
  const int64_t start = (*starts)[0] < 0 ? std::max<int64_t>((*starts)[0] + size, 0) : (*starts)[0];
  std::vector<int64_t> positions((*ShapeOf(graph, node.outputs[0]))[pick.axis]);
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i] = start + static_cast<int64_t>(i) * (*steps)[0];
  }
  return positions;
}

}  // namespace

std::optional<Pick> MatchPick(const Graph& graph, const Node& node) {
  if (node.input(0) == kNone || node.output(0) == kNone ||
      ProducerOf(graph, node.inputs[0]) == kNone) {
    return std::nullopt;
  }
  const Shape& data = *ShapeOf(graph, node.inputs[0]);
  const Shape& out = *ShapeOf(graph, node.outputs[0]);
  Pick pick;
  if (node.op == SegmentReduceOp::kName || node.op == SegmentPickOp::kName) {
    const std::string reduction = node.attributes.String("reduction", "first");
    if (reduction != "first" && reduction != "last") return std::nullopt;
    pick.op = node.op;
    pick.attributes = node.attributes;
    pick.operands.assign(node.inputs.begin() + 1, node.inputs.end());
    pick.count = ShapeOf(graph, pick.operands.back())->front() - 1;
    if (node.op == SegmentPickOp::kName &&
        NumElements(*ShapeOf(graph, pick.operands[0])) != pick.count) {
      return std::nullopt;
    }
  } else {
    auto positions = PositionsOf(graph, node, pick);
    if (!positions.has_value() || pick.axis < 0 || positions->empty()) return std::nullopt;
    const int64_t size = data[pick.axis];
    for (int64_t& position : *positions) {
      if (position < 0) position += size;
      if (position < 0 || position >= size) return std::nullopt;
    }
    pick.positions = *std::move(positions);
    pick.count = static_cast<int64_t>(pick.positions.size());
  }
  if (static_cast<int64_t>(data.size()) < pick.axis + 2 || NumElements(out) == 0) {
    return std::nullopt;
  }
  pick.from = data[pick.axis];
  // Where a replay fills a part of its segments alone, the count says little.
  const bool live = pick.positions.empty() && pick.attributes.Int("often_fewer", 0) != 0;
  if (2 * pick.count > pick.from && !live) return std::nullopt;
  return pick;
}

absl::StatusOr<bool> JoinPicks(Graph& graph, ValueId data) {
  const std::vector<NodeId> users = graph.value(data).users;
  Pick all;
  std::vector<Pick> picks;
  for (const NodeId user : users) {
    std::optional<Pick> pick = MatchPick(graph, graph.node(user));
    if (!pick.has_value() || pick->positions.empty() || graph.node(user).inputs[0] != data ||
        (!picks.empty() && pick->axis != picks[0].axis)) {
      return false;
    }
    absl::c_copy(pick->positions, std::back_inserter(all.positions));
    picks.push_back(*std::move(pick));
  }
  absl::c_sort(all.positions);
  all.positions.erase(std::unique(all.positions.begin(), all.positions.end()), all.positions.end());
  if (2 * static_cast<int64_t>(all.positions.size()) > picks[0].from ||
      !PositionOperandsOf(graph, graph.node(ProducerOf(graph, data)), picks[0].axis).has_value()) {
    return false;
  }
  const Attributes along({{"axis", picks[0].axis}});
  const ValueId positions = graph.AddConstant("", Tensor::Int64s(all.positions));
  ASSIGN_OR_RETURN(const ValueId joined,
                   AddInferred(graph, GatherOp::kName, {data, positions}, along));
  for (size_t i = 0; i < users.size(); ++i) {
    std::vector<int64_t> places;
    for (const int64_t position : picks[i].positions) {
      places.push_back(absl::c_lower_bound(all.positions, position) - all.positions.begin());
    }
    const ValueId own = graph.AddConstant("", Tensor::Int64s(places));
    const ValueId out = graph.node(users[i]).outputs[0];
    const Shape shape = *ShapeOf(graph, out);
    ASSIGN_OR_RETURN(ValueId picked, AddInferred(graph, GatherOp::kName, {joined, own}, along));
    ASSIGN_OR_RETURN(picked, AddReshape(graph, picked, shape));
    Replace(graph, out, picked);
  }
  return true;
}

}  // namespace reprise
