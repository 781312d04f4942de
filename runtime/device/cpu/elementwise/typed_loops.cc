#include "runtime/device/cpu/elementwise/typed_loops.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/device/cpu/simd/targets.h"
#include "runtime/ops/kit/typed.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/elementwise/typed_loops.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/half-inl.h"

// In the loop after it, no element depends on an earlier one: where y is an operand, element i is
// read before it is written, and by no other iteration.
#undef REPRISE_INDEPENDENT
#if HWY_COMPILER_CLANG
#define REPRISE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define REPRISE_INDEPENDENT _Pragma("GCC ivdep")
#endif

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::BFloat16;
using ops::Bool;
using ops::Compute;
using ops::Half;

// y[i] = f(a[i * step])
template <class T, class Y, class F>
HWY_INLINE void Map(const void* const* in, const int64_t* strides, void* out, int64_t count, F f) {
  const T* a = static_cast<const T*>(in[0]);
  Y* y = static_cast<Y*>(out);
  if (strides[0] == 1) {
    REPRISE_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = f(a[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) y[i] = f(a[i * strides[0]]);
}

// y[i] = f(a[i * step_a], b[i * step_b])
template <class T, class Y, class F>
HWY_INLINE void Zip(const void* const* in, const int64_t* strides, void* out, int64_t count, F f) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  Y* y = static_cast<Y*>(out);
  if (strides[0] == 1 && strides[1] == 1) {
    REPRISE_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = f(a[i], b[i]);
  } else if (strides[0] == 1 && strides[1] == 0 && count > 0) {
    const T scalar = *b;
    REPRISE_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = f(a[i], scalar);
  } else if (strides[0] == 0 && strides[1] == 1 && count > 0) {
    const T scalar = *a;
    REPRISE_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = f(scalar, b[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = f(a[i * strides[0]], b[i * strides[1]]);
  }
}

// ops::CastTo without a branch.
template <class To, class From>
HWY_INLINE To Convert(From from) {
  if constexpr (std::is_same_v<From, Bool> && std::is_arithmetic_v<To>) {
    return from.bits != 0 ? To(1) : To(0);
  } else {
    return ops::CastTo<To>(from);
  }
}

template <class From, class To>
void CastRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  Map<From, To>(in, strides, y, count, [](From x) HWY_ATTR { return Convert<To>(x); });
}

// Between halves and floats the vectors have instructions.
template <>
HWY_MAYBE_UNUSED void CastRun<float, Half>(const void* const* in, const int64_t* strides, void* out,
                                           int64_t count) {
  const auto* x = static_cast<const float*>(in[0]);
  if (strides[0] == 1) return NarrowToFloat16(x, static_cast<uint16_t*>(out), count);
  auto* y = static_cast<Half*>(out);
  for (int64_t i = 0; i < count; ++i) y[i] = Half(x[i * strides[0]]);
}

template <>
HWY_MAYBE_UNUSED void CastRun<Half, float>(const void* const* in, const int64_t* strides, void* out,
                                           int64_t count) {
  auto* y = static_cast<float*>(out);
  if (strides[0] == 1) return WidenHalves<Float16Bits>(in[0], y, count);
  const auto* x = static_cast<const Half*>(in[0]);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i * strides[0]];
}

using CastList =
    ops::TypeList<float, double, Half, BFloat16, int32_t, int64_t, uint8_t, int8_t, Bool>;

TypedFunction CastOf(DType from, DType to) {
  TypedFunction function = nullptr;
  (void)ops::Dispatch(CastList{}, from, [&]<typename From>() {
    (void)ops::Dispatch(CastList{}, to, [&]<typename To>() { function = CastRun<From, To>; });
  });
  return function;
}

template <Arithmetic op, class T>
HWY_INLINE T Calculate(T a, T b) {
  // NaN wins, as in the reference.
  if constexpr (op == Arithmetic::kMax) return a > b || a != a ? a : b;
  if constexpr (op == Arithmetic::kMin) return a < b || a != a ? a : b;
  if constexpr (std::is_integral_v<T>) {
    if constexpr (op == Arithmetic::kBitAnd) return static_cast<T>(a & b);
    if constexpr (op == Arithmetic::kBitOr) return static_cast<T>(a | b);
    if constexpr (op == Arithmetic::kBitXor) return static_cast<T>(a ^ b);
    if constexpr (op == Arithmetic::kDiv || op == Arithmetic::kMod) {
      constexpr bool kDivides = op == Arithmetic::kDiv;
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        // The smallest number has no negative.
        if (b == T(-1)) return kDivides ? static_cast<T>(0 - static_cast<uint64_t>(a)) : T(0);
      }
      if constexpr (kDivides) return static_cast<T>(a / b);
      const T rest = static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    }
  }
  // W is as wide as T, and unsigned: signed overflow is undefined, and narrow types are promoted.
  using W = typename std::conditional_t<std::is_integral_v<T>,
                                        std::conditional<sizeof(T) == 8, uint64_t, uint32_t>,
                                        std::type_identity<T>>::type;
  const W x = static_cast<W>(a), z = static_cast<W>(b);
  if constexpr (op == Arithmetic::kAdd) return static_cast<T>(x + z);
  if constexpr (op == Arithmetic::kSub) return static_cast<T>(x - z);
  if constexpr (op == Arithmetic::kMul) return static_cast<T>(x * z);
  return static_cast<T>(x / z);
}

template <Arithmetic op, class T>
void ArithmeticRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  Zip<T, T>(in, strides, y, count, [](T a, T b) HWY_ATTR { return Calculate<op>(a, b); });
}

template <Arithmetic op>
TypedFunction ArithmeticOf(DType dtype) {
  TypedFunction function = nullptr;
  constexpr bool kOfIntegers = op == Arithmetic::kMod || op == Arithmetic::kBitAnd ||
                               op == Arithmetic::kBitOr || op == Arithmetic::kBitXor;
  if constexpr (!kOfIntegers) {
    if (dtype == DType::kFloat64) function = ArithmeticRun<op, double>;
  }
  (void)ops::Dispatch(ops::TypeList<int32_t, int64_t, uint8_t, int8_t>{}, dtype,
                      [&]<typename T>() { function = ArithmeticRun<op, T>; });
  return function;
}

template <Order op, class T>
void OrderRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  Zip<T, uint8_t>(in, strides, y, count, [](T x, T z) HWY_ATTR -> uint8_t {
    const Compute<T> a = static_cast<Compute<T>>(x), b = static_cast<Compute<T>>(z);
    if constexpr (op == Order::kEqual) return a == b;
    if constexpr (op == Order::kLess) return a < b;
    if constexpr (op == Order::kLessOrEqual) return a <= b;
    if constexpr (op == Order::kGreater) return a > b;
    return a >= b;
  });
}

template <Order op>
TypedFunction OrderOf(DType dtype) {
  TypedFunction function = nullptr;
  (void)ops::Dispatch(ops::TypeList<float, double, int32_t, int64_t, uint8_t, int8_t>{}, dtype,
                      [&]<typename T>() { function = OrderRun<op, T>; });
  if (op == Order::kEqual && dtype == DType::kBool) function = OrderRun<op, Bool>;
  return function;
}

template <Logic op>
void LogicRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  if constexpr (op == Logic::kNot) {
    Map<uint8_t, uint8_t>(in, strides, y, count,
                          [](uint8_t a) HWY_ATTR -> uint8_t { return a == 0; });
  } else {
    Zip<uint8_t, uint8_t>(in, strides, y, count, [](uint8_t x, uint8_t z) HWY_ATTR -> uint8_t {
      const uint8_t a = x != 0, b = z != 0;
      return op == Logic::kAnd ? a & b : op == Logic::kOr ? a | b : a ^ b;
    });
  }
}

template <Special which, class T>
void SpecialRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  Map<T, uint8_t>(in, strides, y, count, [](T x) HWY_ATTR -> uint8_t {
    if constexpr (which == Special::kNan) return x != x;
    return std::abs(x) == std::numeric_limits<T>::infinity();
  });
}

template <Special which>
TypedFunction SpecialOf(DType dtype) {
  return dtype == DType::kFloat32   ? SpecialRun<which, float>
         : dtype == DType::kFloat64 ? SpecialRun<which, double>
                                    : nullptr;
}

// Chooses by the steps of the three operands, each 1 or 0.
template <class T, int keep_step, int a_step, int b_step>
void WhereSteps(const uint8_t* keep, const T* a, const T* b, T* y, int64_t count) {
  if (count == 0) return;
  // These are read before the loop: the compiler does not see that y is none of them.
  const uint8_t keep_one = *keep;
  const T a_one = *a, b_one = *b;
  REPRISE_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const T yes = a_step == 1 ? a[i] : a_one, no = b_step == 1 ? b[i] : b_one;
    y[i] = (keep_step == 1 ? keep[i] : keep_one) != 0 ? yes : no;
  }
}

template <class T>
void WhereRun(const void* const* in, const int64_t* strides, void* out, int64_t count) {
  const auto* keep = static_cast<const uint8_t*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  const auto is_step = [](int64_t stride) HWY_ATTR { return stride == 0 || stride == 1; };
  if (is_step(strides[0]) && is_step(strides[1]) && is_step(strides[2])) {
    constexpr void (*kSteps[])(const uint8_t*, const T*, const T*, T*, int64_t) = {
        WhereSteps<T, 0, 0, 0>, WhereSteps<T, 0, 0, 1>, WhereSteps<T, 0, 1, 0>,
        WhereSteps<T, 0, 1, 1>, WhereSteps<T, 1, 0, 0>, WhereSteps<T, 1, 0, 1>,
        WhereSteps<T, 1, 1, 0>, WhereSteps<T, 1, 1, 1>};
    kSteps[4 * strides[0] + 2 * strides[1] + strides[2]](keep, a, b, y, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    y[i] = keep[i * strides[0]] != 0 ? a[i * strides[1]] : b[i * strides[2]];
  }
}

TypedFunction ArithmeticTable(Arithmetic op, DType dtype) {
  constexpr TypedFunction (*kFunctions[])(DType) = {
      ArithmeticOf<Arithmetic::kAdd>,   ArithmeticOf<Arithmetic::kSub>,
      ArithmeticOf<Arithmetic::kMul>,   ArithmeticOf<Arithmetic::kDiv>,
      ArithmeticOf<Arithmetic::kMod>,   ArithmeticOf<Arithmetic::kMax>,
      ArithmeticOf<Arithmetic::kMin>,   ArithmeticOf<Arithmetic::kBitAnd>,
      ArithmeticOf<Arithmetic::kBitOr>, ArithmeticOf<Arithmetic::kBitXor>};
  return kFunctions[static_cast<int>(op)](dtype);
}

TypedFunction OrderTable(Order op, DType dtype) {
  constexpr TypedFunction (*kFunctions[])(DType) = {
      OrderOf<Order::kEqual>, OrderOf<Order::kLess>, OrderOf<Order::kLessOrEqual>,
      OrderOf<Order::kGreater>, OrderOf<Order::kGreaterOrEqual>};
  return kFunctions[static_cast<int>(op)](dtype);
}

TypedFunction LogicTable(Logic op) {
  constexpr TypedFunction kFunctions[] = {LogicRun<Logic::kAnd>, LogicRun<Logic::kOr>,
                                          LogicRun<Logic::kXor>, LogicRun<Logic::kNot>};
  return kFunctions[static_cast<int>(op)];
}

TypedFunction SpecialTable(Special which, DType dtype) {
  return which == Special::kNan ? SpecialOf<Special::kNan>(dtype) : SpecialOf<Special::kInf>(dtype);
}

TypedFunction WhereTable(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return WhereRun<uint8_t>;
    case 2:
      return WhereRun<uint16_t>;
    case 4:
      return WhereRun<uint32_t>;
    case 8:
      return WhereRun<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

constexpr TypedKernels kTypedKernels = {CastOf,     ArithmeticTable, OrderTable,
                                        LogicTable, SpecialTable,    WhereTable};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const TypedKernels& TypedKernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kTypedKernels); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE
