// Numbers that are made of the sizes of values, and comparisons of them.
#pragma once

#include "tests/fuzz/random_models/model_draft.h"

namespace reprise::fuzz {

// Returns an int64 scalar: a size, or arithmetic over several; kNone where nothing has a dim.
ValueId DrawSizeNumber(ModelDraft& draft);
// Returns the size of dim `dim` of `x`, an int64 scalar.
ValueId SizeOf(ModelDraft& draft, ValueId x, int64_t dim);
// Returns a bool scalar: a number compared with a constant near its values at the trials, far above
// it, or with another number.
ValueId DrawSizeCondition(ModelDraft& draft);
// `number` as a vector of one.
ValueId AsVector(ModelDraft& draft, ValueId number);
// `number` brought into [0, `limit`), both int64 scalars.
ValueId Below(ModelDraft& draft, ValueId number, ValueId limit);

}  // namespace reprise::fuzz
