// Elementwise float32 functions over arrays that lie side by side. Broadcasting and strides are the
// caller's (strided.h): it calls these once an innermost run.
//
// Threads: pure. Arrays may be the same, but not overlap otherwise.
#pragma once

#include <cstdint>

#include "runtime/base/cpu_info.h"

namespace reprise::cpu {

enum class Unary : uint8_t {
  kCopy,
  kNeg,
  kAbs,
  kSqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,  // to nearest, ties to even
  kExp,
  kTanh,
  kSigmoid,
  kErf,
  kRelu,
  kGelu,
  kGeluTanh,
  kSilu,
  kSquare,
};

enum class Binary : uint8_t { kAdd, kSub, kMul, kDiv, kMax, kMin, kAddGelu, kAddGeluTanh };

// Which of the two operands is one element for the whole run.
enum class Run : uint8_t { kBoth, kScalarA, kScalarB };

using UnaryFunction = void (*)(const float* x, float* y, int64_t count);
using BinaryFunction = void (*)(const float* a, const float* b, float* y, int64_t count);

struct ElementwiseKernels {
  UnaryFunction (*unary)(Unary op);
  BinaryFunction (*binary)(Binary op, Run run);
  // y = min(max(x, low), high); NaN stays NaN.
  void (*clip)(const float* x, float low, float high, float* y, int64_t count);
};

// The kernels of the highest tier that is not above `isa`.
const ElementwiseKernels& ElementwiseKernelsFor(Isa isa);

}  // namespace reprise::cpu
