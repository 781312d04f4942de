// reprise.AppendRows.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct AppendRowsOp : NamedOp<"reprise.AppendRows"> {
  enum Input : size_t { kPast, kRows, kAt, kLength };
};

}  // namespace reprise
