// Masks of attention that depend on query and key, packed: what depends on the key's token alone,
// and a table by the positions of both.
#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/base/status_macros.h"
#include "runtime/passes/packer.h"
#include "runtime/passes/rewrite.h"

namespace reprise::pack {
namespace {

// Added to a score, so little leaves nothing of it.
constexpr double kLowestFill = Range::kHides;
constexpr double kNothingBesideAFill = 1e20;

std::optional<Range> SumOf(const std::optional<Range>& a, const std::optional<Range>& b) {
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  const bool near = std::max(a->most, b->most) <= kNothingBesideAFill;
  return Range{a->least + b->least, a->most + b->most, a->clear && b->clear && near};
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
  return AddInferred(to_, "Where", {seen, keep ? zero : low, keep ? low : zero});
}

absl::StatusOr<Packer::Pairs> Packer::PairsOf(const Site& site, const Operand& operand) {
  const Operand& result = site.outputs[0];
  const size_t rank = operand.dims.size();
  if (operand.form.kind == Form::kPairs) return pairs_[operand.a];
  // The last dim is that of the keys.
  const bool of_keys = operand.tokens() && operand.form.rest == 0 && !operand.form.merged &&
                       operand.form.rows == result.form.rows;
  Pairs pairs = {.range = RangeOf(twins_.a, operand.a)};
  if (of_keys && PackedOf(operand) != kNone) {
    pairs.key = PackedOf(operand);
    return pairs;
  }
  const bool square = operand.fixed() && rank >= 2 &&
                      operand.dims[rank - 1].kind == DimKind::kLength &&
                      operand.dims[rank - 2].kind == DimKind::kLength;
  if (!square || rank > result.form.rows) {
    return Refuse(site, "it is no sum of a value for each key and a table by position");
  }
  // What lies before the queries are heads, where the result has those.
  const int64_t heads = rank == 2 || result.form.rows == 3 ? 1 : operand.dims[rank - 3].size;
  const bool has_rows = rank == result.form.rows && !operand.dims[0].is_one();
  ASSIGN_OR_RETURN(pairs.table, SquareTable(site, operand, heads, has_rows));
  return pairs;
}

absl::Status Packer::PackPairs(const Site& site) {
  if (site.op() == "Where") return PackPairsChoice(site);
  if (site.op() != "Add" && site.op() != "And") {
    return Refuse(site, "it relates tokens to tokens in a way without a rule");
  }
  const bool adds = site.op() == "Add";
  Pairs joint = {.range = adds ? Range{} : Range{0, 1}};
  for (const Operand& input : site.inputs) {
    ASSIGN_OR_RETURN(const Pairs more, PairsOf(site, input));
    // Numbers that are added in another order are rounded otherwise, which beside those that hide
    // is all that is left of a score.
    const bool both = more.key != kNone && more.table != kNone;
    const bool again =
        (more.key != kNone && joint.key != kNone) || (more.table != kNone && joint.table != kNone);
    joint.exact = joint.exact && more.exact && !(adds && (both || again));
    if (adds) joint.range = SumOf(joint.range, more.range);
    RETURN_IF_ERROR(Join(site.op(), more.key, joint.key));
    RETURN_IF_ERROR(Join(site.op(), more.table, joint.table));
  }
  pairs_[site.outputs[0].a] = joint;
  return absl::OkStatus();
}

// A sum of two that may each hide a key differs from a choice in what both hide, which is twice as
// low. That shows to a query that sees no key at all, unless the sum is taken to be no lower than
// what one of them puts there.
absl::Status Packer::JoinChoice(const Pairs& numbers, double fill, Pairs& hidden) {
  const bool same_bound = numbers.lowest == fill || std::isinf(numbers.lowest);
  hidden.exact = hidden.exact && numbers.exact && same_bound && numbers.range.has_value() &&
                 numbers.range->least >= fill && numbers.range->most <= kNothingBesideAFill;
  for (ValueId Pairs::*part : {&Pairs::key, &Pairs::table}) {
    const bool again = numbers.*part != kNone && hidden.*part != kNone;
    RETURN_IF_ERROR(Join("Add", numbers.*part, hidden.*part));
    if (!again || !hidden.exact) continue;
    const ValueId low = to_.AddConstant("", Tensor::FloatScalar(static_cast<float>(fill)));
    ASSIGN_OR_RETURN(hidden.*part, AddInferred(to_, "Max", {hidden.*part, low}));
  }
  return absl::OkStatus();
}

// What is seen keeps its numbers, the rest gets one that leaves nothing of a score.
absl::Status Packer::PackPairsChoice(const Site& site) {
  const Operand& condition = site.inputs[0];
  for (const size_t kept : {size_t{1}, size_t{2}}) {
    const std::optional<double> fill = KnownScalar(twins_.a, site.inputs[3 - kept].a);
    if (!fill.has_value() || !(*fill <= kLowestFill)) continue;
    ASSIGN_OR_RETURN(const Pairs seen, PairsOf(site, condition));
    const bool keep = kept == 1;
    if (!keep && seen.key != kNone && seen.table != kNone) continue;  // Either may show it.
    Pairs sum = {.lowest = *fill, .exact = seen.exact};
    for (ValueId Pairs::*part : {&Pairs::key, &Pairs::table}) {
      if (seen.*part == kNone) continue;
      ASSIGN_OR_RETURN(sum.*part, Hide(seen.*part, keep, *fill));
    }
    Range range = {.least = *fill};
    if (KnownScalar(twins_.a, site.inputs[kept].a) != 0.0) {
      ASSIGN_OR_RETURN(const Pairs numbers, PairsOf(site, site.inputs[kept]));
      RETURN_IF_ERROR(JoinChoice(numbers, *fill, sum));
      if (sum.exact) {
        range.most = std::max(range.most, numbers.range->most);
        range.clear = numbers.range->clear;
      }
    }
    if (sum.exact) sum.range = range;
    pairs_[site.outputs[0].a] = sum;
    return absl::OkStatus();
  }
  return Refuse(site, "it relates tokens to tokens in a way without a rule");
}

}  // namespace reprise::pack
