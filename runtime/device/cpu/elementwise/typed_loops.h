// Elementwise loops over any dtype: conversions, choosing, comparisons, logic and the arithmetic of
// numbers that are no float32. Broadcasting is the caller's (strided.h): it calls these once an
// innermost run.
//
// A function is y[i] = f(in[0][i * strides[0]], in[1][i * strides[1]], ...) for `count` elements;
// strides are in elements, and 1 and 0 are the fast ones. They are written as plain loops, which
// the compiler vectorizes for each tier.
//
// Threads: pure. y may be an operand that has its stride 1 and its element size, but not overlap
// one otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu/cpu_info.h"
#include "runtime/graph/dtype.h"

namespace reprise::cpu {

using TypedFunction = void (*)(const void* const* in, const int64_t* strides, void* y,
                               int64_t count);

// Integers wrap around; of integers Div and Mod by zero give 0, and Mod has the divisor's sign. NaN
// in an operand of Max or Min gives NaN.
enum class Arithmetic : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,  // integers only
  kMax,
  kMin,
  kBitAnd,  // integers only, as are the next two
  kBitOr,
  kBitXor,
};

enum class Order : uint8_t { kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

// Operations on bools, bytes of which anything but 0 is true; results are 0 and 1.
enum class Logic : uint8_t { kAnd, kOr, kXor, kNot };

// Tests of numbers that give bools. kInf is true for infinities of either sign.
enum class Special : uint8_t { kNan, kInf };

// The functions return null for a dtype that has no loop.
struct TypedKernels {
  // Converts like ops::CastTo.
  TypedFunction (*cast)(DType from, DType to);
  TypedFunction (*arithmetic)(Arithmetic op, DType dtype);
  TypedFunction (*order)(Order op, DType dtype);
  TypedFunction (*logic)(Logic op);
  TypedFunction (*special)(Special which, DType dtype);
  // Selects in[1] where the bool in[0] is true, else in[2]; elements have `element_bytes` bytes.
  TypedFunction (*where)(size_t element_bytes);
};

// Returns the kernels of the highest tier that is not above `isa`.
const TypedKernels& TypedKernelsFor(Isa isa);

}  // namespace reprise::cpu
