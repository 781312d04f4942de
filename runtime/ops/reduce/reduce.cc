#include "runtime/ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/rounding.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/reduce_op.h"

namespace reprise::ops {
namespace {

// Returns the axes that a Reduce node reduces, given the values of its input 1.
absl::StatusOr<std::vector<int64_t>> ReducedAxes(const Node& node,
                                                 const std::vector<int64_t>& given, int64_t rank) {
  if (!given.empty()) return NormalizeAxes(given, rank);
  std::vector<int64_t> axes;
  if (node.attributes.Int("noop_with_empty_axes", 0) != 0) return axes;
  axes.resize(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

absl::Status ReduceRuleFor(InferContext& context, uint32_t types) {
  RETURN_IF_ERROR(CheckType(context, 0, types));
  std::vector<int64_t> given;
  if (context.has_input(1)) {
    ASSIGN_OR_RETURN(given, context.RequireInt64s(1));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                   ReducedAxes(context.node(), given, context.rank(0)));
  const bool keep = ReduceSumOp::From(context.attributes()).keepdims;
  SizeList shape;
  for (int64_t d = 0; d < context.rank(0); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), d)) {
      shape.push_back(context.shape(0)[d]);
    } else if (keep) {
      shape.push_back(1);
    }
  }
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

// Writes to `out` the result of `count` elements, which lie one after another from `row`.
using RowReduction = void (*)(const void* row, int64_t count, void* out);

// Calls `reduction` for each element of the output, with the elements that are reduced into it.
// Elements of `kBytes` bytes are only moved here, at any dtype.
template <size_t kBytes>
void ReduceRows(const TensorView& in, const std::vector<int64_t>& axes,
                const MutableTensorView& out, RowReduction reduction) {
  const Shape strides = Strides(in.shape);
  Shape kept_sizes = in.shape, reduced_sizes(in.shape.size(), 1);
  for (int64_t axis : axes) {
    reduced_sizes[axis] = in.shape[axis];
    kept_sizes[axis] = 1;
  }
  const int64_t reduced = NumElements(reduced_sizes);
  StridedWalk<1> outer(kept_sizes, {strides});
  StridedWalk<1> inner(reduced_sizes, {strides});
  const int64_t outer_stride = outer.inner_stride(0);
  const int64_t inner_stride = inner.inner_stride(0);
  const std::byte* const from = static_cast<const std::byte*>(in.data);
  std::byte* const to = static_cast<std::byte*>(out.data);
  std::vector<std::byte> gathered(reduced * kBytes);
  outer.ForEachRow([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const std::byte* const base = from + (offsets[0] + i * outer_stride) * kBytes;
      const std::byte* row = gathered.data();
      WatchWork(reduced);
      inner.ForEachRow([&](int64_t at, const std::array<int64_t, 1>& starts, int64_t length) {
        if (length == reduced && inner_stride == 1) {
          row = base;
          return;
        }
        for (int64_t k = 0; k < length; ++k) {
          std::memcpy(gathered.data() + (at + k) * kBytes,
                      base + (starts[0] + k * inner_stride) * kBytes, kBytes);
        }
      });
      reduction(row, reduced, to + (position + i) * kBytes);
    }
  });
}

// Computes out = F()(the elements that are reduced into it, as a span of T), for the dtypes T of
// `List`.
template <typename List, typename F>
absl::Status Reduce(const KernelContext& context, F) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(
      const std::vector<int64_t> axes,
      ReducedAxes(context.node, Int64sOf(context, 1), static_cast<int64_t>(in.shape.size())));
  RowReduction reduction = nullptr;
  RETURN_IF_ERROR(Dispatch(List{}, in.dtype, [&]<typename T>() {
    reduction = [](const void* row, int64_t count, void* out) {
      *static_cast<T*>(out) =
          F()(absl::Span<const T>(static_cast<const T*>(row), static_cast<size_t>(count)));
    };
  }));
  const MutableTensorView& out = context.outputs[0];
  switch (DTypeSize(in.dtype)) {
    case 1:
      ReduceRows<1>(in, axes, out, reduction);
      break;
    case 2:
      ReduceRows<2>(in, axes, out, reduction);
      break;
    case 4:
      ReduceRows<4>(in, axes, out, reduction);
      break;
    default:
      ReduceRows<8>(in, axes, out, reduction);
      break;
  }
  return absl::OkStatus();
}

template <typename T, typename F>
Sum<T> SumOf(absl::Span<const T> row, F f) {
  Sum<T> sum = 0;
  for (T x : row) sum += f(static_cast<Sum<T>>(static_cast<Compute<T>>(x)));
  return sum;
}

template <typename T>
T Extreme(absl::Span<const T> row, bool largest) {
  using C = Compute<T>;
  C best;
  if constexpr (std::is_same_v<C, bool>) {
    best = !largest;
  } else if constexpr (std::is_floating_point_v<C>) {
    best = largest ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
  } else {
    best = largest ? std::numeric_limits<C>::min() : std::numeric_limits<C>::max();
  }
  for (T element : row) {
    const C x = element;
    if ((largest ? x > best : x < best) || x != x) best = x;
    if (x != x) break;
  }
  return static_cast<T>(best);
}

}  // namespace

absl::Status ReduceRule(InferContext& context) { return ReduceRuleFor(context, kNumbers); }
absl::Status ReduceOrderRule(InferContext& context) { return ReduceRuleFor(context, kAnyType); }

absl::Status ReduceSumKernel(const KernelContext& context) {
  return Reduce<NumericList>(context, []<typename T>(absl::Span<const T> row) {
    return FromSum<T>(SumOf(row, [](auto x) { return x; }));
  });
}
absl::Status ReduceMeanKernel(const KernelContext& context) {
  return Reduce<NumericList>(context, []<typename T>(absl::Span<const T> row) {
    const Sum<T> sum = SumOf(row, [](auto x) { return x; });
    if constexpr (std::is_integral_v<T>) {
      if (row.empty()) return T(0);
      if constexpr (std::is_signed_v<T>) {
        return static_cast<T>(static_cast<int64_t>(sum) / static_cast<int64_t>(row.size()));
      } else {
        return static_cast<T>(sum / row.size());
      }
    } else {
      return FromSum<T>(sum / static_cast<double>(row.size()));
    }
  });
}
absl::Status ReduceMaxKernel(const KernelContext& context) {
  return Reduce<AllList>(
      context, []<typename T>(absl::Span<const T> row) { return Extreme(row, /*largest=*/true); });
}
absl::Status ReduceMinKernel(const KernelContext& context) {
  return Reduce<AllList>(
      context, []<typename T>(absl::Span<const T> row) { return Extreme(row, /*largest=*/false); });
}
absl::Status ReduceProdKernel(const KernelContext& context) {
  return Reduce<NumericList>(context, []<typename T>(absl::Span<const T> row) {
    Sum<T> product = 1;
    for (T x : row) product *= static_cast<Sum<T>>(static_cast<Compute<T>>(x));
    return FromSum<T>(product);
  });
}
absl::Status ReduceL1Kernel(const KernelContext& context) {
  return Reduce<NumericList>(context, []<typename T>(absl::Span<const T> row) {
    Sum<T> sum = 0;
    for (T element : row) {
      const Sum<T> x = static_cast<Sum<T>>(static_cast<Compute<T>>(element));
      sum += static_cast<Compute<T>>(element) < 0 ? 0 - x : x;
    }
    return FromSum<T>(sum);
  });
}
absl::Status ReduceL2Kernel(const KernelContext& context) {
  return Reduce<NumericList>(context, []<typename T>(absl::Span<const T> row) {
    const double sum = static_cast<double>(SumOf(row, [](auto x) { return x * x; }));
    return FromSum<T>(static_cast<Sum<T>>(std::sqrt(sum)));
  });
}
absl::Status ReduceSumSquareKernel(const KernelContext& context) {
  return Reduce<NumericList>(context, []<typename T>(absl::Span<const T> row) {
    return FromSum<T>(SumOf(row, [](auto x) { return x * x; }));
  });
}
absl::Status ReduceLogSumKernel(const KernelContext& context) {
  return Reduce<NumericList>(context, []<typename T>(absl::Span<const T> row) {
    const Sum<T> sum = SumOf(row, [](auto x) { return x; });
    // Sums of integers are kept without a sign.
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      return ConvertTo<T>(std::log(static_cast<double>(static_cast<int64_t>(sum))));
    } else {
      return ConvertTo<T>(std::log(static_cast<double>(sum)));
    }
  });
}
absl::Status ReduceLogSumExpKernel(const KernelContext& context) {
  return Reduce<NumericList>(context, []<typename T>(absl::Span<const T> row) {
    const double largest = static_cast<double>(static_cast<Compute<T>>(Extreme(row, true)));
    if (std::isinf(largest)) return ConvertTo<T>(largest);
    double sum = 0;
    for (T x : row) sum += std::exp(static_cast<double>(static_cast<Compute<T>>(x)) - largest);
    return ConvertTo<T>(largest + std::log(sum));
  });
}

namespace {

struct AxisView {
  int64_t axis;
  int64_t outer;
  int64_t size;
  int64_t inner;
};

AxisView SplitAt(const Shape& shape, int64_t axis) {
  const absl::Span<const int64_t> sizes = shape;
  return {axis, NumElements(sizes.first(axis)), sizes[axis], NumElements(sizes.subspan(axis + 1))};
}

absl::Status ArgKernel(const KernelContext& context, bool largest) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", 0, static_cast<int64_t>(in.shape.size())));
  const bool last = ArgMaxOp::From(context.node.attributes).select_last_index;
  const AxisView view = SplitAt(in.shape, axis);
  int64_t* y = context.outputs[0].as<int64_t>();
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        const T* x = in.as<T>() + o * view.size * view.inner + i;
        WatchWork(view.size);
        *y++ = PlaceOfBest(x, view.size, view.inner, largest, last);
      }
    }
  });
}

}  // namespace

absl::Status ArgRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", 0, context.rank(0)));
  SizeList shape = context.shape(0);
  if (shape[axis] == 0) return absl::InvalidArgumentError("the reduced dim has size 0");
  if (ReduceSumOp::From(context.attributes()).keepdims) {
    shape[axis] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
  context.SetOutput(0, DType::kInt64, std::move(shape));
  return absl::OkStatus();
}

absl::Status ArgMaxKernel(const KernelContext& context) { return ArgKernel(context, true); }
absl::Status ArgMinKernel(const KernelContext& context) { return ArgKernel(context, false); }

absl::Status TopKRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  ASSIGN_OR_RETURN(const std::vector<Size> k, context.RequireSizes(1));
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", -1, context.rank(0)));
  SizeList shape = context.shape(0);
  if (k.size() != 1) return absl::InvalidArgumentError("k is not one number");
  if (k[0] < 0 || k[0] > shape[axis]) {
    return CheckRange("k", k[0].hint(), 0, shape[axis].hint());
  }
  shape[axis] = k[0];
  context.SetOutput(0, context.dtype(0), shape);
  context.SetOutput(1, DType::kInt64, shape);
  return absl::OkStatus();
}

absl::Status TopKKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", -1, static_cast<int64_t>(in.shape.size())));
  const bool largest = TopKOp::From(context.node.attributes).largest;
  const AxisView view = SplitAt(in.shape, axis);
  const int64_t k = Int64sOf(context, 1)[0];
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    std::vector<int64_t> order(view.size);
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        const T* x = in.as<T>() + o * view.size * view.inner + i;
        WatchWork(4 * view.size);
        std::iota(order.begin(), order.end(), 0);
        // NaN counts as the largest, so that the order is strict; ties go to the lower index.
        const auto before = [&](int64_t left, int64_t right) {
          const Compute<T> a = x[left * view.inner], b = x[right * view.inner];
          const bool a_nan = a != a, b_nan = b != b;
          if (a_nan != b_nan) return a_nan == largest;
          if (a_nan || a == b) return left < right;
          return largest ? a > b : a < b;
        };
        std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
        for (int64_t j = 0; j < k; ++j) {
          const int64_t to = (o * k + j) * view.inner + i;
          if (HasOutput(context, 0)) context.outputs[0].as<T>()[to] = x[order[j] * view.inner];
          if (HasOutput(context, 1)) context.outputs[1].as<int64_t>()[to] = order[j];
        }
      }
    }
  });
}

absl::Status CumSumRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  RETURN_IF_ERROR(CheckType(context, 1, kIndices));
  if (NumElements(context.shape(1)) != 1) {
    return absl::InvalidArgumentError("the axis is not a scalar");
  }
  if (context.rank(0) == 0) return RankError("a scalar has no axis to add up along");
  if (context.constant(1) != nullptr) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> axis, context.RequireInt64s(1));
    RETURN_IF_ERROR(NormalizeAxis(axis[0], context.rank(0)).status());
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

namespace {

// Combines the elements of `in` up to each one along the axis, by `add(total, x)`.
template <typename F>
absl::Status Accumulate(const KernelContext& context, int start, F add) {
  const TensorView& in = context.inputs[0];
  const auto rank = static_cast<int64_t>(in.shape.size());
  int64_t axis = CheckedValue(context, 1, 0, Int64sOf(context, 1)[0], -rank, rank - 1);
  if (axis < 0) axis += rank;
  const bool exclusive = CumSumOp::From(context.node.attributes).exclusive;
  const bool reverse = CumSumOp::From(context.node.attributes).reverse;
  const AxisView view = SplitAt(in.shape, axis);
  // Fewer neighbours are followed one by one: a total that stays in a register is ready sooner.
  constexpr int64_t kFewNeighbours = 8;
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    const T* from = in.as<T>();
    T* to = context.outputs[0].as<T>();
    const auto take = [&](Sum<T> total, int64_t at) {
      const Sum<T> next = add(total, static_cast<Sum<T>>(static_cast<Compute<T>>(from[at])));
      to[at] = FromSum<T>(exclusive ? total : next);
      return next;
    };
    // Where the elements of step `step` begin.
    const auto place = [&](int64_t outer, int64_t step) {
      return (outer * view.size + (reverse ? view.size - 1 - step : step)) * view.inner;
    };
    std::vector<Sum<T>> totals(view.inner);
    for (int64_t o = 0; o < view.outer; ++o) {
      if (view.inner < kFewNeighbours) {
        for (int64_t i = 0; i < view.inner; ++i) {
          Sum<T> total = start;
          for (int64_t step = 0; step < view.size; ++step) total = take(total, place(o, step) + i);
        }
        continue;
      }
      std::fill(totals.begin(), totals.end(), Sum<T>(start));
      for (int64_t step = 0; step < view.size; ++step) {
        const int64_t at = place(o, step);
        for (int64_t i = 0; i < view.inner; ++i) totals[i] = take(totals[i], at + i);
      }
    }
  });
}

}  // namespace

absl::Status CumSumKernel(const KernelContext& context) {
  return Accumulate(context, 0, [](auto total, auto x) { return total + x; });
}

absl::Status CumProdKernel(const KernelContext& context) {
  return Accumulate(context, 1, [](auto total, auto x) { return total * x; });
}

}  // namespace reprise::ops
