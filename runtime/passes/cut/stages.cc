#include "runtime/passes/cut/stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/reduce/channel_norm_op.h"
#include "runtime/ops/windows/resize_op.h"

namespace reprise {
namespace {

// Stages are counted in twos at first: an even one begins after a cut, and the layers among its
// nodes may be the odd one after it.
constexpr int kBeforeLayers = 2;
constexpr int kFrontLayers = 3;
constexpr int kAfterLayers = 4;

int AfterCut(int stage) { return stage / 2 * 2 + 2; }

bool HasKnownRows(const Graph& graph, const Node& node) {
  if (node.op != GatherOp::kName) return false;
  const Value::Kind kind = graph.value(node.inputs[0]).kind;
  return kind == Value::Kind::kConstant || kind == Value::Kind::kParameter;
}

// Returns whether the node picks, moves or joins elements. A row of a table of the model depends on
// its own index alone.
bool Moves(const Graph& graph, const Node& node) {
  const OpRow* row = FindOp(node.op);
  return FactsOf(*row).Is(kLight) && !row->Has(kElementwise) && !row->Has(kView) &&
         !HasKnownRows(graph, node);
}

// Returns whether results lie over the same positions as operands do, along the dims that windows
// slide over, or are averages of whole planes, which scale these.
bool KeepsPlane(const Node& node) {
  const OpRow* row = FindOp(node.op);
  const bool averages =
      FactsOf(*row).border == Border::kMean && node.attributes.Int("keepdims", 1) != 0;
  return averages || FactsOf(*row).SlidesWindows() || row->Has(kElementwise) ||
         node.op == ResizeOp::kName || node.op == ConcatOp::kName ||
         node.op == BatchNormalizationOp::kName;
}

class Finder {
 public:
  Finder(const Graph& graph, const CutAnalysis& analysis, bool splits_front)
      : graph_(graph), analysis_(analysis), splits_front_(splits_front) {
    places_.resize(graph.num_values());
  }

  CutStages Run() {
    for (const NodeId id : graph_.NodeIds()) {
      if (analysis_.is_needed[id]) Visit(id);
    }
    std::set<int> used = {0};
    for (const Place& place : places_) used.insert(place.stage);
    CutStages stages;
    for (const Place& place : places_) {
      const auto before = std::distance(used.begin(), used.find(place.stage));
      stages.of.push_back(static_cast<int>(before));
    }
    for (const int stage : used) stages.labels.push_back(LabelOf(stage));
    return stages;
  }

 private:
  // Where a value is made.
  struct Place {
    int stage = 0;
    bool moved = false;      // a node of the stage picked, moved or joined elements
    bool in_layers = false;  // a layer of the stage is among the nodes that it is made by
  };

  void Visit(NodeId id) {
    const Node& node = graph_.node(id);
    const std::vector<ValueId> operands = NeededBy(graph_, analysis_, id);
    Place place;
    for (const ValueId operand : operands) {
      place.stage = std::max(place.stage, places_[operand].stage);
    }
    for (const ValueId operand : operands) {
      const Place& own = places_[operand];
      if (own.stage != place.stage) continue;
      place.moved |= own.moved;
      place.in_layers |= own.in_layers;
    }
    const bool is_static = absl::c_all_of(node.outputs, [&](ValueId output) {
      return output == kNone || analysis_.is_static[output];
    });
    if (analysis_.is_cut[id]) {
      place = {.stage = AfterCut(place.stage)};
      cuts_.emplace(place.stage, id);
    } else if (is_static) {
      place = {.stage = place.stage};  // Whatever reads it computes it, where its operands are.
    } else {
      Join(node, place);
    }
    for (const ValueId output : node.outputs) {
      if (output != kNone) places_[output] = place;
    }
  }

  void Join(const Node& node, Place& place) const {
    if (splits_front_ && place.stage == 0) place.stage = kBeforeLayers;
    if (splits_front_ && place.stage == kFrontLayers && !(KeepsPlane(node) && ReadsPlane(node))) {
      place = {.stage = kAfterLayers};
    }
    const bool is_layer = FactsOf(node.op).Is(kHeavy);
    if (is_layer && place.stage >= kBeforeLayers && place.stage % 2 == 0 && place.moved &&
        !place.in_layers) {
      place = {.stage = place.stage + 1};
    }
    place.in_layers |= is_layer;
    place.moved |= Moves(graph_, node);
  }

  // Returns whether the node reads elements of a plane of the first layers: tables whose sizes are
  // those of one (anchors, made of weights and of shapes) are no part of it.
  bool ReadsPlane(const Node& node) const {
    return absl::c_any_of(node.inputs, [&](ValueId operand) {
      return operand != kNone && !analysis_.is_static[operand] &&
             graph_.value(operand).kind == Value::Kind::kResult &&
             places_[operand].stage >= kBeforeLayers;
    });
  }

  std::string LabelOf(int stage) const {
    if (stage == 0) return "";
    const auto cut = cuts_.find(stage / 2 * 2);
    if (splits_front_ && stage == kBeforeLayers) return "in front of the layers";
    if (splits_front_ && stage == kFrontLayers) return "of the first layers";
    if (cut == cuts_.end()) return "after the first layers";
    const Cut told = DescribeCut(graph_, analysis_, cut->second);
    return absl::StrCat("after ", told.op, " '", told.node, "'", stage % 2 == 0 ? "" : ", layers");
  }

  const Graph& graph_;
  const CutAnalysis& analysis_;
  const bool splits_front_;
  std::vector<Place> places_;   // one a value
  std::map<int, NodeId> cuts_;  // the first cut in front of a stage
};

}  // namespace

CutStages FindStages(const Graph& graph, const CutAnalysis& analysis, bool splits_front) {
  return Finder(graph, analysis, splits_front).Run();
}

bool ResizesInFront(const Graph& graph, const CutAnalysis& analysis) {
  std::vector<bool> resized(graph.num_values(), false), layered(graph.num_values(), false);
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const bool is_front = analysis.is_needed[id] && !analysis.is_cut[id] &&
                          node.output(0) != kNone && analysis.level[node.output(0)] == 0 &&
                          !analysis.is_static[node.output(0)];
    if (!is_front) continue;
    const auto any = [&](const std::vector<bool>& of) {
      return absl::c_any_of(node.inputs,
                            [&](ValueId input) { return input != kNone && of[input]; });
    };
    const bool is_resize = node.op == ResizeOp::kName && ResizeOp::From(node).mode != "nearest";
    const bool is_layer = FactsOf(node.op).Is(kHeavy);
    if (FactsOf(node.op).SlidesWindows() && any(resized) && !any(layered)) return true;
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      layered[output] = is_layer || any(layered);
      resized[output] = !layered[output] && (is_resize || any(resized));
    }
  }
  return false;
}

bool IsLight(const Node& node) {
  const OpRow* row = FindOp(node.op);
  return row->Has(kElementwise) || row->Has(kView) || row->Has(kShapeOnly) ||
         node.op == IfOp::kName || FactsOf(*row).Is(kLight);
}

}  // namespace reprise
