// Normalisations of channels.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct BatchNormalizationOp {
  static constexpr char kName[] = "BatchNormalization";
  enum Input : size_t { kX, kScale, kShift, kMean, kVariance };

  float epsilon = 1e-5f;

  static BatchNormalizationOp From(const Attributes& attributes) {
    BatchNormalizationOp op;
    ReadAttribute(attributes, "epsilon", op.epsilon);
    return op;
  }
  static BatchNormalizationOp From(const Node& node) { return From(node.attributes); }
};

struct InstanceNormalizationOp {
  static constexpr char kName[] = "InstanceNormalization";
  enum Input : size_t { kX, kScale, kBias };

  float epsilon = 1e-5f;

  static InstanceNormalizationOp From(const Attributes& attributes) {
    InstanceNormalizationOp op;
    ReadAttribute(attributes, "epsilon", op.epsilon);
    return op;
  }
  static InstanceNormalizationOp From(const Node& node) { return From(node.attributes); }
};

struct GroupNormalizationOp {
  static constexpr char kName[] = "GroupNormalization";
  enum Input : size_t { kX, kScale, kBias };

  float epsilon = 1e-5f;
  int64_t num_groups = 0;

  static GroupNormalizationOp From(const Attributes& attributes) {
    GroupNormalizationOp op;
    ReadAttribute(attributes, "epsilon", op.epsilon);
    ReadAttribute(attributes, "num_groups", op.num_groups);
    return op;
  }
  static GroupNormalizationOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
