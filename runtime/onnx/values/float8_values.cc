#include "runtime/onnx/values/float8_values.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/quantized/float8.h"
#include "runtime/ops/quantized/float8_op.h"
#include "runtime/ops/quantized/quantize_op.h"

namespace reprise {
namespace {

using ops::IsFloat8;

Attributes WithForm(const Attributes& from, int64_t form) {
  Attributes attributes = {{"form", form}};
  for (const absl::string_view name : {"axis", "block_size", "saturate"}) {
    if (const int64_t* value = from.Get<int64_t>(name)) attributes.Set(name, *value);
  }
  return attributes;
}

}  // namespace

void Float8Values::Mark(ValueId value, int64_t onnx_type) {
  if (value != kNone && IsFloat8(onnx_type)) forms_[value] = onnx_type;
}

int64_t Float8Values::FormOf(ValueId value) const {
  const auto it = forms_.find(value);
  return it == forms_.end() ? 0 : it->second;
}

absl::Status Float8Values::Refuse(const std::vector<ValueId>& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t form = FormOf(inputs[i]);
    if (form == 0) continue;
    return absl::UnimplementedError(
        absl::StrCat("input ", i, " is ", ops::Float8Name(form),
                     ": only conversions and ops that move elements are supported"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Float8Values::Convert(const onnx::NodeProto& proto, NodeDraft& draft,
                                           int64_t& form) {
  form = 0;
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    if (!attribute.has_t() || !IsFloat8(attribute.t().data_type())) continue;
    return absl::UnimplementedError(absl::StrCat("attribute '", attribute.name(), "' is ",
                                                 ops::Float8Name(attribute.t().data_type())));
  }
  const auto input = [&](size_t i) { return i < draft.inputs.size() ? draft.inputs[i] : kNone; };
  const int64_t first = FormOf(input(0));
  if (draft.op == CastOp::kName || draft.op == CastLikeOp::kName) {
    const int64_t to =
        draft.op == CastLikeOp::kName ? FormOf(input(1)) : draft.attributes.Int("to", 0);
    if (first == 0 && !IsFloat8(to)) return false;
    if (IsFloat8(to)) form = to;
    RETURN_IF_ERROR(Cast(draft, first, to));
    return true;
  }
  if (draft.op == QuantizeLinearOp::kName) {
    const int64_t wanted =
        input(2) != kNone ? FormOf(input(2)) : draft.attributes.Int("output_dtype", 0);
    if (!IsFloat8(wanted)) return false;
    form = wanted;
    RETURN_IF_ERROR(Quantize(draft, wanted));
    return true;
  }
  if (draft.op == DequantizeLinearOp::kName && first != 0) {
    RETURN_IF_ERROR(Dequantize(draft));
    return true;
  }
  const OpFacts& facts = FactsOf(draft.op);
  if (facts.sizes == Sizes::kOfShape) return false;
  const OpRow* row = FindOp(draft.op);
  const bool moves = row != nullptr && !row->Has(kDataDependent) && facts.OnlyMoves();
  if (moves && first != 0) {
    const bool alike =
        facts.elements != Elements::kJoined ||
        absl::c_all_of(draft.inputs, [&](ValueId one) { return FormOf(one) == first; });
    if (!alike) return absl::InvalidArgumentError("its inputs are of several dtypes");
    form = first;
    return false;
  }
  RETURN_IF_ERROR(Refuse(draft.inputs));
  return false;
}

// `from`, `to`: dtypes of ONNX, 0 where they are none of float8.
absl::Status Float8Values::Cast(NodeDraft& draft, int64_t from, int64_t to) {
  Steps steps(draft, graph_);
  RETURN_IF_ERROR(steps.Require({0}));
  ValueId value = steps.input(0);
  const Attributes attributes = draft.attributes;
  if (from != 0) value = steps.Add(FromFloat8Op::kName, {value}, {{"form", from}});
  if (!IsFloat8(to)) {
    if (draft.op == CastLikeOp::kName)
      return steps.Become(CastLikeOp::kName, {value, steps.input(1)});
    return steps.Become(CastOp::kName, {value}, attributes);
  }
  if (from == 0) value = steps.ToFloat(value);
  return steps.Become(ToFloat8Op::kName, {value}, WithForm(attributes, to));
}

// Checks that its points say of which form it is, and are zero.
absl::Status Float8Values::CheckZeroPoint(ValueId point, int64_t form) const {
  if (point == kNone) return absl::OkStatus();
  if (FormOf(point) != form) {
    return absl::InvalidArgumentError(
        absl::StrCat("the zero point is not ", ops::Float8Name(form), ", the type of its operand"));
  }
  const Tensor* known = graph_.ConstantOf(point);
  const auto is_zero = [&](int64_t bits) {
    return ops::FromFloat8(static_cast<ops::Float8>(form), static_cast<uint8_t>(bits)) == 0;
  };
  if (known == nullptr || !absl::c_all_of(*known->ToInt64s(), is_zero)) {
    return absl::UnimplementedError("a zero point of float8 that is not known to be 0");
  }
  return absl::OkStatus();
}

absl::Status Float8Values::Dequantize(NodeDraft& draft) {
  Steps steps(draft, graph_);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  const int64_t form = FormOf(steps.input(0));
  RETURN_IF_ERROR(CheckZeroPoint(steps.input(2), form));
  const ValueId scale = steps.input(1);
  const ValueId floats =
      steps.Add(DequantizeFloat8Op::kName, {steps.input(0), steps.ToFloat(scale)},
                WithForm(draft.attributes, form));
  const int64_t to = draft.attributes.Int("output_dtype", 0);
  if (to != 0) return steps.Become(CastOp::kName, {floats}, {{"to", to}});
  return steps.Become(CastLikeOp::kName, {floats, scale});
}

absl::Status Float8Values::Quantize(NodeDraft& draft, int64_t form) {
  Steps steps(draft, graph_);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  RETURN_IF_ERROR(CheckZeroPoint(steps.input(2), form));
  return steps.Become(QuantizeFloat8Op::kName,
                      {steps.ToFloat(steps.input(0)), steps.ToFloat(steps.input(1))},
                      WithForm(draft.attributes, form));
}

}  // namespace reprise
