// Chooses where the channels of float planes lie: after the batch, as models have it, or last,
// where depthwise convolutions find neighbouring channels side by side and pointwise ones are rows
// of a product.
//
// Every node that can do both gets one of the two layouts, so that the total time of the
// convolutions and of the transposes of planes between them is least: a least cut (minimum_cut.h)
// by estimates (plane_costs.h). Nodes that take planes channels last already, as transformers hand
// them on, pull the convolutions to their side. All costs grow with the batch, so that buckets of
// all batches choose alike; with the lengths of planes the choice may change, and with it the last
// bits of sums that are added up in another order (device/cpu/README.md, "Where channels lie").
#include <map>
#include <optional>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/layout/layout_passes.h"
#include "runtime/passes/layout/minimum_cut.h"
#include "runtime/passes/layout/plane_costs.h"
#include "runtime/passes/layout/plane_nodes.h"
#include "runtime/passes/layout/planes_last.h"

namespace reprise {
namespace {

bool HasPerm(const Graph& graph, const Node& node, const std::vector<int64_t>& perm) {
  return node.op == TransposeOp::kName && IsPlanes(graph, node.input(0)) &&
         node.attributes.Ints("perm") == perm;
}

std::vector<ValueId> PlanesOf(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<ValueId> planes;
  for (const ValueId value : values) {
    if (IsPlanes(graph, value) && !IsWeight(graph, value) &&
        !absl::c_linear_search(planes, value)) {
      planes.push_back(value);
    }
  }
  return planes;
}

class Layouts {
 public:
  explicit Layouts(Graph& graph) : graph_(graph) {}

  absl::StatusOr<bool> Choose() {
    FindSites();
    if (!worthwhile_) return false;
    const std::vector<bool> last = Cut();
    bool changed = false;
    for (size_t i = 0; i < sites_.size(); ++i) {
      if (!last[i]) continue;
      const Node node = graph_.node(sites_[i].id);  // Adding nodes moves the others.
      RETURN_IF_ERROR(TurnPlaneNode(graph_, node, sites_[i].what));
      changed = true;
    }
    return changed;
  }

 private:
  struct Site {
    NodeId id;
    PlaneNode what;
  };

  void FindSites() {
    for (const NodeId id : graph_.NodeIds()) {
      const std::optional<PlaneNode> what = PlaneNodeOf(graph_, graph_.node(id));
      if (!what.has_value()) continue;
      worthwhile_ = worthwhile_ || what->costs.last < what->costs.first;
      site_of_[id] = sites_.size();
      sites_.push_back({id, *what});
    }
  }

  std::optional<size_t> SiteOf(NodeId node) const {
    const auto site = site_of_.find(node);
    return site == site_of_.end() ? std::nullopt : std::optional(site->second);
  }

  // Returns a cut; true: channels last.
  std::vector<bool> Cut() const {
    MinimumCut cut(sites_.size());
    // Nodes that know one layout alone.
    const size_t first = cut.Add(), last = cut.Add();
    cut.SetCosts(first, 0, MinimumCut::kNever);
    cut.SetCosts(last, MinimumCut::kNever, 0);
    for (size_t i = 0; i < sites_.size(); ++i) {
      cut.SetCosts(i, sites_[i].what.costs.first, sites_[i].what.costs.last);
    }
    std::vector<bool> seen(graph_.num_values(), false);
    for (const Site& site : sites_) {
      const Node& node = graph_.node(site.id);
      for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
        for (const ValueId value : PlanesOf(graph_, *values)) {
          if (seen[value]) continue;
          seen[value] = true;
          ChargeTurning(value, first, last, cut);
        }
      }
    }
    return cut.Solve();
  }

  // `value` is transposed once, where one of its readers needs the other layout.
  void ChargeTurning(ValueId value, size_t first, size_t last, MinimumCut& cut) const {
    const Shape& shape = *ShapeOf(graph_, value);
    const double cost = TurningCost(shape);
    if (cost == 0) return;
    const NodeId producer = ProducerOf(graph_, value);
    const bool comes_last =
        producer != kNone && HasPerm(graph_, graph_.node(producer), PermToFirst(shape.size())) &&
        !SiteOf(ProducerOf(graph_, graph_.node(producer).inputs[0])).has_value();
    const size_t from = comes_last ? last : SiteOf(producer).value_or(first);
    std::vector<size_t> readers;
    if (graph_.IsOutput(value)) readers.push_back(first);
    for (const NodeId user : graph_.value(value).users) {
      const bool wants_last = HasPerm(graph_, graph_.node(user), PermToLast(shape.size()));
      const std::optional<size_t> site = SiteOf(user);
      const bool as_it_is = site.has_value() && sites_[*site].what.costs.to_last;
      readers.push_back(wants_last ? last : as_it_is ? first : site.value_or(first));
    }
    const size_t any_last = cut.Add(), any_first = cut.Add();
    cut.Charge(from, any_last, cost);
    cut.Charge(any_first, from, cost);
    for (const size_t reader : readers) {
      if (reader == from) continue;
      cut.Charge(any_last, reader, MinimumCut::kNever);
      cut.Charge(reader, any_first, MinimumCut::kNever);
    }
  }

  Graph& graph_;
  std::vector<Site> sites_;
  std::map<NodeId, size_t> site_of_;
  bool worthwhile_ = false;
};

absl::StatusOr<bool> ChooseLayoutsIn(Graph& graph) { return Layouts(graph).Choose(); }

}  // namespace

std::unique_ptr<Pass> ChooseLayouts() { return PassOf("choose_layouts", ChooseLayoutsIn); }

}  // namespace reprise
