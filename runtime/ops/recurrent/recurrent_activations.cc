#include "runtime/ops/recurrent/recurrent_activations.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise::ops {
namespace {

struct ActivationRow {
  absl::string_view name;
  ActivationKind kind;
  bool takes_alpha, takes_beta;
  float alpha, beta;  // when not given; onnxruntime's where ONNX states none
};

constexpr ActivationRow kActivations[] = {
    {"Sigmoid", ActivationKind::kSigmoid, false, false, 0, 0},
    {"Tanh", ActivationKind::kTanh, false, false, 0, 0},
    {"Relu", ActivationKind::kRelu, false, false, 0, 0},
    {"Affine", ActivationKind::kAffine, true, true, 0, 0},
    {"LeakyRelu", ActivationKind::kLeakyRelu, true, false, 0.01f, 0},
    // onnxruntime has 0; ONNX says 1, as for the op of that name.
    {"ThresholdedRelu", ActivationKind::kThresholdedRelu, true, false, 0, 0},
    {"ScaledTanh", ActivationKind::kScaledTanh, true, true, 0, 0},
    {"HardSigmoid", ActivationKind::kHardSigmoid, true, true, 0.2f, 0.5f},
    {"Elu", ActivationKind::kElu, true, false, 1, 0},
    {"Softsign", ActivationKind::kSoftsign, false, false, 0, 0},
    {"Softplus", ActivationKind::kSoftplus, false, false, 0, 0},
};

std::vector<float> AttributeFloats(const Node& node, absl::string_view name) {
  const auto* values = node.attributes.Get<std::vector<float>>(name);
  return values == nullptr ? std::vector<float>() : *values;
}

}  // namespace

template <typename C>
C Activation::operator()(C x) const {
  const C a = alpha, b = beta;
  switch (kind) {
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kRelu:
      return std::max(x, C(0));
    case ActivationKind::kAffine:
      return a * x + b;
    case ActivationKind::kLeakyRelu:
      return x >= 0 ? x : a * x;
    case ActivationKind::kThresholdedRelu:
      return x > a ? x : 0;
    case ActivationKind::kScaledTanh:
      return a * std::tanh(b * x);
    case ActivationKind::kHardSigmoid:
      return std::clamp(a * x + b, C(0), C(1));
    case ActivationKind::kElu:
      return x >= 0 ? x : a * std::expm1(x);
    case ActivationKind::kSoftsign:
      return x / (1 + std::abs(x));
    case ActivationKind::kSoftplus:
      return std::max(x, C(0)) + std::log1p(std::exp(-std::abs(x)));
  }
  return x;
}
template float Activation::operator()(float) const;
template double Activation::operator()(double) const;

absl::StatusOr<std::vector<Activation>> ActivationsOf(const Node& node, int64_t directions,
                                                      const std::vector<Activation>& defaults) {
  std::vector<Activation> result;
  const auto* names = node.attributes.Get<std::vector<std::string>>("activations");
  if (names == nullptr || names->empty()) {
    for (int64_t d = 0; d < directions; ++d) {
      result.insert(result.end(), defaults.begin(), defaults.end());
    }
    return result;
  }
  const size_t wanted = directions * defaults.size();
  if (names->size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", names->size(), " activations instead of ", wanted));
  }
  const std::vector<float> alphas = AttributeFloats(node, "activation_alpha");
  const std::vector<float> betas = AttributeFloats(node, "activation_beta");
  size_t alpha = 0, beta = 0;
  for (const std::string& name : *names) {
    const auto* row = std::find_if(
        std::begin(kActivations), std::end(kActivations),
        [&](const ActivationRow& item) { return absl::EqualsIgnoreCase(item.name, name); });
    if (row == std::end(kActivations)) {
      return absl::UnimplementedError(absl::StrCat("activation '", name, "'"));
    }
    Activation& made = result.emplace_back(Activation{row->kind, row->alpha, row->beta});
    if (row->takes_alpha && alpha < alphas.size()) made.alpha = alphas[alpha++];
    if (row->takes_beta && beta < betas.size()) made.beta = betas[beta++];
  }
  return result;
}

}  // namespace reprise::ops
