#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/classical/classical_op.h"
#include "runtime/ops/classical/distances.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/simplify_passes.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

constexpr int64_t kUnknownSize = -1;

// A value as it is whatever a request's sizes are.
struct Known {
  DType dtype = DType::kUndefined;
  std::vector<int64_t> sizes;  // kUnknownSize where a request decides
};

// Returns a size for each symbol of the inputs' dims.
Binding BindingOf(const Graph& graph, int64_t size) {
  Binding binding;
  std::set<std::string> symbols;
  for (const ValueId input : graph.inputs()) {
    for (const Dim& dim : graph.value(input).dims) symbols.insert(dim.symbol);
  }
  for (const std::string& symbol : symbols) {
    const std::vector<std::string> parts = ExpressionSymbols(symbol);
    const bool is_sum = !parts.empty() && absl::c_all_of(parts, [&](const std::string& part) {
      return symbols.contains(part);
    });
    if (!symbol.empty() && !is_sum) binding.axes[symbol] = size;
  }
  return binding;
}

// Returns the facts known about `id`, found with each of `given` as the inputs' open sizes: nullopt
// where one does not fit, or `id` depends on a cut, such as a loop's iteration, or on a shape
// input.
std::optional<Known> KnownOf(const Graph& graph, ValueId id, absl::Span<const int64_t> given) {
  if (id == kNone) return std::nullopt;
  Graph front = graph;
  front.ClearOutputs();
  front.AddOutput(id);
  if (!EliminateDead()->Run(front).ok() || !front.Compact()) return std::nullopt;
  std::optional<Known> known;
  for (const int64_t size : given) {
    const absl::StatusOr<Graph> at = Specialize(front, BindingOf(front, size));
    if (!at.ok()) return std::nullopt;
    const Value& value = at->value(at->outputs()[0]);
    if (!known.has_value()) {
      known = {value.dtype, {value.shape->begin(), value.shape->end()}};
      continue;
    }
    if (known->sizes.size() != value.shape->size()) return std::nullopt;
    for (size_t i = 0; i < known->sizes.size(); ++i) {
      if (known->sizes[i] != (*value.shape)[i]) known->sizes[i] = kUnknownSize;
    }
  }
  return known;
}

// The result of every iteration: how far the rows of `x` are from row (or column) `iteration` of
// `table`.
struct Distance {
  ValueId x = kNone;
  ValueId table = kNone;
  int64_t axis = 0;  // the dim of `table` along which the loop goes
  int64_t power = 2;
  int roots = 0;  // square roots taken of the sum
};

class LoopMatch {
 public:
  LoopMatch(const Graph& graph, const Node& loop) : graph_(graph), loop_(loop), parts_(loop) {
    const NodeId step = StepOf(graph, loop);
    step_ = step == kNone ? nullptr : &graph.node(step);
  }

  // Returns whether nothing ends the loop before its count, and no iteration passes on a
  // value that is read after the last.
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
    const size_t scanned = parts_.first_result + 1 + parts_.carried + i;
    ValueId value = BeforeIdentities(graph_, loop_.inputs[scanned]);
    Distance found;
    if (const Node* root = graph_.ProducerIf(value, SqrtOp::kName); root != nullptr) {
      found.roots = 1;
      value = BeforeIdentities(graph_, root->inputs[0]);
    }
    const Node* difference = DifferenceOf(value, found);
    if (difference == nullptr) return std::nullopt;
    for (const size_t side : {0, 1}) {
      const ValueId taken = BeforeIdentities(graph_, difference->inputs[side]);
      const Node* slice = graph_.ProducerIf(taken, GatherOp::kName);
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

  // Returns the Sub over whose rows `value` is the sum of powers of magnitudes.
  const Node* DifferenceOf(ValueId value, Distance& found) const {
    if (value == kNone || graph_.value(value).kind != Value::Kind::kResult) return nullptr;
    const Node& sum = graph_.node(graph_.value(value).producer);
    if (sum.attributes.Int("keepdims", 1) != 0 || sum.outputs[0] != value) return nullptr;
    const std::optional<double> axis = KnownScalar(graph_, sum.input(1));
    if (!axis.has_value() || (*axis != 1 && *axis != -1)) return nullptr;
    const ValueId terms = BeforeIdentities(graph_, sum.inputs[0]);
    if (sum.op == "ReduceSumSquare") return DifferenceAt(terms);
    if (sum.op == ReduceL2Op::kName) {
      found.roots += 1;
      return DifferenceAt(terms);
    }
    if (sum.op == ReduceL1Op::kName) {
      found.power = 1;
      return DifferenceAt(terms);
    }
    return sum.op == ReduceSumOp::kName ? DifferenceOfTerms(terms, found) : nullptr;
  }

  // Returns the same for the terms that a ReduceSum adds up.
  const Node* DifferenceOfTerms(ValueId terms, Distance& found) const {
    if (const Node* mul = graph_.ProducerIf(terms, MulOp::kName); mul != nullptr) {
      return mul->inputs[0] == mul->inputs[1] ? DifferenceAt(mul->inputs[0]) : nullptr;
    }
    found.power = 1;
    if (const Node* pow = graph_.ProducerIf(terms, PowOp::kName); pow != nullptr) {
      const Tensor* exponent = KnownConstant(graph_, pow->inputs[1]);
      // One of more dims would give the difference more.
      if (exponent == nullptr || exponent->num_elements() != 1 || exponent->shape().size() > 1) {
        return nullptr;
      }
      const double power = exponent->ToDoubles()[0];
      if (power < 1 || power > ops::kMostPower || power != std::floor(power)) return nullptr;
      found.power = static_cast<int64_t>(power);
      terms = BeforeIdentities(graph_, pow->inputs[0]);
    }
    const Node* magnitude = graph_.ProducerIf(terms, AbsOp::kName);
    if (magnitude == nullptr) return found.power % 2 == 0 ? DifferenceAt(terms) : nullptr;
    return DifferenceAt(magnitude->inputs[0]);
  }

  const Node* DifferenceAt(ValueId value) const {
    return graph_.ProducerIf(BeforeIdentities(graph_, value), SubOp::kName);
  }

  // Returns whether it is a row or column of a matrix, of which the loop sees all, in order.
  bool IsSlice(const Node& gather, Distance& found) const {
    if (BeforeIdentities(graph_, gather.inputs[1]) != step_->output(LoopParts::kStepIteration)) {
      return false;
    }
    found.table = gather.inputs[0];
    found.axis = gather.attributes.Int("axis", 0);
    if (found.axis < 0) found.axis += 2;
    return found.axis == 0 || found.axis == 1;
  }

  // Returns whether the size of the table is the file's: one that is computed may be the same for
  // the sizes that were tried, and another for others.
  bool IsDeclared(const Distance& found) const {
    const Value& table = graph_.value(found.table);
    if (table.kind == Value::Kind::kInput) return table.dims[found.axis].is_constant();
    return table.shape.has_value();
  }

  // Returns whether the loop has as many iterations as `table`, which has `sizes`, has slices.
  bool SeesAll(const Distance& found, const std::vector<int64_t>& sizes) const {
    const ValueId count = loop_.inputs[LoopParts::kTripCount];
    if (const std::optional<double> known = KnownScalar(graph_, count); known.has_value()) {
      return IsDeclared(found) && *known == static_cast<double>(sizes[found.axis]);
    }
    const Node* gather = graph_.ProducerIf(count, GatherOp::kName);
    if (gather == nullptr) return false;
    const Node* shape = graph_.ProducerIf(gather->inputs[0], ShapeOp::kName);
    if (shape == nullptr || shape->inputs[0] != found.table || shape->attributes.Has("start") ||
        shape->attributes.Has("end")) {
      return false;
    }
    const std::optional<double> place = KnownScalar(graph_, gather->inputs[1]);
    return place.has_value() && (*place == static_cast<double>(found.axis) ||
                                 *place == static_cast<double>(found.axis - 2));
  }

  // Returns whether both are matrices of one dtype from outside the loop, the same in every turn.
  bool Fits(const Distance& found) const {
    // Sizes that are no size of a dim twice in a row by chance.
    constexpr int64_t kAny[] = {3, 7};
    const std::optional<Known> table = KnownOf(graph_, found.table, kAny);
    if (!table.has_value() || table->sizes.size() != 2) return false;
    std::optional<Known> x = KnownOf(graph_, found.x, kAny);
    // Nodes in front may take only one number of columns, the table's, and leave it open.
    const int64_t columns = table->sizes[1 - found.axis];
    if (!x.has_value() && columns != kUnknownSize) x = KnownOf(graph_, found.x, {columns});
    if (!x.has_value() || x->sizes.size() != 2) return false;
    if (x->dtype != table->dtype || !SeesAll(found, table->sizes)) return false;
    return x->dtype == DType::kFloat32 || x->dtype == DType::kFloat64;
  }

  const Graph& graph_;
  const Node& loop_;
  const LoopParts parts_;
  const Node* step_ = nullptr;
};

// Returns all iterations' results side by side, an iteration a row where `by_iteration`.
ValueId Stacked(Graph& graph, const Node& loop, const Distance& distance, bool by_iteration) {
  const auto add = [&](absl::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
    const NodeId node = graph.AddNode(op, std::move(inputs), std::move(attributes));
    graph.SetSource(node, SourceOp(loop), loop.name);
    return graph.node(node).outputs[0];
  };
  const Attributes turned = {{"perm", std::vector<int64_t>{1, 0}}};
  const ValueId columns =
      distance.axis == 0 ? add(TransposeOp::kName, {distance.table}, turned) : distance.table;
  ValueId stacked = add(DistancesOp::kName, {distance.x, columns}, {{"power", distance.power}});
  for (int i = 0; i < distance.roots; ++i) stacked = add(SqrtOp::kName, {stacked}, {});
  return by_iteration ? add(TransposeOp::kName, {stacked}, turned) : stacked;
}

// Exporters of classic models write the distances of a request's rows from the rows of a table
// as a Scan over the table: thousands of iterations of a few operations.
absl::StatusOr<bool> LoopDistancesAt(Graph& graph, NodeId id) {
  if (graph.node(id).op != LoopOp::kName) return false;
  const Node loop = graph.node(id);
  const LoopParts parts(loop);
  const LoopMatch match(graph, loop);
  if (!match.IsIndependent()) return false;
  // All results that are read: the loop would run for one as for all.
  std::vector<std::pair<size_t, Distance>> found;
  for (size_t i = 0; i < parts.scanned; ++i) {
    const ValueId result = loop.output(parts.carried + i);
    if (result == kNone) continue;
    if (graph.value(result).users.empty() && !graph.IsOutput(result)) continue;
    const std::optional<Distance> distance = match.DistanceOf(i);
    if (!distance.has_value()) return false;
    found.emplace_back(i, *distance);
  }
  for (const auto& [i, distance] : found) {
    const int64_t axis = match.ResultAxis(i);
    Replace(graph, loop.output(parts.carried + i),
            Stacked(graph, loop, distance, axis == 0 || axis == -2));
  }
  return !found.empty();
}

}  // namespace

std::unique_ptr<Pass> LoopDistances() { return PassOfNodes("loop_distances", LoopDistancesAt); }

}  // namespace reprise
