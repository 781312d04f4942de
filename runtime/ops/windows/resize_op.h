// Resize.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ResizeOp {
  static constexpr char kName[] = "Resize";
  enum Input : size_t { kX, kRoi, kScales, kSizes };

  std::string mode = "nearest";

  static ResizeOp From(const Attributes& attributes) {
    ResizeOp op;
    ReadAttribute(attributes, "mode", op.mode);
    return op;
  }
  static ResizeOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
