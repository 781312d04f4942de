#include <optional>
#include <vector>

#include "runtime/ops/loop.h"
#include "runtime/ops/op.h"
#include "runtime/ops/result_types.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

using Sizes = std::vector<int64_t>;
constexpr int64_t kUnknownSize = -1;
constexpr int kMaxNodesBelow = 32;  // of elementwise nodes whose sizes are followed

// The sizes of `id` as far as the file says them, through elementwise nodes; nullopt: not even how
// many there are.
std::optional<Sizes> SizesOf(const Graph& graph, ValueId id, int& nodes_left) {
  if (id == kNone) return std::nullopt;
  const Value& value = graph.value(id);
  if (value.kind == Value::Kind::kInput) {
    Sizes sizes;
    for (const Dim& dim : value.dims) {
      sizes.push_back(dim.is_constant() ? dim.size : kUnknownSize);
    }
    return sizes;
  }
  if (value.shape.has_value()) return Sizes(value.shape->begin(), value.shape->end());
  if (value.kind != Value::Kind::kResult || --nodes_left < 0) return std::nullopt;
  const Node& node = graph.node(value.producer);
  const OpRow* row = FindOp(node.op);
  if (node.op != "Identity" && (row == nullptr || !row->Has(kElementwise))) return std::nullopt;
  Sizes sizes;
  for (const ValueId input : node.inputs) {
    const std::optional<Sizes> of = SizesOf(graph, input, nodes_left);
    if (!of.has_value()) return std::nullopt;
    if (of->size() > sizes.size()) sizes.insert(sizes.begin(), of->size() - sizes.size(), 1);
    for (size_t i = 1; i <= of->size(); ++i) {
      int64_t& size = sizes[sizes.size() - i];
      const int64_t other = (*of)[of->size() - i];
      // What is longer than 1 decides; of two unknown ones either may.
      if (size == 1 || (size == kUnknownSize && other > 1)) size = other;
    }
  }
  return sizes;
}

std::optional<Sizes> SizesOf(const Graph& graph, ValueId id) {
  int nodes_left = kMaxNodesBelow;
  return SizesOf(graph, id, nodes_left);
}

// What every iteration results in: how far the rows of `x` are from row (or column) `iteration` of
// `table`.
struct Distance {
  ValueId x = kNone;
  ValueId table = kNone;
  int64_t axis = 0;  // of `table`, along which the loop goes
  int64_t power = 2;
  bool root = false;
};

class LoopMatch {
 public:
  LoopMatch(const Graph& graph, const std::vector<DType>& types, const Node& loop)
      : graph_(graph), types_(types), loop_(loop), parts_(loop) {
    const NodeId step = StepOf(graph, loop);
    step_ = step == kNone ? nullptr : &graph.node(step);
  }

  // Nothing ends the loop before its count, and no iteration hands anything to the next that
  // somebody reads behind the last.
  bool IsIndependent() const {
    if (step_ == nullptr || loop_.inputs[LoopParts::kTripCount] == kNone) return false;
    const ValueId begins = loop_.inputs[LoopParts::kCondition];
    if (begins != kNone && !IsTrue(begins)) return false;
    const ValueId goes_on = BeforeIdentities(graph_, loop_.inputs[parts_.first_result]);
    if (!IsTrue(goes_on) && goes_on != step_->output(LoopParts::kStepCondition)) return false;
    for (size_t i = 0; i < parts_.carried; ++i) {
      const ValueId result = loop_.output(i);
      if (result != kNone && (graph_.IsOutput(result) || !graph_.value(result).users.empty())) {
        return false;
      }
    }
    return true;
  }

  // Scanned result `i`, where it is that.
  std::optional<Distance> DistanceOf(size_t i) const {
    if (EntryOf("directions", i) != 0) return std::nullopt;
    ValueId value = BeforeIdentities(graph_, loop_.inputs[parts_.first_result + 1 + parts_.carried + i]);
    Distance found;
    if (const Node* root = graph_.ProducerIf(value, "Sqrt"); root != nullptr) {
      found.root = true;
      value = BeforeIdentities(graph_, root->inputs[0]);
    }
    const Node* difference = DifferenceOf(value, found);
    if (difference == nullptr) return std::nullopt;
    for (const size_t side : {0, 1}) {
      const Node* slice = graph_.ProducerIf(BeforeIdentities(graph_, difference->inputs[side]), "Gather");
      if (slice == nullptr || !IsSlice(*slice, found)) continue;
      found.x = BeforeIdentities(graph_, difference->inputs[1 - side]);
      if (Fits(found)) return found;
    }
    return std::nullopt;
  }

  int64_t ResultAxis(size_t i) const { return EntryOf("axes", i); }

 private:
  bool IsTrue(ValueId id) const {
    const Tensor* constant = KnownConstant(graph_, id);
    return constant != nullptr && constant->dtype() == DType::kBool && IsScalar(graph_, id, 1);
  }

  int64_t EntryOf(absl::string_view list, size_t i) const {
    const std::vector<int64_t> entries = loop_.attributes.Ints(list);
    return i < entries.size() ? entries[i] : 0;
  }

  // The Sub over whose rows `value` is the sum of squares or absolute values.
  const Node* DifferenceOf(ValueId value, Distance& found) const {
    if (value == kNone || graph_.value(value).kind != Value::Kind::kResult) return nullptr;
    const Node& sum = graph_.node(graph_.value(value).producer);
    if (sum.attributes.Int("keepdims", 1) != 0 || sum.outputs[0] != value) return nullptr;
    const std::optional<double> axis = KnownScalar(graph_, sum.input(1));
    if (!axis.has_value() || (*axis != 1 && *axis != -1)) return nullptr;
    ValueId terms = BeforeIdentities(graph_, sum.inputs[0]);
    if (sum.op == "ReduceSumSquare" || sum.op == "ReduceL2") {
      if (sum.op == "ReduceL2" && found.root) return nullptr;
      found.root |= sum.op == "ReduceL2";
    } else if (sum.op == "ReduceL1") {
      found.power = 1;
    } else if (sum.op == "ReduceSum") {
      if (const Node* abs = graph_.ProducerIf(terms, "Abs"); abs != nullptr) {
        found.power = 1;
        terms = abs->inputs[0];
      } else if (const Node* pow = graph_.ProducerIf(terms, "Pow"); pow != nullptr) {
        const bool squares = IsScalar(graph_, pow->inputs[1], 2);
        if (!squares && !IsScalar(graph_, pow->inputs[1], 1)) return nullptr;
        terms = BeforeIdentities(graph_, pow->inputs[0]);
        const Node* of = graph_.ProducerIf(terms, "Abs");
        if (of == nullptr && !squares) return nullptr;
        if (of != nullptr) terms = of->inputs[0];
        if (!squares) found.power = 1;
      } else if (const Node* mul = graph_.ProducerIf(terms, "Mul");
                 mul != nullptr && mul->inputs[0] == mul->inputs[1]) {
        terms = mul->inputs[0];
      } else {
        return nullptr;
      }
    } else {
      return nullptr;
    }
    return graph_.ProducerIf(BeforeIdentities(graph_, terms), "Sub");
  }

  // A row or column of a matrix, of which the loop sees all, in order.
  bool IsSlice(const Node& gather, Distance& found) const {
    if (BeforeIdentities(graph_, gather.inputs[1]) != step_->output(LoopParts::kStepIteration)) return false;
    found.table = gather.inputs[0];
    const std::optional<Sizes> sizes = SizesOf(graph_, found.table);
    if (!sizes.has_value() || sizes->size() != 2) return false;
    found.axis = gather.attributes.Int("axis", 0);
    if (found.axis < 0) found.axis += 2;
    return IsSizeOf(loop_.inputs[LoopParts::kTripCount], found.table, found.axis, *sizes);
  }

  bool IsSizeOf(ValueId count, ValueId table, int64_t axis, const Sizes& sizes) const {
    if (const std::optional<double> known = KnownScalar(graph_, count); known.has_value()) {
      return sizes[axis] != kUnknownSize && *known == static_cast<double>(sizes[axis]);
    }
    const Node* gather = graph_.ProducerIf(count, "Gather");
    if (gather == nullptr) return false;
    const Node* shape = graph_.ProducerIf(gather->inputs[0], "Shape");
    const std::optional<double> place = KnownScalar(graph_, gather->inputs[1]);
    return shape != nullptr && shape->attributes.Int("start", 0) == 0 &&
           shape->inputs[0] == table && place.has_value() &&
           (*place == static_cast<double>(axis) || *place == static_cast<double>(axis - 2));
  }

  // x is a float32 matrix from around the loop, with as many columns as a slice has elements.
  bool Fits(const Distance& found) const {
    const std::optional<Sizes> x = SizesOf(graph_, found.x);
    const std::optional<Sizes> table = SizesOf(graph_, found.table);
    if (!x.has_value() || x->size() != 2 || (*x)[1] == kUnknownSize) return false;
    if ((*x)[1] != (*table)[1 - found.axis]) return false;
    return types_[found.x] == DType::kFloat32 && types_[found.table] == DType::kFloat32 &&
           IsAround(found.x) && IsAround(found.table);
  }

  // Takes nothing from an iteration.
  bool IsAround(ValueId id) const {
    std::vector<bool> seen(graph_.num_values());
    std::vector<ValueId> next = {id};
    while (!next.empty()) {
      const ValueId value = next.back();
      next.pop_back();
      if (value == kNone || seen[value]) continue;
      seen[value] = true;
      if (graph_.value(value).kind != Value::Kind::kResult) continue;
      const Node& node = graph_.node(graph_.value(value).producer);
      if (&node == step_) return false;
      next.insert(next.end(), node.inputs.begin(), node.inputs.end());
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<DType>& types_;
  const Node& loop_;
  const LoopParts parts_;
  const Node* step_ = nullptr;
};

// Exporters of classic models write the distances of a request's rows from those of a table as a
// Scan over the table: thousands of iterations of a few operations.
class LoopDistancesPass : public Pass {
 public:
  absl::string_view name() const override { return "loop_distances"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    for (const NodeId id : graph.NodeIds()) {
      if (graph.node(id).op == "Loop") changed |= Rewrite(graph, id);
    }
    return changed;
  }

 private:
  static bool Rewrite(Graph& graph, NodeId id) {
    const LoopParts parts(graph.node(id));
    const std::vector<DType> types = ResultTypes(graph);
    bool changed = false;
    for (size_t i = 0; i < parts.scanned; ++i) {
      const Node& loop = graph.node(id);
      const ValueId result = loop.output(parts.carried + i);
      if (result == kNone) continue;
      const LoopMatch match(graph, types, loop);
      if (!match.IsIndependent()) return changed;
      const std::optional<Distance> distance = match.DistanceOf(i);
      if (!distance.has_value()) continue;
      const int64_t axis = match.ResultAxis(i);
      Replace(graph, result, Stacked(graph, *distance, axis == 0 || axis == -2));
      changed = true;
      if (graph.node(id).removed) break;
    }
    return changed;
  }

  // All iterations' results side by side, an iteration a row where `by_iteration`.
  static ValueId Stacked(Graph& graph, const Distance& distance, bool by_iteration) {
    const auto turned = [&](ValueId value) {
      Attributes attributes;
      attributes.Set("perm", std::vector<int64_t>{1, 0});
      return graph.node(graph.AddNode("Transpose", {value}, attributes)).outputs[0];
    };
    Attributes power;
    power.Set("power", distance.power);
    const ValueId columns = distance.axis == 0 ? turned(distance.table) : distance.table;
    ValueId stacked =
        graph.node(graph.AddNode("reprise.Distances", {distance.x, columns}, power)).outputs[0];
    if (distance.root) stacked = graph.node(graph.AddNode("Sqrt", {stacked})).outputs[0];
    return by_iteration ? turned(stacked) : stacked;
  }
};

}  // namespace

std::unique_ptr<Pass> LoopDistances() { return std::make_unique<LoopDistancesPass>(); }

}  // namespace reprise
