// The windows that convolution and pooling slide over the dims after batch and channel.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace reprise::ops {

// One entry a dim. Window `o` of dim `d` holds the positions
// o * strides[d] - pad_begin[d] + k * dilations[d] for k in [0, kernel[d]).
struct Windows {
  std::vector<int64_t> kernel, strides, dilations, pad_begin, pad_end, out;
};

// The windows of `node` over an operand of `shape` [batch, channel, dims...], from the attributes
// kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. `kernel` stands for a
// kernel_shape that is left out. INVALID_ARGUMENT for attributes that do not fit, or a window
// larger than a dim.
absl::StatusOr<Windows> WindowsOf(const Node& node, const Shape& shape,
                                  std::vector<int64_t> kernel = {});

// [batch, channels, out...].
Shape WindowsShape(const Windows& windows, int64_t batch, int64_t channels);

// Walks the taps of one window. `visit(offset, tap, inside, padded)`: `offset` is the element
// within the operand's plane, valid when `inside`; `padded` says that the tap is not beyond the
// padding.
template <typename Visit>
void ForEachTap(const Windows& w, const Shape& spatial, int64_t window, int64_t taps, Visit visit) {
  const size_t dims = w.kernel.size();
  for (int64_t tap = 0; tap < taps; ++tap) {
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

}  // namespace reprise::ops
