// Positions that are picked from a result are picked from the operands instead, before the result.
//
// A classifier reads one token of each row: the first, the last, one that data names. Nodes that
// compute positions one by one (position_operands.h) and whose results have no other reader then
// compute the picked positions alone: all of a transformer's last layer but its keys and values.
// The queries of its attention are picked, too; where one product made queries, keys and values, it
// becomes three products again.
#include <algorithm>
#include <iterator>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/match/linear_columns.h"
#include "runtime/passes/match/pick.h"
#include "runtime/passes/match/position_operands.h"
#include "runtime/passes/pack/pack_passes.h"
#include "runtime/passes/pack/pack_tokens.h"

namespace reprise {
namespace {

constexpr size_t kMask = AttentionOp::kMask;  // as in all forms of it

// Inputs of attention over packed tokens.
struct SegmentInputs {
  size_t segments, places;
};

std::optional<SegmentInputs> SegmentInputsOf(const Node& node) {
  using Relative = RelativeAttentionOp;
  if (node.op == SegmentAttentionOp::kName) return SegmentInputs{5, 6};
  if (node.op != RelativeAttentionOp::kName) return std::nullopt;
  return SegmentInputs{Relative::kSegments, Relative::kPlaces};
}

// Returns the product of attention's one operand for queries, keys and values; nullptr where there
// is none that can be taken apart.
const Node* Projections(const Graph& graph, const Node& attention) {
  const ValueId value = attention.inputs[0];
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone || OnlyUser(graph, value) == kNone) return nullptr;
  const Node& node = graph.node(producer);
  const bool thirds = ShapeOf(graph, value)->back() % 3 == 0;
  return thirds && HasColumnsToCut(graph, node) ? &node : nullptr;
}

// One kind of pick, and all nodes that make it.
class Hoist {
 public:
  Hoist(Graph& graph, Pick pick) : graph_(graph), pick_(std::move(pick)) {}

  const Pick& pick() const { return pick_; }
  void Add(NodeId node) { picks_.push_back(node); }

  absl::StatusOr<bool> Run() {
    if (!MarkNodes()) return false;
    for (const NodeId id : picks_) {
      const ValueId out = graph_.node(id).outputs[0];
      const Shape shape = *ShapeOf(graph_, out);
      ASSIGN_OR_RETURN(ValueId picked, Picked(graph_.node(id).inputs[0]));
      ASSIGN_OR_RETURN(picked, AddReshape(graph_, picked, shape));
      Replace(graph_, out, picked);
    }
    return true;
  }

 private:
  bool of_segments() const { return pick_.positions.empty(); }

  // Finds the nodes whose results are read only at the picked positions. Returns whether there are
  // any.
  bool MarkNodes() {
    const std::vector<NodeId> ids = graph_.NodeIds();
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      const Node& node = graph_.node(*id);
      if (!ReadAtPicksAlone(node)) continue;
      auto operands = PositionOperandsOf(graph_, node, pick_.axis);
      if (!operands.has_value() && TakesPickedQueries(node)) {
        operands.emplace();
        if (!AttentionOp::From(node.attributes).packed_qkv) operands->push_back({0, pick_.axis});
      }
      if (operands.has_value()) marked_.try_emplace(*id, *std::move(operands));
    }
    return absl::c_any_of(
        marked_, [&](const auto& one) { return graph_.node(one.first).op != ReshapeOp::kName; });
  }

  bool ReadAtPicksAlone(const Node& node) const {
    bool used = false;
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      const Value& value = graph_.value(output);
      if (graph_.IsOutput(output)) return false;
      used = used || !value.users.empty();
      const bool has_positions = static_cast<int64_t>(value.shape->size()) > pick_.axis &&
                                 (*value.shape)[pick_.axis] == pick_.from;
      if (!has_positions ||
          !absl::c_all_of(value.users, [&](NodeId user) { return PicksAlone(user, output); })) {
        return false;
      }
    }
    return used;
  }

  // Returns whether `user` reads only the picked part of `value`.
  bool PicksAlone(NodeId user, ValueId value) const {
    const Node& node = graph_.node(user);
    const auto marked = marked_.find(user);
    if (marked == marked_.end() && !absl::c_linear_search(picks_, user)) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != value) continue;
      const bool picked = marked == marked_.end()
                              ? i == 0
                              : absl::c_any_of(marked->second, [&](const PositionOperand& operand) {
                                  return operand.index == i && operand.axis == pick_.axis;
                                });
      if (!picked) return false;
    }
    return true;
  }

  bool TakesPickedQueries(const Node& node) const {
    const bool packed = AttentionOp::From(node.attributes).packed_qkv;
    if (node.op == AttentionOp::kName) {
      if (of_segments() || pick_.axis != 1 || AttentionOp::From(node.attributes).head_size_v != 0) {
        return false;
      }
    } else {
      const auto inputs = SegmentInputsOf(node);
      if (!inputs.has_value() || !of_segments() ||
          node.input(inputs->segments) != pick_.operands.back() ||
          node.input(inputs->places) != kNone || graph_.FindValue(kPositionsInput) == kNone) {
        return false;
      }
    }
    return !packed || Projections(graph_, node) != nullptr;
  }

  // Returns the picked positions of `value`, along pick_.axis.
  absl::StatusOr<ValueId> Picked(ValueId value) {
    if (const auto done = done_.find(value); done != done_.end()) return done->second;
    const NodeId producer = ProducerOf(graph_, value);
    if (producer != kNone && marked_.contains(producer)) {
      RETURN_IF_ERROR(Recompute(producer));
    } else {
      ASSIGN_OR_RETURN(const ValueId taken, Take(value, pick_.axis));
      done_.try_emplace(value, taken);
    }
    return done_.find(value)->second;
  }

  absl::StatusOr<ValueId> Take(ValueId value, int64_t axis) {
    if (of_segments()) {
      std::vector<ValueId> inputs = {value};
      absl::c_copy(pick_.operands, std::back_inserter(inputs));
      if (pick_.op == SegmentPickOp::kName) {
        ASSIGN_OR_RETURN(inputs[1], AddReshape(graph_, inputs[1], {pick_.count}));
      }
      return AddInferred(graph_, pick_.op, std::move(inputs), pick_.attributes);
    }
    const ValueId positions = graph_.AddConstant("", Tensor::Int64s(pick_.positions));
    const Attributes attributes({{"axis", axis}});
    if (!IsWeight(graph_, value)) {
      return AddInferred(graph_, GatherOp::kName, {value, positions}, attributes);
    }
    Shape shape = *ShapeOf(graph_, value);
    shape[axis] = pick_.count;
    return AddWeight(graph_, GatherOp::kName, attributes, {value, positions},
                     graph_.value(value).dtype, std::move(shape));
  }

  // Recomputes the marked node `id` at the picked positions.
  absl::Status Recompute(NodeId id) {
    const Node node = graph_.node(id);  // A copy: adding nodes moves them.
    if (TakesPickedQueries(node)) return RecomputeAttention(node);
    std::vector<ValueId> inputs = node.inputs;
    const std::vector<PositionOperand> operands = marked_.find(id)->second;
    for (const PositionOperand& operand : operands) {
      ValueId& input = inputs[operand.index];
      if (operand.axis == pick_.axis) {
        ASSIGN_OR_RETURN(input, Picked(input));
      } else {
        ASSIGN_OR_RETURN(input, Take(input, operand.axis));
      }
    }
    if (node.op == ReshapeOp::kName) {
      Shape shape = *ShapeOf(graph_, node.outputs[0]);
      shape[pick_.axis] = pick_.count;
      ASSIGN_OR_RETURN(const ValueId reshaped, AddReshape(graph_, inputs[0], shape));
      done_.try_emplace(node.outputs[0], reshaped);
      return absl::OkStatus();
    }
    size_t results = node.outputs.size();
    // A Split cuts in as many parts as it has results.
    while (results > 1 && node.outputs[results - 1] == kNone && node.op != SplitOp::kName)
      --results;
    const NodeId picked =
        graph_.AddNode(node.op, std::move(inputs), node.attributes, results, node.name);
    if (!node.source_op.empty()) graph_.SetSource(picked, node.source_op, node.name);
    RETURN_IF_ERROR(InferNode(graph_, picked));
    for (size_t i = 0; i < results; ++i) {
      if (node.outputs[i] != kNone) {
        done_.try_emplace(node.outputs[i], graph_.node(picked).outputs[i]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status RecomputeAttention(const Node& node) {
    std::vector<ValueId> inputs = node.inputs;
    if (AttentionOp::From(node.attributes).packed_qkv) {
      inputs.resize(std::max<size_t>(inputs.size(), 3), kNone);
      RETURN_IF_ERROR(TakeApart(*Projections(graph_, node), inputs));
    } else {
      ASSIGN_OR_RETURN(inputs[0], Picked(inputs[0]));
    }
    if (of_segments()) {
      constexpr size_t kQueryMask = RelativeAttentionOp::kQueryMask;
      if (node.op == RelativeAttentionOp::kName && node.input(kQueryMask) != kNone) {
        ASSIGN_OR_RETURN(inputs[kQueryMask], Picked(inputs[kQueryMask]));
      }
      inputs.resize(SegmentInputsOf(node)->places, kNone);
      ASSIGN_OR_RETURN(const ValueId places, Picked(graph_.FindValue(kPositionsInput)));
      inputs.push_back(places);
    } else if (node.input(kMask) != kNone) {
      // Rows of queries, where each has its own.
      const Shape& mask = *ShapeOf(graph_, inputs[kMask]);
      const int64_t axis = static_cast<int64_t>(mask.size()) - 2;
      if (axis >= 0 && mask[axis] != 1) {
        ASSIGN_OR_RETURN(inputs[kMask], Take(inputs[kMask], axis));
      }
    }
    Attributes attributes = node.attributes;
    attributes.Set("packed_qkv", int64_t{0});
    ASSIGN_OR_RETURN(const ValueId attention, AddInferred(graph_, node.op, std::move(inputs),
                                                          std::move(attributes), node.name));
    done_.try_emplace(node.outputs[0], attention);
    return absl::OkStatus();
  }

  // Queries at the picked positions, keys and values at all: inputs 0 to 2.
  absl::Status TakeApart(const Node& product, std::vector<ValueId>& inputs) {
    const Node all = product;  // A copy: adding nodes moves them.
    const int64_t columns = ShapeOf(graph_, all.outputs[0])->back() / 3;
    std::vector<size_t> of_rows = {0};
    if (all.op == IntegerLinearOp::kName) of_rows = {0, 2, 4};
    for (size_t part = 0; part < 3; ++part) {
      ASSIGN_OR_RETURN(std::vector<ValueId> operands,
                       CutColumns(graph_, all, static_cast<int64_t>(part) * columns, columns));
      for (const size_t i : of_rows) {
        const bool one = i > 0 && (all.input(i) == kNone || HasOneElement(graph_, all.inputs[i]));
        if (part > 0 || one) continue;
        ASSIGN_OR_RETURN(operands[i], Picked(all.inputs[i]));
      }
      ASSIGN_OR_RETURN(inputs[part],
                       AddInferred(graph_, all.op, std::move(operands), all.attributes, all.name));
    }
    return absl::OkStatus();
  }

  Graph& graph_;
  const Pick pick_;
  std::vector<NodeId> picks_;
  HashMap<NodeId, std::vector<PositionOperand>> marked_;
  HashMap<ValueId, ValueId> done_;  // picked already
};

// Hoists the first kind that can be. Values that it replaces may be picks of another kind, or
// their operands: so these are searched again. It ends, since picks only move towards the inputs.
absl::StatusOr<bool> HoistOneKind(Graph& graph) {
  std::list<Hoist> kinds;
  for (const NodeId id : graph.NodeIds()) {
    std::optional<Pick> pick = MatchPick(graph, graph.node(id));
    if (!pick.has_value()) continue;
    auto kind = absl::c_find_if(kinds, [&](const Hoist& one) { return one.pick() == *pick; });
    if (kind == kinds.end()) kind = kinds.emplace(kinds.end(), graph, *std::move(pick));
    kind->Add(id);
  }
  for (Hoist& kind : kinds) {
    ASSIGN_OR_RETURN(const bool hoisted, kind.Run());
    if (hoisted) return true;
  }
  return false;
}

absl::StatusOr<bool> HoistPicksIn(Graph& graph) {
  bool changed = false;
  const auto values = static_cast<ValueId>(graph.num_values());
  for (ValueId value = 0; value < values; ++value) {
    if (graph.value(value).users.size() < 2 || graph.IsOutput(value)) continue;
    ASSIGN_OR_RETURN(const bool joined, JoinPicks(graph, value));
    changed = changed || joined;
  }
  while (true) {
    ASSIGN_OR_RETURN(const bool hoisted, HoistOneKind(graph));
    if (!hoisted) return changed;
    changed = true;
  }
}

}  // namespace

std::unique_ptr<Pass> HoistPicks() { return PassOf("hoist_picks", HoistPicksIn); }

}  // namespace reprise
