// Elementwise ops of other dtypes, comparisons, logic, choosing and converting: typed plain loops.
// They work on ids and masks, which are small; what they must not do is allocate in a replay.
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/plan.h"
#include "runtime/device/cpu/strided.h"
#include "runtime/ops/typed.h"

namespace reprise::cpu {
namespace {

using ops::Bool;
using ops::Compute;

constexpr size_t kMaxOperandsOfOne = 3;

// y[i] = f(in[0][i * strides[0]], ...)
using RunFunction = void (*)(const void* const* in, const int64_t* strides, void* y, int64_t count);

struct TypedParams {
  RunFunction function = nullptr;
  size_t operands = 0;
  size_t sizes[kMaxOperandsOfOne] = {};  // bytes of an element
  size_t out_size = 0;
  int out = 0;
  Walk<kMaxOperandsOfOne> walk;
  int64_t batch_rows = 0;
};

void RunTyped(const LaunchArgs& launch) {
  const auto& p = *static_cast<const TypedParams*>(launch.params);
  auto* y = static_cast<std::byte*>(launch.operands[p.out]);
  int64_t strides[kMaxOperandsOfOne];
  for (size_t n = 0; n < kMaxOperandsOfOne; ++n) strides[n] = p.walk.inner_stride(n);
  const int64_t live = LiveOf(p.walk.elements, p.batch_rows, *launch.frame);
  ForEachRun(
      p.walk, live, launch.part, launch.parts,
      [&](int64_t position, const std::array<int64_t, kMaxOperandsOfOne>& offsets, int64_t count) {
        const void* in[kMaxOperandsOfOne] = {};
        for (size_t n = 0; n < p.operands; ++n) {
          in[n] = static_cast<const std::byte*>(launch.operands[n]) +
                  offsets[n] * static_cast<int64_t>(p.sizes[n]);
        }
        p.function(in, strides, y + position * static_cast<int64_t>(p.out_size), count);
      });
}

template <class T, class Y, class F>
void MapOne(const void* const* in, const int64_t* strides, void* y, int64_t count, F f) {
  const T* a = static_cast<const T*>(in[0]);
  for (int64_t i = 0; i < count; ++i) static_cast<Y*>(y)[i] = f(a[i * strides[0]]);
}

template <class T, class Y, class F>
void MapTwo(const void* const* in, const int64_t* strides, void* y, int64_t count, F f) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  for (int64_t i = 0; i < count; ++i) {
    static_cast<Y*>(y)[i] = f(a[i * strides[0]], b[i * strides[1]]);
  }
}

template <class From, class To>
void CastRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  MapOne<From, To>(in, strides, y, count, [](From x) { return ops::ConvertTo<To>(x); });
}

template <class T>
void WhereRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  const auto* keep = static_cast<const uint8_t*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  for (int64_t i = 0; i < count; ++i) {
    static_cast<T*>(y)[i] = keep[i * strides[0]] != 0 ? a[i * strides[1]] : b[i * strides[2]];
  }
}

enum class Math { kAdd, kSub, kMul, kMax, kMin };

template <Math op, class T>
void MathRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  MapTwo<T, T>(in, strides, y, count, [](T a, T b) {
    if constexpr (op == Math::kMax) return std::max(a, b);
    if constexpr (op == Math::kMin) return std::min(a, b);
    // Integers wrap around: C++ leaves signed overflow undefined.
    using W = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    const W x = static_cast<W>(a), z = static_cast<W>(b);
    return static_cast<T>(op == Math::kAdd ? x + z : op == Math::kSub ? x - z : x * z);
  });
}

enum class Order { kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

template <Order op, class T>
void OrderRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  MapTwo<T, Bool>(in, strides, y, count, [](T x, T z) {
    const Compute<T> a = static_cast<Compute<T>>(x), b = static_cast<Compute<T>>(z);
    if constexpr (op == Order::kEqual) return Bool(a == b);
    if constexpr (op == Order::kLess) return Bool(a < b);
    if constexpr (op == Order::kLessOrEqual) return Bool(a <= b);
    if constexpr (op == Order::kGreater) return Bool(a > b);
    if constexpr (op == Order::kGreaterOrEqual) return Bool(a >= b);
  });
}

enum class Logic { kAnd, kOr, kXor };

template <Logic op>
void LogicRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  MapTwo<Bool, Bool>(in, strides, y, count, [](bool a, bool b) {
    return Bool(op == Logic::kAnd ? a && b : op == Logic::kOr ? a || b : a != b);
  });
}

void NotRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  MapOne<Bool, Bool>(in, strides, y, count, [](bool a) { return Bool(!a); });
}

void IsNanRun(const void* const* in, const int64_t* strides, void* y, int64_t count) {
  MapOne<float, Bool>(in, strides, y, count, [](float a) { return Bool(a != a); });
}

std::vector<Candidate> Typed(const CpuTarget& target, const NodeView& node, RunFunction function) {
  TypedParams params;
  params.function = function;
  params.operands = node.num_inputs();
  params.out = static_cast<int>(node.num_inputs());
  params.out_size = DTypeSize(node.out_dtype());
  std::array<Shape, kMaxOperandsOfOne> shapes;
  for (size_t i = 0; i < params.operands; ++i) {
    params.sizes[i] = DTypeSize(node.dtype(i));
    shapes[i] = node.shape(i);
  }
  const auto walk = MakeBroadcastWalk<kMaxOperandsOfOne>(node.out_shape(), shapes);
  if (!walk.has_value()) return {};
  params.walk = *walk;
  params.batch_rows = node.batch_rows();
  Candidate candidate =
      MakeCandidate(target, node, "typed", RunTyped, params, static_cast<double>(walk->elements));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  for (size_t i = params.operands; i-- > 0;) {
    if (node.shape(i) == node.out_shape() && params.sizes[i] == params.out_size) {
      candidate.option.in_place = static_cast<int>(i);
    }
  }
  return {std::move(candidate)};
}

using NumberList = ops::TypeList<float, double, int32_t, int64_t, uint8_t, int8_t>;
using CastList =
    ops::TypeList<float, double, ops::Half, ops::BFloat16, int32_t, int64_t, uint8_t, int8_t, Bool>;

template <Math op>
RunFunction MathOf(DType dtype) {
  RunFunction function = nullptr;
  // Floats have vector kernels for the first three, and rules about NaN for the others.
  (void)ops::Dispatch(ops::TypeList<int32_t, int64_t, uint8_t, int8_t>{}, dtype,
                      [&]<typename T>() { function = MathRun<op, T>; });
  return function;
}

template <Order op>
RunFunction OrderOf(DType dtype) {
  RunFunction function = nullptr;
  (void)ops::Dispatch(NumberList{}, dtype, [&]<typename T>() { function = OrderRun<op, T>; });
  if (op == Order::kEqual && dtype == DType::kBool) function = OrderRun<op, Bool>;
  return function;
}

}  // namespace

std::vector<Candidate> PlanTypedMath(const CpuTarget& target, const NodeView& node) {
  if (node.num_inputs() != 2) return {};
  const DType dtype = node.dtype(0);
  const std::string& op = node.op();
  const RunFunction function = op == "Add"   ? MathOf<Math::kAdd>(dtype)
                               : op == "Sub" ? MathOf<Math::kSub>(dtype)
                               : op == "Mul" ? MathOf<Math::kMul>(dtype)
                               : op == "Max" ? MathOf<Math::kMax>(dtype)
                               : op == "Min" ? MathOf<Math::kMin>(dtype)
                                             : nullptr;
  if (function == nullptr) return {};
  return Typed(target, node, function);
}

std::vector<Candidate> PlanCompare(const CpuTarget& target, const NodeView& node) {
  const DType dtype = node.dtype(0);
  const std::string& op = node.op();
  const RunFunction function = op == "Equal"            ? OrderOf<Order::kEqual>(dtype)
                               : op == "Less"           ? OrderOf<Order::kLess>(dtype)
                               : op == "LessOrEqual"    ? OrderOf<Order::kLessOrEqual>(dtype)
                               : op == "Greater"        ? OrderOf<Order::kGreater>(dtype)
                               : op == "GreaterOrEqual" ? OrderOf<Order::kGreaterOrEqual>(dtype)
                                                        : nullptr;
  if (function == nullptr) return {};
  return Typed(target, node, function);
}

std::vector<Candidate> PlanLogic(const CpuTarget& target, const NodeView& node) {
  const std::string& op = node.op();
  return Typed(target, node,
               op == "And"   ? LogicRun<Logic::kAnd>
               : op == "Or"  ? LogicRun<Logic::kOr>
               : op == "Xor" ? LogicRun<Logic::kXor>
                             : NotRun);
}

std::vector<Candidate> PlanIsNan(const CpuTarget& target, const NodeView& node) {
  if (node.dtype(0) != DType::kFloat32) return {};
  return Typed(target, node, IsNanRun);
}

std::vector<Candidate> PlanCast(const CpuTarget& target, const NodeView& node) {
  RunFunction function = nullptr;
  (void)ops::Dispatch(CastList{}, node.dtype(0), [&]<typename From>() {
    (void)ops::Dispatch(CastList{}, node.out_dtype(),
                        [&]<typename To>() { function = CastRun<From, To>; });
  });
  if (function == nullptr) return {};
  return Typed(target, node, function);
}

std::vector<Candidate> PlanWhere(const CpuTarget& target, const NodeView& node) {
  RunFunction function = nullptr;
  switch (DTypeSize(node.out_dtype())) {
    case 1:
      function = WhereRun<uint8_t>;
      break;
    case 2:
      function = WhereRun<uint16_t>;
      break;
    case 4:
      function = WhereRun<uint32_t>;
      break;
    case 8:
      function = WhereRun<uint64_t>;
      break;
    default:
      return {};
  }
  return Typed(target, node, function);
}

}  // namespace reprise::cpu
