// Elementwise loops over any dtype: conversions, choosing, comparisons, logic and the arithmetic of
// numbers that are no float32. Broadcasting is the caller's (strided.h): it calls these once an
// innermost run.
//
// A function is y[i] = f(in[0][i * strides[0]], in[1][i * strides[1]], ...) for `count` elements;
// strides are in elements, and 1 and 0 are the fast ones. They are written as plain loops, which
// the compiler makes vectors of for each tier.
//
// Threads: pure. y may be an operand that has its stride 1 and its element size, but not overlap
// one otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu_info.h"
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
  kMod,  // of integers
  kMax,
  kMin,
  kBitAnd,  // of integers, as the next two
  kBitOr,
  kBitXor,
};

enum class Order : uint8_t { kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

// Of bools, each a byte of which anything but 0 is true; results are 0 and 1.
enum class Logic : uint8_t { kAnd, kOr, kXor, kNot };

// Of numbers, to bool. Infinities: of either sign.
enum class Special : uint8_t { kNan, kInf };

// Null stands for a dtype that has no loop.
struct TypedKernels {
  // As ops::CastTo.
  TypedFunction (*cast)(DType from, DType to);
  TypedFunction (*arithmetic)(Arithmetic op, DType dtype);
  TypedFunction (*order)(Order op, DType dtype);
  TypedFunction (*logic)(Logic op);
  TypedFunction (*special)(Special which, DType dtype);
  // in[0] are bools; in[1] where true, else in[2], of elements of so many bytes.
  TypedFunction (*where)(size_t element_bytes);
};

// The kernels of the highest tier that is not above `isa`.
const TypedKernels& TypedKernelsFor(Isa isa);

}  // namespace reprise::cpu
