#include "runtime/ops/movement/movement.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

absl::StatusOr<std::vector<int64_t>> Permutation(const Node& node, int64_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (const auto* given = node.attributes.Get<std::vector<int64_t>>("perm"); given != nullptr) {
    if (static_cast<int64_t>(given->size()) != rank) {
      return RankError(absl::StrCat("attribute 'perm' has ", given->size(),
                                    " entries for an input of rank ", rank));
    }
    std::vector<bool> seen(rank, false);
    for (int64_t i = 0; i < rank; ++i) {
      ASSIGN_OR_RETURN(perm[i], NormalizeAxis((*given)[i], rank));
      if (seen[perm[i]]) return absl::InvalidArgumentError("attribute 'perm' repeats an axis");
      seen[perm[i]] = true;
    }
  }
  return perm;
}

// Computes out[i, j] = in[j, i] over [rows, columns] of the output, in tiles that stay in the
// cache.
template <typename T>
void TransposeTiles(const T* in, int64_t in_row, T* out, int64_t out_row, int64_t rows,
                    int64_t columns) {
  constexpr int64_t kTile = 16;
  for (int64_t row = 0; row < rows; row += kTile) {
    const int64_t row_end = std::min(row + kTile, rows);
    for (int64_t column = 0; column < columns; column += kTile) {
      const int64_t column_end = std::min(column + kTile, columns);
      for (int64_t i = row; i < row_end; ++i) {
        for (int64_t j = column; j < column_end; ++j) out[i * out_row + j] = in[j * in_row + i];
      }
    }
  }
}

template <typename T>
void TransposeTyped(const Shape& sizes, const Shape& strides, const T* in, T* out) {
  const size_t rank = sizes.size();
  if (NumElements(sizes) == 0) return;
  // The output dim along which the input is dense.
  size_t dense = rank;
  for (size_t d = 0; d < rank; ++d) {
    if (strides[d] == 1 && sizes[d] > 1) dense = d;
  }
  if (dense + 1 >= rank) return CopyStrided(sizes, in, strides, out);
  const Shape out_strides = Strides(sizes);
  Shape outer_sizes = sizes;
  outer_sizes[dense] = outer_sizes[rank - 1] = 1;
  StridedWalk<2> outer(outer_sizes, {strides, out_strides});
  const std::array<int64_t, 2> step = {outer.inner_stride(0), outer.inner_stride(1)};
  outer.ForEachRow([&](int64_t, const std::array<int64_t, 2>& offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      TransposeTiles(in + offsets[0] + i * step[0], strides[rank - 1],
                     out + offsets[1] + i * step[1], out_strides[dense], sizes[dense],
                     sizes[rank - 1]);
    }
  });
}

// Returns the sizes of `count` parts of a dim; the last ones may be smaller.
template <typename Number>
std::vector<Number> EvenParts(Number size, int64_t count) {
  const Number part = (size + count - 1) / count;
  std::vector<Number> parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(std::clamp<Number>(size - i * part, 0, part));
  }
  return parts;
}

}  // namespace

absl::Status TransposeRule(InferContext& context) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> perm, Permutation(context.node(), context.rank(0)));
  SizeList shape;
  for (int64_t axis : perm) shape.push_back(context.shape(0)[axis]);
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status TransposeKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const std::vector<int64_t> perm,
                   Permutation(context.node, static_cast<int64_t>(in.shape.size())));
  const Shape in_strides = Strides(in.shape);
  // Dims that stay neighbours are merged; dims of size 1 are dropped.
  Shape sizes, strides;
  int64_t previous = -1;
  for (int64_t axis : perm) {
    if (in.shape[axis] == 1) continue;
    if (previous >= 0 && in_strides[previous] == in_strides[axis] * in.shape[axis]) {
      sizes.back() *= in.shape[axis];
      strides.back() = in_strides[axis];
    } else {
      sizes.push_back(in.shape[axis]);
      strides.push_back(in_strides[axis]);
    }
    previous = axis;
  }
  DispatchSize(in.dtype,
               [&]<typename T>() { TransposeTyped(sizes, strides, in.as<T>(), out.as<T>()); });
  return absl::OkStatus();
}

absl::Status ConcatRule(InferContext& context) {
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", 0, context.rank(0)));
  SizeList shape = context.shape(0);
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    RETURN_IF_ERROR(CheckSameType(context, 0, i));
    RETURN_IF_ERROR(CheckRank(context, i, context.rank(0)));
    for (int64_t d = 0; d < context.rank(0); ++d) {
      if (d != axis && context.shape(i)[d] != shape[d]) {
        return absl::InvalidArgumentError(absl::StrCat("inputs 0 and ", i, " differ in dim ", d));
      }
    }
    shape[axis] += context.shape(i)[axis];
  }
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status ConcatKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", 0, static_cast<int64_t>(out.shape.size())));
  const absl::Span<const int64_t> shape = out.shape;
  const int64_t outer = NumElements(shape.first(axis));
  const int64_t inner_bytes = NumElements(shape.subspan(axis + 1)) * DTypeSize(out.dtype);
  const int64_t out_row = shape[axis] * inner_bytes;
  if (out.num_elements() == 0) return absl::OkStatus();
  char* to = out.as<char>();
  for (const TensorView& in : context.inputs) {
    const int64_t row = in.shape[axis] * inner_bytes;
    if (row == 0) continue;
    for (int64_t i = 0; i < outer; ++i) {
      std::memcpy(to + i * out_row, in.as<char>() + i * row, row);
    }
    to += row;
  }
  return absl::OkStatus();
}

absl::Status SplitRule(InferContext& context) {
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", 0, context.rank(0)));
  const Size size = context.shape(0)[axis];
  const int64_t outputs = static_cast<int64_t>(context.num_outputs());
  std::vector<Size> parts;
  if (context.has_input(1)) {
    ASSIGN_OR_RETURN(parts, context.RequireSizes(1));
  } else {
    parts = EvenParts(size, outputs);
  }
  if (static_cast<int64_t>(parts.size()) != outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("splits into ", parts.size(), " parts but has ", outputs, " outputs"));
  }
  Size rest = size;
  for (int64_t i = 0; i < outputs; ++i) {
    if (parts[i] < 0 || parts[i] > rest) {
      return absl::InvalidArgumentError(
          absl::StrCat("the parts ", ShapeToString(parts), " do not add up to ", size));
    }
    rest -= parts[i];
    SizeList shape = context.shape(0);
    shape[axis] = parts[i];
    context.SetOutput(i, context.dtype(0), std::move(shape));
  }
  if (rest != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the parts ", ShapeToString(parts), " do not add up to ", size));
  }
  return absl::OkStatus();
}

absl::Status SplitKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", 0, static_cast<int64_t>(in.shape.size())));
  const absl::Span<const int64_t> shape = in.shape;
  const int64_t outer = NumElements(shape.first(axis));
  const int64_t inner_bytes = NumElements(shape.subspan(axis + 1)) * DTypeSize(in.dtype);
  const int64_t in_row = shape[axis] * inner_bytes;
  if (in.num_elements() == 0) return absl::OkStatus();
  const char* from = in.as<char>();
  std::vector<int64_t> parts = Int64sOf(context, 1);
  if (!HasInput(context, 1)) {
    parts = EvenParts(shape[axis], static_cast<int64_t>(context.outputs.size()));
  }
  for (size_t o = 0; o < context.outputs.size(); ++o) {
    const MutableTensorView& out = context.outputs[o];
    const int64_t row = parts[o] * inner_bytes;
    for (int64_t i = 0; i < outer && row > 0 && out.data != nullptr; ++i) {
      std::memcpy(out.as<char>() + i * row, from + i * in_row, row);
    }
    from += row;
  }
  return absl::OkStatus();
}

absl::Status ExpandRule(InferContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Size> wanted, context.RequireSizes(1));
  for (const Size size : wanted) {
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat("negative size ", size));
  }
  ASSIGN_OR_RETURN(SizeList shape, BroadcastShapes(context.shape(0), wanted));
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status ExpandKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  DispatchSize(in.dtype, [&]<typename T>() {
    CopyStrided(out.shape, in.as<T>(), BroadcastStrides(in.shape, out.shape), out.as<T>());
  });
  return absl::OkStatus();
}

absl::Status TileRule(InferContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Size> repeats, context.RequireSizes(1));
  SizeList shape = context.shape(0);
  if (repeats.size() != shape.size()) {
    return RankError(absl::StrCat(repeats.size(), " repeats for an input of rank ", shape.size()));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d] < 0) {
      return CheckRange(absl::StrCat("repeat ", d), repeats[d].hint(), 0, INT64_MAX);
    }
    if (MultiplyOverflows(shape[d], repeats[d], &shape[d])) {
      return absl::ResourceExhaustedError(absl::StrCat("dim ", d, " overflows"));
    }
  }
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status TileKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  // Seen as [repeat0, size0, repeat1, size1, ...], where the input repeats with stride 0.
  const Shape in_strides = Strides(in.shape);
  Shape sizes, strides;
  for (size_t d = 0; d < in.shape.size(); ++d) {
    sizes.push_back(in.shape[d] == 0 ? 0 : out.shape[d] / in.shape[d]);
    strides.push_back(0);
    sizes.push_back(in.shape[d]);
    strides.push_back(in_strides[d]);
  }
  DispatchSize(in.dtype,
               [&]<typename T>() { CopyStrided(sizes, in.as<T>(), strides, out.as<T>()); });
  return absl::OkStatus();
}

absl::Status TriluRule(InferContext& context) {
  if (context.rank(0) < 2) return RankError("the input has less than 2 dims");
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status TriluKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const std::vector<int64_t> given = Int64sOf(context, 1);
  const bool upper = context.node.attributes.Int("upper", 1) != 0;
  const int64_t columns = in.shape[in.shape.size() - 1];
  const int64_t rows = in.shape[in.shape.size() - 2];
  const int64_t k = std::clamp(given.empty() ? 0 : given[0], -rows, columns);
  if (in.num_elements() == 0) return absl::OkStatus();
  const int64_t lines = in.num_elements() / columns;
  DispatchSize(in.dtype, [&]<typename T>() {
    const T* from = in.as<T>();
    T* to = context.outputs[0].as<T>();
    for (int64_t line = 0; line < lines; ++line, from += columns, to += columns) {
      // An upper triangle has zeros before this index, a lower one from it on.
      const int64_t at = std::clamp<int64_t>(line % rows + k + (upper ? 0 : 1), 0, columns);
      std::fill_n(upper ? to : to + at, upper ? at : columns - at, T(0));
      std::copy_n(upper ? from + at : from, upper ? columns - at : at, upper ? to + at : to);
    }
  });
  return absl::OkStatus();
}

}  // namespace reprise::ops
