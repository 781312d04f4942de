#include "runtime/ops/pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/typed.h"

namespace reprise::ops {
namespace {

// The windows along each pooled dim.
struct Windows {
  std::vector<int64_t> kernel, strides, dilations, pad_begin, pad_end, out;
};

absl::StatusOr<Windows> WindowsOf(const Node& node, const Shape& shape) {
  const size_t dims = shape.size() < 2 ? 0 : shape.size() - 2;
  Windows w;
  w.kernel = node.attributes.Ints("kernel_shape");
  w.strides = node.attributes.Ints("strides", std::vector<int64_t>(dims, 1));
  w.dilations = node.attributes.Ints("dilations", std::vector<int64_t>(dims, 1));
  std::vector<int64_t> pads = node.attributes.Ints("pads", std::vector<int64_t>(2 * dims, 0));
  if (dims == 0 || w.kernel.size() != dims || w.strides.size() != dims ||
      w.dilations.size() != dims || pads.size() != 2 * dims) {
    return absl::InvalidArgumentError(
        absl::StrCat("its attributes do not fit ", dims, " pooled dims"));
  }
  const std::string auto_pad = node.attributes.String("auto_pad", "NOTSET");
  const bool ceil_mode = node.attributes.Int("ceil_mode", 0) != 0;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t size = shape[d + 2];
    constexpr int64_t kLimit = 1 << 24;
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1 || w.kernel[d] > kLimit ||
        w.strides[d] > kLimit || w.dilations[d] > kLimit || pads[d] < 0 || pads[d + dims] < 0 ||
        pads[d] > kLimit || pads[d + dims] > kLimit) {
      return absl::InvalidArgumentError("kernel, strides, dilations or pads are out of range");
    }
    const int64_t extent = (w.kernel[d] - 1) * w.dilations[d] + 1;
    int64_t begin = pads[d], end = pads[d + dims], out = 0;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      out = (size + w.strides[d] - 1) / w.strides[d];
      const int64_t total = std::max<int64_t>(0, (out - 1) * w.strides[d] + extent - size);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    } else {
      if (auto_pad == "VALID") begin = end = 0;
      const int64_t room = size + begin + end - extent;
      if (room < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the window of ", extent, " is larger than dim ", d + 2));
      }
      out = (room + (ceil_mode ? w.strides[d] - 1 : 0)) / w.strides[d] + 1;
      // A window must start inside the input or the padding before it.
      if (ceil_mode && (out - 1) * w.strides[d] >= size + begin) --out;
    }
    w.pad_begin.push_back(begin);
    w.pad_end.push_back(end);
    w.out.push_back(out);
  }
  return w;
}

}  // namespace

absl::Status AveragePoolRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  ASSIGN_OR_RETURN(const Windows windows, WindowsOf(context.node(), context.shape(0)));
  Shape shape = {context.shape(0)[0], context.shape(0)[1]};
  shape.insert(shape.end(), windows.out.begin(), windows.out.end());
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status AveragePoolKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const Windows w, WindowsOf(context.node, in.shape));
  const bool include_pad = context.node.attributes.Int("count_include_pad", 0) != 0;
  const size_t dims = w.kernel.size();
  const Shape spatial(in.shape.begin() + 2, in.shape.end());
  const Shape strides = Strides(spatial);
  const int64_t in_plane = NumElements(spatial);
  const int64_t out_plane = NumElements(w.out);
  const int64_t planes = in.shape[0] * in.shape[1];
  const int64_t taps = NumElements(w.kernel);
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    for (int64_t at = 0; at < planes * out_plane; ++at) {
      const T* x = in.as<T>() + at / out_plane * in_plane;
      double sum = 0;
      int64_t counted = 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        int64_t out_rest = at % out_plane, tap_rest = tap, offset = 0;
        bool inside = true, padded = true;
        for (size_t d = dims; d-- > 0;) {
          const int64_t position = out_rest % w.out[d] * w.strides[d] - w.pad_begin[d] +
                                   tap_rest % w.kernel[d] * w.dilations[d];
          out_rest /= w.out[d];
          tap_rest /= w.kernel[d];
          inside &= position >= 0 && position < spatial[d];
          padded &= position < spatial[d] + w.pad_end[d];
          offset += position * strides[d];
        }
        if (inside) sum += static_cast<Compute<T>>(x[offset]);
        if (inside || (include_pad && padded)) ++counted;
      }
      const double mean = counted == 0 ? 0 : sum / static_cast<double>(counted);
      out.as<T>()[at] = static_cast<T>(static_cast<Compute<T>>(mean));
    }
  });
}

}  // namespace reprise::ops
