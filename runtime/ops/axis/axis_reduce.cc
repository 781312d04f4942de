// Axis rules of reductions, choices and sums along a dim.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/reduce/softmax_op.h"

namespace reprise::ops {
namespace {

// The lowest numbers of float16 are the lowest that a mask may have there.
constexpr double kOutOfReachOfHalf = -6e4;

// Returns whether the padding is low enough for `what` to pass over it; where it may not be,
// measuring decides. A measurement draws no numbers as low as a weak mask.
bool Masks(const Positions& positions, AxisContext& context, absl::string_view what) {
  const std::optional<double> depth = positions.padding.Depth();
  if (!depth.has_value() || *depth > kWeakestMask) return false;
  const bool added = positions.padding.kind == PaddingValue::Kind::kLow;
  if (*depth > (added ? kStrong : kOutOfReach)) {
    const std::string how =
        absl::StrCat(what, " under a mask of ", *depth, ", which holds while scores ",
                     added ? "stay closer together" : "are higher", ", over");
    context.Doubt(how);
    const bool is_half = context.dtype(0) == DType::kFloat16;
    if (*depth > (is_half ? kOutOfReachOfHalf : kOutOfReach)) context.MayShow(how);
  }
  return true;
}

// How low a mask is that is there and does not do.
std::optional<double> Weakness(const Positions& positions) {
  const std::optional<double> depth = positions.padding.Depth();
  return depth.has_value() && *depth < 0 ? depth : std::nullopt;
}

// The flow after dims are gone (or are 1, with `keep`).
AxisFlowValue Without(const AxisFlowValue& flow, const std::vector<int64_t>& dims, bool keep) {
  AxisFlowValue result;
  for (const Positions& positions : flow.along) {
    if (absl::c_linear_search(dims, positions.dim)) continue;
    Positions left = positions;
    left.padding = PaddingValue::Unknown();
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

// kLow: for the largest of them; kLowest: for their exponentials, to which zeros count.
enum class Ignores { kNothing, kZero, kOne, kLow, kLowest, kHigh };

// Zeros after numbers none of which is below zero are never larger; nor are they larger than the
// ids that clients send. A value that may be a mask, but is not known to be one, is neither.
bool NeverLarger(const AxisContext& context, const Positions& positions) {
  return positions.padding.Is(0) && context.input(0).nonnegative;
}

bool IsIdOfPadding(const AxisContext& context, const Positions& positions) {
  return positions.padding.Is(0) && positions.settled && !positions.guarded &&
         !IsFloating(context.dtype(0));
}

// A mask that is not known may hide numbers among which an extreme is looked for; not clients' own
// numbers, which may lie beyond any that a measurement draws.
bool MayHideExtremes(const AxisContext& context, const Positions& positions) {
  const AxisFlowValue& numbers = context.input(0);
  return MayBeMasked(positions) && !numbers.may_be_low && !numbers.may_be_high;
}

// A reduction that the padding does not change where it holds the value that `ignores` names.
template <Ignores ignores>
void Reduce(AxisContext& context, absl::string_view how, absl::string_view noun = "") {
  const auto dims = ReducedDims(context);
  if (!dims) return UnknownAxis(context);
  const auto here =
      absl::c_count_if(*dims, [&](int64_t dim) { return context.input(0).At(dim) != nullptr; });
  const bool averages = ignores == Ignores::kNothing && here == 1;
  NodeId averaged = kNone;
  for (const int64_t dim : *dims) {
    const Positions* positions = context.input(0).At(dim);
    if (positions == nullptr) continue;
    // Ignored, whatever the other elements are.
    const bool ignored = ignores == Ignores::kZero || ignores == Ignores::kOne ||
                         (ignores == Ignores::kLow && NeverLarger(context, *positions));
    const bool fine = (ignores == Ignores::kZero && positions->padding.Is(0)) ||
                      (ignores == Ignores::kOne && positions->padding.Is(1)) ||
                      (ignores == Ignores::kLow &&
                       (NeverLarger(context, *positions) || Masks(*positions, context, noun))) ||
                      (ignores == Ignores::kLowest && Masks(*positions, context, noun)) ||
                      (ignores == Ignores::kHigh && positions->padding.is_constant() &&
                       positions->padding.value >= -kOutOfReach);
    if (fine && !ignored && !IsOutOfReach(context, positions->padding)) {
      BlameReach(context, noun, positions->padding);
    }
    if (fine) continue;
    if (ignores == Ignores::kLow && IsIdOfPadding(context, *positions)) {
      context.Doubt(absl::StrCat(how, " ids, which padding with 0 need not change, of"));
      continue;
    }
    // An average counts its summands: no mask in front of it takes the padding out, unless it is
    // divided by another one.
    const bool whole = !positions->moved && !positions->repeated && !context.is_batch() &&
                       positions->extent.is_whole();
    if (averages && positions->padding.Is(0) && whole) {
      averaged = context.id();
      continue;
    }
    const bool may_be = ignores == Ignores::kNothing ? false
                        : ignores == Ignores::kZero  ? MayBeZeros(*positions)
                                                     : MayHideExtremes(context, *positions);
    context.Mix(how, may_be, Weakness(*positions));
  }
  AxisFlowValue flow =
      Without(context.input(0), *dims, ReduceSumOp::From(context.attributes()).keepdims);
  // Sums and norms of zeros alone are zeros.
  for (Positions& positions : flow.along) {
    if (ignores != Ignores::kZero) continue;
    for (const Positions& from : context.input(0).along) {
      const int64_t before = ReduceSumOp::From(context.attributes()).keepdims
                                 ? 0
                                 : absl::c_count_if(*dims, [&](int64_t d) { return d < from.dim; });
      const bool is_it =
          !absl::c_linear_search(*dims, from.dim) && from.dim - before == positions.dim;
      if (is_it && from.padding.Is(0)) positions.padding = PaddingValue::Constant(0);
    }
  }
  flow.averaged = averaged;
  context.Set(0, std::move(flow));
}

void ArgExtreme(AxisContext& context, bool largest) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", 0));
  if (const Positions* positions = context.input(0).At(dim)) {
    const bool fine = largest && (NeverLarger(context, *positions) ||
                                  Masks(*positions, context, "looks for the largest"));
    if (fine && !NeverLarger(context, *positions) && !IsOutOfReach(context, positions->padding)) {
      BlameReach(context, "looks for the largest", positions->padding);
    } else if (!fine && largest && IsIdOfPadding(context, *positions)) {
      context.Doubt("looks for the largest id, which padding with 0 is not, over");
    } else if (!fine) {
      context.Mix("looks for an extreme over", MayHideExtremes(context, *positions));
    }
  }
  context.Set(0,
              Without(context.input(0), {dim}, ReduceSumOp::From(context.attributes()).keepdims));
}

// A number this large is the end of the type, beyond all that is meant as a number: models write
// 3e38 for the largest float.
double EndOf(DType dtype) {
  constexpr double kNearly = 0.999, kEndOfFloats = 1e38;
  switch (dtype) {
    case DType::kFloat16:
      return kNearly * 65504;
    case DType::kInt32:
      return kNearly * std::numeric_limits<int32_t>::max();
    case DType::kUInt32:
      return kNearly * std::numeric_limits<uint32_t>::max();
    case DType::kInt64:
      return kNearly * static_cast<double>(std::numeric_limits<int64_t>::max());
    case DType::kUInt64:
      return kNearly * static_cast<double>(std::numeric_limits<uint64_t>::max());
    default:
      return kEndOfFloats;
  }
}

}  // namespace

bool IsOutOfReach(const AxisContext& context, const PaddingValue& padding) {
  const AxisFlowValue& numbers = context.input(0);
  if (!(padding.value < 0 ? numbers.may_be_low : numbers.may_be_high)) return true;
  if (padding.kind == PaddingValue::Kind::kLow) return padding.value <= kStrong;
  return std::abs(padding.value) >= EndOf(context.dtype(0));
}

void BlameReach(AxisContext& context, absl::string_view what, const PaddingValue& padding) {
  context.SeeLength(absl::StrCat(what, " of numbers that may lie beyond the ", padding.value,
                                 " of those that do not count, along"));
}

void ReduceSumAxis(AxisContext& context) { Reduce<Ignores::kZero>(context, "adds up over"); }
void ReduceNormAxis(AxisContext& context) { Reduce<Ignores::kZero>(context, "takes a norm over"); }
void ReduceProdAxis(AxisContext& context) { Reduce<Ignores::kOne>(context, "multiplies over"); }
// Zeros do not count in a sum, but in the number that it is divided by.
void ReduceMeanAxis(AxisContext& context) { Reduce<Ignores::kNothing>(context, kAverages); }
void ReduceMaxAxis(AxisContext& context) {
  Reduce<Ignores::kLow>(context, "takes the largest over", "takes the largest");
}
void ReduceMinAxis(AxisContext& context) {
  Reduce<Ignores::kHigh>(context, "takes the smallest over", "takes the smallest");
}
void ReduceLogSumExpAxis(AxisContext& context) {
  Reduce<Ignores::kLowest>(context, "adds up exponentials over", "adds up exponentials");
}

void ArgMaxAxis(AxisContext& context) {
  ArgExtreme(context, !ArgMaxOp::From(context.attributes()).select_last_index);
}
void ArgMinAxis(AxisContext& context) { ArgExtreme(context, false); }

void TopKAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", -1));
  AxisFlowValue flow = Without(context.input(0), {dim}, true);
  if (const Positions* positions = context.input(0).At(dim)) {
    const bool fine = TopKOp::From(context.attributes()).largest &&
                      Masks(*positions, context, "picks the largest");
    const auto k = context.integers(1);
    const bool all = k && k->size() == 1 && (*k)[0] == context.shape(0)[dim] && (*k)[0] > 1;
    const double depth = positions->padding.Depth().value_or(0);
    const bool hidden = std::abs(depth) >= -kWeakestMask;
    if ((fine || (all && hidden)) && !IsOutOfReach(context, positions->padding)) {
      BlameReach(context, all ? "sorts" : "picks the largest", positions->padding);
    } else if (all) {
      context.Doubt("sorts the positions of");  // Later nodes may put them back.
    } else if (fine) {
      context.Doubt("picks some positions, of which there may be fewer than it wants, of");
    } else {
      context.Mix("picks extremes over", MayHideExtremes(context, *positions));
    }
    flow.along.push_back({.dim = dim, .guarded = positions->guarded, .moved = true});
  }
  context.Set(0, flow);
  context.Set(1, std::move(flow));
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
    if (here && reverse && !positions.padding.Is(neutral)) {
      context.Mix("adds up from the end, where the padding is, over", MayBeZeros(positions));
    } else if (here && context.is_batch()) {
      // No mask hides the rows of other requests.
      context.Mix("adds up over", /*guarded=*/false);
    } else if (here && positions.repeated && !positions.padding.Is(neutral)) {
      // Each line begins with the sum of those before it, of their padding too: a capacity that is
      // counted so is reached by many rows alone.
      context.Mix("adds up, line after line, over", MayBeZeros(positions));
    } else if (here && positions.moved) {
      context.Doubt("adds up over");
    }
    positions.padding = PaddingValue::Unknown();
  }
  context.Set(0, std::move(flow));
}

namespace {

// A query all of whose keys are hidden spreads its attention over the padding as well. A table
// may hide them all; masks may leave nothing of the keys that a table, or another mask, leaves; of
// keys that other data hides no request says anything. Nothing is hidden more deeply than padding
// that holds minus infinity.
void LeaveKeys(const Positions& positions, AxisContext& context) {
  const AxisFlowValue& scores = context.input(0);
  if (scores.lines.hidden) {
    return context.Mix("normalises, where a table of the model hides every key of a query, over",
                       /*guarded=*/false);
  }
  const Structure structure = scores.structure;
  const CountingPlaces places = structure == Structure::kNone  ? CountingPlaces::kOne
                                : structure == Structure::kAny ? CountingPlaces::kAll
                                                               : CountingPlaces::kFirst;
  // A mask that lies apart hides padding deeper than the first key.
  const bool deepest = *positions.padding.Depth() == -std::numeric_limits<double>::infinity();
  if (scores.hidden_by_data && !deepest) {
    context.MayShow(
        "normalises, where data may hide every key of a query as it hides padding, over");
  }
  const bool joined = structure > Structure::kApart;
  if (joined && positions.guarded) context.MustCount(places);
  const bool data_hides = scores.hiders.size() == 1 && !context.IsMask(*scores.hiders.begin()) &&
                          context.IsFloatInput(*scores.hiders.begin());
  if (joined || data_hides || scores.hiders.size() > 1) context.MustLeave(places);
}

}  // namespace

// Softmax and its kin: masked positions get exactly 0.
void SoftmaxAxis(AxisContext& context) {
  const int64_t dim = context.Dim(context.attributes().Int("axis", -1));
  AxisFlowValue flow = context.input(0);
  for (Positions& positions : flow.along) {
    const bool here = positions.dim == dim;
    const bool masked = here && Masks(positions, context, "normalises");
    if (here && !masked) {
      context.Mix("normalises over", MayBeMasked(positions), Weakness(positions));
    }
    if (masked) LeaveKeys(positions, context);
    // A client's floats that lie as a mask does are numbers of its own as well.
    const bool own = absl::c_any_of(flow.hiders, [&](const std::string& hider) {
      return !context.IsMask(hider) && context.IsFloatInput(hider);
    });
    if (masked && own && !IsOutOfReach(context, positions.padding)) {
      context.MayShow(absl::StrCat("normalises numbers that may lie beyond the ",
                                   positions.padding.value, " of those that do not count, over"));
    }
    const bool zeros = masked && context.node().op == SoftmaxOp::kName;
    positions.padding = zeros ? PaddingValue::Constant(0) : PaddingValue::Unknown();
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops
