#include "runtime/ops/windows/affine_grid.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

constexpr size_t kTheta = 0, kSize = 1;
constexpr int64_t kMostDims = 3;

// Returns the place of element `i` of `size`.
double PlaceOf(int64_t i, int64_t size, bool align_corners) {
  const auto at = static_cast<double>(i), count = static_cast<double>(size);
  // A lone element lies in the first corner, as ONNX has it.
  if (align_corners) return size == 1 ? -1 : 2 * at / (count - 1) - 1;
  return (2 * at + 1) / count - 1;
}

}  // namespace

absl::Status AffineGridRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, kTheta, kFloats));
  RETURN_IF_ERROR(CheckType(context, kSize, TypeBit(DType::kInt64)));
  RETURN_IF_ERROR(CheckRank(context, kTheta, 3));
  ASSIGN_OR_RETURN(const std::vector<Size> size, context.RequireSizes(kSize));
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  const SizeList& theta = context.shape(kTheta);
  if ((dims != 2 && dims != kMostDims) || theta[0] != size[0] || theta[1] != dims ||
      theta[2] != dims + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("maps ", ShapeToString(theta), " do not fit images ", ShapeToString(size)));
  }
  SizeList shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(dims);
  RETURN_IF_ERROR(CheckedNumElements(shape).status());
  context.SetOutput(0, context.dtype(kTheta), std::move(shape));
  return absl::OkStatus();
}

absl::Status AffineGridKernel(const KernelContext& context) {
  const TensorView& theta = context.inputs[kTheta];
  const MutableTensorView& out = context.outputs[0];
  const bool align_corners = context.node.attributes.Int("align_corners", 0) != 0;
  const int64_t dims = out.shape.back();
  const Shape image(out.shape.begin() + 1, out.shape.end() - 1);
  const int64_t elements = NumElements(image);
  return Dispatch(FloatList{}, theta.dtype, [&]<typename T>() {
    T* to = out.as<T>();
    for (int64_t row = 0; row < out.shape[0]; ++row) {
      const T* const map = theta.as<T>() + row * dims * (dims + 1);
      for (int64_t element = 0; element < elements; ++element) {
        std::array<double, kMostDims> place = {};  // last dim first
        for (int64_t d = 0, rest = element; d < dims; ++d) {
          const int64_t size = image[dims - 1 - d];
          place[d] = PlaceOf(rest % size, size, align_corners);
          rest /= size;
        }
        for (int64_t d = 0; d < dims; ++d) {
          const T* const line = map + d * (dims + 1);
          double sum = static_cast<Compute<T>>(line[dims]);
          for (int64_t k = 0; k < dims; ++k) sum += place[k] * static_cast<Compute<T>>(line[k]);
          *to++ = static_cast<T>(static_cast<Compute<T>>(sum));
        }
      }
    }
  });
}

}  // namespace reprise::ops
