// Normalisations of the last dims.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct LayerNormalizationOp {
  static constexpr char kName[] = "LayerNormalization";
  enum Input : size_t { kX, kGamma, kBeta };

  int64_t axis = -1;
  float epsilon = 1e-5f;

  static LayerNormalizationOp From(const Attributes& attributes) {
    LayerNormalizationOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "epsilon", op.epsilon);
    return op;
  }
  static LayerNormalizationOp From(const Node& node) { return From(node.attributes); }
};

struct RmsNormalizationOp {
  static constexpr char kName[] = "RMSNormalization";
  enum Input : size_t { kX, kGamma };

  int64_t axis = -1;
  float epsilon = 1e-5f;

  static RmsNormalizationOp From(const Attributes& attributes) {
    RmsNormalizationOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "epsilon", op.epsilon);
    return op;
  }
  static RmsNormalizationOp From(const Node& node) { return From(node.attributes); }
};

struct AddLayerNormOp {
  static constexpr char kName[] = "reprise.AddLayerNorm";
  enum Input : size_t { kX, kResidual, kGamma, kBeta };

  int64_t axis = -1;
  float epsilon = 1e-5f;

  static AddLayerNormOp From(const Attributes& attributes) {
    AddLayerNormOp op;
    ReadAttribute(attributes, "axis", op.axis);
    ReadAttribute(attributes, "epsilon", op.epsilon);
    return op;
  }
  static AddLayerNormOp From(const Node& node) { return From(node.attributes); }
};

struct SkipLayerNormOp {
  static constexpr char kName[] = "com.microsoft.SkipLayerNormalization";
  enum Input : size_t { kX, kSkip, kGamma, kBeta, kBias };

  float epsilon = 1e-12f;

  static SkipLayerNormOp From(const Attributes& attributes) {
    SkipLayerNormOp op;
    ReadAttribute(attributes, "epsilon", op.epsilon);
    return op;
  }
  static SkipLayerNormOp From(const Node& node) { return From(node.attributes); }
};

struct EmbedLayerNormOp {
  static constexpr char kName[] = "com.microsoft.EmbedLayerNormalization";

  float epsilon = 1e-12f;
  float mask_filter_value = -10000;

  static EmbedLayerNormOp From(const Attributes& attributes) {
    EmbedLayerNormOp op;
    ReadAttribute(attributes, "epsilon", op.epsilon);
    ReadAttribute(attributes, "mask_filter_value", op.mask_filter_value);
    return op;
  }
  static EmbedLayerNormOp From(const Node& node) { return From(node.attributes); }
};

struct SkipSimplifiedLayerNormOp {
  static constexpr char kName[] = "com.microsoft.SkipSimplifiedLayerNormalization";
  enum Input : size_t { kX, kSkip, kGamma, kBias };

  float epsilon = 1e-12f;

  static SkipSimplifiedLayerNormOp From(const Attributes& attributes) {
    SkipSimplifiedLayerNormOp op;
    ReadAttribute(attributes, "epsilon", op.epsilon);
    return op;
  }
  static SkipSimplifiedLayerNormOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
