// The epilogue of a convolution: y = activation(sum + bias + residual), float32, applied to the
// sums while they lie in the cache.
//
// Threads: pure. Rows may be finished at the same time.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/graph/attribute.h"

namespace reprise::cpu {

struct ConvActivation {
  enum class Kind : uint8_t {
    kNone,
    kClip,  // clamps to [low, high], one of which may be infinite; Relu is one
    kLeakyRelu,
    kHardSwish,
    kGelu,
    kGeluTanh,
    kGeluDoubled,
    kGeluTanhDoubled,
    kTanh,
    kSigmoid,
    kSilu,
    kElu,
    kMish,
  };
  Kind kind = Kind::kNone;
  float low = 0, high = 0;  // the bounds of kClip
  float slope = 0;          // the slope of kLeakyRelu and kElu below zero

  bool none() const { return kind == Kind::kNone; }
  bool clip() const { return kind == Kind::kClip; }
};

// From the attributes of a reprise.Conv; nullopt for an activation that has no kernel.
std::optional<ConvActivation> ConvActivationOf(const Attributes& attributes);

// Rows of sums, which become results. Strides are in elements.
struct ConvRows {
  float* y = nullptr;
  int64_t ld = 0;
  int64_t rows = 0, columns = 0;
  const float* bias = nullptr;      // [rows] or null
  const float* residual = nullptr;  // [rows, columns] or null
  int64_t ld_residual = 0;
};

using ConvFinish = void (*)(ConvRows rows, const ConvActivation& activation);

// Returns the function of the highest tier that is not above `isa`.
ConvFinish ConvFinishFor(Isa isa);

}  // namespace reprise::cpu
