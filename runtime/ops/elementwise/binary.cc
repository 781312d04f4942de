#include "runtime/ops/elementwise/binary.h"

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

// Computes out = f(a, b) for the dtypes of `List`, with a result of the operands' dtype.
template <typename List, typename F>
absl::Status Apply(const KernelContext& context, F f) {
  const TensorView& a = context.inputs[0];
  const TensorView& b = context.inputs[1];
  const MutableTensorView& out = context.outputs[0];
  return Dispatch(List{}, a.dtype, [&]<typename T>() {
    using C = Compute<T>;
    BroadcastApply(out.shape, out.as<T>(), a.as<T>(), a.shape, b.as<T>(), b.shape, [f](T x, T y) {
      return static_cast<T>(static_cast<C>(f(static_cast<C>(x), static_cast<C>(y))));
    });
  });
}

template <typename List, typename F>
absl::Status ApplyToBool(const KernelContext& context, F f) {
  const TensorView& a = context.inputs[0];
  const TensorView& b = context.inputs[1];
  const MutableTensorView& out = context.outputs[0];
  return Dispatch(List{}, a.dtype, [&]<typename T>() {
    using C = Compute<T>;
    BroadcastApply(out.shape, out.as<Bool>(), a.as<T>(), a.shape, b.as<T>(), b.shape,
                   [f](T x, T y) { return Bool(f(static_cast<C>(x), static_cast<C>(y))); });
  });
}

// Folds `f` over all inputs; `finish(value, count)` ends it.
template <typename F, typename G>
absl::Status Fold(const KernelContext& context, F f, G finish) {
  const MutableTensorView& out = context.outputs[0];
  const int64_t inputs = static_cast<int64_t>(context.inputs.size());
  return Dispatch(NumericList{}, out.dtype, [&]<typename T>() {
    using C = Compute<T>;
    T* y = out.as<T>();
    BroadcastApply(out.shape, y, context.inputs[0].as<T>(), context.inputs[0].shape,
                   [](T x) { return x; });
    for (int64_t i = 1; i < inputs; ++i) {
      BroadcastApply(
          out.shape, y, y, out.shape, context.inputs[i].as<T>(), context.inputs[i].shape,
          [f](T a, T b) {
            return static_cast<T>(static_cast<C>(f(static_cast<C>(a), static_cast<C>(b))));
          });
    }
    const int64_t count = out.num_elements();
    for (int64_t i = 0; i < count; ++i) {
      y[i] = static_cast<T>(static_cast<C>(finish(static_cast<C>(y[i]), inputs)));
    }
  });
}

// Integers wrap around, as two's complement does: C++ leaves signed overflow undefined.
template <typename T>
T Add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(uint64_t(a) + uint64_t(b));
  else
    return a + b;
}
template <typename T>
T Sub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(uint64_t(a) - uint64_t(b));
  else
    return a - b;
}
template <typename T>
T Mul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(uint64_t(a) * uint64_t(b));
  else
    return a * b;
}
// Integer division by zero gives 0: a kernel must not trap.
template <typename T>
T Div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return Sub(T(0), a);
    }
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}
// Returns the remainder with the divisor's sign (Python's), or with the dividend's when `c_like`.
template <typename T>
T Mod(T a, T b, bool c_like) {
  T rest;
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return 0;
    }
    rest = static_cast<T>(a % b);
  } else {
    rest = std::fmod(a, b);
  }
  if (!c_like && rest != 0 && ((rest < 0) != (b < 0))) rest = static_cast<T>(rest + b);
  return rest;
}

template <typename T>
T IntegerPower(T base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if constexpr (std::is_signed_v<T>) {
      if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
    }
    return 0;
  }
  T result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = Mul(result, base);
    base = Mul(base, base);
  }
  return result;
}

// Returns `base` to the power `exponent`. A power that signed integers of 32 and 64 bits do not
// hold, which ONNX leaves open, is their least number, as in onnxruntime; its squares and cubes,
// like powers of the other types, keep their low bits.
template <typename T>
T PowerOf(T base, double exponent, bool integers, bool short_product) {
  const double power = std::pow(static_cast<double>(base), exponent);
  if (!integers) return CastTo<T>(power);
  const T product = IntegerPower(base, ConvertTo<int64_t>(exponent));
  if constexpr (std::is_signed_v<T> && sizeof(T) >= 4) {
    const auto end = -static_cast<double>(std::numeric_limits<T>::min());
    if (!short_product && !(power >= -end && power < end)) return std::numeric_limits<T>::min();
  }
  return product;
}

}  // namespace

absl::Status AddKernel(const KernelContext& context) {
  return Apply<NumericList>(context, [](auto a, auto b) { return Add(a, b); });
}
absl::Status SubKernel(const KernelContext& context) {
  return Apply<NumericList>(context, [](auto a, auto b) { return Sub(a, b); });
}
absl::Status MulKernel(const KernelContext& context) {
  return Apply<NumericList>(context, [](auto a, auto b) { return Mul(a, b); });
}
absl::Status DivKernel(const KernelContext& context) {
  return Apply<NumericList>(context, [](auto a, auto b) { return Div(a, b); });
}
absl::Status ModKernel(const KernelContext& context) {
  const bool c_like = context.node.attributes.Int("fmod", 0) != 0;
  return Apply<NumericList>(context, [c_like](auto a, auto b) { return Mod(a, b, c_like); });
}

absl::Status PowRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  RETURN_IF_ERROR(CheckType(context, 1, kNumbers));
  ASSIGN_OR_RETURN(SizeList shape, BroadcastInputs(context));
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status PowKernel(const KernelContext& context) {
  const TensorView& base = context.inputs[0];
  const TensorView& exponent = context.inputs[1];
  const MutableTensorView& out = context.outputs[0];
  // The exponents as doubles: exact for every integer whose power is not 0, 1 or out of range.
  std::vector<double> powers(exponent.num_elements());
  RETURN_IF_ERROR(Dispatch(NumericList{}, exponent.dtype, [&]<typename T>() {
    for (size_t i = 0; i < powers.size(); ++i) {
      powers[i] = static_cast<double>(static_cast<Compute<T>>(exponent.as<T>()[i]));
    }
  }));
  const bool square = powers.size() == 1 && powers[0] == 2;
  const bool cube = powers.size() == 1 && powers[0] == 3;
  const bool integers = IsInteger(exponent.dtype);
  return Dispatch(NumericList{}, base.dtype, [&]<typename T>() {
    using C = Compute<T>;
    const auto power = [&](T x, double y) {
      if constexpr (std::is_integral_v<T>) {
        return PowerOf(x, y, integers, square || cube);
      } else {
        const C value = x;
        return static_cast<T>(square ? value * value : std::pow(value, static_cast<C>(y)));
      }
    };
    BroadcastApply(out.shape, out.as<T>(), base.as<T>(), base.shape, powers.data(), exponent.shape,
                   power);
  });
}

absl::Status PReluRule(InferContext& context) {
  RETURN_IF_ERROR(BroadcastRule(context, kNumbers, context.dtype(0)));
  if (context.outputs()[0].shape != context.shape(0)) {
    return absl::InvalidArgumentError("the slope does not broadcast to the input");
  }
  return absl::OkStatus();
}

absl::Status PReluKernel(const KernelContext& context) {
  return Apply<NumericList>(context, [](auto x, auto slope) { return x < 0 ? Mul(x, slope) : x; });
}

absl::Status EqualKernel(const KernelContext& context) {
  return ApplyToBool<AllList>(context, [](auto a, auto b) { return a == b; });
}
absl::Status LessKernel(const KernelContext& context) {
  return ApplyToBool<NumericList>(context, [](auto a, auto b) { return a < b; });
}
absl::Status LessOrEqualKernel(const KernelContext& context) {
  return ApplyToBool<NumericList>(context, [](auto a, auto b) { return a <= b; });
}
absl::Status GreaterKernel(const KernelContext& context) {
  return ApplyToBool<NumericList>(context, [](auto a, auto b) { return a > b; });
}
absl::Status GreaterOrEqualKernel(const KernelContext& context) {
  return ApplyToBool<NumericList>(context, [](auto a, auto b) { return a >= b; });
}
absl::Status AndKernel(const KernelContext& context) {
  return ApplyToBool<TypeList<Bool>>(context, [](bool a, bool b) { return a && b; });
}
absl::Status OrKernel(const KernelContext& context) {
  return ApplyToBool<TypeList<Bool>>(context, [](bool a, bool b) { return a || b; });
}
absl::Status XorKernel(const KernelContext& context) {
  return ApplyToBool<TypeList<Bool>>(context, [](bool a, bool b) { return a != b; });
}

absl::Status BitwiseAndKernel(const KernelContext& context) {
  return Apply<IntList>(context, [](auto a, auto b) { return a & b; });
}
absl::Status BitwiseOrKernel(const KernelContext& context) {
  return Apply<IntList>(context, [](auto a, auto b) { return a | b; });
}
absl::Status BitwiseXorKernel(const KernelContext& context) {
  return Apply<IntList>(context, [](auto a, auto b) { return a ^ b; });
}

absl::Status BitShiftRule(InferContext& context) {
  const std::string direction = context.attributes().String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return absl::InvalidArgumentError(absl::StrCat("there is no direction '", direction, "'"));
  }
  return BroadcastRule<kInts>(context);
}

absl::Status BitShiftKernel(const KernelContext& context) {
  const bool left = context.node.attributes.String("direction", "") == "LEFT";
  return Apply<IntList>(context, [left]<typename T>(T x, T by) -> T {
    const uint64_t bits = 8 * sizeof(T);
    const bool all = static_cast<uint64_t>(by) >= bits;  // also true if `by` is negative
    if (left) return all ? T(0) : static_cast<T>(static_cast<uint64_t>(x) << by);
    return static_cast<T>(x >> (all ? static_cast<T>(bits - 1) : by)) >> (all ? 1 : 0);
  });
}

absl::Status MaxKernel(const KernelContext& context) {
  // NaN wins, as in numpy.
  return Fold(
      context, [](auto a, auto b) { return a > b || a != a ? a : b; },
      [](auto x, int64_t) { return x; });
}
absl::Status MinKernel(const KernelContext& context) {
  return Fold(
      context, [](auto a, auto b) { return a < b || a != a ? a : b; },
      [](auto x, int64_t) { return x; });
}
absl::Status SumKernel(const KernelContext& context) {
  return Fold(
      context, [](auto a, auto b) { return Add(a, b); }, [](auto x, int64_t) { return x; });
}
absl::Status MeanKernel(const KernelContext& context) {
  return Fold(
      context, [](auto a, auto b) { return Add(a, b); },
      [](auto x, int64_t count) { return Div(x, static_cast<decltype(x)>(count)); });
}

absl::Status BiasGeluRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32)));
  if (context.has_input(1)) {
    RETURN_IF_ERROR(CheckSameType(context, 0, 1));
    RETURN_IF_ERROR(CheckRank(context, 1, 1));
    if (context.rank(0) == 0 || context.shape(0).back() != context.shape(1)[0]) {
      return absl::InvalidArgumentError("the bias does not match the last dim of the input");
    }
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

namespace {

template <typename F>
absl::Status BiasMap(const KernelContext& context, F f) {
  const TensorView& x = context.inputs[0];
  const float zero = 0;
  const bool biased = HasInput(context, 1);
  const float* bias = biased ? context.inputs[1].as<float>() : &zero;
  const Shape bias_shape = biased ? context.inputs[1].shape : Shape{};
  BroadcastApply(x.shape, context.outputs[0].as<float>(), x.as<float>(), x.shape, bias, bias_shape,
                 [f](float a, float b) { return f(a + b); });
  return absl::OkStatus();
}

}  // namespace

absl::Status BiasGeluKernel(const KernelContext& context) { return BiasMap(context, GeluExact); }
absl::Status FastGeluKernel(const KernelContext& context) { return BiasMap(context, GeluTanh); }

}  // namespace reprise::ops
