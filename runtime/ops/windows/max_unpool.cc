#include "runtime/ops/windows/max_unpool.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

constexpr size_t kPooled = 0, kPlaces = 1, kOutputShape = 2;
constexpr int64_t kMostOfWindow = 1 << 24;

// Returns the shape of the pooled operand, as far as windows cover it.
absl::StatusOr<SizeList> PooledShape(const Node& node, const SizeList& x) {
  if (x.size() < 3) return RankError("its operand has no dims after batch and channel");
  const size_t dims = x.size() - 2;
  const std::vector<int64_t> kernel = node.attributes.Ints("kernel_shape");
  const std::vector<int64_t> strides =
      node.attributes.Ints("strides", std::vector<int64_t>(dims, 1));
  const std::vector<int64_t> pads = node.attributes.Ints("pads", std::vector<int64_t>(2 * dims, 0));
  if (kernel.size() != dims || strides.size() != dims || pads.size() != 2 * dims) {
    return RankError(
        absl::StrCat("its attributes do not fit the ", dims, " dims after batch and channel"));
  }
  const auto fits = [](int64_t value, int64_t low) {
    return value >= low && value <= kMostOfWindow;
  };
  SizeList shape = {x[0], x[1]};
  for (size_t d = 0; d < dims; ++d) {
    if (!fits(kernel[d], 1) || !fits(strides[d], 1) || !fits(pads[d], 0) ||
        !fits(pads[d + dims], 0)) {
      return absl::InvalidArgumentError("kernel_shape, strides or pads are out of range");
    }
    Size size = 0;
    if (MultiplyOverflows(x[d + 2] - 1, strides[d], &size) ||
        AddOverflows(size, kernel[d] - pads[d] - pads[d + dims], &size) || size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("no dim has ", x[d + 2], " windows of ", kernel[d], " in strides of ",
                       strides[d], " with a padding of ", pads[d] + pads[d + dims]));
    }
    shape.push_back(size);
  }
  RETURN_IF_ERROR(CheckedNumElements(shape).status());
  return shape;
}

}  // namespace

absl::Status MaxUnpoolRule(InferContext& context) {
  RETURN_IF_ERROR(
      CheckType(context, kPooled, kFloats | TypeBit(DType::kInt8) | TypeBit(DType::kUInt8)));
  RETURN_IF_ERROR(CheckType(context, kPlaces, TypeBit(DType::kInt64)));
  const SizeList& x = context.shape(kPooled);
  if (context.shape(kPlaces) != x) {
    return absl::InvalidArgumentError(absl::StrCat("places ", ShapeToString(context.shape(kPlaces)),
                                                   " for elements ", ShapeToString(x)));
  }
  ASSIGN_OR_RETURN(SizeList shape, PooledShape(context.node(), x));
  if (context.has_input(kOutputShape)) {
    RETURN_IF_ERROR(CheckType(context, kOutputShape, TypeBit(DType::kInt64)));
    ASSIGN_OR_RETURN(const std::vector<Size> wanted, context.RequireSizes(kOutputShape));
    bool fits = wanted.size() == shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d) fits = wanted[d] >= shape[d];
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat("output_shape ", ShapeToString(wanted),
                                                     " does not hold ", ShapeToString(shape)));
    }
    shape.assign(wanted.begin(), wanted.end());
  }
  context.SetOutput(0, context.dtype(kPooled), std::move(shape));
  return absl::OkStatus();
}

absl::Status MaxUnpoolKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[kPooled];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const SizeList sizes, PooledShape(context.node, SizesOf(in.shape)));
  const Shape pooled = HintsOf(sizes);
  const int64_t count = NumElements(pooled);
  const bool same = pooled == out.shape;
  const Shape strides = Strides(out.shape);
  // The element of the result that is number `place` of the pooled operand.
  const auto at = [&](int64_t place) {
    if (same) return place;
    int64_t offset = 0;
    for (size_t d = pooled.size(); d-- > 0;) {
      offset += place % pooled[d] * strides[d];
      place /= pooled[d];
    }
    return offset;
  };
  if (out.bytes() > 0) std::memset(out.data, 0, out.bytes());
  const auto* const places = context.inputs[kPlaces].as<int64_t>();
  DispatchSize(in.dtype, [&]<typename T>() {
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      if (places[i] < 0 || places[i] >= count) {
        context.errors.Report(kPlaces, i, places[i], 0, count - 1);
        continue;
      }
      out.as<T>()[at(places[i])] = in.as<T>()[i];
    }
  });
  return absl::OkStatus();
}

}  // namespace reprise::ops
