// Elementwise float32 functions over arrays that lie side by side. Broadcasting and strides are the
// caller's (strided.h): it calls these once an innermost run.
//
// Threads: pure. Arrays may be the same, but not overlap otherwise.
#pragma once

#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

enum class Unary : uint8_t {
  kCopy,
  kNeg,
  kAbs,
  kSqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,  // nearest, ties to even
  kExp,
  kTanh,
  kSigmoid,
  kErf,
  kRelu,
  kGelu,
  kGeluTanh,
  kSilu,
  kSquare,
  kSign,
  kLog,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSoftplus,
  kSoftsign,
  kMish,
  kHardSwish,
  kQuickGelu,    // alpha has its usual value
  kRootPower,    // Pow(x, 0.5), which is infinite for minus infinity
  kGeluDoubled,  // the spellings that halve last
  kGeluTanhDoubled,
};

// Functions with two constants, alpha and beta; some have only the first.
enum class Shaped : uint8_t {
  kClip,  // clamps to [alpha, beta]; gives beta where they cross
  kLeakyRelu,
  kElu,
  kSelu,  // beta: gamma
  kCelu,  // alpha > 0
  kHardSigmoid,
  kThresholdedRelu,  // gives 0 for NaN
  kShrink,           // alpha: lambd, beta: bias
  kQuickGelu,
  kPower,  // x to the power alpha, a whole number above 0
};

enum class Binary : uint8_t { kAdd, kSub, kMul, kDiv, kMax, kMin, kAddGelu, kAddGeluTanh, kPRelu };

// Which of the two operands is one element for the whole run.
enum class Run : uint8_t { kBoth, kScalarA, kScalarB };

using UnaryFunction = void (*)(const float* x, float* y, int64_t count);
using ShapedFunction = void (*)(const float* x, float alpha, float beta, float* y, int64_t count);
using BinaryFunction = void (*)(const float* a, const float* b, float* y, int64_t count);

struct ElementwiseKernels {
  UnaryFunction (*unary)(Unary op);
  BinaryFunction (*binary)(Binary op, Run run);
  // NaN stays NaN unless a function says otherwise.
  ShapedFunction (*shaped)(Shaped op);
};

// Returns the kernels of the highest tier that is not above `isa`.
const ElementwiseKernels& ElementwiseKernelsFor(Isa isa);

}  // namespace reprise::cpu
