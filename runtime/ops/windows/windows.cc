#include "runtime/ops/windows/windows.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/graph/shape.h"

namespace reprise::ops {
namespace {

constexpr int64_t kLimit = 1 << 24;

bool InRange(int64_t value, int64_t low) { return value >= low && value <= kLimit; }

// Reads the values that the attributes give. `windows` has no `out`.
template <typename Number>
struct Given {
  BasicWindows<Number> windows;
  std::string auto_pad;
  bool same() const { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }
};

template <typename Number>
absl::StatusOr<Given<Number>> GivenBy(const Node& node, size_t rank, std::vector<int64_t> kernel) {
  const size_t dims = rank < 2 ? 0 : rank - 2;
  Given<Number> given;
  BasicWindows<Number>& w = given.windows;
  w.kernel = node.attributes.Ints("kernel_shape", std::move(kernel));
  w.strides = node.attributes.Ints("strides", std::vector<int64_t>(dims, 1));
  w.dilations = node.attributes.Ints("dilations", std::vector<int64_t>(dims, 1));
  const std::vector<int64_t> pads = node.attributes.Ints("pads", std::vector<int64_t>(2 * dims, 0));
  if (dims == 0 || w.kernel.size() != dims || w.strides.size() != dims ||
      w.dilations.size() != dims || pads.size() != 2 * dims) {
    return RankError(
        absl::StrCat("its attributes do not fit the ", dims, " dims after batch and channel"));
  }
  given.auto_pad = node.attributes.String("auto_pad", "NOTSET");
  const bool valid = given.auto_pad == "VALID";
  if (!given.same() && !valid && given.auto_pad != "NOTSET" && !given.auto_pad.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no auto_pad '", given.auto_pad, "'"));
  }
  for (size_t d = 0; d < dims; ++d) {
    if (!InRange(w.kernel[d], 1) || !InRange(w.strides[d], 1) || !InRange(w.dilations[d], 1) ||
        !InRange(pads[d], 0) || !InRange(pads[d + dims], 0)) {
      return absl::InvalidArgumentError("kernel, strides, dilations or pads are out of range");
    }
    w.pad_begin.push_back(valid ? 0 : pads[d]);
    w.pad_end.push_back(valid ? 0 : pads[d + dims]);
  }
  int64_t elements = 1;
  for (int64_t size : w.kernel) {
    if (size > kLimit / elements) {
      return absl::InvalidArgumentError(absl::StrCat("a window of ", ShapeToString(w.kernel),
                                                     " has more than ", kLimit, " elements"));
    }
    elements *= size;
  }
  return given;
}

template <typename Number>
int64_t KernelExtent(const BasicWindows<Number>& w, size_t d) {
  return (w.kernel[d] - 1) * w.dilations[d] + 1;
}

// Sets the padding of dim `d`: `total`, the odd one at the end or at the beginning.
template <typename Number>
void PadBy(Number total, absl::string_view auto_pad, size_t d, BasicWindows<Number>& w) {
  w.pad_begin[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  w.pad_end[d] = total - w.pad_begin[d];
}

template <typename Number>
absl::StatusOr<BasicWindows<Number>> WindowsOver(const Node& node, absl::Span<const Number> shape,
                                                 std::vector<int64_t> kernel) {
  // Pools have windows that reach past all elements; convolutions have none.
  const bool pools = kernel.empty();
  ASSIGN_OR_RETURN(Given<Number> given, GivenBy<Number>(node, shape.size(), std::move(kernel)));
  BasicWindows<Number>& w = given.windows;
  const bool ceil_mode = node.attributes.Int("ceil_mode", 0) != 0;
  // The part of the pads at the end that stands for rounding up.
  const std::vector<int64_t> rounding =
      node.attributes.Ints(kRoundingPads, std::vector<int64_t>(w.kernel.size(), 0));
  if (rounding.size() != w.kernel.size() ||
      absl::c_any_of(rounding, [](int64_t pads) { return !InRange(pads, 0); })) {
    return absl::InvalidArgumentError(absl::StrCat(kRoundingPads, " does not fit the kernel"));
  }
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    const int64_t stride = w.strides[d], extent = KernelExtent(w, d);
    const Number size = shape[d + 2];
    Number out = 0;
    if (given.same()) {
      out = (size + stride - 1) / stride;
      PadBy(Largest(Number(0), (out - 1) * stride + extent - size), given.auto_pad, d, w);
    } else {
      const Number room = size + w.pad_begin[d] + w.pad_end[d] - rounding[d] - extent;
      // onnxruntime rounds the quotient to zero, with and without ceil_mode: a window that lacks
      // less than a stride counts, and one that lacks less than two does not.
      // An empty dim has no windows, as with the pads of SAME.
      const bool lacks = room < 0;
      const bool is_empty = lacks && !pools && size == 0 && room == -1;
      if (lacks && !is_empty && (!pools || room <= -2 * stride)) {
        return absl::InvalidArgumentError(
            absl::StrCat("the window of ", extent, " is larger than dim ", d + 2, " of ", size,
                         " with its padding of ", w.pad_begin[d] + w.pad_end[d]));
      }
      const int64_t more = ceil_mode ? stride - 1 : rounding[d];
      out = is_empty ? Number(0) : (room + (more > 0 && room > 0 ? more : 0)) / stride + 1;
      // A window must start inside the input or the padding before it: one more at most does not.
      if (ceil_mode) {
        const Number inside = FloorDivide(size + w.pad_begin[d] - 1, Number(stride)) + 1;
        out = Least(out, Largest(out - 1, inside));
      }
    }
    w.out.push_back(out);
  }
  return std::move(w);
}

template <typename Number>
absl::StatusOr<BasicTransposedWindows<Number>> TransposedOver(const Node& node,
                                                              absl::Span<const Number> shape,
                                                              std::vector<int64_t> kernel) {
  ASSIGN_OR_RETURN(Given<Number> given, GivenBy<Number>(node, shape.size(), std::move(kernel)));
  BasicTransposedWindows<Number> result = {.windows = std::move(given.windows)};
  BasicWindows<Number>& w = result.windows;
  const size_t dims = w.kernel.size();
  const std::vector<int64_t> more =
      node.attributes.Ints("output_padding", std::vector<int64_t>(dims, 0));
  std::vector<int64_t> wanted = node.attributes.Ints("output_shape");
  if (wanted.size() == dims + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (more.size() != dims || (!wanted.empty() && wanted.size() != dims)) {
    return RankError(absl::StrCat("output_padding or output_shape does not fit the ", dims,
                                  " dims after batch and channel"));
  }
  for (size_t d = 0; d < dims; ++d) {
    const int64_t stride = w.strides[d], extent = KernelExtent(w, d);
    const Number size = shape[d + 2];
    if (more[d] < 0 || more[d] >= std::max(stride, w.dilations[d])) {
      return absl::InvalidArgumentError(absl::StrCat("output_padding ", more[d], " of dim ", d + 2,
                                                     " is not below its stride ", stride,
                                                     " or dilation ", w.dilations[d]));
    }
    const Number seen = (size - 1) * stride + extent;
    const auto pad_to = [&](Number out) {
      PadBy(Largest(Number(0), seen + more[d] - out),
            given.auto_pad == "SAME_UPPER" ? "SAME_UPPER" : "SAME_LOWER", d, w);
    };
    Number out = 0;
    if (!wanted.empty()) {
      out = wanted[d];
      pad_to(out);
    } else {
      if (given.same()) pad_to(size * stride);
      out = seen + more[d] - w.pad_begin[d] - w.pad_end[d];
    }
    const Number room = out + w.pad_begin[d] + w.pad_end[d] - seen;
    if (out < 1 || out > kLimit || room >= stride + more[d]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a dim ", d + 2, " of ", out, " does not fit windows of ", extent, " in strides of ",
          stride, " and a padding of ", w.pad_begin[d] + w.pad_end[d], " over ", size));
    }
    w.out.push_back(size);
    result.spatial.push_back(out);
  }
  return result;
}

}  // namespace

absl::StatusOr<Windows> WindowsOf(const Node& node, const Shape& shape,
                                  std::vector<int64_t> kernel) {
  return WindowsOver<int64_t>(node, shape, std::move(kernel));
}

absl::StatusOr<BasicWindows<Size>> WindowsOf(const Node& node, const SizeList& shape,
                                             std::vector<int64_t> kernel) {
  return WindowsOver<Size>(node, shape, std::move(kernel));
}

absl::StatusOr<TransposedWindows> TransposedWindowsOf(const Node& node, const Shape& shape,
                                                      std::vector<int64_t> kernel) {
  return TransposedOver<int64_t>(node, shape, std::move(kernel));
}

absl::StatusOr<BasicTransposedWindows<Size>> TransposedWindowsOf(const Node& node,
                                                                 const SizeList& shape,
                                                                 std::vector<int64_t> kernel) {
  return TransposedOver<Size>(node, shape, std::move(kernel));
}

}  // namespace reprise::ops
