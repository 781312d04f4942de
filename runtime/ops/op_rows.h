// The rows of the op table, in four lists by the purpose of their ops; op_table.cc joins them.
//
// A row: name, inputs min and max, outputs min and max (-1: any number), traits, value inputs,
// shape rule, reference kernel, axis rule, rule of dtypes where that is not TypeLikeFirst (op.h).
// Below it the facts for batching, packing, padding and folding, where there are any (op_facts.h).
#pragma once

#include "absl/types/span.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/result_types.h"

namespace reprise::ops {

// The rules of results that always have one dtype.
inline constexpr TypeRule kBool = TypeIs<DType::kBool>, kUInt8 = TypeIs<DType::kUInt8>,
                          kInt32 = TypeIs<DType::kInt32>, kInt64 = TypeIs<DType::kInt64>,
                          kFloat32 = TypeIs<DType::kFloat32>, kFloat64 = TypeIs<DType::kFloat64>;

absl::Span<const OpEntry> ElementwiseRows();  // rows_elementwise.cc
absl::Span<const OpEntry> MovementRows();     // rows_movement.cc
absl::Span<const OpEntry> LayerRows();        // rows_layers.cc
absl::Span<const OpEntry> ModelRows();        // rows_models.cc

}  // namespace reprise::ops
