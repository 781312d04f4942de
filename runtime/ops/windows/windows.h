// The windows that convolution and pooling slide over the dims after batch and channel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/node.h"
#include "runtime/shapes/size.h"

namespace reprise::ops {

// One entry a dim. Window `o` of dim `d` holds the positions
// o * strides[d] - pad_begin[d] + k * dilations[d] for k in [0, kernel[d]).
// `Number`: int64_t, or Size while a model is read.
template <typename Number>
struct BasicWindows {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<Number> pad_begin, pad_end, out;
};
using Windows = BasicWindows<int64_t>;

// An attribute of pools that a pass has made: the pads at the end of each dim that are there in
// place of ceil_mode. They add no window where the other pads leave no room for one.
inline constexpr char kRoundingPads[] = "reprise.rounding_pads";

// Returns the windows of `node` over an operand of `shape` [batch, channel, dims...], from the
// attributes kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. `kernel` stands for a
// kernel_shape that is left out; without it the node is a pool. INVALID_ARGUMENT for attributes
// that do not fit, or a window larger than a dim (of a pool: by two strides).
absl::StatusOr<Windows> WindowsOf(const Node& node, const Shape& shape,
                                  std::vector<int64_t> kernel = {});
absl::StatusOr<BasicWindows<Size>> WindowsOf(const Node& node, const SizeList& shape,
                                             std::vector<int64_t> kernel = {});

// The windows of a transposed convolution: it spreads each element of its operand over a window of
// its result. `windows` slide over the result, of `spatial` dims, and there is one for each element
// of the operand: `windows.out` are the operand's dims.
template <typename Number>
struct BasicTransposedWindows {
  BasicWindows<Number> windows;
  absl::InlinedVector<Number, 6> spatial;
};
using TransposedWindows = BasicTransposedWindows<int64_t>;

// Returns the same for a ConvTranspose, by the attributes of WindowsOf but ceil_mode, and by
// output_padding and output_shape. INVALID_ARGUMENT for attributes that do not fit, or an empty
// result.
absl::StatusOr<TransposedWindows> TransposedWindowsOf(const Node& node, const Shape& shape,
                                                      std::vector<int64_t> kernel);
absl::StatusOr<BasicTransposedWindows<Size>> TransposedWindowsOf(const Node& node,
                                                                 const SizeList& shape,
                                                                 std::vector<int64_t> kernel);

// [batch, channels, out...].
template <typename Number>
absl::InlinedVector<Number, 6> WindowsShape(const BasicWindows<Number>& windows, Number batch,
                                            Number channels) {
  absl::InlinedVector<Number, 6> shape = {batch, channels};
  shape.insert(shape.end(), windows.out.begin(), windows.out.end());
  return shape;
}

// Walks the taps of one window. `visit(offset, tap, inside, padded)`: `offset` is the element
// within the operand's plane, valid when `inside`; `padded` says that the tap is not beyond the
// padding.
template <typename Visit>
void ForEachTap(const Windows& w, const Shape& spatial, int64_t window, int64_t taps, Visit visit) {
  const size_t dims = w.kernel.size();
  for (int64_t tap = 0; tap < taps; ++tap) {
    WatchWork(4);
    int64_t window_rest = window, tap_rest = tap, offset = 0, stride = 1;
    bool inside = true, padded = true;
    for (size_t d = dims; d-- > 0;) {
      const int64_t position = window_rest % w.out[d] * w.strides[d] - w.pad_begin[d] +
                               tap_rest % w.kernel[d] * w.dilations[d];
      window_rest /= w.out[d];
      tap_rest /= w.kernel[d];
      inside &= position >= 0 && position < spatial[d];
      padded &= position < spatial[d] + w.pad_end[d];
      offset += position * stride;
      stride *= spatial[d];
    }
    visit(offset, tap, inside, padded);
  }
}

// Walks the rows of windows along the last dim. `visit(row, first, end, offset)`: in row `row`,
// the windows [first, end) of [0, out.back()) have tap `tap` inside the operand, window `o` at
// element `offset + o * strides.back()` of its plane. Rows in which no window has it inside are
// left out.
template <typename Visit>
void ForEachRowOfTap(const Windows& w, const Shape& spatial, int64_t tap, Visit visit) {
  const size_t last = w.kernel.size() - 1;
  const int64_t stride = w.strides[last], size = spatial[last];
  const int64_t shift = tap % w.kernel[last] * w.dilations[last] - w.pad_begin[last];
  const int64_t from = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t to = size <= shift ? 0 : (size - shift - 1) / stride + 1;
  const int64_t first = std::min(from, w.out[last]);
  const int64_t end = std::clamp(to, first, w.out[last]);
  const int64_t rows = NumElements(w.out) / std::max<int64_t>(1, w.out[last]);
  for (int64_t row = 0; row < rows; ++row) {
    WatchWork(end - first + 1);
    int64_t window = row, rest = tap / w.kernel[last], offset = shift, plane = size;
    bool inside = true;
    for (size_t d = last; d-- > 0;) {
      const int64_t position =
          window % w.out[d] * w.strides[d] - w.pad_begin[d] + rest % w.kernel[d] * w.dilations[d];
      window /= w.out[d];
      rest /= w.kernel[d];
      inside &= position >= 0 && position < spatial[d];
      offset += position * plane;
      plane *= spatial[d];
    }
    if (inside) visit(row, first, end, offset);
  }
}

}  // namespace reprise::ops
