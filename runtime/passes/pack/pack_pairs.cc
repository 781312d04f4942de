// Masks of attention that depend on query and key, packed as two parts: one by the key's token
// alone, and a table by the positions of both.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/packer.h"

namespace reprise::pack {
namespace {

// Added to a score, so little leaves nothing of it.
constexpr double kLowestFill = -1e30;
constexpr double kNothingBesideAFill = 1e20;

std::optional<Range> SumOf(const std::optional<Range>& a, const std::optional<Range>& b) {
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  return Range{a->least + b->least, a->most + b->most};
}

}  // namespace

absl::Status Packer::Join(absl::string_view op, ValueId more, ValueId& total) {
  if (more == kNone || total == kNone) {
    total = total == kNone ? more : total;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(total, AddInferred(to_, op, {total, more}));
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Packer::Hide(ValueId seen, bool keep, double fill) {
  const ValueId zero = to_.AddConstant("", Tensor::FloatScalar(0));
  const ValueId low = to_.AddConstant("", Tensor::FloatScalar(static_cast<float>(fill)));
  return AddInferred(to_, WhereOp::kName, {seen, keep ? zero : low, keep ? low : zero});
}

absl::StatusOr<Packer::Pairs> Packer::PairsOf(const Site& site, const Operand& operand) {
  const Operand& result = site.outputs[0];
  const size_t rank = operand.dims.size();
  if (operand.form.kind == Form::kPairs) return pairs_[operand.a];
  // The last dim is the keys' one.
  const bool of_keys = operand.tokens() && operand.form.rest == 0 && !operand.form.merged &&
                       operand.form.rows == result.form.rows;
  Pairs pairs = {.range = RangeOf(twins_.a, operand.a)};
  if (of_keys && PackedOf(operand) != kNone) {
    pairs.key = PackedOf(operand);
    return pairs;
  }
  const bool of_queries = operand.tokens() && operand.form.rest == 1 && !operand.form.merged &&
                          operand.dims.back().is_one() &&
                          operand.dims[rank - 2].kind == DimKind::kLength &&
                          operand.form.rows == result.form.rows;
  if (of_queries && PackedOf(operand) != kNone) {
    ASSIGN_OR_RETURN(pairs.query, Reshape(PackedOf(operand), {}));
    return pairs;
  }
  const bool square = operand.fixed() && rank >= 2 &&
                      operand.dims[rank - 1].kind == DimKind::kLength &&
                      operand.dims[rank - 2].kind == DimKind::kLength;
  if (!square || rank > result.form.rows) {
    return Refuse(site, "it is not a sum of values for each key and query and a table by position");
  }
  // Dims before the queries are heads, where the result has heads.
  const int64_t heads = rank == 2 || result.form.rows == 3 ? 1 : operand.dims[rank - 3].size;
  const bool has_rows = rank == result.form.rows && !operand.dims[0].is_one();
  ASSIGN_OR_RETURN(pairs.table, SquareTable(site, operand, heads, has_rows));
  return pairs;
}

absl::Status Packer::PackPairs(const Site& site) {
  if (site.op() == WhereOp::kName) return PackPairsChoice(site);
  if (site.op() == CastOp::kName) return PackPairsCast(site);
  const bool adds = site.op() == AddOp::kName, multiplies = site.op() == MulOp::kName;
  if (!adds && !multiplies && site.op() != AndOp::kName) {
    return Refuse(site, "it relates tokens to tokens in a way without a rule");
  }
  Pairs joint = {.product = multiplies, .range = adds ? Range{} : Range{0, 1}};
  for (const Operand& input : site.inputs) {
    ASSIGN_OR_RETURN(const Pairs more, PairsOf(site, input));
    if (input.form.kind == Form::kPairs && more.product != multiplies) {
      return Refuse(site, "it joins sums and products of masks");
    }
    // Numbers that are added in another order are rounded differently; of a score plus a hiding
    // number, only that rounding is left.
    int given = 0, again = 0;
    for (ValueId Pairs::*part : kParts) {
      given += more.*part != kNone;
      again += more.*part != kNone && joint.*part != kNone;
      RETURN_IF_ERROR(Join(site.op(), more.*part, joint.*part));
    }
    joint.exact = joint.exact && more.exact && !(adds && (given > 1 || again > 0));
    if (adds) joint.range = SumOf(joint.range, more.range);
  }
  pairs_[site.outputs[0].a] = joint;
  return absl::OkStatus();
}

// Packs a Cast to bool: a product is true where no factor is 0.
absl::Status Packer::PackPairsCast(const Site& site) {
  const Pairs& from = pairs_[site.inputs[0].a];
  const bool to_bool = twins_.a.value(site.outputs[0].a).dtype == DType::kBool;
  if (site.inputs[0].form.kind != Form::kPairs || !from.product || !to_bool) {
    return Refuse(site, "it relates tokens to tokens in a way without a rule");
  }
  Pairs joint = {.range = Range{0, 1}};
  for (ValueId Pairs::*part : kParts) {
    if (from.*part == kNone) continue;
    ASSIGN_OR_RETURN(joint.*part, AddCast(to_, from.*part, DType::kBool));
  }
  pairs_[site.outputs[0].a] = joint;
  return absl::OkStatus();
}

// Joins the choices. A sum of two masks that may each hide a key differs from a choice where both
// hide it: there the sum is twice as low. A query that sees no key at all shows this, unless the
// sum is taken to be no lower than the number that one of them puts there.
absl::Status Packer::JoinChoice(const Pairs& numbers, double fill, Pairs& hidden) {
  const bool same_bound = numbers.lowest == fill || std::isinf(numbers.lowest);
  hidden.exact = hidden.exact && numbers.exact && same_bound && numbers.range.has_value() &&
                 numbers.range->least >= fill && numbers.range->most <= kNothingBesideAFill;
  for (ValueId Pairs::*part : kParts) {
    const bool again = numbers.*part != kNone && hidden.*part != kNone;
    RETURN_IF_ERROR(Join(AddOp::kName, numbers.*part, hidden.*part));
    if (!again || !hidden.exact) continue;
    const ValueId low = to_.AddConstant("", Tensor::FloatScalar(static_cast<float>(fill)));
    ASSIGN_OR_RETURN(hidden.*part, AddInferred(to_, MaxOp::kName, {hidden.*part, low}));
  }
  return absl::OkStatus();
}

// Pairs that are seen keep their numbers; the others get one so low that no score survives it.
absl::Status Packer::PackPairsChoice(const Site& site) {
  const Operand& condition = site.inputs[0];
  for (const size_t kept : {size_t{1}, size_t{2}}) {
    const std::optional<double> fill = KnownScalar(twins_.a, site.inputs[3 - kept].a);
    if (!fill.has_value() || !(*fill <= kLowestFill)) continue;
    ASSIGN_OR_RETURN(const Pairs seen, PairsOf(site, condition));
    const bool keep = kept == 1;
    const auto given =
        absl::c_count_if(kParts, [&](ValueId Pairs::*part) { return seen.*part != kNone; });
    if (seen.product || (!keep && given > 1)) continue;  // Any of them may show it.
    Pairs sum = {.lowest = *fill, .exact = seen.exact};
    for (ValueId Pairs::*part : kParts) {
      if (seen.*part == kNone) continue;
      ASSIGN_OR_RETURN(sum.*part, Hide(seen.*part, keep, *fill));
    }
    Range range = {.least = *fill};
    if (KnownScalar(twins_.a, site.inputs[kept].a) != 0.0) {
      ASSIGN_OR_RETURN(const Pairs numbers, PairsOf(site, site.inputs[kept]));
      RETURN_IF_ERROR(JoinChoice(numbers, *fill, sum));
      if (sum.exact) range.most = std::max(range.most, numbers.range->most);
    }
    if (sum.exact) sum.range = range;
    pairs_[site.outputs[0].a] = sum;
    return absl::OkStatus();
  }
  return Refuse(site, "it relates tokens to tokens in a way without a rule");
}

}  // namespace reprise::pack
