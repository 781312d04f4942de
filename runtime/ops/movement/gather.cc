#include "runtime/ops/movement/gather.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/scatter_reduction.h"

namespace reprise::ops {
namespace {

// Returns the indices of input `i` as int64, negative ones mapped; ones outside [-size, size)
// reported and replaced by 0. `size_of(element)` is the size that the element indexes.
template <typename F>
std::vector<int64_t> CheckedIndices(const KernelContext& context, int i, F size_of) {
  std::vector<int64_t> indices = Int64sOf(context, i);
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t size = size_of(k);
    if (indices[k] < -size || indices[k] >= size) {
      context.errors.Report(i, static_cast<int64_t>(k), indices[k], -size, size - 1);
      indices[k] = 0;
    } else if (indices[k] < 0) {
      indices[k] += size;
    }
  }
  return indices;
}

}  // namespace

absl::Status GatherRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 1, kIndices));
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", 0, context.rank(0)));
  const SizeList& data = context.shape(0);
  SizeList shape(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), context.shape(1).begin(), context.shape(1).end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status GatherKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", 0, static_cast<int64_t>(in.shape.size())));
  const absl::Span<const int64_t> shape = in.shape;
  const int64_t outer = NumElements(shape.first(axis));
  const int64_t block = NumElements(shape.subspan(axis + 1)) * DTypeSize(in.dtype);
  const std::vector<int64_t> indices =
      CheckedIndices(context, 1, [&](size_t) { return shape[axis]; });
  if (out.num_elements() == 0) return absl::OkStatus();
  if (in.num_elements() == 0) {  // Every index was reported.
    std::memset(out.data, 0, out.bytes());
    return absl::OkStatus();
  }
  char* to = out.as<char>();
  for (int64_t o = 0; o < outer; ++o) {
    const char* from = in.as<char>() + o * shape[axis] * block;
    for (int64_t index : indices) {
      std::memcpy(to, from + index * block, block);
      to += block;
    }
  }
  return absl::OkStatus();
}

absl::Status GatherElementsRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 1, kIndices));
  RETURN_IF_ERROR(CheckRank(context, 1, context.rank(0)));
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", 0, context.rank(0)));
  for (int64_t d = 0; d < context.rank(0); ++d) {
    if (d != axis && context.shape(1)[d] > context.shape(0)[d]) {
      return absl::InvalidArgumentError(absl::StrCat("dim ", d, " of the indices is too large"));
    }
  }
  context.SetOutput(0, context.dtype(0), context.shape(1));
  return absl::OkStatus();
}

namespace {

// Visits for each element of `shape` the offset in a tensor with `strides`, with the coordinate
// along `axis` replaced by indices[element].
template <typename F>
void ForEachElementOffset(const Shape& shape, const Shape& strides, int64_t axis,
                          const std::vector<int64_t>& indices, F f) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  Shape at(rank, 0);
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t offset = indices[i] * strides[axis];
    for (int64_t d = 0; d < rank; ++d) {
      if (d != axis) offset += at[d] * strides[d];
    }
    f(i, offset);
    for (int64_t d = rank - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
  }
}

}  // namespace

absl::Status GatherElementsKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", 0, static_cast<int64_t>(in.shape.size())));
  const std::vector<int64_t> indices =
      CheckedIndices(context, 1, [&](size_t) { return in.shape[axis]; });
  if (in.num_elements() == 0) {
    if (out.num_elements() > 0) std::memset(out.data, 0, out.bytes());
    return absl::OkStatus();
  }
  DispatchSize(in.dtype, [&]<typename T>() {
    ForEachElementOffset(out.shape, Strides(in.shape), axis, indices,
                         [&](size_t i, int64_t offset) { out.as<T>()[i] = in.as<T>()[offset]; });
  });
  return absl::OkStatus();
}

absl::Status GatherNDRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kInt64)));
  const int64_t batch = GatherNdOp::From(context.attributes()).batch_dims;
  const SizeList& data = context.shape(0);
  const SizeList& indices = context.shape(1);
  if (indices.empty() || batch < 0 || batch >= context.rank(1) || batch > context.rank(0)) {
    return absl::InvalidArgumentError(absl::StrCat("batch_dims ", batch, " does not fit"));
  }
  const int64_t depth = indices.back().Pinned();
  if (depth + batch > context.rank(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices address ", depth + batch, " dims of ", context.rank(0)));
  }
  for (int64_t d = 0; d < batch; ++d) {
    if (data[d] != indices[d]) {
      return absl::InvalidArgumentError(absl::StrCat("batch dims differ in dim ", d));
    }
  }
  SizeList shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + batch + depth, data.end());
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status GatherNDKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  const int64_t batch = GatherNdOp::From(context.node.attributes).batch_dims;
  const int64_t depth = context.inputs[1].shape.back();
  const Shape strides = Strides(in.shape);
  const std::vector<int64_t> indices = CheckedIndices(
      context, 1, [&](size_t k) { return in.shape[batch + static_cast<int64_t>(k) % depth]; });
  if (out.num_elements() == 0) return absl::OkStatus();
  const absl::Span<const int64_t> shape = in.shape;
  const absl::Span<const int64_t> index_shape = context.inputs[1].shape;
  const int64_t batches = NumElements(shape.first(batch));
  const int64_t rows = NumElements(index_shape.subspan(batch, index_shape.size() - 1 - batch));
  const int64_t batch_stride = NumElements(shape.subspan(batch));
  const int64_t block = NumElements(shape.subspan(batch + depth));
  const size_t size = DTypeSize(in.dtype);
  if (in.num_elements() == 0) {
    std::memset(out.data, 0, out.bytes());
    return absl::OkStatus();
  }
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t row = b * rows + r;
      int64_t offset = b * batch_stride;
      for (int64_t d = 0; d < depth; ++d) offset += indices[row * depth + d] * strides[batch + d];
      std::memcpy(out.as<char>() + row * block * size, in.as<char>() + offset * size, block * size);
    }
  }
  return absl::OkStatus();
}

absl::Status ScatterElementsRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 1, kIndices));
  RETURN_IF_ERROR(CheckSameType(context, 0, 2));
  RETURN_IF_ERROR(CheckRank(context, 1, context.rank(0)));
  RETURN_IF_ERROR(ReductionOf(context.node()).status());
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttribute(context.node(), "axis", 0, context.rank(0)));
  if (context.shape(1) != context.shape(2)) {
    return absl::InvalidArgumentError("indices and updates differ in shape");
  }
  for (int64_t d = 0; d < context.rank(0); ++d) {
    if (d != axis && context.shape(1)[d] > context.shape(0)[d]) {
      return absl::InvalidArgumentError(absl::StrCat("dim ", d, " of the indices is too large"));
    }
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status ScatterElementsKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context.node));
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", 0, static_cast<int64_t>(in.shape.size())));
  const std::vector<int64_t> indices =
      CheckedIndices(context, 1, [&](size_t) { return in.shape[axis]; });
  if (in.num_elements() == 0) return absl::OkStatus();
  std::memcpy(out.data, in.data, in.bytes());
  return Dispatch(AllList{}, in.dtype, [&]<typename T>() {
    ForEachElementOffset(context.inputs[1].shape, Strides(in.shape), axis, indices,
                         [&](size_t i, int64_t offset) {
                           T& element = out.as<T>()[offset];
                           element = Combine(reduction, element, context.inputs[2].as<T>()[i]);
                         });
  });
}

absl::Status ScatterNDRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kInt64)));
  RETURN_IF_ERROR(CheckSameType(context, 0, 2));
  RETURN_IF_ERROR(ReductionOf(context.node()).status());
  const SizeList& data = context.shape(0);
  const SizeList& indices = context.shape(1);
  if (indices.empty() || indices.back() > context.rank(0)) {
    return absl::InvalidArgumentError("indices address more dims than the data has");
  }
  SizeList updates(indices.begin(), indices.end() - 1);
  updates.insert(updates.end(), data.begin() + indices.back().Pinned(), data.end());
  if (updates != context.shape(2)) {
    return absl::InvalidArgumentError(absl::StrCat("updates have the shape ",
                                                   ShapeToString(context.shape(2)), ", expected ",
                                                   ShapeToString(updates)));
  }
  context.SetOutput(0, context.dtype(0), data);
  return absl::OkStatus();
}

absl::Status ScatterNDKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context.node));
  const int64_t depth = context.inputs[1].shape.back();
  const Shape strides = Strides(in.shape);
  const std::vector<int64_t> indices = CheckedIndices(
      context, 1, [&](size_t k) { return in.shape[static_cast<int64_t>(k) % depth]; });
  if (in.num_elements() == 0) return absl::OkStatus();
  std::memcpy(out.data, in.data, in.bytes());
  const absl::Span<const int64_t> index_shape = context.inputs[1].shape;
  const int64_t rows = NumElements(index_shape.first(index_shape.size() - 1));
  const int64_t block = NumElements(absl::Span<const int64_t>(in.shape).subspan(depth));
  return Dispatch(AllList{}, in.dtype, [&]<typename T>() {
    for (int64_t row = 0; row < rows; ++row) {
      int64_t offset = 0;
      for (int64_t d = 0; d < depth; ++d) offset += indices[row * depth + d] * strides[d];
      const T* updates = context.inputs[2].as<T>() + row * block;
      for (int64_t i = 0; i < block; ++i) {
        T& element = out.as<T>()[offset + i];
        element = Combine(reduction, element, updates[i]);
      }
    }
  });
}

absl::Status OneHotRule(InferContext& context) {
  constexpr double kMostDepth = 1e15;
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  Size depth;
  if (IsInteger(context.dtype(1))) {
    ASSIGN_OR_RETURN(const std::vector<Size> depths, context.RequireSizes(1));
    if (depths.size() != 1) return absl::InvalidArgumentError("the depth is not a scalar");
    depth = depths[0];
  } else {
    const Tensor* given = context.constant(1);
    if (given == nullptr) {
      return absl::FailedPreconditionError("its output shape depends on data (input 1)");
    }
    if (given->num_elements() != 1) {
      return absl::InvalidArgumentError("the depth is not a scalar");
    }
    const double number = given->ToDoubles()[0];
    if (!(number >= 0 && number < kMostDepth)) {
      return absl::InvalidArgumentError(absl::StrCat("the depth is ", number));
    }
    depth = static_cast<int64_t>(number);
  }
  if (depth < 0 || depth >= static_cast<int64_t>(kMostDepth)) {
    return absl::InvalidArgumentError(absl::StrCat("the depth is ", depth));
  }
  if (NumElements(context.shape(2)) != 2) {
    return absl::InvalidArgumentError("input 2 does not have two values");
  }
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node(), "axis", -1, context.rank(0) + 1));
  SizeList shape = context.shape(0);
  shape.insert(shape.begin() + axis, depth);
  context.SetOutput(0, context.dtype(2), std::move(shape));
  return absl::OkStatus();
}

absl::Status OneHotKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(context.node, "axis", -1, static_cast<int64_t>(out.shape.size())));
  const int64_t depth = out.shape[axis];
  const std::vector<int64_t> indices = Int64sOf(context, 0);
  const int64_t inner = NumElements(absl::Span<const int64_t>(out.shape).subspan(axis + 1));
  DispatchSize(out.dtype, [&]<typename T>() {
    const T off = context.inputs[2].as<T>()[0];
    const T on = context.inputs[2].as<T>()[1];
    T* y = out.as<T>();
    std::fill_n(y, out.num_elements(), off);
    for (size_t i = 0; i < indices.size(); ++i) {
      // ONNX: an index out of range is a row of `off`, no error.
      const int64_t index = indices[i] < 0 ? indices[i] + depth : indices[i];
      if (index < 0 || index >= depth) continue;
      const int64_t element = static_cast<int64_t>(i);
      y[(element / inner * depth + index) * inner + element % inner] = on;
    }
  });
  return absl::OkStatus();
}

absl::Status CheckRangeKernel(const KernelContext& context) {
  const int64_t low = CheckRangeOp::From(context.node.attributes).low;
  const int64_t high = CheckRangeOp::From(context.node.attributes).high;
  return Dispatch(IndexList{}, context.inputs[0].dtype, [&]<typename T>() {
    const T* x = context.inputs[0].as<T>();
    T* y = context.outputs[0].as<T>();
    for (int64_t i = 0; i < context.inputs[0].num_elements(); ++i) {
      const bool inside = x[i] >= low && x[i] <= high;
      if (!inside) context.errors.Report(0, i, x[i], low, high);
      y[i] = inside ? x[i] : static_cast<T>(low);
    }
  });
}

absl::Status EmbeddingSumRule(InferContext& context) {
  if (context.num_inputs() % 2 != 0) {
    return absl::InvalidArgumentError("tables and ids do not come in pairs");
  }
  SizeList shape;
  for (size_t i = 0; i < context.num_inputs(); i += 2) {
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
    RETURN_IF_ERROR(CheckType(context, i + 1, kIndices));
    RETURN_IF_ERROR(CheckRank(context, i, 2));
    if (context.shape(i)[1] != context.shape(0)[1]) {
      return absl::InvalidArgumentError(absl::StrCat("tables 0 and ", i / 2, " differ in width"));
    }
    ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, context.shape(i + 1)));
  }
  shape.push_back(context.shape(0)[1]);
  context.SetOutput(0, DType::kFloat32, std::move(shape));
  return absl::OkStatus();
}

absl::Status EmbeddingSumKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  const int64_t width = out.shape.back();
  Shape rows = out.shape;
  rows.pop_back();
  float* y = out.as<float>();
  std::fill_n(y, out.num_elements(), 0.0f);
  for (size_t i = 0; i < context.inputs.size(); i += 2) {
    const TensorView& table = context.inputs[i];
    const std::vector<int64_t> ids =
        CheckedIndices(context, static_cast<int>(i) + 1, [&](size_t) { return table.shape[0]; });
    if (table.num_elements() == 0) continue;
    StridedWalk<1> walk(rows, {BroadcastStrides(context.inputs[i + 1].shape, rows)});
    const int64_t stride = walk.inner_stride(0);
    walk.ForEachRow([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
      for (int64_t k = 0; k < count; ++k) {
        const float* from = table.as<float>() + ids[offsets[0] + k * stride] * width;
        float* to = y + (position + k) * width;
        for (int64_t j = 0; j < width; ++j) to[j] += from[j];
      }
    });
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
