// The rows of the op table, in four lists by what their ops are for; op_table.cc joins them.
//
// A row: name, inputs min and max, outputs min and max (-1: any number), traits, value inputs,
// shape rule, reference kernel, axis rule, rule of dtypes where that is not TypeLikeFirst (op.h).
// Below it what batching, packing, padding and folding know of the op, where that is anything
// (op_facts.h).
#pragma once

#include "absl/types/span.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise::ops {

absl::Span<const OpEntry> ElementwiseRows();  // rows_elementwise.cc
absl::Span<const OpEntry> MovementRows();     // rows_movement.cc
absl::Span<const OpEntry> LayerRows();        // rows_layers.cc
absl::Span<const OpEntry> ModelRows();        // rows_models.cc

}  // namespace reprise::ops
