// Weights of a few bits.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct DequantizeBitsOp {
  static constexpr char kName[] = "reprise.DequantizeBits";
  enum Input : size_t { kValues, kScales, kZeroPoints };

  int64_t k = 0;
  int64_t block_size = 0;
  int64_t bits = 4;

  static DequantizeBitsOp From(const Attributes& attributes) {
    DequantizeBitsOp op;
    ReadAttribute(attributes, "K", op.k);
    ReadAttribute(attributes, "block_size", op.block_size);
    ReadAttribute(attributes, "bits", op.bits);
    return op;
  }
  static DequantizeBitsOp From(const Node& node) { return From(node.attributes); }
};

struct UnpackNibblesOp {
  static constexpr char kName[] = "reprise.UnpackNibbles";
  enum Input : size_t { kValues };

  bool is_signed = false;

  static UnpackNibblesOp From(const Attributes& attributes) {
    UnpackNibblesOp op;
    ReadAttribute(attributes, "signed", op.is_signed);
    return op;
  }
  static UnpackNibblesOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
