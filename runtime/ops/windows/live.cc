#include "runtime/ops/windows/live.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

Extent DeclaredExtent(const Node& node) {
  return {.offset = node.attributes.Int("offset", 0), .stride = node.attributes.Int("stride", 1)};
}

float ValueOf(const Node& node) { return node.attributes.Float("value", 0); }

// Returns `value` as a T, infinities as the lowest and the highest integer or bool.
template <typename T>
T NumberOf(float value) {
  if constexpr (std::is_same_v<T, Bool>) return Bool(value > 0);
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isinf(value)) return value < 0 ? Limits::lowest() : Limits::max();
  }
  return T(value);
}

}  // namespace

absl::Status LiveExtentRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kBools));
  RETURN_IF_ERROR(CheckRank(context, 0, 2));
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kInt64)));
  if (NumElements(context.shape(1)) != 1) {
    return absl::InvalidArgumentError("the number of all positions is not one size");
  }
  RETURN_IF_ERROR(CheckRange("stride", DeclaredExtent(context.node()).stride, 1, int64_t{1} << 31));
  context.SetOutput(0, DType::kInt32, {context.shape(0)[0]});
  return absl::OkStatus();
}

int32_t LiveExtentOf(const uint8_t* live, int64_t size, int64_t all, const Extent& extent) {
  const auto* const end = static_cast<const uint8_t*>(
      size == 0 ? nullptr : std::memchr(live, 0, static_cast<size_t>(size)));
  if (end == nullptr) return static_cast<int32_t>(all);
  return static_cast<int32_t>(std::max<int64_t>(0, extent.At(end - live)));
}

absl::Status LiveExtentKernel(const KernelContext& context) {
  const Shape& shape = context.inputs[0].shape;
  const auto* live = context.inputs[0].as<uint8_t>();
  const int64_t all = context.inputs[1].as<int64_t>()[0];
  auto* out = context.outputs[0].as<int32_t>();
  const Extent extent = DeclaredExtent(context.node);
  for (int64_t row = 0; row < shape[0]; ++row, live += shape[1]) {
    out[row] = LiveExtentOf(live, shape[1], all, extent);
  }
  return absl::OkStatus();
}

absl::Status LiveFillRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kAnyType));
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kInt32)));
  RETURN_IF_ERROR(CheckRank(context, 1, 1));
  RETURN_IF_ERROR(AxisAttribute(context.node(), "axis", -1, context.rank(0)).status());
  const Size rows = context.shape(1)[0];
  if (context.rank(0) == 0 || rows == 0 || context.shape(0)[0] % rows != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows, " extents do not fit the rows of ", ShapeToString(context.shape(0))));
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status LiveFillKernel(const KernelContext& context) {
  const TensorView& x = context.inputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", -1, static_cast<int64_t>(x.shape.size())));
  const auto* extents = context.inputs[1].as<int32_t>();
  const int64_t rows = context.inputs[1].shape[0], size = x.shape[axis];
  const int64_t inner = Strides(x.shape)[axis];
  const int64_t lines = inner * size == 0 ? 0 : NumElements(x.shape) / (inner * size);
  const float value = ValueOf(context.node);
  return Dispatch(AllList(), x.dtype, [&]<typename T>() {
    const auto* from = x.as<T>();
    auto* to = context.outputs[0].as<T>();
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t live = LivePositions(extents[line * rows / lines], size) * inner;
      std::copy_n(from + line * size * inner, live, to + line * size * inner);
      std::fill_n(to + line * size * inner + live, size * inner - live, NumberOf<T>(value));
    }
  });
}

absl::Status LiveMaskRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kInt32)));
  RETURN_IF_ERROR(CheckRank(context, 0, 1));
  ASSIGN_OR_RETURN(const std::vector<Size> size, context.RequireSizes(1));
  const int64_t rank = context.node().attributes.Int("rank", 2);
  RETURN_IF_ERROR(CheckRange("rank", rank, 2, 8));
  if (size.size() != 1 || size[0] < 0) {
    return absl::InvalidArgumentError("the number of positions is not one size");
  }
  SizeList shape(static_cast<size_t>(rank), 1);
  shape.front() = context.shape(0)[0];
  shape.back() = size[0];
  context.SetOutput(0, DType::kFloat32, std::move(shape));
  return absl::OkStatus();
}

absl::Status LiveMaskKernel(const KernelContext& context) {
  const auto* extents = context.inputs[0].as<int32_t>();
  const int64_t rows = context.inputs[0].shape[0], size = context.outputs[0].shape.back();
  auto* out = context.outputs[0].as<float>();
  const float value = ValueOf(context.node);
  for (int64_t row = 0; row < rows; ++row, out += size) {
    const int64_t live = LivePositions(extents[row], size);
    std::fill_n(out, live, 0.0F);
    std::fill_n(out + live, size - live, value);
  }
  return absl::OkStatus();
}

SharedWindows SharedWindows::Of(const Node& node) {
  const Attributes& attributes = node.attributes;
  return {.kernel = attributes.Int("kernel", 1),
          .stride = attributes.Int("stride", 1),
          .dilation = attributes.Int("dilation", 1),
          .begin = attributes.Int("begin", 0),
          .end = attributes.Int("end", 0),
          .more = attributes.Int("more", 0),
          .counts_pads = attributes.Int("counts_pads", 0) != 0};
}

int64_t SharedWindows::Over(int64_t size) const { return Over(Size(size)).hint(); }

Size SharedWindows::Over(Size size) const {
  // Rounded as WindowsOf does for pools.
  const Size room = size + begin + end - reach() - 1;
  return Largest(0, (room > 0 ? room + more : room) / stride + 1);
}

float SharedWindows::Share(int64_t o, int64_t live, int64_t size) const {
  const int64_t first = counts_pads ? -begin : 0;
  const int64_t past = counts_pads ? live + end : live;
  const int64_t start = o * stride - begin;
  // The elements before `first`, and those before `past`.
  const auto before = [&](int64_t place) {
    return std::clamp<int64_t>((place - start + dilation - 1) / dilation, 0, kernel);
  };
  const int64_t count = before(std::max(past, start)) - before(std::max(first, start));
  const int64_t divided_by = before(std::max(size + end + more, start));
  return count <= 0 ? 0.0F : static_cast<float>(divided_by) / static_cast<float>(count);
}

absl::Status LiveShareRule(InferContext& context) {
  constexpr int64_t kMost = int64_t{1} << 31;
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kInt32)));
  RETURN_IF_ERROR(CheckRank(context, 0, 1));
  ASSIGN_OR_RETURN(const std::vector<Size> size, context.RequireSizes(1));
  const int64_t rank = context.node().attributes.Int("rank", 2);
  RETURN_IF_ERROR(CheckRange("rank", rank, 2, 8));
  const int64_t axis = context.node().attributes.Int("axis", -1);
  RETURN_IF_ERROR(CheckRange("axis", axis, 1, rank - 1));
  const SharedWindows windows = SharedWindows::Of(context.node());
  for (const int64_t one : {windows.kernel, windows.stride, windows.dilation}) {
    RETURN_IF_ERROR(CheckRange("kernel, stride or dilation", one, 1, kMost));
  }
  for (const int64_t one : {windows.begin, windows.end, windows.more}) {
    RETURN_IF_ERROR(CheckRange("begin, end or more", one, 0, kMost));
  }
  if (size.size() != 1 || size[0] < 0) {
    return absl::InvalidArgumentError("the number of positions is not one size");
  }
  SizeList shape(static_cast<size_t>(rank), 1);
  shape.front() = context.shape(0)[0];
  shape[axis] = windows.Over(size[0]);
  context.SetOutput(0, DType::kFloat32, std::move(shape));
  return absl::OkStatus();
}

absl::Status LiveShareKernel(const KernelContext& context) {
  const auto* extents = context.inputs[0].as<int32_t>();
  const int64_t rows = context.inputs[0].shape[0], size = context.inputs[1].as<int64_t>()[0];
  const SharedWindows windows = SharedWindows::Of(context.node);
  const int64_t count = windows.Over(size);
  auto* out = context.outputs[0].as<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t live = LivePositions(extents[row], size);
    for (int64_t o = 0; o < count; ++o) *out++ = windows.Share(o, live, size);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
