// Packing of quantised values: by scales that the model has, or by the range of each request.
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/packer.h"

namespace reprise::pack {

// Packs one scale for all, or one for each column of a token's values.
absl::Status Packer::PackQuantisation(const Site& site) {
  const Operand& data = site.inputs[0];
  const Operand& scale = site.inputs[1];
  if (!scale.fixed() || data.fixed() || PackedOf(data) == kNone ||
      QuantizeLinearOp::From(site.attributes()).block_size != 0) {
    return Refuse(site, "its scale is neither one nor one a column");
  }
  std::vector<ValueId> inputs = {PackedOf(data)};
  for (size_t i = 1; i < site.inputs.size(); ++i) {
    ASSIGN_OR_RETURN(inputs.emplace_back(), Whole(site, site.inputs[i]));
  }
  Attributes attributes = site.attributes();
  const int64_t axis = FromRight(QuantizeLinearOp::From(attributes).axis, data.rank());
  if (IsInside(axis, data.form.rest)) {
    attributes.Set("axis", axis);
  } else if (NumElements(*twins_.a.value(scale.a).shape) == 1) {
    attributes.Set("axis", int64_t{0});
  } else {
    return Refuse(site, "its scales lie along an axis that tokens do not keep");
  }
  return Emit(site, site.op(), std::move(inputs), std::move(attributes));
}

absl::Status Packer::PackByteTable(const Site& site) {
  const Operand& data = site.inputs[0];
  if (!site.inputs[1].fixed() || PackedOf(data) == kNone) {
    return Refuse(site, "its table is computed from the request");
  }
  ASSIGN_OR_RETURN(const ValueId table, Whole(site, site.inputs[1]));
  return Emit(site, site.op(), {PackedOf(data), table}, site.attributes());
}

// Packs where all tokens of a request, or the one value of each of its rows, share a range.
absl::Status Packer::PackRequestScale(const Site& site) {
  const Operand& data = site.inputs[0];
  const bool varies = data.tokens() || data.form.kind == Form::kSegments;
  if (!varies || PackedOf(data) == kNone || data.form.rest < 1) {
    return Refuse(site, "it quantises neither tokens nor rows by the range of their request");
  }
  const ValueId bounds = data.tokens() ? request_tokens_ : request_rows_;
  const NodeId packed =
      to_.AddNode(site.op(), {PackedOf(data), bounds}, {}, site.outputs.size(), site.a->name);
  RETURN_IF_ERROR(InferNode(to_, packed));
  for (size_t i = 0; i < site.outputs.size(); ++i) {
    const Operand& output = site.outputs[i];
    if (!output.given()) continue;
    if (output.form.kind != data.form.kind || output.form.rest != data.form.rest ||
        output.form.rows != data.form.rows) {
      return Refuse(site, "a result has no packed form");
    }
    Bind(output, to_.node(packed).outputs[i]);
  }
  return absl::OkStatus();
}

}  // namespace reprise::pack
