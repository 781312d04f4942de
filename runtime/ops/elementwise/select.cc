#include "runtime/ops/elementwise/select.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
absl::Status WhereRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kBools));
  RETURN_IF_ERROR(CheckSameType(context, 1, 2));
  ASSIGN_OR_RETURN(SizeList shape, BroadcastInputs(context));
  context.SetOutput(0, context.dtype(1), std::move(shape));
  return absl::OkStatus();
}

absl::Status WhereKernel(const KernelContext& context) {
  const TensorView& condition = context.inputs[0];
  const TensorView& yes = context.inputs[1];
  const TensorView& no = context.inputs[2];
  const MutableTensorView& out = context.outputs[0];
  StridedWalk<3> walk(
      out.shape, {BroadcastStrides(condition.shape, out.shape),
                  BroadcastStrides(yes.shape, out.shape), BroadcastStrides(no.shape, out.shape)});
  DispatchSize(out.dtype, [&]<typename T>() {
    const int64_t c_stride = walk.inner_stride(0);
    const int64_t x_stride = walk.inner_stride(1);
    const int64_t y_stride = walk.inner_stride(2);
    walk.ForEachRow([&](int64_t position, const std::array<int64_t, 3>& offsets, int64_t count) {
      const Bool* c = condition.as<Bool>() + offsets[0];
      const T* x = yes.as<T>() + offsets[1];
      const T* y = no.as<T>() + offsets[2];
      T* z = out.as<T>() + position;
      for (int64_t i = 0; i < count; ++i) {
        z[i] = c[i * c_stride] ? x[i * x_stride] : y[i * y_stride];
      }
    });
  });
  return absl::OkStatus();
}

absl::Status ClipRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  for (size_t i : {1, 2}) {
    if (!context.has_input(i)) continue;
    // Before opset 11 bounds were float attributes, at any float type of the input.
    const bool float_bound = IsFloating(context.dtype(0)) && context.dtype(i) == DType::kFloat32;
    if (!float_bound) RETURN_IF_ERROR(CheckSameType(context, 0, i));
    if (NumElements(context.shape(i)) != 1) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is not a scalar"));
    }
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status ClipKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    const bool has_low = HasInput(context, 1);
    const bool has_high = HasInput(context, 2);
    constexpr bool kBounded = std::is_floating_point_v<C>;
    C largest = 0;
    if constexpr (std::is_same_v<C, T>) {
      largest = kBounded ? std::numeric_limits<C>::max() : C(0);
    } else {
      largest = LargestHalf(in.dtype);
    }
    const auto bound = [&](size_t i) {
      const TensorView& view = context.inputs[i];
      return view.dtype == in.dtype ? static_cast<C>(*view.as<T>())
                                    : static_cast<C>(*view.as<float>());
    };
    // A bound that is left out does not limit infinities.
    const C low = has_low ? bound(1) : -largest;
    const C high = has_high ? bound(2) : largest;
    const int64_t count = in.num_elements();
    for (int64_t i = 0; i < count; ++i) {
      C x = in.as<T>()[i];
      if (kBounded || has_low) x = x < low ? low : x;
      if (kBounded || has_high) x = x > high ? high : x;  // It wins when the two cross.
      context.outputs[0].as<T>()[i] = static_cast<T>(x);
    }
  });
}

absl::Status CastRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kAnyType));
  const int64_t* to = context.attributes().Get<int64_t>("to");
  if (to == nullptr) return absl::InvalidArgumentError("attribute 'to' is missing");
  ASSIGN_OR_RETURN(const DType dtype, DTypeFromOnnx(*to));
  context.SetOutput(0, dtype, context.shape(0));
  return absl::OkStatus();
}

absl::Status CastLikeRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kAnyType));
  context.SetOutput(0, context.dtype(1), context.shape(0));
  return absl::OkStatus();
}

absl::Status CastKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  if (in.dtype == out.dtype && in.dtype != DType::kBool) return CopyKernel(context);
  return Dispatch(AllList{}, in.dtype, [&]<typename From>() {
    (void)Dispatch(AllList{}, out.dtype, [&]<typename To>() {
      const From* x = in.as<From>();
      To* y = out.as<To>();
      const int64_t count = in.num_elements();
      for (int64_t i = 0; i < count; ++i) y[i] = CastTo<To>(x[i]);
    });
  });
}

absl::Status CopyKernel(const KernelContext& context) {
  const size_t bytes = context.inputs[0].bytes();
  if (bytes > 0) std::memcpy(context.outputs[0].data, context.inputs[0].data, bytes);
  return absl::OkStatus();
}

absl::Status DropoutRule(InferContext& context) {
  if (context.has_input(2)) {
    const Tensor* training = context.constant(2);
    if (training == nullptr || training->ToDoubles() != std::vector<double>{0}) {
      return absl::UnimplementedError("training mode is not supported");
    }
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  context.SetOutput(1, DType::kBool, context.shape(0));
  return absl::OkStatus();
}

absl::Status DropoutKernel(const KernelContext& context) {
  if (HasOutput(context, 1)) {
    std::fill_n(context.outputs[1].as<Bool>(), context.outputs[1].num_elements(), Bool(true));
  }
  return CopyKernel(context);
}

}  // namespace reprise::ops
