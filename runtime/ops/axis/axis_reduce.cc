// Axis rules of reductions, choices and sums along a dim.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/reduce/softmax_op.h"

namespace reprise::ops {
namespace {

// Returns the flow after dims are gone (or are 1, with `keep`).
AxisFlowValue Without(const AxisFlowValue& flow, const std::vector<int64_t>& dims, bool keep) {
  AxisFlowValue result;
  for (const Positions& positions : flow.along) {
    if (absl::c_linear_search(dims, positions.dim)) continue;
    Positions left = positions;
    left.padding.reset();
    if (!keep) {
      left.dim -= absl::c_count_if(dims, [&](int64_t dim) { return dim < positions.dim; });
    }
    result.along.push_back(left);
  }
  return result;
}

std::optional<std::vector<int64_t>> ReducedDims(const AxisContext& context) {
  std::vector<int64_t> dims;
  if (context.has_input(1)) {
    const auto axes = context.integers(1);
    if (!axes) return std::nullopt;
    for (const int64_t dim : *axes) dims.push_back(context.Dim(dim));
  }
  if (dims.empty() && context.attributes().Int("noop_with_empty_axes", 0) == 0) {
    for (int64_t d = 0; d < context.rank(0); ++d) dims.push_back(d);
  }
  return dims;
}

// The number in the padding that leaves a reduction as it is.
enum class Ignores { kNothing, kZero, kOne, kLowest, kMinusInfinity, kHighest };

// Returns whether the padding leaves the largest of operand 0 as it is. Zeros after numbers none of
// which is below zero are never larger, and come later than an equal one.
bool IsNeverLarger(const AxisContext& context, const Positions& positions) {
  return positions.padding == -kInfinity ||
         (positions.padding == 0 && context.input(0).nonnegative);
}

// Follows a reduction that the padding does not change where it holds the number that `ignores`
// names.
template <Ignores ignores>
void Reduce(AxisContext& context, absl::string_view how) {
  const auto dims = ReducedDims(context);
  if (!dims) return UnknownAxis(context);
  for (const int64_t dim : *dims) {
    const Positions* positions = context.input(0).At(dim);
    if (positions == nullptr) continue;
    const bool fine = (ignores == Ignores::kZero && positions->padding == 0) ||
                      (ignores == Ignores::kOne && positions->padding == 1) ||
                      (ignores == Ignores::kLowest && IsNeverLarger(context, *positions)) ||
                      (ignores == Ignores::kMinusInfinity && positions->padding == -kInfinity) ||
                      (ignores == Ignores::kHighest && positions->padding == kInfinity);
    if (!fine) context.Mix(how);
  }
  AxisFlowValue flow =
      Without(context.input(0), *dims, ReduceSumOp::From(context.attributes()).keepdims);
  // Sums and norms of zeros alone are zeros; the logarithm of such a sum is infinite.
  const bool of_zeros =
      ignores == Ignores::kZero && FactsOf(context.node().op).overflow == Overflow::kNever;
  for (Positions& positions : flow.along) {
    if (!of_zeros) continue;
    for (const Positions& from : context.input(0).along) {
      const int64_t before = ReduceSumOp::From(context.attributes()).keepdims
                                 ? 0
                                 : absl::c_count_if(*dims, [&](int64_t d) { return d < from.dim; });
      const bool is_it =
          !absl::c_linear_search(*dims, from.dim) && from.dim - before == positions.dim;
      if (is_it && from.padding == 0) positions.padding = 0;
    }
  }
  context.Set(0, std::move(flow));
}

void ArgExtreme(AxisContext& context, bool keeps) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", 0));
  const Positions* positions = context.input(0).At(dim);
  if (positions != nullptr && !keeps) context.Mix("looks for an extreme over");
  context.Set(0,
              Without(context.input(0), {dim}, ReduceSumOp::From(context.attributes()).keepdims));
  if (positions != nullptr && keeps) context.SetBelow(0, *positions);
}

// Returns whether no place past the end is taken by ArgMax or ArgMin: its number is no better than
// any other, and the first of equal ones is taken.
bool TakesNoPadding(const AxisContext& context, bool largest) {
  if (ArgMaxOp::From(context.attributes()).select_last_index) return false;
  const Positions* positions =
      context.input(0).At(context.Dim(context.attributes().Int("axis", 0)));
  if (positions == nullptr) return true;
  if (positions->moved || positions->repeated) return false;
  return largest ? IsNeverLarger(context, *positions) : positions->padding == kInfinity;
}

}  // namespace

void ReduceSumAxis(AxisContext& context) { Reduce<Ignores::kZero>(context, "adds up over"); }
void ReduceNormAxis(AxisContext& context) { Reduce<Ignores::kZero>(context, "takes a norm over"); }
void ReduceProdAxis(AxisContext& context) { Reduce<Ignores::kOne>(context, "multiplies over"); }
// Zeros do not count in a sum, but in the number that it is divided by.
void ReduceMeanAxis(AxisContext& context) { Reduce<Ignores::kNothing>(context, "averages over"); }
void ReduceMaxAxis(AxisContext& context) {
  Reduce<Ignores::kLowest>(context, "takes the largest over");
}
void ReduceMinAxis(AxisContext& context) {
  Reduce<Ignores::kHighest>(context, "takes the smallest over");
}
void ReduceLogSumExpAxis(AxisContext& context) {
  Reduce<Ignores::kMinusInfinity>(context, "adds up exponentials over");
}

void ArgMaxAxis(AxisContext& context) {
  ArgExtreme(context, TakesNoPadding(context, /*largest=*/true));
}
void ArgMinAxis(AxisContext& context) {
  ArgExtreme(context, TakesNoPadding(context, /*largest=*/false));
}

// Takes a known number of them, the best first: padding that is no better than any other comes
// last. Padding need not follow the smallest ones, since NaN counts as the largest.
void TopKAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", -1));
  const Positions* positions = context.input(0).At(dim);
  AxisFlowValue flow = Without(context.input(0), {dim}, true);
  bool keeps = true;
  if (positions != nullptr) {
    const bool largest = TopKOp::From(context.attributes()).largest;
    const auto k = context.integers(TopKOp::kK), larger = context.larger_integers(TopKOp::kK);
    const bool last = largest && positions->padding == -kInfinity;
    const bool all = k && larger && k->size() == 1 && (*k)[0] == context.shape(0)[dim] &&
                     (*larger)[0] == context.larger_shape(0)[dim];
    keeps = last && k && larger && (all || *k == *larger) && !positions->moved &&
            !positions->repeated && positions->inner == 1;
    if (!keeps) context.Mix("picks extremes over");
    if (all || !keeps) {
      flow.along.push_back({.dim = dim, .moved = !keeps, .extent = positions->extent});
    }
  }
  context.Set(0, flow);
  context.Set(1, std::move(flow));
  if (positions != nullptr && keeps) context.SetBelow(1, *positions);
}

void CumulativeAxis(AxisContext& context) {
  std::optional<int64_t> dim;
  if (const auto axis = context.integers(1); axis && axis->size() == 1) {
    dim = context.Dim((*axis)[0]);
  }
  const bool reverse = CumSumOp::From(context.attributes()).reverse;
  const double neutral = context.node().op == "CumProd" ? 1 : 0;
  AxisFlowValue flow = context.input(0);
  for (Positions& positions : flow.along) {
    const bool here = !dim.has_value() || positions.dim == *dim;
    if (here && reverse && positions.padding != neutral) {
      context.Mix("adds up from the end, where the padding is, over");
    } else if (here && context.is_batch()) {
      // No mask hides the rows of other requests.
      context.Mix("adds up over");
    } else if (here && positions.repeated && positions.padding != neutral) {
      // Each line begins with the sum of those before it, of their padding too: a capacity that is
      // counted so is reached by many rows alone.
      context.Mix("adds up, line after line, over");
    } else if (here && positions.moved) {
      context.Doubt("adds up over");
    }
    positions.padding.reset();
  }
  context.Set(0, std::move(flow));
}

// Softmax and its kin: minus infinity becomes exactly 0, but among logarithms.
void SoftmaxAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", -1));
  const bool logarithms = context.node().op == LogSoftmaxOp::kName;
  AxisFlowValue flow = context.input(0);
  for (Positions& positions : flow.along) {
    const bool here = positions.dim == dim, hidden = here && positions.padding == -kInfinity;
    if (here && !hidden) context.Mix("normalises over");
    positions.padding.reset();
    if (hidden && !logarithms) positions.padding = 0;
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops
