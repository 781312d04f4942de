#include "runtime/ops/elementwise/unary.h"

#include <cmath>

#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

// Computes out[i] = f(in[i]) for the dtypes of `List`; f computes in Compute<T>.
template <typename List, typename F>
absl::Status Map(const KernelContext& context, F f) {
  const TensorView& in = context.inputs[0];
  return Dispatch(List{}, in.dtype, [&]<typename T>() {
    const T* x = in.as<T>();
    T* y = context.outputs[0].as<T>();
    const int64_t count = in.num_elements();
    for (int64_t i = 0; i < count; ++i) {
      y[i] = static_cast<T>(static_cast<Compute<T>>(f(static_cast<Compute<T>>(x[i]))));
    }
  });
}

template <typename F>
absl::Status MapFloats(const KernelContext& context, F f) {
  return Map<FloatList>(context, f);
}

template <typename List, typename F>
absl::Status MapToBool(const KernelContext& context, F f) {
  const TensorView& in = context.inputs[0];
  return Dispatch(List{}, in.dtype, [&]<typename T>() {
    const T* x = in.as<T>();
    Bool* y = context.outputs[0].as<Bool>();
    const int64_t count = in.num_elements();
    for (int64_t i = 0; i < count; ++i) y[i] = Bool(f(static_cast<Compute<T>>(x[i])));
  });
}

template <typename T>
T Negate(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(0 - static_cast<uint64_t>(x));  // No overflow at the minimum.
  } else {
    return -x;
  }
}

template <typename T>
T Logistic(T x) {
  return 1 / (1 + std::exp(-x));
}

// Returns 1 + t of the two forms of Gelu, without the digits that the sum loses where t is near -1:
// there the results are small numbers below zero, as in the fast kernels.
template <typename T>
T TanhFactor(T x) {
  return 2 / (1 + std::exp(T(-1.5957691216057308) * (x + T(0.044715) * x * x * x)));
}

template <typename T>
T ErfFactor(T x) {
  return std::erfc(x * T(-0.7071067811865476));
}

// Returns 0.5 x (1 + t); halved last where `doubled`, which overflows above half of the largest
// number.
template <typename T>
T GeluOf(T x, T factor, bool doubled) {
  return doubled ? T(x * factor) * T(0.5) : T(0.5) * x * factor;
}

}  // namespace

float GeluExact(float x) { return GeluOf(x, ErfFactor(x), false); }
float GeluTanh(float x) { return GeluOf(x, TanhFactor(x), false); }
float GeluExactDoubled(float x) { return GeluOf(x, ErfFactor(x), true); }
float GeluTanhDoubled(float x) { return GeluOf(x, TanhFactor(x), true); }

absl::Status AbsKernel(const KernelContext& context) {
  return Map<NumericList>(context, [](auto x) { return x < 0 ? Negate(x) : x; });
}
absl::Status NegKernel(const KernelContext& context) {
  return Map<NumericList>(context, [](auto x) { return Negate(x); });
}
absl::Status SignKernel(const KernelContext& context) {
  return Map<NumericList>(context, []<typename T>(T x) {
    return x == x ? static_cast<T>((x > 0) - (x < 0)) : x;  // NaN has no sign.
  });
}
absl::Status ReluKernel(const KernelContext& context) {
  return Map<NumericList>(context, [](auto x) { return x < 0 ? decltype(x)(0) : x; });
}
absl::Status CeilKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::ceil(x); });
}
absl::Status FloorKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::floor(x); });
}
absl::Status RoundKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::nearbyint(x); });  // Halves to even.
}
absl::Status SqrtKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::sqrt(x); });
}
absl::Status ReciprocalKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return 1 / x; });
}
absl::Status ExpKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::exp(x); });
}
absl::Status LogKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::log(x); });
}
absl::Status SinKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::sin(x); });
}
absl::Status CosKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::cos(x); });
}
absl::Status TanKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::tan(x); });
}
absl::Status AsinKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::asin(x); });
}
absl::Status AcosKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::acos(x); });
}
absl::Status AtanKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::atan(x); });
}
absl::Status SinhKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::sinh(x); });
}
absl::Status CoshKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::cosh(x); });
}
absl::Status TanhKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::tanh(x); });
}
absl::Status AsinhKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::asinh(x); });
}
absl::Status AcoshKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::acosh(x); });
}
absl::Status AtanhKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::atanh(x); });
}
absl::Status ErfKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return std::erf(x); });
}
absl::Status SigmoidKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return Logistic(x); });
}
absl::Status GeluKernel(const KernelContext& context) {
  const auto op = GeluOp::From(context.node);
  const bool doubled = op.doubled;
  if (op.approximate == "tanh") {
    return MapFloats(context, [=](auto x) { return GeluOf(x, TanhFactor(x), doubled); });
  }
  return MapFloats(context, [=](auto x) { return GeluOf(x, ErfFactor(x), doubled); });
}
static_assert(QuickGeluOp{}.alpha == kQuickGeluAlpha);

absl::Status QuickGeluKernel(const KernelContext& context) {
  const float alpha = context.node.attributes.Float("alpha", kQuickGeluAlpha);
  return MapFloats(context, [alpha](auto x) { return x * Logistic(decltype(x)(alpha) * x); });
}
absl::Status SoftplusKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  });
}
absl::Status SoftsignKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) { return x / (1 + std::abs(x)); });
}
absl::Status MishKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) {
    const auto softplus = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    return x * std::tanh(softplus);
  });
}
absl::Status EluKernel(const KernelContext& context) {
  const float alpha = context.node.attributes.Float("alpha", 1.0f);
  return MapFloats(context,
                   [alpha](auto x) { return x < 0 ? decltype(x)(alpha) * std::expm1(x) : x; });
}
absl::Status CeluKernel(const KernelContext& context) {
  const float alpha = context.node.attributes.Float("alpha", 1.0f);
  return MapFloats(context, [alpha](auto x) {
    return x < 0 ? decltype(x)(alpha) * std::expm1(x / decltype(x)(alpha)) : x;
  });
}
absl::Status SeluKernel(const KernelContext& context) {
  const float alpha = context.node.attributes.Float("alpha", 1.67326319217681884765625f);
  const float gamma = context.node.attributes.Float("gamma", 1.05070102214813232421875f);
  return MapFloats(context, [alpha, gamma](auto x) {
    using T = decltype(x);
    return T(gamma) * (x > 0 ? x : T(alpha) * std::expm1(x));
  });
}
absl::Status LeakyReluKernel(const KernelContext& context) {
  const float alpha = context.node.attributes.Float("alpha", 0.01f);
  return MapFloats(context, [alpha](auto x) { return x < 0 ? decltype(x)(alpha) * x : x; });
}
absl::Status HardSigmoidKernel(const KernelContext& context) {
  const float alpha = context.node.attributes.Float("alpha", 0.2f);
  const float beta = context.node.attributes.Float("beta", 0.5f);
  return MapFloats(context, [alpha, beta](auto x) {
    using T = decltype(x);
    const T y = T(alpha) * x + T(beta);
    return y < 0 ? T(0) : y > 1 ? T(1) : y;
  });
}
absl::Status HardSwishKernel(const KernelContext& context) {
  return MapFloats(context, [](auto x) {
    using T = decltype(x);
    const T y = x / 6 + T(0.5);
    return x * (y < 0 ? T(0) : y > 1 ? T(1) : y);
  });
}
absl::Status ThresholdedReluKernel(const KernelContext& context) {
  const float alpha = context.node.attributes.Float("alpha", 1.0f);
  return MapFloats(context, [alpha](auto x) { return x > alpha ? x : decltype(x)(0); });
}
absl::Status ShrinkKernel(const KernelContext& context) {
  const float lambd = context.node.attributes.Float("lambd", 0.5f);
  const float bias = context.node.attributes.Float("bias", 0.0f);
  return Dispatch(NumericList{}, context.inputs[0].dtype, [&]<typename T>() {
    const int64_t count = context.inputs[0].num_elements();
    for (int64_t i = 0; i < count; ++i) {
      const auto x = static_cast<double>(static_cast<Compute<T>>(context.inputs[0].as<T>()[i]));
      const double y = x < -lambd ? x + bias : x > lambd ? x - bias : 0;
      context.outputs[0].as<T>()[i] = ConvertTo<T>(y);
    }
  });
}
absl::Status BitwiseNotKernel(const KernelContext& context) {
  return Map<IntList>(context, [](auto x) { return ~x; });
}
absl::Status NotKernel(const KernelContext& context) {
  return MapToBool<TypeList<Bool>>(context, [](bool x) { return !x; });
}
absl::Status IsNaNKernel(const KernelContext& context) {
  return MapToBool<FloatList>(context, [](auto x) { return std::isnan(x); });
}
absl::Status IsInfKernel(const KernelContext& context) {
  const bool negative = context.node.attributes.Int("detect_negative", 1) != 0;
  const bool positive = context.node.attributes.Int("detect_positive", 1) != 0;
  return MapToBool<FloatList>(context, [negative, positive](auto x) {
    return std::isinf(x) && (x < 0 ? negative : positive);
  });
}

}  // namespace reprise::ops
