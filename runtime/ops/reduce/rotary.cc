#include "runtime/ops/reduce/rotary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/floats.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

// The input as [batch, heads, length, size], whether it is given so or as [batch, length, hidden].
template <typename Number>
struct Layout {
  Number batch, heads, length, size;
  Number batch_stride, head_stride, row_stride;
  Number rotated;  // leading elements of each head that are rotated
};

// `half` is the width of the cosine cache.
template <typename Number>
absl::StatusOr<Layout<Number>> LayoutOf(const Node& node, absl::Span<const Number> x, Number half) {
  Layout<Number> l;
  const int64_t given_heads = node.attributes.Int("num_heads", 0);
  const int64_t rotary_dim = node.attributes.Int("rotary_embedding_dim", 0);
  if (x.size() == 4) {
    l = {x[0], x[1], x[2], x[3], x[1] * x[2] * x[3], x[2] * x[3], x[3], 0};
  } else if (x.size() == 3) {
    // Without a head count every head is as wide as its rotated part.
    const Number size = given_heads > 0 ? x[2] / given_heads : 2 * half;
    if (size <= 0 || x[2] % size != 0 || (given_heads > 0 && x[2] % given_heads != 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a width of ", x[2], " does not divide into heads"));
    }
    l = {x[0], x[2] / size, x[1], size, x[1] * x[2], size, x[2], 0};
  } else {
    return absl::InvalidArgumentError(absl::StrCat("input 0 has rank ", x.size()));
  }
  l.rotated = rotary_dim > 0 ? Number(rotary_dim) : l.size;
  if (l.rotated > l.size || l.rotated % 2 != 0 || half != l.rotated / 2) {
    return absl::InvalidArgumentError(absl::StrCat("caches of width ", half, " do not fit ",
                                                   l.rotated, " of ", l.size, " elements"));
  }
  return l;
}

// `row(b, s)` is the row of the caches for a position.
template <typename F>
absl::Status Rotate(const KernelContext& context, const Layout<int64_t>& l,
                    const std::vector<float>& cosine, const std::vector<float>& sine, F row) {
  const bool interleaved = context.node.attributes.Int("interleaved", 0) != 0;
  const int64_t half = l.rotated / 2;
  const std::vector<float> x = FloatsOf(context.inputs[0]);
  std::vector<float> y = x;
  for (int64_t b = 0; b < l.batch; ++b) {
    for (int64_t s = 0; s < l.length; ++s) {
      const int64_t cache = row(b, s) * half;
      for (int64_t h = 0; h < l.heads; ++h) {
        const int64_t base = b * l.batch_stride + h * l.head_stride + s * l.row_stride;
        for (int64_t i = 0; i < half; ++i) {
          const int64_t first = base + (interleaved ? 2 * i : i);
          const int64_t second = base + (interleaved ? 2 * i + 1 : i + half);
          const float c = cosine[cache + i], d = sine[cache + i];
          y[first] = c * x[first] - d * x[second];
          y[second] = d * x[first] + c * x[second];
        }
      }
    }
  }
  return StoreFloats(y, context.outputs[0]);
}

// Returns position ids, the ones outside [0, rows) reported and replaced by 0.
std::vector<int64_t> Positions(const KernelContext& context, int input, int64_t rows) {
  std::vector<int64_t> ids = Int64sOf(context, input);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < rows) continue;
    context.errors.Report(input, static_cast<int64_t>(i), ids[i], 0, rows - 1);
    ids[i] = 0;
  }
  return ids;
}

absl::Status CheckCaches(const InferContext& context, size_t cosine, size_t sine) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  RETURN_IF_ERROR(CheckSameType(context, 0, cosine));
  RETURN_IF_ERROR(CheckSameType(context, 0, sine));
  if (context.shape(cosine) != context.shape(sine)) {
    return absl::InvalidArgumentError("the caches differ in shape");
  }
  return absl::OkStatus();
}

}  // namespace

// X, cos_cache, sin_cache, position_ids?
absl::Status RotaryEmbeddingRule(InferContext& context) {
  RETURN_IF_ERROR(CheckCaches(context, 1, 2));
  RETURN_IF_ERROR(CheckRank(context, 1, context.has_input(3) ? 2 : 3));
  ASSIGN_OR_RETURN(const Layout<Size> l,
                   LayoutOf<Size>(context.node(), context.shape(0), context.shape(1).back()));
  if (context.has_input(3)) {
    RETURN_IF_ERROR(CheckType(context, 3, kIndices));
    if (context.shape(3) != SizeList{l.batch, l.length}) {
      return absl::InvalidArgumentError("the position ids do not match batch and length");
    }
    if (context.shape(1)[0] == 0) return absl::InvalidArgumentError("the caches are empty");
  } else if (context.shape(1)[0] != l.batch || context.shape(1)[1] != l.length) {
    return absl::InvalidArgumentError("the caches do not match batch and length");
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status RotaryEmbeddingKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const Layout<int64_t> l, LayoutOf<int64_t>(context.node, context.inputs[0].shape,
                                                              context.inputs[1].shape.back()));
  const std::vector<float> cosine = FloatsOf(context.inputs[1]);
  const std::vector<float> sine = FloatsOf(context.inputs[2]);
  if (!HasInput(context, 3)) {
    return Rotate(context, l, cosine, sine, [&](int64_t b, int64_t s) { return b * l.length + s; });
  }
  const std::vector<int64_t> ids = Positions(context, 3, context.inputs[1].shape[0]);
  return Rotate(context, l, cosine, sine,
                [&](int64_t b, int64_t s) { return ids[b * l.length + s]; });
}

// input, position_ids, cos_cache, sin_cache
absl::Status MicrosoftRotaryEmbeddingRule(InferContext& context) {
  RETURN_IF_ERROR(CheckCaches(context, 2, 3));
  RETURN_IF_ERROR(CheckType(context, 1, kIndices));
  RETURN_IF_ERROR(CheckRank(context, 2, 2));
  if (context.attributes().Int("is_packed_batching", 0) != 0) {
    return absl::UnimplementedError("attribute 'is_packed_batching' is not supported");
  }
  ASSIGN_OR_RETURN(const Layout<Size> l,
                   LayoutOf<Size>(context.node(), context.shape(0), context.shape(2).back()));
  const SizeList& ids = context.shape(1);
  if (ids != SizeList{1} && ids != SizeList{l.batch, l.length}) {
    return absl::InvalidArgumentError("the position ids do not match batch and length");
  }
  if (context.shape(2)[0] == 0) return absl::InvalidArgumentError("the caches are empty");
  // One after the other: padding must not go beyond the caches either.
  if (ids == SizeList{1} && l.length > context.shape(2)[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat(l.length, " positions for caches of ", context.shape(2)[0], " rows"));
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status MicrosoftRotaryEmbeddingKernel(const KernelContext& context) {
  const int64_t rows = context.inputs[2].shape[0];
  ASSIGN_OR_RETURN(const Layout<int64_t> l, LayoutOf<int64_t>(context.node, context.inputs[0].shape,
                                                              context.inputs[2].shape.back()));
  const std::vector<float> cosine = FloatsOf(context.inputs[2]);
  const std::vector<float> sine = FloatsOf(context.inputs[3]);
  const std::vector<int64_t> ids = Positions(context, 1, rows);
  const bool offset = context.inputs[1].shape.size() == 1;
  return Rotate(context, l, cosine, sine, [&](int64_t b, int64_t s) {
    return offset ? std::min(ids[0] + s, rows - 1) : ids[b * l.length + s];
  });
}

absl::Status RotaryRule(InferContext& context) {
  RETURN_IF_ERROR(CheckCaches(context, 1, 2));
  const SizeList& x = context.shape(0);
  const SizeList& table = context.shape(1);
  if (x.empty() || x.back() % 2 != 0 || table.empty() || table.back() != x.back()) {
    return absl::InvalidArgumentError(absl::StrCat("tables of shape ", ShapeToString(table),
                                                   " do not turn halves of ", ShapeToString(x)));
  }
  ASSIGN_OR_RETURN(const SizeList both, BroadcastShapes(x, table));
  if (both != x) {
    return absl::InvalidArgumentError(absl::StrCat("tables of shape ", ShapeToString(table),
                                                   " are larger than ", ShapeToString(x)));
  }
  context.SetOutput(0, context.dtype(0), x);
  return absl::OkStatus();
}

absl::Status RotaryKernel(const KernelContext& context) {
  const Shape& shape = context.inputs[0].shape;
  const int64_t size = shape.back(), half = size / 2;
  const std::vector<float> x = FloatsOf(context.inputs[0]);
  const std::vector<float> cosine = FloatsOf(context.inputs[1]);
  const std::vector<float> sine = FloatsOf(context.inputs[2]);
  std::vector<float> y(x.size());
  const Shape strides = BroadcastStrides(context.inputs[1].shape, shape);
  StridedWalk<1>(shape, {strides})
      .ForEachRow([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
        // A run is a row or, where the tables are as large as x, several.
        for (int64_t i = 0; i < count; ++i) {
          const int64_t at = position + i, column = at % size;
          const float turned = column < half ? -x[at + half] : x[at - half];
          y[at] = x[at] * cosine[offsets[0] + i] + turned * sine[offsets[0] + i];
        }
      });
  return StoreFloats(y, context.outputs[0]);
}

}  // namespace reprise::ops
