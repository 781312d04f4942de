// Checks the values in a request's lengths of rows.
//
// Threads: a free function of its arguments. A request's bytes need not be aligned.
#pragma once

#include <cstdint>

#include "runtime/engine/types/request.h"
#include "runtime/graph/dtype.h"

namespace reprise {

// Returns whether every element is a length up to `most`.
bool AllLengthsUpTo(int64_t most, DType dtype, const InputTensor& tensor);

}  // namespace reprise
