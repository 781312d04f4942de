#include "runtime/device/cpu/conv_finish.h"

#include <limits>
#include <utility>

#include "runtime/device/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/conv_finish.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/conv_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using Kind = ConvActivation::Kind;

template <Kind kind>
HWY_NOINLINE void FinishRows(const ConvRows& rows, const ConvActivation& activation) {
  constexpr int64_t kLanes = HWY_LANES(float);
  const F32 d;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const VF bias = rows.bias == nullptr ? hn::Zero(d) : hn::Set(d, rows.bias[row]);
    float* const y = rows.y + row * rows.ld;
    const float* const residual =
        rows.residual == nullptr ? nullptr : rows.residual + row * rows.ld_residual;
    int64_t i = 0;
    for (; i + kLanes <= rows.columns; i += kLanes) {
      VF x = hn::Add(hn::LoadU(d, y + i), bias);
      if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual + i));
      hn::StoreU(ActivateConv<kind>(d, x, activation), d, y + i);
    }
    if (i == rows.columns) continue;
    const int64_t live = rows.columns - i;
    VF x = hn::Add(LoadPart(d, y + i, live), bias);
    if (residual != nullptr) x = hn::Add(x, LoadPart(d, residual + i, live));
    StorePart(ActivateConv<kind>(d, x, activation), d, y + i, live);
  }
}

void Finish(const ConvRows& rows, const ConvActivation& activation) {
  if (activation.none() && rows.bias == nullptr && rows.residual == nullptr) return;
  WithConvActivation(activation.kind,
                     [&](auto kind) HWY_ATTR { FinishRows<kind>(rows, activation); });
}

}  // namespace

constexpr ConvFinish kConvFinish = Finish;

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

ConvFinish ConvFinishFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kConvFinish); }

std::optional<ConvActivation> ConvActivationOf(const Attributes& attributes) {
  using Kind = ConvActivation::Kind;
  constexpr std::pair<absl::string_view, Kind> kNames[] = {{"none", Kind::kNone},
                                                           {"relu", Kind::kClip},
                                                           {"clip", Kind::kClip},
                                                           {"leaky_relu", Kind::kLeakyRelu},
                                                           {"hard_swish", Kind::kHardSwish},
                                                           {"gelu", Kind::kGelu},
                                                           {"gelu_tanh", Kind::kGeluTanh},
                                                           {"tanh", Kind::kTanh},
                                                           {"sigmoid", Kind::kSigmoid},
                                                           {"silu", Kind::kSilu},
                                                           {"elu", Kind::kElu},
                                                           {"mish", Kind::kMish}};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::string name = attributes.String("activation", "none");
  for (const auto& [known, kind] : kNames) {
    if (known != name) continue;
    ConvActivation activation{.kind = kind};
    activation.low = name == "relu" ? 0 : attributes.Float("low", -kInfinity);
    activation.high = name == "relu" ? kInfinity : attributes.Float("high", kInfinity);
    activation.slope = attributes.Float("slope", 0);
    return activation;
  }
  return std::nullopt;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
