// Checks of the operands of ops over quantised numbers. Threads: any.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

inline constexpr uint32_t kByteTypes = TypeBit(DType::kInt8) | TypeBit(DType::kUInt8);
inline constexpr uint32_t kFloatType = TypeBit(DType::kFloat32);

inline absl::Status OperandMismatch(size_t input, const SizeList& shape,
                                    absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("input ", input, " has the shape ",
                                                 ShapeToString(shape), ", expected ", expected));
}

// Checks a scale or zero point: one element of any rank, or exactly `many`. It may be left out.
inline absl::Status CheckOneOr(const InferContext& context, size_t input, const SizeList& many) {
  if (!context.has_input(input)) return absl::OkStatus();
  const SizeList& shape = context.shape(input);
  if (NumElements(shape) == 1 || shape == many) return absl::OkStatus();
  return OperandMismatch(input, shape, absl::StrCat("one element or ", ShapeToString(many)));
}

inline absl::Status CheckOne(const InferContext& context, size_t input) {
  if (!context.has_input(input) || NumElements(context.shape(input)) == 1) {
    return absl::OkStatus();
  }
  return OperandMismatch(input, context.shape(input), "one element");
}

// Checks the scale of a result, input `scale`, and the zero point after it: there are both or none.
// Returns the dtype of the result: the zero point's, else float32.
inline absl::StatusOr<DType> ResultType(const InferContext& context, size_t scale) {
  const size_t zero = scale + 1;
  if (context.has_input(scale) != context.has_input(zero)) {
    return absl::InvalidArgumentError("the result has only one of scale and zero point");
  }
  if (!context.has_input(scale)) return DType::kFloat32;
  RETURN_IF_ERROR(CheckType(context, scale, kFloatType));
  RETURN_IF_ERROR(CheckType(context, zero, kByteTypes));
  for (const size_t i : {scale, zero}) RETURN_IF_ERROR(CheckOne(context, i));
  return context.dtype(zero);
}

// Checks a bias or residual: floats of this shape. It may be left out.
inline absl::Status CheckExactly(const InferContext& context, size_t input,
                                 const SizeList& expected) {
  if (!context.has_input(input)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckType(context, input, kFloatType));
  if (context.shape(input) == expected) return absl::OkStatus();
  return OperandMismatch(input, context.shape(input), ShapeToString(expected));
}

}  // namespace reprise::ops
