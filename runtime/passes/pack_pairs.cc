// Masks of attention that depend on query and key, packed: what depends on the key's token alone,
// and a table by the positions of both.
#include <optional>

#include "runtime/base/status_macros.h"
#include "runtime/passes/packer.h"
#include "runtime/passes/rewrite.h"

namespace reprise::pack {
namespace {

// Added to a score, so little leaves nothing of it.
constexpr double kLowestFill = -1e30;

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
  if (of_keys && PackedOf(operand) != kNone) return Pairs{.key = PackedOf(operand)};
  const bool square = operand.fixed() && rank >= 2 &&
                      operand.dims[rank - 1].kind == DimKind::kLength &&
                      operand.dims[rank - 2].kind == DimKind::kLength;
  if (!square || rank > result.form.rows) {
    return Refuse(site, "it is no sum of a value for each key and a table by position");
  }
  // What lies before the queries are heads, where the result has those.
  const int64_t heads = rank == 2 || result.form.rows == 3 ? 1 : operand.dims[rank - 3].size;
  const bool has_rows = rank == result.form.rows && !operand.dims[0].is_one();
  Pairs pairs;
  ASSIGN_OR_RETURN(pairs.table, SquareTable(site, operand, heads, has_rows));
  return pairs;
}

absl::Status Packer::PackPairs(const Site& site) {
  if (site.op() == "Where") return PackPairsChoice(site);
  if (site.op() != "Add" && site.op() != "And") {
    return Refuse(site, "it relates tokens to tokens in a way without a rule");
  }
  Pairs joint;
  for (const Operand& input : site.inputs) {
    ASSIGN_OR_RETURN(const Pairs more, PairsOf(site, input));
    RETURN_IF_ERROR(Join(site.op(), more.key, joint.key));
    RETURN_IF_ERROR(Join(site.op(), more.table, joint.table));
  }
  pairs_[site.outputs[0].a] = joint;
  return absl::OkStatus();
}

// What is seen keeps its numbers, the rest gets one that leaves nothing of a score. Where a token
// and a table hide the same it is twice as low, which shows to a query that sees no key at all
// alone.
absl::Status Packer::PackPairsChoice(const Site& site) {
  const Operand& condition = site.inputs[0];
  for (const size_t kept : {size_t{1}, size_t{2}}) {
    const std::optional<double> fill = KnownScalar(twins_.a, site.inputs[3 - kept].a);
    if (!fill.has_value() || !(*fill <= kLowestFill)) continue;
    ASSIGN_OR_RETURN(const Pairs seen, PairsOf(site, condition));
    const bool keep = kept == 1;
    if (!keep && seen.key != kNone && seen.table != kNone) continue;  // Either may show it.
    Pairs sum;
    for (ValueId Pairs::*part : {&Pairs::key, &Pairs::table}) {
      if (seen.*part == kNone) continue;
      ASSIGN_OR_RETURN(sum.*part, Hide(seen.*part, keep, *fill));
    }
    if (KnownScalar(twins_.a, site.inputs[kept].a) != 0.0) {
      ASSIGN_OR_RETURN(const Pairs numbers, PairsOf(site, site.inputs[kept]));
      RETURN_IF_ERROR(Join("Add", numbers.key, sum.key));
      RETURN_IF_ERROR(Join("Add", numbers.table, sum.table));
    }
    pairs_[site.outputs[0].a] = sum;
    return absl::OkStatus();
  }
  return Refuse(site, "it relates tokens to tokens in a way without a rule");
}

}  // namespace reprise::pack
