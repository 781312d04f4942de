// Weights in the blocks of a GGUF file.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

// reprise.StoredFloats: the floats of blocks.
struct StoredFloatsOp : NamedOp<"reprise.StoredFloats"> {
  std::string format;  // "Q4_K"
  OP_ATTRIBUTES(StoredFloatsOp, format)
};

// reprise.StoredPart: the part of blocks that kernels read.
struct StoredPartOp : NamedOp<"reprise.StoredPart"> {
  static constexpr char kNumbers[] = "numbers", kScales[] = "scales", kOffsets[] = "offsets";

  std::string format;
  std::string part;
  OP_ATTRIBUTES(StoredPartOp, format, part)
};

}  // namespace reprise
