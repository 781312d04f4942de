// Activations.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct ReluOp : NamedOp<"Relu"> {};
struct TanhOp : NamedOp<"Tanh"> {};
struct SigmoidOp : NamedOp<"Sigmoid"> {};
struct SoftplusOp : NamedOp<"Softplus"> {};
struct HardSwishOp : NamedOp<"HardSwish"> {};
struct MishOp : NamedOp<"Mish"> {};

struct GeluOp : NamedOp<"Gelu"> {
  std::string approximate = "none";
  // Ours: computed as (x (1 + t)) / 2, the spelling of many files. The double of a number above
  // half of the largest one is infinite.
  bool doubled = false;
  OP_ATTRIBUTES(GeluOp, approximate, doubled)

  // Returns its name among the activations of products and convolutions.
  std::string ActivationName() const {
    const std::string name = approximate == "tanh" ? "gelu_tanh" : "gelu";
    return doubled ? name + "_doubled" : name;
  }
};

struct QuickGeluOp : NamedOp<"com.microsoft.QuickGelu"> {
  float alpha = 1.702f;
  OP_ATTRIBUTES(QuickGeluOp, alpha)
};

struct LeakyReluOp : NamedOp<"LeakyRelu"> {
  float alpha = 0.01f;
  OP_ATTRIBUTES(LeakyReluOp, alpha)
};

struct EluOp : NamedOp<"Elu"> {
  float alpha = 1.0f;
  OP_ATTRIBUTES(EluOp, alpha)
};

struct HardSigmoidOp : NamedOp<"HardSigmoid"> {
  float alpha = 0.2f;
  float beta = 0.5f;
  OP_ATTRIBUTES(HardSigmoidOp, alpha, beta)
};

struct ClipOp : NamedOp<"Clip"> {
  enum Input : size_t { kX, kLow, kHigh };
};

}  // namespace reprise
