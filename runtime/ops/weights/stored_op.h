// Weights in the blocks of a GGUF file.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

// reprise.StoredFloats: the floats of blocks.
struct StoredFloatsOp {
  static constexpr char kName[] = "reprise.StoredFloats";

  std::string format;  // "Q4_K"

  static StoredFloatsOp From(const Attributes& attributes) {
    StoredFloatsOp op;
    ReadAttribute(attributes, "format", op.format);
    return op;
  }
  static StoredFloatsOp From(const Node& node) { return From(node.attributes); }
};

// reprise.StoredPart: the part of blocks that kernels read.
struct StoredPartOp {
  static constexpr char kName[] = "reprise.StoredPart";
  static constexpr char kNumbers[] = "numbers", kScales[] = "scales", kOffsets[] = "offsets";

  std::string format;
  std::string part;

  static StoredPartOp From(const Attributes& attributes) {
    StoredPartOp op;
    ReadAttribute(attributes, "format", op.format);
    ReadAttribute(attributes, "part", op.part);
    return op;
  }
  static StoredPartOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
