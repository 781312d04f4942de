#include "runtime/ops/windows/col2im.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::ops {
namespace {

constexpr size_t kColumns = 0, kImageShape = 1, kBlockShape = 2;

// The places of blocks in an image, for columns of shape `x`.
template <typename Number>
struct Blocks {
  BasicWindows<Number> windows;
  absl::InlinedVector<Number, 6> image;
  Number channels = 0;
  int64_t taps = 0;  // elements of a block
};

template <typename Number>
absl::StatusOr<Blocks<Number>> BlocksOf(const Node& node, absl::Span<const Number> x,
                                        const std::vector<Number>& image,
                                        const std::vector<int64_t>& block) {
  if (image.size() != block.size() || image.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an image of ", image.size(), " dims does not fit blocks of ", block.size()));
  }
  Blocks<Number> blocks;
  blocks.image.assign(image.begin(), image.end());
  absl::InlinedVector<Number, 6> planes = {x[0], 1};
  planes.insert(planes.end(), image.begin(), image.end());
  RETURN_IF_ERROR(CheckedNumElements(planes).status());
  ASSIGN_OR_RETURN(blocks.windows, WindowsOf(node, planes, block));
  blocks.taps = NumElements(blocks.windows.kernel);
  blocks.channels = x[1] / blocks.taps;
  const Number count = NumElements(blocks.windows.out);
  if (x[1] != blocks.channels * blocks.taps || x[2] != count) {
    return absl::InvalidArgumentError(absl::StrCat("columns ", ShapeToString(x), " do not fit ",
                                                   count, " blocks of ", ShapeToString(block),
                                                   " in an image of ", ShapeToString(image)));
  }
  return blocks;
}

}  // namespace

absl::Status Col2ImRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, kColumns, kNumbers));
  RETURN_IF_ERROR(CheckType(context, kImageShape, TypeBit(DType::kInt64)));
  RETURN_IF_ERROR(CheckType(context, kBlockShape, TypeBit(DType::kInt64)));
  RETURN_IF_ERROR(CheckRank(context, kColumns, 3));
  ASSIGN_OR_RETURN(const std::vector<Size> image, context.RequireSizes(kImageShape));
  ASSIGN_OR_RETURN(const std::vector<int64_t> block, context.RequireInt64s(kBlockShape));
  ASSIGN_OR_RETURN(const Blocks<Size> blocks,
                   BlocksOf<Size>(context.node(), context.shape(kColumns), image, block));
  SizeList shape = {context.shape(kColumns)[0], blocks.channels};
  shape.insert(shape.end(), image.begin(), image.end());
  context.SetOutput(0, context.dtype(kColumns), std::move(shape));
  return absl::OkStatus();
}

absl::Status Col2ImKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[kColumns];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const Blocks<int64_t> blocks,
                   BlocksOf<int64_t>(context.node, in.shape, Int64sOf(context, kImageShape),
                                     Int64sOf(context, kBlockShape)));
  const Windows& w = blocks.windows;
  const int64_t plane = NumElements(blocks.image), count = NumElements(w.out);
  const int64_t columns = w.out.back(), stride = w.strides.back();
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    std::vector<C> sums(plane);
    for (int64_t channel = 0; channel < in.shape[0] * blocks.channels; ++channel) {
      std::fill(sums.begin(), sums.end(), C(0));
      for (int64_t tap = 0; tap < blocks.taps; ++tap) {
        const T* const from = in.as<T>() + (channel * blocks.taps + tap) * count;
        ForEachRowOfTap(w, blocks.image, tap,
                        [&](int64_t row, int64_t first, int64_t end, int64_t offset) {
                          for (int64_t o = first; o < end; ++o) {
                            C& sum = sums[offset + o * stride];
                            sum = static_cast<C>(sum + static_cast<C>(from[row * columns + o]));
                          }
                        });
      }
      std::transform(sums.begin(), sums.end(), out.as<T>() + channel * plane,
                     [](C sum) { return static_cast<T>(sum); });
    }
  });
}

}  // namespace reprise::ops
