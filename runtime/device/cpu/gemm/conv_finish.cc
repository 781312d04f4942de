#include "runtime/device/cpu/gemm/conv_finish.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/gemm/conv_finish.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/conv_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

using Kind = ConvActivation::Kind;

// Finishes `kVecs` vectors of a row at `y`, the last of which has `live` elements, side by side,
// because each is a long chain of steps.
template <Kind kind, int kVecs, bool kResidual>
HWY_INLINE void FinishVectors(const ConvActivation& activation, VF bias, const float* residual,
                              int64_t live, float* y) {
  constexpr int64_t kLanes = HWY_LANES(float), kLast = (kVecs - 1) * kLanes;
  const F32 d;
  const bool whole = live == kLanes;
  VF x[kVecs];
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    const bool part = v + 1 == kVecs && !whole;
    x[v] = part ? LoadPart(d, y + kLast, live) : hn::LoadU(d, y + v * kLanes);
    x[v] = hn::Add(x[v], bias);
    if constexpr (kResidual) {
      x[v] = hn::Add(
          x[v], part ? LoadPart(d, residual + kLast, live) : hn::LoadU(d, residual + v * kLanes));
    }
  }
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) x[v] = ActivateConv<kind>(d, x[v], activation);
  HWY_UNROLL(4) for (int v = 0; v + 1 < kVecs; ++v) hn::StoreU(x[v], d, y + v * kLanes);
  if (whole) {
    hn::StoreU(x[kVecs - 1], d, y + kLast);
  } else {
    StorePart(x[kVecs - 1], d, y + kLast, live);
  }
}

template <Kind kind, bool kResidual>
HWY_NOINLINE void FinishRows(const ConvRows& rows, const ConvActivation& activation) {
  constexpr int64_t kLanes = HWY_LANES(float);
  const F32 d;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const VF bias = rows.bias == nullptr ? hn::Zero(d) : hn::Set(d, rows.bias[row]);
    float* y = rows.y + row * rows.ld;
    const float* residual = kResidual ? rows.residual + row * rows.ld_residual : nullptr;
    int64_t left = rows.columns;
    const auto step = [&](auto vectors) HWY_ATTR {
      constexpr int kVecs = decltype(vectors)::value;
      FinishVectors<kind, kVecs, kResidual>(
          activation, bias, residual, std::min<int64_t>(left - (kVecs - 1) * kLanes, kLanes), y);
      left -= kVecs * kLanes;
      y += kVecs * kLanes;
      if constexpr (kResidual) residual += kVecs * kLanes;
    };
    while (left > 2 * kLanes) step(std::integral_constant<int, 3>());
    if (left > kLanes) {
      step(std::integral_constant<int, 2>());
    } else if (left > 0) {
      step(std::integral_constant<int, 1>());
    }
  }
}

void Finish(ConvRows rows, const ConvActivation& activation) {
  if (activation.none() && rows.bias == nullptr && rows.residual == nullptr) return;
  // Rows without gaps between them become one: rows of small planes are shorter than a vector.
  if (rows.bias == nullptr && rows.ld == rows.columns &&
      (rows.residual == nullptr || rows.ld_residual == rows.columns)) {
    rows.columns *= std::exchange(rows.rows, 1);
  }
  WithConvActivation(activation.kind, [&](auto kind) HWY_ATTR {
    rows.residual == nullptr ? FinishRows<kind, false>(rows, activation)
                             : FinishRows<kind, true>(rows, activation);
  });
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
  constexpr std::pair<absl::string_view, Kind> kNames[] = {
      {"none", Kind::kNone},
      {"relu", Kind::kClip},
      {"clip", Kind::kClip},
      {"leaky_relu", Kind::kLeakyRelu},
      {"hard_swish", Kind::kHardSwish},
      {"gelu", Kind::kGelu},
      {"gelu_tanh", Kind::kGeluTanh},
      {"gelu_doubled", Kind::kGeluDoubled},
      {"gelu_tanh_doubled", Kind::kGeluTanhDoubled},
      {"tanh", Kind::kTanh},
      {"sigmoid", Kind::kSigmoid},
      {"silu", Kind::kSilu},
      {"elu", Kind::kElu},
      {"mish", Kind::kMish}};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  const std::string name = attributes.String("activation", "none");
  for (const auto& [known, kind] : kNames) {
    if (known != name) continue;
    ConvActivation activation{.kind = kind};
    // Infinity is beyond a bound that is left out.
    activation.low = name == "relu" ? 0 : attributes.Float("low", -kLargest);
    activation.high = name == "relu" ? kInfinity : attributes.Float("high", kLargest);
    activation.slope = attributes.Float("slope", 0);
    return activation;
  }
  return std::nullopt;
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
