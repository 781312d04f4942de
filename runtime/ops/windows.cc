#include "runtime/ops/windows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"

namespace reprise::ops {
namespace {

constexpr int64_t kLimit = 1 << 24;

bool InRange(int64_t value, int64_t low) { return value >= low && value <= kLimit; }

}  // namespace

absl::StatusOr<Windows> WindowsOf(const Node& node, const Shape& shape,
                                  std::vector<int64_t> kernel) {
  const size_t dims = shape.size() < 2 ? 0 : shape.size() - 2;
  Windows w;
  w.kernel = node.attributes.Ints("kernel_shape", std::move(kernel));
  w.strides = node.attributes.Ints("strides", std::vector<int64_t>(dims, 1));
  w.dilations = node.attributes.Ints("dilations", std::vector<int64_t>(dims, 1));
  const std::vector<int64_t> pads = node.attributes.Ints("pads", std::vector<int64_t>(2 * dims, 0));
  if (dims == 0 || w.kernel.size() != dims || w.strides.size() != dims ||
      w.dilations.size() != dims || pads.size() != 2 * dims) {
    return RankError(
        absl::StrCat("its attributes do not fit the ", dims, " dims after batch and channel"));
  }
  const std::string auto_pad = node.attributes.String("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "VALID" && auto_pad != "NOTSET" && !auto_pad.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no auto_pad '", auto_pad, "'"));
  }
  const bool ceil_mode = node.attributes.Int("ceil_mode", 0) != 0;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t size = shape[d + 2];
    if (!InRange(w.kernel[d], 1) || !InRange(w.strides[d], 1) || !InRange(w.dilations[d], 1) ||
        !InRange(pads[d], 0) || !InRange(pads[d + dims], 0)) {
      return absl::InvalidArgumentError("kernel, strides, dilations or pads are out of range");
    }
    const int64_t extent = (w.kernel[d] - 1) * w.dilations[d] + 1;
    int64_t begin = pads[d], end = pads[d + dims], out = 0;
    if (same) {
      out = (size + w.strides[d] - 1) / w.strides[d];
      const int64_t total = std::max<int64_t>(0, (out - 1) * w.strides[d] + extent - size);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    } else {
      if (auto_pad == "VALID") begin = end = 0;
      const int64_t room = size + begin + end - extent;
      // Rounding up, a window may reach behind all that there is, if it begins inside.
      if (room < 0 && !(ceil_mode && room > -w.strides[d])) {
        return absl::InvalidArgumentError(absl::StrCat("the window of ", extent,
                                                       " is larger than dim ", d + 2, " of ", size,
                                                       " with its padding of ", begin + end));
      }
      // Of more than minus one stride the ceiling is zero, as this division has it.
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

Shape WindowsShape(const Windows& windows, int64_t batch, int64_t channels) {
  Shape shape = {batch, channels};
  shape.insert(shape.end(), windows.out.begin(), windows.out.end());
  return shape;
}

}  // namespace reprise::ops
