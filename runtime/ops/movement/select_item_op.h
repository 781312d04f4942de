// reprise.SelectItem.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct SelectItemOp : NamedOp<"reprise.SelectItem"> {
  enum Input : size_t { kPosition, kFirstItem };
};

}  // namespace reprise
