#include "runtime/ops/windows/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::ops {
namespace {

Shape SpatialOf(const TensorView& in) { return Shape(in.shape.begin() + 2, in.shape.end()); }

absl::Status PoolRule(InferContext& context, uint32_t types) {
  RETURN_IF_ERROR(CheckType(context, 0, types));
  ASSIGN_OR_RETURN(const BasicWindows<Size> windows, WindowsOf(context.node(), context.shape(0)));
  const SizeList shape = WindowsShape<Size>(windows, context.shape(0)[0], context.shape(0)[1]);
  context.SetOutput(0, context.dtype(0), shape);
  context.SetOutput(1, DType::kInt64, shape);
  return absl::OkStatus();
}

// Returns the smallest value of T: -infinity where there is one.
template <typename T>
Compute<T> Lowest() {
  using C = Compute<T>;
  if constexpr (std::is_floating_point_v<C>) return -std::numeric_limits<C>::infinity();
  return std::numeric_limits<C>::lowest();
}

// Returns the number of element `offset` of a plane when the first dim is the fastest.
int64_t ByColumns(int64_t offset, const Shape& spatial) {
  int64_t result = 0;
  for (size_t d = spatial.size(); d-- > 0;) {
    result += offset % spatial[d] * NumElements(Shape(spatial.begin(), spatial.begin() + d));
    offset /= spatial[d];
  }
  return result;
}

// The terms that a p-norm sums, and the norm made from the sum.
class PowerSum {
 public:
  explicit PowerSum(const Node& node) : p_(PowerOf(node)) {}
  static int64_t PowerOf(const Node& node) { return node.attributes.Int("p", 2); }

  double Power(double x) const {
    return p_ == 2 ? x * x : p_ == 1 ? std::abs(x) : std::pow(std::abs(x), p_);
  }
  double Root(double sum) const {
    return p_ == 2 ? std::sqrt(sum) : p_ == 1 ? sum : std::pow(sum, 1.0 / p_);
  }

 private:
  const double p_;
};

// Computes for each window of one plane the sum of `term` of its elements.
template <typename T, typename Term>
void SumWindows(const Windows& w, const Shape& spatial, const T* x, std::vector<double>& sums,
                Term term) {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (int64_t tap = 0; tap < NumElements(w.kernel); ++tap) {
    ForEachRowOfTap(w, spatial, tap, [&](int64_t row, int64_t first, int64_t end, int64_t offset) {
      double* to = sums.data() + row * w.out.back();
      for (int64_t o = first; o < end; ++o) {
        to[o] += term(static_cast<Compute<T>>(x[offset + o * w.strides.back()]));
      }
    });
  }
}

absl::Status CheckPower(const Node& node) {
  const int64_t p = PowerSum::PowerOf(node);
  if (p >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no norm of p = ", p));
}

}  // namespace

absl::Status AveragePoolRule(InferContext& context) { return PoolRule(context, kFloats); }

absl::Status AveragePoolKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const Windows w, WindowsOf(context.node, in.shape));
  const bool include_pad = context.node.attributes.Int("count_include_pad", 0) != 0;
  const Shape spatial = SpatialOf(in);
  const int64_t in_plane = NumElements(spatial);
  const int64_t out_plane = NumElements(w.out);
  const int64_t planes = in.shape[0] * in.shape[1];
  const int64_t taps = NumElements(w.kernel);
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    // How many elements each window counts; the same in every plane.
    std::vector<int64_t> counted(out_plane);
    for (int64_t window = 0; window < out_plane; ++window) {
      ForEachTap(w, spatial, window, taps, [&](int64_t, int64_t, bool inside, bool padded) {
        if (inside || (include_pad && padded)) ++counted[window];
      });
    }
    std::vector<double> sums(out_plane);
    for (int64_t plane = 0; plane < planes; ++plane) {
      const T* x = in.as<T>() + plane * in_plane;
      SumWindows(w, spatial, x, sums, [](double element) { return element; });
      T* to = out.as<T>() + plane * out_plane;
      for (int64_t i = 0; i < out_plane; ++i) {
        const double mean = counted[i] == 0 ? 0 : sums[i] / static_cast<double>(counted[i]);
        to[i] = static_cast<T>(static_cast<Compute<T>>(mean));
      }
    }
  });
}

absl::Status MaxPoolRule(InferContext& context) { return PoolRule(context, kNumbers); }

absl::Status MaxPoolKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const Windows w, WindowsOf(context.node, in.shape));
  const bool by_columns = context.node.attributes.Int("storage_order", 0) != 0;
  const Shape spatial = SpatialOf(in);
  const int64_t in_plane = NumElements(spatial);
  const int64_t out_plane = NumElements(w.out);
  const int64_t planes = in.shape[0] * in.shape[1];
  const int64_t taps = NumElements(w.kernel);
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    const bool numbered = HasOutput(context, 1);
    const int64_t stride = w.strides.back();
    std::vector<C> best(out_plane);
    std::vector<int64_t> where(out_plane);
    for (int64_t plane = 0; plane < planes; ++plane) {
      const T* x = in.as<T>() + plane * in_plane;
      std::fill(best.begin(), best.end(), Lowest<T>());
      std::fill(where.begin(), where.end(), -1);
      for (int64_t tap = 0; tap < taps; ++tap) {
        ForEachRowOfTap(w, spatial, tap,
                        [&](int64_t row, int64_t first, int64_t end, int64_t offset) {
                          const T* from = x + offset;
                          C* to = best.data() + row * w.out.back();
                          // NaN stays, so that it is seen.
                          if (!numbered) {
                            for (int64_t o = first; o < end; ++o) {
                              const C value = from[o * stride];
                              to[o] = value > to[o] || value != value ? value : to[o];
                            }
                            return;
                          }
                          int64_t* number = where.data() + row * w.out.back();
                          for (int64_t o = first; o < end; ++o) {
                            const C value = from[o * stride];
                            if (number[o] >= 0 && !(value > to[o] || value != value)) continue;
                            to[o] = value;
                            number[o] = offset + o * stride;
                          }
                        });
      }
      for (int64_t i = 0; i < out_plane; ++i) {
        const int64_t at = plane * out_plane + i;
        if (HasOutput(context, 0)) context.outputs[0].as<T>()[at] = static_cast<T>(best[i]);
        if (!numbered) continue;
        const int64_t element =
            by_columns && where[i] >= 0 ? ByColumns(where[i], spatial) : where[i];
        context.outputs[1].as<int64_t>()[at] = plane * in_plane + element;
      }
    }
  });
}

absl::Status LpPoolRule(InferContext& context) {
  RETURN_IF_ERROR(CheckPower(context.node()));
  return PoolRule(context, kFloats);
}

absl::Status LpPoolKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const Windows w, WindowsOf(context.node, in.shape));
  const PowerSum sum_of(context.node);
  const Shape spatial = SpatialOf(in);
  const int64_t in_plane = NumElements(spatial);
  const int64_t out_plane = NumElements(w.out);
  const int64_t planes = in.shape[0] * in.shape[1];
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    std::vector<double> sums(out_plane);
    for (int64_t plane = 0; plane < planes; ++plane) {
      const T* x = in.as<T>() + plane * in_plane;
      SumWindows(w, spatial, x, sums, [&](double element) { return sum_of.Power(element); });
      T* to = context.outputs[0].as<T>() + plane * out_plane;
      for (int64_t i = 0; i < out_plane; ++i) {
        to[i] = static_cast<T>(static_cast<Compute<T>>(sum_of.Root(sums[i])));
      }
    }
  });
}

absl::Status GlobalPoolRule(InferContext& context) {
  RETURN_IF_ERROR(CheckPower(context.node()));
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  if (context.rank(0) < 3) {
    return RankError("its operand has no dims after batch and channel");
  }
  SizeList shape(context.shape(0).size(), 1);
  shape[0] = context.shape(0)[0];
  shape[1] = context.shape(0)[1];
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status GlobalAveragePoolKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const int64_t plane = NumElements(SpatialOf(in));
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    for (int64_t at = 0; at < in.shape[0] * in.shape[1]; ++at) {
      double sum = 0;
      for (int64_t i = 0; i < plane; ++i) {
        sum += static_cast<Compute<T>>(in.as<T>()[at * plane + i]);
      }
      context.outputs[0].as<T>()[at] =
          static_cast<T>(static_cast<Compute<T>>(sum / static_cast<double>(plane)));
    }
  });
}

absl::Status GlobalMaxPoolKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const int64_t plane = NumElements(SpatialOf(in));
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    for (int64_t at = 0; at < in.shape[0] * in.shape[1]; ++at) {
      Compute<T> best = Lowest<T>();
      for (int64_t i = 0; i < plane; ++i) {
        const Compute<T> value = in.as<T>()[at * plane + i];
        if (value > best || value != value) best = value;
      }
      context.outputs[0].as<T>()[at] = static_cast<T>(best);
    }
  });
}

absl::Status GlobalLpPoolKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const int64_t plane = NumElements(SpatialOf(in));
  const PowerSum sum_of(context.node);
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    for (int64_t at = 0; at < in.shape[0] * in.shape[1]; ++at) {
      double sum = 0;
      for (int64_t i = 0; i < plane; ++i) {
        sum += sum_of.Power(static_cast<Compute<T>>(in.as<T>()[at * plane + i]));
      }
      context.outputs[0].as<T>()[at] = static_cast<T>(static_cast<Compute<T>>(sum_of.Root(sum)));
    }
  });
}

}  // namespace reprise::ops
