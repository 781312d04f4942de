// The facts of a ByteFinish that QuickSteps (requantize_steps-inl.h) needs, and its valid floats.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/device/cpu/int8/gemm_u8s8.h"

namespace reprise::cpu {

// A ByteFinish as numbers that wait for vectors: its activation, none or a clip, bounds the bytes.
struct StepBounds {
  explicit StepBounds(const ByteFinish& finish) {
    const ConvActivation& activation = finish.activation;
    if (finish.scale == nullptr || !(activation.none() || activation.clip())) return;
    // Within these bounds the steps that follow neither overflow nor lose bits.
    constexpr float kLeast = 0x1p-60f, kMost = 0x1p60f;
    if (!(*finish.scale >= kLeast && *finish.scale <= kMost)) return;
    scale = *finish.scale;
    inverse = 1 / scale;
    flip = finish.zero.is_signed ? 0x80 : 0;
    raise = static_cast<int16_t>(finish.zero.At(0) + flip);
    if (activation.clip()) {
      if (std::isnan(activation.low) || std::isnan(activation.high)) return;
      low = ByteOf(activation.low);
      high = ByteOf(activation.high);
    }
    limit = std::min(scale * 0x1p30f, kMost);
  }
  // Steps keep the order of floats, so that bounds of floats are bounds of bytes.
  uint8_t ByteOf(float x) const {
    const float steps = std::clamp(std::nearbyint(x / scale), -1024.0f, 1024.0f);
    return static_cast<uint8_t>(std::clamp(static_cast<int>(steps) + raise, 0, 255));
  }

  float limit = 0;  // floats have to be less, in magnitude
  float scale = 1, inverse = 1;
  int16_t raise = 0;             // makes steps numbers from 0 to 255,
  uint8_t low = 0, high = 0xFF;  // which have these bounds;
  uint8_t flip = 0;              // signed bytes are these with the highest bit flipped
};

}  // namespace reprise::cpu
