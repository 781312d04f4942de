#include "runtime/certify/axis_numbers.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/scatter_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/softmax_op.h"

namespace reprise {
namespace {

using Source = AxisFlowValue::Source;

constexpr char kFollows[] = "takes numbers that follow the size of";

// Follows an equal shift of all numbers of a line: it stays equal in sums, and does not show in a
// softmax.
void FollowShifts(AxisContext& context, std::vector<AxisFlowValue>& flows) {
  const Node& node = context.node();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone || !flows[node.inputs[i]].shifted.has_value()) continue;
    const int64_t dim = *flows[node.inputs[i]].shifted;
    const bool along = dim == context.Dim(node.attributes.Int("axis", -1));
    if (node.op == SoftmaxOp::kName && along) {
      flows[node.outputs[0]].shifted.reset();
      continue;
    }
    const AxisFlowValue& result = flows[node.outputs[0]];
    const bool moves =
        FindOp(node.op)->Has(kView) || node.op == ExpandOp::kName || node.op == CastOp::kName;
    if (moves && flows[node.inputs[i]].along.size() == 1 && result.along.size() == 1) {
      flows[node.outputs[0]].shifted = result.along[0].dim;
      continue;
    }
    // Minus infinity may take the place of some.
    const bool masked = node.op == WhereOp::kName && i > 0 &&
                        context.input(0).source < Source::kData &&
                        context.Uniform(3 - i) == -ops::kInfinity;
    const bool sum = node.op == AddOp::kName || (node.op == SubOp::kName && i == 0) ||
                     node.op == IdentityOp::kName || masked;
    const bool scaled = (node.op == MulOp::kName || node.op == DivOp::kName) && i == 0 &&
                        context.Uniform(1).has_value();
    if (sum || scaled) {
      const int64_t shifted = dim + context.output_rank() - context.rank(i);
      std::optional<int64_t>& known = flows[node.outputs[0]].shifted;
      if (known.value_or(shifted) != shifted) {
        context.Mix(kFollows);
      }
      known = shifted;
    } else {
      context.Mix(kFollows);
    }
  }
}

bool OnlyCopies(const AxisContext& context) {
  const OpRow* row = FindOp(context.node().op);
  return row->Has(kView) || FactsOf(*row).Is(kStaysInPlace);
}

// Returns whether the rows that `node` picks or replaces by these places are each its own: a column
// of the places is that of the dim along which rows lie.
bool TakesOwnRows(const Graph& graph, const AxisContext& context,
                  const std::vector<AxisFlowValue>& flows) {
  const Node& node = context.node();
  const bool picks =
      node.op == GatherNdOp::kName && GatherNdOp::From(context.attributes()).batch_dims == 0;
  const bool puts = node.op == ScatterNdOp::kName && !context.input(2).own_place;
  if ((!picks && !puts) || context.input(0).own_place) return false;
  const Positions* rows = context.input(1).At(0);
  if (rows == nullptr || rows->moved || rows->repeated || rows->inner != 1) return false;
  const auto lies_along = [&](int64_t dim) {
    const Positions* own = context.input(0).At(dim);
    return own != nullptr && own->inner == 1 && !own->repeated && !own->moved;
  };
  if (puts) {
    const Positions* updates = context.input(2).At(0);
    if (updates == nullptr || updates->moved || updates->repeated || updates->inner != 1) {
      return false;
    }
  }
  if (const Tensor* places = context.constant(1); places != nullptr) {
    for (int64_t column = 0; column < places->shape().back(); ++column) {
      const ColumnPlaces wanted = lies_along(column) ? ColumnPlaces::kOwn : ColumnPlaces::kShared;
      if (PlacesOfColumn(*places, 0, column) != wanted) return false;
    }
    return true;
  }
  const Node* concat = graph.ProducerIf(node.inputs[1], ConcatOp::kName);
  if (concat == nullptr) return context.shape(1).back() == 1 && lies_along(0);
  const bool columns = static_cast<int64_t>(concat->inputs.size()) == context.shape(1).back();
  if (!columns || context.Dim(concat->attributes.Int("axis", 0), 1) != context.rank(1) - 1) {
    return false;
  }
  for (size_t column = 0; column < concat->inputs.size(); ++column) {
    const bool own = flows[concat->inputs[column]].own_place;
    if (own != lies_along(static_cast<int64_t>(column))) return false;
  }
  return true;
}

void FollowOwnPlaces(const Graph& graph, AxisContext& context, std::vector<AxisFlowValue>& flows) {
  const Node& node = context.node();
  const OpRow* row = FindOp(node.op);
  bool any = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    any = any || (context.input(i).own_place && !row->IsValueInput(i));
  }
  if (!any) return;
  if (OnlyCopies(context) && !(node.op == CastOp::kName && context.casts_to_float())) {
    flows[node.outputs[0]].own_place = true;
  } else if (!TakesOwnRows(graph, context, flows)) {
    context.Mix(kFollows);
  } else if (node.op == ScatterNdOp::kName) {
    AxisFlowValue flow = context.input(0);  // The elements put there lie where the data did.
    for (Positions& positions : flow.along) positions.padding = std::nullopt;
    context.Set(0, std::move(flow));
  }
}

}  // namespace

ColumnPlaces PlacesOfColumn(const Tensor& places, int64_t dim, int64_t column) {
  if (!IsInteger(places.dtype())) return ColumnPlaces::kOther;
  const std::vector<double> values = places.ToDoubles();
  const Shape strides = Strides(places.shape());
  const int64_t columns = places.shape().back();
  bool own = true, shared = true;
  for (size_t e = column; e < values.size(); e += columns) {
    const auto row = static_cast<int64_t>(e) / strides[dim] % places.shape()[dim];
    own = own && values[e] == static_cast<double>(row);
    shared = shared && values[e] == values[e - row * strides[dim]];
  }
  return own ? ColumnPlaces::kOwn : shared ? ColumnPlaces::kShared : ColumnPlaces::kOther;
}

void FollowNumbers(const Graph& graph, AxisContext& context, std::vector<AxisFlowValue>& flows) {
  FollowShifts(context, flows);
  FollowOwnPlaces(graph, context, flows);
}

}  // namespace reprise
