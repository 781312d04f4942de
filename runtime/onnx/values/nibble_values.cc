#include "runtime/onnx/values/nibble_values.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/steps.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/quantized/quantize_op.h"

namespace reprise {
namespace {

constexpr int64_t kNibbles = 16;  // all numbers of four bits
constexpr int64_t kLowest = -8;   // the least number with a sign

bool IsNibble(int64_t onnx_type) {
  return onnx_type == ops::kOnnxInt4 || onnx_type == ops::kOnnxUInt4;
}

// Returns the dtype that holds them in the graph.
DType StoredAs(int64_t onnx_type) {
  return onnx_type == ops::kOnnxInt4 ? DType::kInt8 : DType::kUInt8;
}

Tensor Stored(int64_t onnx_type, int64_t value) {
  if (onnx_type == ops::kOnnxInt4) {
    return Tensor::FromVector<int8_t>(DType::kInt8, {}, {static_cast<int8_t>(value)});
  }
  return Tensor::FromVector<uint8_t>(DType::kUInt8, {}, {static_cast<uint8_t>(value)});
}

}  // namespace

void NibbleValues::Mark(ValueId value, int64_t onnx_type) {
  if (value != kNone && IsNibble(onnx_type)) types_[value] = onnx_type;
}

int64_t NibbleValues::TypeOf(ValueId value) const {
  const auto it = types_.find(value);
  return it == types_.end() ? 0 : it->second;
}

absl::StatusOr<bool> NibbleValues::Convert(NodeDraft& draft, int64_t& type) {
  type = 0;
  const auto of_input = [&](size_t i) {
    return i < draft.inputs.size() ? TypeOf(draft.inputs[i]) : 0;
  };
  if (draft.op == CastOp::kName || draft.op == CastLikeOp::kName) {
    const int64_t to = draft.op == CastLikeOp::kName ? of_input(1) : draft.attributes.Int("to", 0);
    if (!IsNibble(to)) return false;
    type = to;
    RETURN_IF_ERROR(Cast(draft, to));
    return true;
  }
  if (draft.op == QuantizeLinearOp::kName && of_input(0) == 0 && of_input(1) == 0) {
    const bool has_point = draft.inputs.size() > 2 && draft.inputs[2] != kNone;
    const int64_t wanted = has_point ? of_input(2) : draft.attributes.Int("output_dtype", 0);
    if (!IsNibble(wanted)) return false;
    type = wanted;
    RETURN_IF_ERROR(Quantize(draft, wanted));
    return true;
  }
  if (draft.op == DequantizeLinearOp::kName || draft.op == "com.microsoft.GatherBlockQuantized") {
    return false;
  }
  const OpFacts& facts = FactsOf(draft.op);
  if (facts.sizes == Sizes::kOfShape) return false;
  const OpRow* row = FindOp(draft.op);
  const int64_t first = of_input(0);
  if (row != nullptr && !row->Has(kDataDependent) && facts.OnlyMoves() && first != 0) {
    const bool alike = facts.elements != Elements::kJoined ||
                       absl::c_all_of(draft.inputs, [&](ValueId i) { return TypeOf(i) == first; });
    if (!alike) return absl::InvalidArgumentError("its inputs are of several dtypes");
    type = first;
    return false;
  }
  for (size_t i = 0; i < draft.inputs.size(); ++i) {
    if (of_input(i) == 0) continue;
    return absl::UnimplementedError(absl::StrCat(
        "input ", i,
        " has numbers of four bits: only conversions and ops that move elements are supported"));
  }
  return false;
}

// Floats are rounded, halves away from 0; of integers the low bits stay.
absl::Status NibbleValues::Cast(NodeDraft& draft, int64_t to) {
  Steps steps(draft, graph_);
  RETURN_IF_ERROR(steps.Require({0}));
  ValueId value = steps.input(0);
  if (IsFloating(draft.types->Of(graph_)[value])) {
    const ValueId floats = steps.ToFloat(value);
    const ValueId size =
        steps.Add(AddOp::kName, {steps.Add(AbsOp::kName, {floats}), steps.Float(0.5)});
    const ValueId whole = steps.Add(FloorOp::kName, {size});
    value = steps.Add(MulOp::kName, {steps.Add(SignOp::kName, {floats}), whole});
    value = steps.Cast(value, DType::kInt32);
  }
  value = steps.Cast(value, DType::kInt64);
  if (to == ops::kOnnxInt4) value = steps.Add(SubOp::kName, {value, steps.Int64(kLowest)});
  value = steps.Add(ModOp::kName, {value, steps.Int64(kNibbles)});
  if (to == ops::kOnnxInt4) value = steps.Add(AddOp::kName, {value, steps.Int64(kLowest)});
  return steps.Become(CastOp::kName, {value}, {{"to", ops::OnnxNumber(StoredAs(to))}});
}

// Quantises: a number that saturates at eight bits saturates at four as well.
absl::Status NibbleValues::Quantize(NodeDraft& draft, int64_t type) {
  Steps steps(draft, graph_);
  RETURN_IF_ERROR(steps.Require({0, 1}));
  Attributes attributes = draft.attributes;
  attributes.Erase("output_dtype");
  if (steps.input(2) == kNone) {
    attributes.Set("output_dtype", ops::OnnxNumber(StoredAs(type)));
  }
  const ValueId bytes = steps.Add(QuantizeLinearOp::kName, draft.inputs, std::move(attributes));
  const int64_t lowest = type == ops::kOnnxInt4 ? kLowest : 0;
  return steps.Become(ClipOp::kName,
                      {bytes, steps.Constant("lowest", Stored(type, lowest)),
                       steps.Constant("highest", Stored(type, lowest + kNibbles - 1))});
}

}  // namespace reprise
