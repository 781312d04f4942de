// LiveCompact: dims that became one, of which each row of a padded batch has its own part.
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/windows/live.h"
#include "runtime/ops/windows/live_op.h"

namespace reprise::ops {

absl::StatusOr<MergedDims> MergedDims::Of(const Node& node, absl::Span<const int64_t> sizes) {
  const std::vector<int64_t> ranks = node.attributes.Ints("ranks");
  const std::vector<int64_t> extents = node.attributes.Ints("extents");
  const auto operands =
      static_cast<int64_t>(node.inputs.size()) - static_cast<int64_t>(LiveCompactOp::kExtents);
  if (ranks.empty() || ranks.size() > kMostParts || sizes.size() > kMostDims ||
      extents.size() != sizes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(ranks.size(), " parts of ", extents.size(),
                                                   " dims do not go with ", sizes.size(),
                                                   " sizes"));
  }
  MergedDims dims = {.parts = static_cast<int>(ranks.size())};
  int64_t left = static_cast<int64_t>(sizes.size());
  for (size_t k = 0; k < ranks.size(); ++k) {
    if (ranks[k] < 1 || ranks[k] > left) {
      return absl::InvalidArgumentError(
          absl::StrCat("part ", k, " cannot have ", ranks[k], " dims"));
    }
    dims.ranks[k] = static_cast<int>(ranks[k]);
    left -= ranks[k];
  }
  if (left != 0) return absl::InvalidArgumentError(absl::StrCat(left, " dims are of no part"));
  for (size_t d = 0; d < sizes.size(); ++d) {
    RETURN_IF_ERROR(CheckRange("size", sizes[d], 0, int64_t{1} << 31));
    RETURN_IF_ERROR(CheckRange("extent", extents[d], -1, operands - 1));
    dims.sizes[d] = sizes[d];
    dims.extents[d] = static_cast<int>(extents[d]);
  }
  return dims;
}

int64_t MergedDims::Size() const {
  int64_t size = 0;
  const int64_t* next = sizes;
  for (int k = 0; k < parts; ++k) {
    int64_t places = 1;
    for (int d = 0; d < ranks[k]; ++d) {
      if (__builtin_mul_overflow(places, *next++, &places)) {
        return std::numeric_limits<int64_t>::max();
      }
    }
    if (__builtin_add_overflow(size, places, &size)) return std::numeric_limits<int64_t>::max();
  }
  return size;
}

void MergedDims::Compact(const int32_t* const* of_rows, int64_t row, int64_t bytes,
                         const std::byte* from, std::byte* to) const {
  const std::byte* const end = to + Size() * bytes;
  int first = 0;  // dim of the part
  for (int k = 0; k < parts; first += ranks[k], ++k) {
    const int last = first + ranks[k] - 1;
    int64_t live[kMostDims], at[kMostDims];
    int64_t all = 1;
    bool any = true;
    for (int d = first; d <= last; ++d) {
      live[d] = extents[d] < 0 ? sizes[d] : LivePositions(of_rows[extents[d]][row], sizes[d]);
      at[d] = 0;
      all *= sizes[d];
      any = any && live[d] > 0;
    }
    while (any) {
      int64_t place = 0;
      for (int d = first; d <= last; ++d) place = place * sizes[d] + at[d];
      std::memcpy(to, from + place * bytes, static_cast<size_t>(live[last] * bytes));
      to += live[last] * bytes;
      // Moves on to the next line of the last dim.
      int d = last - 1;
      while (d >= first && ++at[d] == live[d]) at[d--] = 0;
      any = d >= first;
    }
    from += all * bytes;
  }
  std::memset(to, 0, static_cast<size_t>(end - to));
}

absl::Status LiveCompactRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, LiveCompactOp::kX, kAnyType));
  RETURN_IF_ERROR(CheckType(context, LiveCompactOp::kSizes, TypeBit(DType::kInt64)));
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", -1, context.rank(0)));
  ASSIGN_OR_RETURN(const std::vector<Size> sizes, context.RequireSizes(LiveCompactOp::kSizes));
  ASSIGN_OR_RETURN(const MergedDims dims, MergedDims::Of(context.node(), HintsOf(sizes)));
  const SizeList& shape = context.shape(0);
  Size places = 0;
  for (int k = 0, d = 0; k < dims.parts; ++k) {
    Size of_part = 1;
    for (const int end = d + dims.ranks[k]; d < end; ++d) of_part *= sizes[static_cast<size_t>(d)];
    places += of_part;
  }
  if (axis == 0 || places != shape[static_cast<size_t>(axis)]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the parts of dim ", axis, " of ", ShapeToString(shape), " have ", places, " places"));
  }
  for (size_t i = LiveCompactOp::kExtents; i < context.node().inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kInt32)));
    RETURN_IF_ERROR(CheckRank(context, i, 1));
    const Size rows = context.shape(i)[0];
    if (rows == 0 || rows != context.shape(LiveCompactOp::kExtents)[0] || shape[0] % rows != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(rows, " extents do not fit the rows of ", ShapeToString(shape)));
    }
  }
  context.SetOutput(0, context.dtype(0), shape);
  return absl::OkStatus();
}

absl::Status LiveCompactKernel(const KernelContext& context) {
  const TensorView& x = context.inputs[LiveCompactOp::kX];
  const TensorView& given = context.inputs[LiveCompactOp::kSizes];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", -1, static_cast<int64_t>(x.shape.size())));
  ASSIGN_OR_RETURN(const MergedDims dims,
                   MergedDims::Of(context.node, absl::MakeConstSpan(given.as<int64_t>(),
                                                                    NumElements(given.shape))));
  std::vector<const int32_t*> extents;
  for (size_t i = LiveCompactOp::kExtents; i < context.inputs.size(); ++i) {
    extents.push_back(context.inputs[i].as<int32_t>());
  }
  const int64_t bytes = Strides(x.shape)[axis] * static_cast<int64_t>(DTypeSize(x.dtype));
  const int64_t line = x.shape[axis] * bytes;
  if (line == 0) return absl::OkStatus();
  const int64_t lines = NumElements(x.shape) * static_cast<int64_t>(DTypeSize(x.dtype)) / line;
  const int64_t rows = context.inputs[LiveCompactOp::kExtents].shape[0];
  for (int64_t i = 0; i < lines; ++i) {
    dims.Compact(extents.data(), i * rows / lines, bytes, x.as<std::byte>() + i * line,
                 context.outputs[0].as<std::byte>() + i * line);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
