// Convolutions.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ConvOp {
  static constexpr char kName[] = "Conv";
  enum Input : size_t { kX, kWeight, kBias };

  int64_t group = 1;

  static ConvOp From(const Attributes& attributes) {
    ConvOp op;
    ReadAttribute(attributes, "group", op.group);
    return op;
  }
  static ConvOp From(const Node& node) { return From(node.attributes); }
};

struct FusedConvOp {
  static constexpr char kName[] = "reprise.Conv";
  enum Input : size_t { kX, kWeight, kBias, kResidual };

  int64_t group = 1;
  std::string activation = "none";
  std::string layout = "first";

  static FusedConvOp From(const Attributes& attributes) {
    FusedConvOp op;
    ReadAttribute(attributes, "group", op.group);
    ReadAttribute(attributes, "activation", op.activation);
    ReadAttribute(attributes, "layout", op.layout);
    return op;
  }
  static FusedConvOp From(const Node& node) { return From(node.attributes); }
};

struct ConvTransposeOp {
  static constexpr char kName[] = "ConvTranspose";
  enum Input : size_t { kX, kWeight, kBias };

  int64_t group = 1;

  static ConvTransposeOp From(const Attributes& attributes) {
    ConvTransposeOp op;
    ReadAttribute(attributes, "group", op.group);
    return op;
  }
  static ConvTransposeOp From(const Node& node) { return From(node.attributes); }
};

struct FusedConvTransposeOp {
  static constexpr char kName[] = "reprise.ConvTranspose";
  enum Input : size_t { kX, kWeight, kBias };

  int64_t group = 1;
  std::string activation = "none";
  std::string layout = "first";

  static FusedConvTransposeOp From(const Attributes& attributes) {
    FusedConvTransposeOp op;
    ReadAttribute(attributes, "group", op.group);
    ReadAttribute(attributes, "activation", op.activation);
    ReadAttribute(attributes, "layout", op.layout);
    return op;
  }
  static FusedConvTransposeOp From(const Node& node) { return From(node.attributes); }
};

struct DeformConvOp {
  static constexpr char kName[] = "DeformConv";
  enum Input : size_t { kX, kWeight, kOffset, kBias, kMask };

  int64_t group = 1;

  static DeformConvOp From(const Attributes& attributes) {
    DeformConvOp op;
    ReadAttribute(attributes, "group", op.group);
    return op;
  }
  static DeformConvOp From(const Node& node) { return From(node.attributes); }
};

struct DeformColumnsOp {
  static constexpr char kName[] = "reprise.DeformColumns";
  enum Input : size_t { kX, kOffset, kMask };
};

}  // namespace reprise
