#include "runtime/ops/pool.h"

#include <algorithm>
#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/typed.h"
#include "runtime/ops/windows.h"

namespace reprise::ops {
namespace {

Shape SpatialOf(const TensorView& in) { return Shape(in.shape.begin() + 2, in.shape.end()); }

absl::Status PoolRule(InferContext& context, uint32_t types) {
  RETURN_IF_ERROR(CheckType(context, 0, types));
  ASSIGN_OR_RETURN(const Windows windows, WindowsOf(context.node(), context.shape(0)));
  const Shape shape = WindowsShape(windows, context.shape(0)[0], context.shape(0)[1]);
  context.SetOutput(0, context.dtype(0), shape);
  context.SetOutput(1, DType::kInt64, shape);
  return absl::OkStatus();
}

// The smallest value of T: -infinity where there is one.
template <typename T>
Compute<T> Lowest() {
  using C = Compute<T>;
  if constexpr (std::is_floating_point_v<C>) return -std::numeric_limits<C>::infinity();
  return std::numeric_limits<C>::lowest();
}

// The number of element `offset` of a plane when the first dim is the fastest.
int64_t ByColumns(int64_t offset, const Shape& spatial) {
  int64_t result = 0;
  for (size_t d = spatial.size(); d-- > 0;) {
    result += offset % spatial[d] * NumElements(Shape(spatial.begin(), spatial.begin() + d));
    offset /= spatial[d];
  }
  return result;
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
    for (int64_t at = 0; at < planes * out_plane; ++at) {
      const T* x = in.as<T>() + at / out_plane * in_plane;
      double sum = 0;
      int64_t counted = 0;
      ForEachTap(w, spatial, at % out_plane, taps,
                 [&](int64_t offset, int64_t, bool inside, bool padded) {
                   if (inside) sum += static_cast<Compute<T>>(x[offset]);
                   if (inside || (include_pad && padded)) ++counted;
                 });
      const double mean = counted == 0 ? 0 : sum / static_cast<double>(counted);
      out.as<T>()[at] = static_cast<T>(static_cast<Compute<T>>(mean));
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
    for (int64_t at = 0; at < planes * out_plane; ++at) {
      const T* x = in.as<T>() + at / out_plane * in_plane;
      Compute<T> best = Lowest<T>();
      int64_t where = -1;
      ForEachTap(w, spatial, at % out_plane, taps, [&](int64_t offset, int64_t, bool inside, bool) {
        if (!inside) return;
        const Compute<T> value = x[offset];
        // NaN stays, so that it is seen.
        if (where < 0 || value > best || value != value) {
          best = value;
          where = offset;
        }
      });
      if (HasOutput(context, 0)) context.outputs[0].as<T>()[at] = static_cast<T>(best);
      if (HasOutput(context, 1)) {
        const int64_t element = by_columns && where >= 0 ? ByColumns(where, spatial) : where;
        context.outputs[1].as<int64_t>()[at] = at / out_plane * in_plane + element;
      }
    }
  });
}

absl::Status GlobalPoolRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  if (context.rank(0) < 3) {
    return RankError("its operand has no dims after batch and channel");
  }
  Shape shape(context.shape(0).size(), 1);
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

}  // namespace reprise::ops
