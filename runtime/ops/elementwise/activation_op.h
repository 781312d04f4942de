// Activations.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ReluOp {
  static constexpr char kName[] = "Relu";
};

struct TanhOp {
  static constexpr char kName[] = "Tanh";
};

struct SigmoidOp {
  static constexpr char kName[] = "Sigmoid";
};

struct SoftplusOp {
  static constexpr char kName[] = "Softplus";
};

struct HardSwishOp {
  static constexpr char kName[] = "HardSwish";
};

struct MishOp {
  static constexpr char kName[] = "Mish";
};

struct GeluOp {
  static constexpr char kName[] = "Gelu";

  std::string approximate = "none";
  // Ours: computed as (x (1 + t)) / 2, the spelling of many files. The double of a number above
  // half of the largest one is infinite.
  bool doubled = false;

  static GeluOp From(const Attributes& attributes) {
    GeluOp op;
    ReadAttribute(attributes, "approximate", op.approximate);
    ReadAttribute(attributes, "doubled", op.doubled);
    return op;
  }
  static GeluOp From(const Node& node) { return From(node.attributes); }

  // Returns its name among the activations of products and convolutions.
  std::string ActivationName() const {
    const std::string name = approximate == "tanh" ? "gelu_tanh" : "gelu";
    return doubled ? name + "_doubled" : name;
  }
};

struct QuickGeluOp {
  static constexpr char kName[] = "com.microsoft.QuickGelu";

  float alpha = 1.702f;

  static QuickGeluOp From(const Attributes& attributes) {
    QuickGeluOp op;
    ReadAttribute(attributes, "alpha", op.alpha);
    return op;
  }
  static QuickGeluOp From(const Node& node) { return From(node.attributes); }
};

struct LeakyReluOp {
  static constexpr char kName[] = "LeakyRelu";

  float alpha = 0.01f;

  static LeakyReluOp From(const Attributes& attributes) {
    LeakyReluOp op;
    ReadAttribute(attributes, "alpha", op.alpha);
    return op;
  }
  static LeakyReluOp From(const Node& node) { return From(node.attributes); }
};

struct EluOp {
  static constexpr char kName[] = "Elu";

  float alpha = 1.0f;

  static EluOp From(const Attributes& attributes) {
    EluOp op;
    ReadAttribute(attributes, "alpha", op.alpha);
    return op;
  }
  static EluOp From(const Node& node) { return From(node.attributes); }
};

struct HardSigmoidOp {
  static constexpr char kName[] = "HardSigmoid";

  float alpha = 0.2f;
  float beta = 0.5f;

  static HardSigmoidOp From(const Attributes& attributes) {
    HardSigmoidOp op;
    ReadAttribute(attributes, "alpha", op.alpha);
    ReadAttribute(attributes, "beta", op.beta);
    return op;
  }
  static HardSigmoidOp From(const Node& node) { return From(node.attributes); }
};

struct ClipOp {
  static constexpr char kName[] = "Clip";
  enum Input : size_t { kX, kLow, kHigh };
};

}  // namespace reprise
