// The activations of recurrent layers, which their attributes name.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise::ops {

enum class ActivationKind {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus,
};

struct Activation {
  ActivationKind kind = ActivationKind::kSigmoid;
  float alpha = 0;
  float beta = 0;

  template <typename C>
  C operator()(C x) const;
};
extern template float Activation::operator()(float) const;
extern template double Activation::operator()(double) const;

// Returns `per_direction` activations for each of `directions`, from the attributes activations,
// activation_alpha and activation_beta; `defaults` when they are left out. The lists of numbers are
// used up by the activations that take one, in order. UNIMPLEMENTED for a name that we lack.
absl::StatusOr<std::vector<Activation>> ActivationsOf(const Node& node, int64_t directions,
                                                      const std::vector<Activation>& defaults);

}  // namespace reprise::ops
