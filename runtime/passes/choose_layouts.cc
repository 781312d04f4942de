// Chooses where the channels of float planes lie: behind the batch, as models have it, or last,
// where convolutions of each channel by itself find neighbouring channels side by side and those of
// single elements are rows of a product.
//
// Every node that can do both gets one of the two layouts, so that what the convolutions take and
// what turning planes between them takes is least in all: a least cut (minimum_cut.h) by estimates
// (plane_costs.h). Nodes that take planes channels last already, as transformers hand them on, pull
// the convolutions to their side. All costs grow with the batch, so that buckets of all batches
// choose alike; with the lengths of planes the choice may change, and with it the last bits of sums
// that are added up in another order (device/cpu/README.md, "Where channels lie").
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/op.h"
#include "runtime/ops/windows.h"
#include "runtime/passes/minimum_cut.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/plane_costs.h"
#include "runtime/passes/planes_last.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

constexpr size_t kResidual = 3;  // of a reprise.Conv

bool IsPlanes(const Graph& graph, ValueId value) {
  if (value == kNone || !IsFloat32(graph, value)) return false;
  const Shape& shape = *ShapeOf(graph, value);
  return shape.size() >= 3 && shape.size() <= 4 && NumElements(shape) > 0;
}

// What a node that takes either layout is.
enum class Kind { kConv, kElementwise, kAverage, kPool, kParts, kReshape };

// The shape as planes of one element of what scales others, [batch or 1, channels, 1...] or without
// the batch; nullopt: it does not.
std::optional<Shape> ScaleOf(const Graph& graph, ValueId value, const Shape& planes) {
  Shape scale(planes.size(), 1);
  scale[1] = planes[1];
  if (HasShape(graph, value, scale) ||
      HasShape(graph, value, absl::MakeConstSpan(scale).subspan(1))) {
    return scale;
  }
  scale[0] = planes[0];
  return HasShape(graph, value, scale) ? std::optional(scale) : std::nullopt;
}

bool IsElementwise(const Graph& graph, const Node& node) {
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || !row->Has(kElementwise) || node.outputs.size() != 1 ||
      !IsPlanes(graph, node.outputs[0])) {
    return false;
  }
  const Shape& shape = *ShapeOf(graph, node.outputs[0]);
  bool planes = false;
  for (const ValueId input : node.inputs) {
    if (input == kNone) continue;
    if (!ShapeOf(graph, input).has_value()) return false;
    if (HasOneElement(graph, input)) continue;
    if (!IsFloat32(graph, input)) return false;
    const bool same = HasShape(graph, input, shape) && !IsWeight(graph, input);
    planes = planes || same;
    if (same) continue;
    if (!ScaleOf(graph, input, shape).has_value()) return false;
  }
  return planes;
}

// Of whole planes, which stay as planes of one element.
bool IsAverage(const Graph& graph, const Node& node) {
  if (!IsPlanes(graph, node.input(0))) return false;
  if (node.op == "GlobalAveragePool") return true;
  if (node.op != "ReduceMean" || node.attributes.Int("keepdims", 1) == 0) return false;
  const auto rank = static_cast<int64_t>(ShapeOf(graph, node.inputs[0])->size());
  std::vector<int64_t> axes = node.attributes.Ints("axes");
  if (node.input(1) != kNone) {
    const Tensor* known = KnownConstant(graph, node.inputs[1]);
    if (known == nullptr || !known->ToInt64s().ok()) return false;
    axes = *known->ToInt64s();
  }
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  absl::c_sort(axes);
  std::vector<int64_t> spatial;
  for (int64_t axis = 2; axis < rank; ++axis) spatial.push_back(axis);
  return axes == spatial;
}

// The largest or the average of windows.
bool IsPool(const Graph& graph, const Node& node) {
  return (node.op == "MaxPool" || node.op == "AveragePool") && node.output(1) == kNone &&
         IsPlanes(graph, node.input(0)) && IsPlanes(graph, node.outputs[0]) &&
         ops::WindowsOf(node, *ShapeOf(graph, node.inputs[0])).ok();
}

bool IsParts(const Graph& graph, const Node& node) {
  if (node.op != "Concat" && node.op != "Split") return false;
  const auto planes = [&](ValueId value) { return value == kNone || IsPlanes(graph, value); };
  if (!IsPlanes(graph, node.input(0)) || !absl::c_all_of(node.outputs, planes)) return false;
  return node.op == "Split" || absl::c_all_of(node.inputs, planes);
}

// Other dims behind the same channels.
bool IsReshape(const Graph& graph, const Node& node) {
  if (node.op != "Reshape" || !IsPlanes(graph, node.input(0)) ||
      !IsPlanes(graph, node.outputs[0])) {
    return false;
  }
  const Shape &from = *ShapeOf(graph, node.inputs[0]), &to = *ShapeOf(graph, node.outputs[0]);
  return from[0] == to[0] && from[1] == to[1];
}

bool HasPerm(const Graph& graph, const Node& node, const std::vector<int64_t>& perm) {
  return node.op == "Transpose" && IsPlanes(graph, node.input(0)) &&
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
      RETURN_IF_ERROR(Turn(node, sites_[i]));
      changed = true;
    }
    return changed;
  }

 private:
  struct Site {
    NodeId id;
    Kind kind;
    PlaneCosts costs;
  };

  void FindSites() {
    for (const NodeId id : graph_.NodeIds()) {
      const Node& node = graph_.node(id);
      std::optional<Kind> kind;
      PlaneCosts costs;
      if (const std::optional<PlaneCosts> of_conv = PlaneCostsOf(graph_, node)) {
        kind = Kind::kConv;
        costs = *of_conv;
        worthwhile_ = worthwhile_ || costs.last < costs.first;
      } else if (IsElementwise(graph_, node)) {
        kind = Kind::kElementwise;
      } else if (IsAverage(graph_, node)) {
        kind = Kind::kAverage;
      } else if (IsPool(graph_, node)) {
        kind = Kind::kPool;
      } else if (IsParts(graph_, node)) {
        kind = Kind::kParts;
      } else if (IsReshape(graph_, node)) {
        kind = Kind::kReshape;
      }
      if (!kind.has_value()) continue;
      site_of_[id] = sites_.size();
      sites_.push_back({id, *kind, costs});
    }
  }

  std::optional<size_t> SiteOf(NodeId node) const {
    const auto site = site_of_.find(node);
    return site == site_of_.end() ? std::nullopt : std::optional(site->second);
  }

  // True: channels last.
  std::vector<bool> Cut() const {
    MinimumCut cut(sites_.size());
    // Nodes that know one layout alone.
    const size_t first = cut.Add(), last = cut.Add();
    cut.SetCosts(first, 0, MinimumCut::kNever);
    cut.SetCosts(last, MinimumCut::kNever, 0);
    for (size_t i = 0; i < sites_.size(); ++i) {
      cut.SetCosts(i, sites_[i].costs.first, sites_[i].costs.last);
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

  // `value` is turned once, where one of its readers wants it as it does not come.
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
      const bool as_it_is = site.has_value() && sites_[*site].costs.to_last;
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

  absl::Status Turn(const Node& node, const Site& site) {
    switch (site.kind) {
      case Kind::kConv:
        return TurnConv(node, site.costs.to_last);
      case Kind::kElementwise:
        return TurnElementwise(node);
      case Kind::kAverage:
        return TurnAverage(node);
      case Kind::kPool:
        return TurnPool(node);
      case Kind::kParts:
        return TurnParts(graph_, node);
      case Kind::kReshape:
        return TurnReshape(node);
    }
    return absl::OkStatus();
  }

  absl::Status TurnConv(const Node& node, bool to_last) {
    std::vector<ValueId> inputs = node.inputs;
    if (to_last) {
      Attributes attributes = node.attributes;
      attributes.Set("layout", std::string("to_last"));
      return Finish(node, "reprise.Conv", std::move(inputs), std::move(attributes));
    }
    ASSIGN_OR_RETURN(inputs[0], ToLast(graph_, inputs[0]));
    if (node.input(kResidual) != kNone) {
      ASSIGN_OR_RETURN(inputs[kResidual], ToLast(graph_, inputs[kResidual]));
    }
    const bool transposed = absl::EndsWith(node.op, "ConvTranspose");
    if (!transposed && IsProduct(node)) return TurnProduct(node, std::move(inputs));
    Attributes attributes = node.attributes;
    attributes.Set("layout", std::string("last"));
    return Finish(node, transposed ? "reprise.ConvTranspose" : "reprise.Conv", std::move(inputs),
                  std::move(attributes));
  }

  // Of single elements, and what follows on the sums is what follows on a product: the activation
  // comes before what is added there, and behind it here.
  bool IsProduct(const Node& node) const {
    const std::string activation = node.attributes.String("activation", "none");
    return node.attributes.Int("group", 1) == 1 && IsOfElements(graph_, node) &&
           ops::CheckActivation(activation).ok() &&
           (node.input(kResidual) == kNone || activation == "none");
  }

  absl::Status TurnProduct(const Node& node, std::vector<ValueId> inputs) {
    const Shape weight = *ShapeOf(graph_, inputs[1]);
    ASSIGN_OR_RETURN(const ValueId maps,
                     AddReshape(graph_, inputs[1], Shape{weight[0], weight[1]}));
    ASSIGN_OR_RETURN(inputs[1],
                     AddWeight(graph_, "Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {maps},
                               DType::kFloat32, Shape{weight[1], weight[0]}));
    Attributes attributes;
    if (const std::string activation = node.attributes.String("activation", "none");
        activation != "none") {
      attributes.Set("activation", activation);
    }
    return Finish(node, "reprise.Linear", std::move(inputs), std::move(attributes));
  }

  absl::Status TurnElementwise(const Node& node) {
    std::vector<ValueId> inputs = node.inputs;
    const Shape shape = *ShapeOf(graph_, node.outputs[0]);
    for (ValueId& input : inputs) {
      if (input == kNone || HasOneElement(graph_, input)) continue;
      if (const std::optional<Shape> scale = ScaleOf(graph_, input, shape)) {
        ASSIGN_OR_RETURN(input, AddReshape(graph_, input, *scale));
      }
      ASSIGN_OR_RETURN(input, ToLast(graph_, input));
    }
    return Finish(node, node.op, std::move(inputs), node.attributes);
  }

  absl::Status TurnAverage(const Node& node) {
    ASSIGN_OR_RETURN(const ValueId x, ToLast(graph_, node.inputs[0]));
    std::vector<int64_t> axes;
    for (size_t d = 1; d + 1 < ShapeOf(graph_, x)->size(); ++d) {
      axes.push_back(static_cast<int64_t>(d));
    }
    const ValueId dims = graph_.AddConstant("", Tensor::Int64s(axes));
    return Finish(node, "ReduceMean", {x, dims}, {});
  }

  // One dim after the other: of windows of `w` along dim `d` of x, [before, size, after] here. A
  // row of all that lies behind the dim is a row of a plane then.
  absl::StatusOr<ValueId> PoolAlong(const Node& node, ValueId x, const ops::Windows& w, size_t d) {
    const Shape shape = *ShapeOf(graph_, x);
    const auto at = shape.begin() + 1 + static_cast<ptrdiff_t>(d);
    if (w.kernel[d] == 1 && w.strides[d] == 1 && w.pad_begin[d] == 0 && w.pad_end[d] == 0) return x;
    const int64_t before = NumElements(Shape(shape.begin(), at));
    const int64_t after = NumElements(Shape(at + 1, shape.end()));
    Attributes attributes = node.attributes;
    attributes.Set("auto_pad", std::string("NOTSET"));
    attributes.Set("kernel_shape", std::vector<int64_t>{w.kernel[d], 1});
    attributes.Set("strides", std::vector<int64_t>{w.strides[d], 1});
    attributes.Set("dilations", std::vector<int64_t>{w.dilations[d], 1});
    attributes.Set("pads", std::vector<int64_t>{w.pad_begin[d], 0, w.pad_end[d], 0});
    ASSIGN_OR_RETURN(const ValueId planes, AddReshape(graph_, x, Shape{before, 1, *at, after}));
    ASSIGN_OR_RETURN(const ValueId pooled,
                     AddInferred(graph_, node.op, {planes}, std::move(attributes), node.name));
    Shape result = shape;
    result[d + 1] = w.out[d];
    return AddReshape(graph_, pooled, result);
  }

  absl::Status TurnPool(const Node& node) {
    ASSIGN_OR_RETURN(const ops::Windows windows,
                     ops::WindowsOf(node, *ShapeOf(graph_, node.inputs[0])));
    ASSIGN_OR_RETURN(ValueId x, ToLast(graph_, node.inputs[0]));
    for (size_t d = 0; d < windows.kernel.size(); ++d) {
      ASSIGN_OR_RETURN(x, PoolAlong(node, x, windows, d));
    }
    return ReplaceByLast(graph_, node.outputs[0], x);
  }

  absl::Status TurnReshape(const Node& node) {
    ASSIGN_OR_RETURN(const ValueId x, ToLast(graph_, node.inputs[0]));
    const Shape last = ops::ChannelsLast(*ShapeOf(graph_, node.outputs[0]));
    ASSIGN_OR_RETURN(const ValueId y, AddReshape(graph_, x, last));
    return ReplaceByLast(graph_, node.outputs[0], y);
  }

  absl::Status Finish(const Node& node, absl::string_view op, std::vector<ValueId> inputs,
                      Attributes attributes) {
    ASSIGN_OR_RETURN(const ValueId last,
                     AddInferred(graph_, op, std::move(inputs), std::move(attributes), node.name));
    return ReplaceByLast(graph_, node.outputs[0], last);
  }

  Graph& graph_;
  std::vector<Site> sites_;
  std::map<NodeId, size_t> site_of_;
  bool worthwhile_ = false;
};

class ChooseLayoutsPass : public Pass {
 public:
  absl::string_view name() const override { return "choose_layouts"; }
  absl::StatusOr<bool> Run(Graph& graph) const override { return Layouts(graph).Choose(); }
};

}  // namespace

std::unique_ptr<Pass> ChooseLayouts() { return std::make_unique<ChooseLayoutsPass>(); }

}  // namespace reprise
