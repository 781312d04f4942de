// The layers of a decoder's steps, divided among ranks.
//
// Nodes that descend from attention are cut into stages, one a rank, which follow one another in
// the order of the graph. Each stage has an attention at least; between two attentions it ends
// where the fewest values cross, and among these places where the weights of stages are most even.
// All else is computed of inputs alone (the rows of tokens, angles of positions), by each rank that
// reads it.
//
// One reprise.Broadcast a stage hands on its values, and a last one the scores. On all ranks each
// Broadcast descends from the one before: as operand, or as the rows of it where this rank does not
// compute the stage.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/ranks_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/pack_tokens.h"
#include "runtime/passes/paged/paged_passes.h"

namespace reprise {
namespace {

// A place after a node of the order where a stage may end.
struct Place {
  int64_t at = 0;        // the last node of the stage, by its place in the order
  int64_t gap = 0;       // the attentions before it, less one
  int64_t crossing = 0;  // values that later stages read
};

class Cutter {
 public:
  Cutter(Graph& graph, const Shard& shard) : graph_(graph), shard_(shard) {}

  absl::StatusOr<bool> Run() {
    RETURN_IF_ERROR(Order());
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, ChooseEnds());
    return Divide(ends);
  }

 private:
  absl::Status Refuse(absl::string_view why) const {
    return absl::UnimplementedError(
        absl::StrCat("it cannot be cut into ", shard_.ranks, " stages: ", why));
  }

  // Finds the nodes that descend from attention, and the nodes that read their values.
  absl::Status Order() {
    for (const NodeId id : graph_.NodeIds()) {
      const Node& node = graph_.node(id);
      if (node.op == PagedCrossAttentionOp::kName) {
        return Refuse(absl::StrCat(NodeLabel(node), " reads the result of an encoder"));
      }
      const bool attends = node.op == PagedAttentionOp::kName;
      const auto descends = [&](ValueId input) {
        const NodeId producer = ProducerOf(graph_, input);
        return producer != kNone && place_.contains(producer);
      };
      if (!attends && !absl::c_any_of(node.inputs, descends)) {
        // The first stage computes products of inputs alone: no later one needs them.
        if (attentions_.empty()) weight_before_ += WeightOf(node);
        continue;
      }
      const auto at = static_cast<int64_t>(order_.size());
      place_[id] = at;
      order_.push_back(id);
      if (attends) attentions_.push_back(at);
      for (const ValueId input : node.inputs) {
        if (descends(input)) last_reader_[input] = at;
      }
    }
    const auto layers = static_cast<int64_t>(attentions_.size());
    if (layers < shard_.ranks) return Refuse(absl::StrCat("it has ", layers, " layers"));
    if (graph_.outputs().size() != 1 || !place_.contains(ProducerOf(graph_, scores()))) {
      return Refuse("its scores do not come from its layers");
    }
    last_reader_[scores()] = static_cast<int64_t>(order_.size());
    return absl::OkStatus();
  }

  ValueId scores() const { return graph_.outputs()[0]; }

  // Returns the elements of the weights that a node multiplies by.
  int64_t WeightOf(const Node& node) const {
    if (FactsOf(node.op).Is(kLooksUp)) return 0;
    int64_t weight = 0;
    for (const ValueId input : node.inputs) {
      if (input != kNone && IsParameter(graph_, input)) {
        weight += NumElements(*ShapeOf(graph_, input));
      }
    }
    return weight;
  }

  // Returns whether its rows are those of tokens.
  bool HasRowsOfTokens(ValueId value) const {
    const Shape& shape = *ShapeOf(graph_, value);
    const ValueId positions = graph_.FindValue(kPositionsInput);
    return IsFloat32(graph_, value) && shape.size() > 1 && positions != kNone &&
           shape[0] == (*ShapeOf(graph_, positions))[0];
  }

  // Returns the narrowest places between two attentions, in order.
  std::vector<Place> Places() const {
    std::vector<Place> places;
    HashSet<ValueId> crossing;
    int64_t barred = 0;  // values that are not rows of tokens
    size_t gap_begin = 0;
    size_t next = 0;
    for (int64_t at = 0; at < attentions_.back(); ++at) {
      const Node& node = graph_.node(order_[static_cast<size_t>(at)]);
      for (const ValueId input : node.inputs) {
        const auto reader = last_reader_.find(input);
        if (reader == last_reader_.end() || reader->second != at) continue;
        if (crossing.erase(input) > 0 && !HasRowsOfTokens(input)) --barred;
      }
      for (const ValueId output : node.outputs) {
        const auto reader = last_reader_.find(output);
        if (output == kNone || reader == last_reader_.end()) continue;
        crossing.insert(output);
        if (!HasRowsOfTokens(output)) ++barred;
      }
      if (attentions_[next] == at) {
        ++next;
        gap_begin = places.size();
      }
      if (next == 0 || barred > 0) continue;
      const auto width = static_cast<int64_t>(crossing.size());
      if (places.size() > gap_begin && places.back().crossing < width) continue;
      if (places.size() > gap_begin && places.back().crossing > width) places.resize(gap_begin);
      places.push_back({.at = at, .gap = static_cast<int64_t>(next) - 1, .crossing = width});
    }
    return places;
  }

  // Returns the ends of all stages but the last: of the heaviest stage as little as can be, then
  // the fewest values that cross.
  absl::StatusOr<std::vector<int64_t>> ChooseEnds() const {
    std::vector<int64_t> weights = {weight_before_};  // up to each place of the order
    for (const NodeId id : order_) weights.push_back(weights.back() + WeightOf(graph_.node(id)));
    const std::vector<Place> places = Places();
    const auto weight_up_to = [&](size_t i) {
      return weights[static_cast<size_t>(places[i].at) + 1];
    };
    // By the number of cuts, then by the place of the last one: the cost of the best stages.
    using Cost = std::pair<int64_t, int64_t>;
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    const size_t cuts = static_cast<size_t>(shard_.ranks) - 1;
    std::vector<std::vector<Cost>> best(cuts, std::vector<Cost>(places.size(), {kMost, kMost}));
    std::vector<std::vector<size_t>> before(cuts, std::vector<size_t>(places.size(), 0));
    for (size_t i = 0; i < places.size(); ++i) best[0][i] = {weight_up_to(i), places[i].crossing};
    for (size_t cut = 1; cut < cuts; ++cut) {
      for (size_t i = 0; i < places.size(); ++i) {
        for (size_t j = 0; j < i && places[j].gap < places[i].gap; ++j) {
          if (best[cut - 1][j].first == kMost) continue;
          const Cost cost = {std::max(best[cut - 1][j].first, weight_up_to(i) - weight_up_to(j)),
                             best[cut - 1][j].second + places[i].crossing};
          if (cost >= best[cut][i]) continue;
          best[cut][i] = cost;
          before[cut][i] = j;
        }
      }
    }
    Cost least = {kMost, kMost};
    size_t last = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      if (best[cuts - 1][i].first == kMost) continue;
      const Cost cost = {std::max(best[cuts - 1][i].first, weights.back() - weight_up_to(i)),
                         best[cuts - 1][i].second};
      if (cost >= least) continue;
      least = cost;
      last = i;
    }
    if (least.first == kMost) return Refuse("its layers do not follow one another");
    std::vector<int64_t> ends(cuts);
    for (size_t cut = cuts; cut > 0; --cut) {
      ends[cut - 1] = places[last].at;
      last = before[cut - 1][last];
    }
    return ends;
  }

  // Keeps the nodes of this rank's stage, and adds the exchanges of all.
  absl::StatusOr<bool> Divide(const std::vector<int64_t>& ends) {
    ValueId before = kNone;  // the last Broadcast
    int64_t begin = 0;
    for (int stage = 0; stage < shard_.ranks - 1; ++stage) {
      const int64_t end = ends[static_cast<size_t>(stage)];
      ASSIGN_OR_RETURN(before, HandOn(stage, begin, end, before));
      begin = end + 1;
    }
    if (place_[ProducerOf(graph_, scores())] < begin) {
      return Refuse("its scores do not come from its last layers");
    }
    ASSIGN_OR_RETURN(const ValueId all, BroadcastScores(before));
    graph_.SetOutput(0, all);
    return true;
  }

  // Adds the Broadcast of the values of a stage, nodes [begin, end] of the order, that later ones
  // read. Returns its result.
  absl::StatusOr<ValueId> HandOn(int stage, int64_t begin, int64_t end, ValueId before) {
    std::vector<ValueId> values;
    int64_t width = 0;
    for (int64_t at = begin; at <= end; ++at) {
      for (const ValueId output : graph_.node(order_[static_cast<size_t>(at)]).outputs) {
        const auto reader = last_reader_.find(output);
        if (output == kNone || reader == last_reader_.end() || reader->second <= end) continue;
        values.push_back(output);
        width += WidthOf(output);
      }
    }
    if (values.empty()) return Refuse("its layers do not follow one another");
    ValueId operand = before == kNone ? graph_.FindValue(kPositionsInput) : before;
    if (stage == shard_.rank) {
      ASSIGN_OR_RETURN(operand, Joined(values));
      RETURN_IF_ERROR(CheckFollows(operand, before));
    }
    const std::string name = graph_.node(order_[static_cast<size_t>(end)]).name;
    ASSIGN_OR_RETURN(const ValueId all, AddBroadcast(operand, stage, {width}, name));
    if (shard_.rank <= stage) return all;
    int64_t column = 0;
    for (const ValueId value : values) {
      ASSIGN_OR_RETURN(const ValueId part, Part(all, column, value));
      column += WidthOf(value);
      graph_.ReplaceAllUses(value, part);
    }
    return all;
  }

  absl::StatusOr<ValueId> BroadcastScores(ValueId before) {
    const Shape shape = *ShapeOf(graph_, scores());
    const int root = shard_.ranks - 1;
    ValueId operand = before;
    const ValueId segments = graph_.FindValue(kSegmentsInput);
    const bool picked =
        segments != kNone && !shape.empty() && shape[0] == (*ShapeOf(graph_, segments))[0] - 1;
    if (!IsFloat32(graph_, scores()) || (!picked && !HasRowsOfTokens(scores()))) {
      return Refuse("its scores are not rows of tokens");
    }
    if (shard_.rank == root) {
      operand = scores();
      RETURN_IF_ERROR(CheckFollows(operand, before));
    } else if (picked) {
      ASSIGN_OR_RETURN(
          operand, AddInferred(graph_, SegmentReduceOp::kName, {before, segments},
                               {{"reduction", std::string("last")}, {"often_fewer", int64_t{1}}}));
    }
    return AddBroadcast(operand, root, {shape.begin() + 1, shape.end()}, "scores");
  }

  // Exchanges are made in one order on all ranks: each waits for the one before.
  absl::Status CheckFollows(ValueId value, ValueId before) const {
    if (before == kNone) return absl::OkStatus();
    HashSet<ValueId> seen;
    std::vector<ValueId> left = {value};
    while (!left.empty()) {
      const ValueId one = left.back();
      left.pop_back();
      if (one == before) return absl::OkStatus();
      const NodeId producer = ProducerOf(graph_, one);
      if (producer == kNone || !seen.insert(one).second) continue;
      absl::c_copy(graph_.node(producer).inputs, std::back_inserter(left));
    }
    return Refuse("its layers do not follow one another");
  }

  absl::StatusOr<ValueId> AddBroadcast(ValueId operand, int root, std::vector<int64_t> sizes,
                                       absl::string_view name) {
    return AddInferred(
        graph_, BroadcastOp::kName, {operand},
        {{"rank", int64_t{shard_.rank}}, {"root", int64_t{root}}, {"sizes", std::move(sizes)}},
        name);
  }

  // Returns the elements of a row.
  int64_t WidthOf(ValueId value) const {
    const Shape& shape = *ShapeOf(graph_, value);
    return NumElements(shape) / std::max<int64_t>(shape[0], 1);
  }

  // Returns [tokens, sum of widths].
  absl::StatusOr<ValueId> Joined(const std::vector<ValueId>& values) {
    std::vector<ValueId> flat;
    for (const ValueId value : values) {
      const int64_t rows = (*ShapeOf(graph_, value))[0];
      ASSIGN_OR_RETURN(flat.emplace_back(), AddReshape(graph_, value, {rows, WidthOf(value)}));
    }
    if (flat.size() == 1) return flat[0];
    return AddInferred(graph_, ConcatOp::kName, std::move(flat), {{"axis", int64_t{1}}});
  }

  // Returns `value` as its columns of `all` from `begin` on.
  absl::StatusOr<ValueId> Part(ValueId all, int64_t begin, ValueId value) {
    const Shape shape = *ShapeOf(graph_, value);
    const int64_t width = WidthOf(value);
    ValueId part = all;
    if (width < WidthOf(all)) {
      const auto number = [&](int64_t one) {
        return graph_.AddConstant("", Tensor::Int64s({one}));
      };
      const std::vector<ValueId> inputs = {all, number(begin), number(begin + width), number(1)};
      ASSIGN_OR_RETURN(part, AddInferred(graph_, SliceOp::kName, inputs));
    }
    return AddReshape(graph_, part, shape);
  }

  Graph& graph_;
  const Shard shard_;
  std::vector<NodeId> order_;              // nodes that descend from attention
  HashMap<NodeId, int64_t> place_;         // their places in the order
  std::vector<int64_t> attentions_;        // places
  HashMap<ValueId, int64_t> last_reader_;  // place of the last node that reads a value of theirs
  int64_t weight_before_ = 0;
};

}  // namespace

std::unique_ptr<Pass> CutStages() { return CutStagesAmong({}); }

std::unique_ptr<Pass> CutStagesAmong(const Shard& shard) {
  return PassOf("cut_stages", [shard](Graph& graph) -> absl::StatusOr<bool> {
    if (shard.ranks <= 1) return false;
    return Cutter(graph, shard).Run();
  });
}

}  // namespace reprise
