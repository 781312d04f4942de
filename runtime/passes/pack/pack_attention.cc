// How attention is packed: the keys and values it attends to, its masks, its tables by distance.
#include <cmath>
#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/packer.h"

namespace reprise::pack {

absl::Status Packer::AttentionMask(const Site& site, int64_t heads, Pairs& mask) {
  const Operand& operand = site.inputs[3];
  const size_t rank = operand.dims.size();
  const auto kind = [&](size_t from_right) {
    return from_right > rank ? DimKind{DimKind::kSize, 1} : operand.dims[rank - from_right];
  };
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (operand.form.kind == Form::kPairs && operand.form.rows == 4) {
    mask = pairs_[operand.a];
    if (mask.product) return Refuse(site, "its mask is a product");
    for (ValueId Pairs::*part : kParts) {
      const bool key_alone = part == &Pairs::key && mask.query == kNone;
      if (mask.*part == kNone || to_.value(mask.*part).dtype != DType::kBool || key_alone) continue;
      ASSIGN_OR_RETURN(mask.*part, Hide(mask.*part, /*keep=*/true, kNever));
    }
    return absl::OkStatus();
  }
  if (operand.tokens() && operand.form.rest == 0 && operand.form.rows == 4) {
    mask.key = PackedOf(operand);
    mask.range = RangeOf(twins_.a, operand.a);
    return absl::OkStatus();
  }
  mask.range = Range{};  // No request has a say.
  const bool by_key = operand.fixed() && rank >= 1 && kind(1).kind == DimKind::kLength;
  if (by_key && kind(2).is_one() && kind(3).is_one() && kind(4).is_one()) {
    ASSIGN_OR_RETURN(mask.key, LookUp(site, operand, 0));
    if (to_.value(mask.key).shape->empty()) mask.key = kNone;
    if (mask.key != kNone) return absl::OkStatus();
    return Refuse(site, "its mask is the same for every key");
  }
  const bool per_head =
      kind(3).is_one() || (kind(3).kind == DimKind::kSize && kind(3).size == heads);
  if (!by_key || kind(2).kind != DimKind::kLength || !per_head || rank > 4 || !kind(4).is_one()) {
    return Refuse(site, "its mask is neither one value a key nor a table by position");
  }
  ASSIGN_OR_RETURN(ValueId table, Table(site, operand));
  ASSIGN_OR_RETURN(table,
                   AddReshape(to_, table, {kind(3).size, twins_.at_a.length, twins_.at_a.length}));
  if (to_.value(table).dtype == DType::kBool) {
    ASSIGN_OR_RETURN(table, Hide(table, /*keep=*/true, kNever));
  }
  mask.table = table;
  return absl::OkStatus();
}

absl::Status Packer::AddAttended(const Site& site, std::vector<ValueId>& inputs) {
  for (size_t i = 0; i < 3; ++i) {
    if (!site.has(i)) {
      inputs.push_back(kNone);
      continue;
    }
    const Operand& operand = site.inputs[i];
    if (!operand.tokens() || operand.form.rest != 1 || PackedOf(operand) == kNone) {
      return Refuse(site, "queries, keys and values are not one a token");
    }
    inputs.push_back(PackedOf(operand));
  }
  return absl::OkStatus();
}

absl::Status Packer::TakeMask(const Site& site, const Pairs& mask, Attributes& attributes) const {
  if (!mask.exact) {
    return Refuse(site, "it joins masks that might hide a key more deeply than the model does");
  }
  int parts = 0;
  for (ValueId Pairs::*part : kParts) parts += mask.*part != kNone;
  if (parts > 1 && std::isfinite(mask.lowest)) {
    attributes.Set("lowest", static_cast<float>(mask.lowest));
  }
  return absl::OkStatus();
}

absl::Status Packer::PackAttention(const Site& site) {
  if (site.has(AttentionOp::kSinks) || AttentionOp::From(site.attributes()).softcap != 0) {
    return Refuse(site, "it has sinks, or its scores are capped");
  }
  const int64_t heads = AttentionOp::From(site.attributes()).num_heads;
  if (AttentionOp::From(site.attributes()).head_size_v != 0 || !site.outputs[0].tokens()) {
    return Refuse(site, "queries, keys and values are not one a token");
  }
  std::vector<ValueId> inputs;
  RETURN_IF_ERROR(AddAttended(site, inputs));
  Pairs mask;
  if (site.has(3)) RETURN_IF_ERROR(AttentionMask(site, heads, mask));
  if (mask.query != kNone) return EmitRelative(site, std::move(inputs), mask, {});
  inputs.insert(inputs.end(), {mask.key, mask.table, segments_});
  Attributes attributes = site.attributes();
  attributes.Set("longest", options_.longest);
  RETURN_IF_ERROR(TakeMask(site, mask, attributes));
  return Emit(site, SegmentAttentionOp::kName, std::move(inputs), std::move(attributes));
}

absl::Status Packer::EmitRelative(const Site& site, std::vector<ValueId> inputs, const Pairs& mask,
                                  const std::vector<ValueId>& tables) {
  if (mask.table != kNone) return Refuse(site, "its mask is a table by position with other terms");
  if (AttentionOp::From(site.attributes()).packed_qkv) {
    const ValueId all = inputs[0];
    const int64_t width = to_.value(all).shape->back() / 3;
    for (int64_t i = 0; i < 3; ++i) {
      ASSIGN_OR_RETURN(const ValueId begin, Ints({i * width}));
      ASSIGN_OR_RETURN(const ValueId end, Ints({(i + 1) * width}));
      ASSIGN_OR_RETURN(const ValueId axis, Ints({1}));
      ASSIGN_OR_RETURN(inputs[i], AddInferred(to_, SliceOp::kName, {all, begin, end, axis}));
    }
  }
  for (ValueId part : {mask.key, mask.query}) {
    const bool bools = part != kNone && to_.value(part).dtype == DType::kBool;
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    if (bools) {
      ASSIGN_OR_RETURN(part, Hide(part, /*keep=*/true, kNever));
    }
    inputs.push_back(part);
  }
  inputs.insert(inputs.end(), tables.begin(), tables.end());
  inputs.resize(RelativeAttentionOp::kSegments, kNone);
  inputs.push_back(segments_);
  Attributes attributes;
  attributes.Set("num_heads", AttentionOp::From(site.attributes()).num_heads);
  attributes.Set("scale", site.attributes().Float("scale", 1));
  attributes.Set("nan_to_zero", site.attributes().Int("nan_to_zero", 0));
  attributes.Set("longest", options_.longest);
  RETURN_IF_ERROR(TakeMask(site, mask, attributes));
  return Emit(site, RelativeAttentionOp::kName, std::move(inputs), std::move(attributes));
}

absl::Status Packer::PackRelative(const Site& site) {
  using In = RelativeAttentionOp;
  if (!site.outputs[0].tokens()) return Refuse(site, "its result is not one row a token");
  std::vector<ValueId> inputs, tables;
  RETURN_IF_ERROR(AddAttended(site, inputs));
  Pairs mask;
  if (site.has(In::kMask)) {
    RETURN_IF_ERROR(AttentionMask(site, AttentionOp::From(site.attributes()).num_heads, mask));
  }
  for (const size_t i : {In::kQueryTable, In::kKeyTable}) {
    if (!site.has(i)) {
      tables.insert(tables.end(), {kNone, kNone});
      continue;
    }
    ASSIGN_OR_RETURN(tables.emplace_back(), Whole(site, site.inputs[i]));
    // Shorter sequences have the middle of the distances of longer ones.
    const Tensor* far = twins_.a.ConstantOf(site.inputs[i + 1].a);
    const Tensor* near = twins_.b.ConstantOf(site.inputs[i + 1].b);
    if (far == nullptr || near == nullptr || far->num_elements() < near->num_elements()) {
      return Refuse(site, "its places are not known");
    }
    const auto fars = far->span<int64_t>(), nears = near->span<int64_t>();
    const size_t more = (fars.size() - nears.size()) / 2;
    if (fars.subspan(more, nears.size()) != nears) {
      return Refuse(site, "its places depend on the sizes");
    }
    tables.push_back(to_.AddConstant("", *far));
  }
  return EmitRelative(site, std::move(inputs), mask, tables);
}

}  // namespace reprise::pack
