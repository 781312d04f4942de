#include "runtime/ops/windows/deform_conv.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/windows/conv_op.h"

namespace reprise::ops {
namespace {

// Finding the elements that a tap reads costs as much as this many steps of a plain loop.
constexpr int64_t kStepsOfRead = 64;

// The elements of a plane that one tap of a window reads, and their weights.
struct Reads {
  std::vector<int64_t> at;
  std::vector<double> weight;
};

// Reads between the elements around `place`; elements beyond the plane, and without a weight, are
// left out.
void ReadAt(const std::vector<double>& place, absl::Span<const int64_t> spatial, double mask,
            Reads& reads) {
  reads.at.assign(1, 0);
  reads.weight.assign(1, mask);
  for (size_t d = 0; d < spatial.size(); ++d) {
    const auto size = static_cast<double>(spatial[d]);
    const size_t count = reads.at.size();
    const bool near = place[d] > -1 && place[d] < size;  // and not NaN
    const double floor = near ? std::floor(place[d]) : 0, share = near ? place[d] - floor : 0;
    size_t kept = 0;
    std::vector<int64_t> at;
    std::vector<double> weight;
    for (size_t i = 0; near && i < count; ++i) {
      for (int side = 0; side < 2; ++side) {
        const double to = floor + side, part = side == 0 ? 1 - share : share;
        if (to < 0 || to >= size || part == 0) continue;
        at.push_back(reads.at[i] * spatial[d] + static_cast<int64_t>(to));
        weight.push_back(reads.weight[i] * part);
        ++kept;
      }
    }
    reads.at = std::move(at);
    reads.weight = std::move(weight);
    if (kept == 0) return;
  }
}

// Calls `visit(row, group, window, tap, reads)` for all that is read.
template <typename T, typename Visit>
void ForEachRead(const DeformWindows& deform, const TensorView& x, const TensorView& offset,
                 const TensorView* mask, Visit visit) {
  const Windows& w = deform.windows;
  const size_t dims = w.kernel.size();
  const int64_t windows = NumElements(w.out);
  const absl::Span<const int64_t> spatial(x.shape.data() + 2, dims);
  std::vector<double> place(dims);
  Reads reads;
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    for (int64_t group = 0; group < deform.groups; ++group) {
      for (int64_t tap = 0; tap < deform.taps; ++tap) {
        const int64_t of = (row * deform.groups + group) * deform.taps + tap;
        for (int64_t window = 0; window < windows; ++window) {
          WatchWork(kStepsOfRead);
          int64_t window_rest = window, tap_rest = tap;
          for (size_t d = dims; d-- > 0;) {
            const int64_t at = window_rest % w.out[d] * w.strides[d] - w.pad_begin[d] +
                               tap_rest % w.kernel[d] * w.dilations[d];
            window_rest /= w.out[d];
            tap_rest /= w.kernel[d];
            const T by =
                offset
                    .as<T>()[(of * static_cast<int64_t>(dims) + static_cast<int64_t>(d)) * windows +
                             window];
            place[d] = static_cast<double>(at) + static_cast<double>(static_cast<Compute<T>>(by));
          }
          const double factor = mask == nullptr ? 1
                                                : static_cast<double>(static_cast<Compute<T>>(
                                                      mask->as<T>()[of * windows + window]));
          ReadAt(place, spatial, factor, reads);
          visit(row, group, window, tap, reads);
        }
      }
    }
  }
}

template <typename T>
double Sum(const T* plane, const Reads& reads) {
  double sum = 0;
  for (size_t i = 0; i < reads.at.size(); ++i) {
    // An element that a mask takes out counts as zero, even where it is infinite.
    if (reads.weight[i] == 0) continue;
    sum += reads.weight[i] * static_cast<double>(static_cast<Compute<T>>(plane[reads.at[i]]));
  }
  return sum;
}

template <typename List>
absl::StatusOr<BasicDeformWindows<typename List::value_type>> DeformWindowsOver(
    const Node& node, const List& x, std::vector<int64_t> kernel, const List& offset,
    const List* mask) {
  using Number = typename List::value_type;
  BasicDeformWindows<Number> deform;
  ASSIGN_OR_RETURN(deform.windows, WindowsOf(node, x, std::move(kernel)));
  deform.taps = NumElements(deform.windows.kernel);
  deform.groups = node.attributes.Int("offset_group", 1);
  if (deform.groups < 1 || x[1] % deform.groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(x[1], " channels do not split into offset_group = ", deform.groups));
  }
  const auto expected = [&](int64_t each) {
    return WindowsShape<Number>(deform.windows, x[0], deform.groups * deform.taps * each);
  };
  const List offsets = expected(static_cast<int64_t>(deform.windows.kernel.size()));
  if (offset != offsets) {
    return absl::InvalidArgumentError(absl::StrCat("offsets have the shape ", ShapeToString(offset),
                                                   ", expected ", ShapeToString(offsets)));
  }
  if (mask != nullptr && *mask != expected(1)) {
    return absl::InvalidArgumentError(absl::StrCat("the mask has the shape ", ShapeToString(*mask),
                                                   ", expected ", ShapeToString(expected(1))));
  }
  return deform;
}

}  // namespace

absl::StatusOr<DeformWindows> DeformWindowsOf(const Node& node, const Shape& x,
                                              std::vector<int64_t> kernel, const Shape& offset,
                                              const Shape* mask) {
  return DeformWindowsOver(node, x, std::move(kernel), offset, mask);
}

absl::StatusOr<BasicDeformWindows<Size>> DeformWindowsOf(const Node& node, const SizeList& x,
                                                         std::vector<int64_t> kernel,
                                                         const SizeList& offset,
                                                         const SizeList* mask) {
  return DeformWindowsOver(node, x, std::move(kernel), offset, mask);
}

absl::Status DeformConvRule(InferContext& context) {
  using enum DeformConvOp::Input;
  RETURN_IF_ERROR(CheckType(context, kX, kFloats));
  for (const size_t i : {kWeight, kOffset, kBias, kMask}) {
    if (context.has_input(i)) RETURN_IF_ERROR(CheckSameType(context, kX, i));
  }
  const SizeList &x = context.shape(kX), &weight = context.shape(kWeight);
  if (x.size() < 3) return RankError("its operand has no dims after batch and channel");
  RETURN_IF_ERROR(CheckRank(context, kWeight, context.rank(kX)));
  const std::vector<int64_t> kernel = PinnedAll(absl::Span<const Size>(weight).subspan(2));
  const int64_t group = DeformConvOp::From(context.attributes()).group;
  if (context.attributes().Ints("kernel_shape", kernel) != kernel || group < 1 ||
      weight[0] % group != 0 || x[1] % group != 0 || weight[1] != x[1] / group) {
    return absl::InvalidArgumentError(absl::StrCat("weights ", ShapeToString(weight), " of ", group,
                                                   " groups do not fit an operand ",
                                                   ShapeToString(x)));
  }
  if (context.has_input(kBias) && context.shape(kBias) != SizeList{weight[0]}) {
    return absl::InvalidArgumentError(absl::StrCat("a bias ", ShapeToString(context.shape(kBias)),
                                                   " does not fit ", weight[0], " maps"));
  }
  const SizeList mask = context.has_input(kMask) ? context.shape(kMask) : SizeList();
  ASSIGN_OR_RETURN(const BasicDeformWindows<Size> deform,
                   DeformWindowsOf(context.node(), x, kernel, context.shape(kOffset),
                                   context.has_input(kMask) ? &mask : nullptr));
  context.SetOutput(0, context.dtype(kX), WindowsShape<Size>(deform.windows, x[0], weight[0]));
  return absl::OkStatus();
}

absl::Status DeformConvKernel(const KernelContext& context) {
  using enum DeformConvOp::Input;
  const TensorView &x = context.inputs[kX], &weight = context.inputs[kWeight];
  const TensorView* const mask = HasInput(context, kMask) ? &context.inputs[kMask] : nullptr;
  const std::vector<int64_t> kernel(weight.shape.begin() + 2, weight.shape.end());
  ASSIGN_OR_RETURN(const DeformWindows deform,
                   DeformWindowsOf(context.node, x.shape, kernel, context.inputs[kOffset].shape,
                                   mask == nullptr ? nullptr : &mask->shape));
  const int64_t channels = x.shape[1], maps = weight.shape[0], each = weight.shape[1];
  const int64_t group_maps = maps / DeformConvOp::From(context.node.attributes).group;
  const int64_t windows = NumElements(deform.windows.out);
  const int64_t plane = NumElements(absl::Span<const int64_t>(x.shape).subspan(2));
  const int64_t shared = channels / deform.groups;
  return Dispatch(FloatList{}, x.dtype, [&]<typename T>() {
    std::vector<double> sums(x.shape[0] * maps * windows, 0);
    ForEachRead<T>(
        deform, x, context.inputs[kOffset], mask,
        [&](int64_t row, int64_t offsets, int64_t window, int64_t tap, const Reads& reads) {
          for (int64_t channel = offsets * shared; channel < (offsets + 1) * shared; ++channel) {
            const double value = Sum(x.as<T>() + (row * channels + channel) * plane, reads);
            const int64_t group = channel / each;
            WatchWork(group_maps);
            for (int64_t map = group * group_maps; map < (group + 1) * group_maps; ++map) {
              const T factor = weight.as<T>()[(map * each + channel % each) * deform.taps + tap];
              sums[(row * maps + map) * windows + window] +=
                  value * static_cast<double>(static_cast<Compute<T>>(factor));
            }
          }
        });
    for (size_t i = 0; i < sums.size(); ++i) {
      const int64_t map = static_cast<int64_t>(i) / windows % maps;
      const double bias =
          HasInput(context, kBias)
              ? static_cast<double>(static_cast<Compute<T>>(context.inputs[kBias].as<T>()[map]))
              : 0;
      context.outputs[0].as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(sums[i] + bias));
    }
  });
}

absl::Status DeformColumnsRule(InferContext& context) {
  using enum DeformColumnsOp::Input;
  RETURN_IF_ERROR(CheckType(context, kX, kFloats));
  for (const size_t i : {kOffset, kMask}) {
    if (context.has_input(i)) RETURN_IF_ERROR(CheckSameType(context, kX, i));
  }
  const SizeList& x = context.shape(kX);
  if (x.size() < 3) return RankError("its operand has no dims after batch and channel");
  const std::vector<int64_t> kernel = context.attributes().Ints("kernel_shape");
  if (kernel.size() + 2 != x.size()) return RankError("kernel_shape does not fit its operand");
  const SizeList mask = context.has_input(kMask) ? context.shape(kMask) : SizeList();
  ASSIGN_OR_RETURN(const BasicDeformWindows<Size> deform,
                   DeformWindowsOf(context.node(), x, kernel, context.shape(kOffset),
                                   context.has_input(kMask) ? &mask : nullptr));
  context.SetOutput(0, context.dtype(kX),
                    {x[0], NumElements(deform.windows.out), x[1] * deform.taps});
  return absl::OkStatus();
}

absl::Status DeformColumnsKernel(const KernelContext& context) {
  using enum DeformColumnsOp::Input;
  const TensorView& x = context.inputs[kX];
  const TensorView* const mask = HasInput(context, kMask) ? &context.inputs[kMask] : nullptr;
  ASSIGN_OR_RETURN(
      const DeformWindows deform,
      DeformWindowsOf(context.node, x.shape, context.node.attributes.Ints("kernel_shape"),
                      context.inputs[kOffset].shape, mask == nullptr ? nullptr : &mask->shape));
  const int64_t channels = x.shape[1], shared = channels / deform.groups;
  const int64_t windows = NumElements(deform.windows.out), columns = channels * deform.taps;
  const int64_t plane = NumElements(absl::Span<const int64_t>(x.shape).subspan(2));
  return Dispatch(FloatList{}, x.dtype, [&]<typename T>() {
    ForEachRead<T>(
        deform, x, context.inputs[kOffset], mask,
        [&](int64_t row, int64_t offsets, int64_t window, int64_t tap, const Reads& reads) {
          T* const to = context.outputs[0].as<T>() + (row * windows + window) * columns + tap;
          for (int64_t channel = offsets * shared; channel < (offsets + 1) * shared; ++channel) {
            const double value = Sum(x.as<T>() + (row * channels + channel) * plane, reads);
            to[channel * deform.taps] = static_cast<T>(static_cast<Compute<T>>(value));
          }
        });
  });
}

}  // namespace reprise::ops
