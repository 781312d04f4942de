// Shape rules shared by families, and the checks they are made of.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/ops/kit/op.h"

namespace reprise::ops {

// Function types, so that a family's header lists its functions in one declaration.
using Rule = absl::Status(InferContext&);
using Kernel = absl::Status(const KernelContext&);

// Sets of dtypes, one bit each.
constexpr uint32_t TypeBit(DType dtype) { return 1u << static_cast<uint32_t>(dtype); }
inline constexpr uint32_t kFloats = TypeBit(DType::kFloat32) | TypeBit(DType::kFloat64) |
                                    TypeBit(DType::kFloat16) | TypeBit(DType::kBFloat16);
inline constexpr uint32_t kSignedInts = TypeBit(DType::kInt8) | TypeBit(DType::kInt16) |
                                        TypeBit(DType::kInt32) | TypeBit(DType::kInt64);
inline constexpr uint32_t kInts = kSignedInts | TypeBit(DType::kUInt8) | TypeBit(DType::kUInt16) |
                                  TypeBit(DType::kUInt32) | TypeBit(DType::kUInt64);
inline constexpr uint32_t kBools = TypeBit(DType::kBool);
inline constexpr uint32_t kNumbers = kFloats | kInts;
inline constexpr uint32_t kAnyType = kNumbers | kBools;
inline constexpr uint32_t kIndices = TypeBit(DType::kInt32) | TypeBit(DType::kInt64);

// Returns UNIMPLEMENTED naming the input and its dtype unless it is in `types`: no other shape
// would help.
absl::Status CheckType(const InferContext& context, size_t input, uint32_t types);
// Returns UNIMPLEMENTED unless inputs `a` and `b` are of one dtype.
absl::Status CheckSameType(const InferContext& context, size_t a, size_t b);
// Returns INVALID_ARGUMENT unless the rank of `input` is `rank`.
absl::Status CheckRank(const InferContext& context, size_t input, int64_t rank);

// Returns the axis attribute `name`, mapped to [0, rank).
absl::StatusOr<int64_t> AxisAttribute(const Node& node, absl::string_view name, int64_t fallback,
                                      int64_t rank);
// Returns the axes, each mapped to [0, rank), sorted; INVALID_ARGUMENT when one occurs twice.
absl::StatusOr<std::vector<int64_t>> NormalizeAxes(absl::Span<const int64_t> axes, int64_t rank);

// Returns INVALID_ARGUMENT unless `value`, which an input or attribute called `what` holds, is in
// [low, high].
absl::Status CheckRange(absl::string_view what, int64_t value, int64_t low, int64_t high);

// Returns the broadcast of all inputs' shapes.
absl::StatusOr<SizeList> BroadcastInputs(const InferContext& context);

// Makes output 0 like input 0, which is of one of `types`.
template <uint32_t types>
absl::Status SameRule(InferContext& context) {
  if (absl::Status status = CheckType(context, 0, types); !status.ok()) return status;
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

// Checks that all inputs are of one dtype out of `types` and broadcast.
absl::Status BroadcastRule(InferContext& context, uint32_t types, DType result);
template <uint32_t types>
absl::Status BroadcastRule(InferContext& context) {
  return BroadcastRule(context, types, context.dtype(0));
}
template <uint32_t types>
absl::Status CompareRule(InferContext& context) {
  return BroadcastRule(context, types, DType::kBool);
}

// Questions that kernels ask about their operands.
inline bool HasInput(const KernelContext& context, size_t i) {
  return i < context.inputs.size() && context.inputs[i].dtype != DType::kUndefined;
}
inline bool HasOutput(const KernelContext& context, size_t i) {
  return i < context.outputs.size() && context.outputs[i].dtype != DType::kUndefined;
}

// Returns the elements of an integer (or bool) operand; none if it is left out.
std::vector<int64_t> Int64sOf(const KernelContext& context, size_t i);

// Returns `value`, which is element `element` of input `input`. Outside [low, high], which holds 0,
// it is reported, and 0 takes its place.
int64_t CheckedValue(const KernelContext& context, int input, int64_t element, int64_t value,
                     int64_t low, int64_t high);

}  // namespace reprise::ops
