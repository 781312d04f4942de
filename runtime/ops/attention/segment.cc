#include "runtime/ops/attention/segment.h"

#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/kit/rounding.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/reduce/reduce.h"

namespace reprise::ops {
namespace {

absl::Status CheckHasRows(const InferContext& context, size_t input) {
  if (context.has_input(input) && context.rank(input) >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input ", input, " has no dim of rows"));
}

// Returns the elements of one row.
int64_t RowElements(const Shape& shape) {
  return NumElements(absl::MakeConstSpan(shape).subspan(1));
}

enum class Reduction { kSum, kMean, kMax, kMin, kFirst, kLast };

absl::StatusOr<Reduction> ReductionOf(const Node& node) {
  const std::string name = SegmentReduceOp::From(node.attributes).reduction;
  if (name == "sum") return Reduction::kSum;
  if (name == "mean") return Reduction::kMean;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  if (name == "first") return Reduction::kFirst;
  if (name == "last") return Reduction::kLast;
  return absl::InvalidArgumentError(absl::StrCat("there is no reduction '", name, "'"));
}

// Returns whether the result is one token unchanged, of any type.
bool IsMove(Reduction reduction) {
  return reduction == Reduction::kFirst || reduction == Reduction::kLast;
}

void MoveTokens(const TensorView& in, const int32_t* segments, bool first,
                const MutableTensorView& out) {
  const size_t row = RowElements(in.shape) * DTypeSize(in.dtype);
  const auto* from = static_cast<const std::byte*>(in.data);
  auto* to = static_cast<std::byte*>(out.data);
  for (int64_t s = 0; s < out.shape[0]; ++s, to += row) {
    const SegmentRange segment = SegmentAt(segments, s, in.shape[0]);
    if (segment.size() == 0) {
      std::memset(to, 0, row);
    } else {
      std::memcpy(to, from + (first ? segment.begin : segment.end - 1) * row, row);
    }
  }
}

// Reduces `size` >= 1 elements, `step` apart. `reduction` is not one that only moves elements.
template <typename T>
T ReduceOne(Reduction reduction, const T* x, int64_t size, int64_t step) {
  if (reduction == Reduction::kMax || reduction == Reduction::kMin) {
    Compute<T> best = x[0];
    for (int64_t i = 1; i < size; ++i) {
      const Compute<T> value = x[i * step];
      // NaN wins, as in ONNX's reductions.
      const bool better = reduction == Reduction::kMax ? value > best : value < best;
      if (better || value != value) best = value;
      if (best != best) break;
    }
    return static_cast<T>(best);
  }
  Sum<T> sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum += static_cast<Sum<T>>(static_cast<Compute<T>>(x[i * step]));
  if (reduction == Reduction::kSum) return FromSum<T>(sum);
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>(static_cast<Wide>(static_cast<T>(sum)) / static_cast<Wide>(size));
  } else {
    return FromSum<T>(sum / static_cast<double>(size));
  }
}

constexpr size_t kMask = 3, kBias = 4, kSegments = 5, kPlaces = 6;

struct SegmentAttentionDims {
  int64_t tokens, rows, heads, size, size_v;  // rows: of queries
  bool packed;
};

// `shape(i)` is the shape of input i.
template <typename F>
absl::StatusOr<SegmentAttentionDims> SegmentAttentionDimsOf(const Node& node, F shape) {
  const bool one_a_segment = node.input(kPlaces) != kNone;
  SegmentAttentionDims dims;
  const auto op = SegmentAttentionOp::From(node.attributes);
  dims.packed = op.packed_qkv;
  dims.heads = op.num_heads;
  const Shape& q = shape(0);
  if (q.size() != 2) return absl::InvalidArgumentError("input 0 does not have 2 dims");
  if (dims.heads <= 0 || dims.heads > std::max<int64_t>(q[1], 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a width of ", q[1], " does not hold ", dims.heads, " heads"));
  }
  dims.tokens = dims.rows = q[0];
  if (dims.packed && one_a_segment) {
    return absl::InvalidArgumentError("queries of segments are packed with keys of tokens");
  }
  if (dims.packed) {
    if (q[1] % (3 * dims.heads) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a width of ", q[1], " does not hold q, k, v of ", dims.heads, " heads"));
    }
    dims.size = dims.size_v = q[1] / (3 * dims.heads);
    return dims;
  }
  const Shape& k = shape(1);
  const Shape& v = shape(2);
  const bool fit = k.size() == 2 && k[1] == q[1] && v.size() == 2 && v[0] == k[0] &&
                   (one_a_segment || k[0] == q[0]);
  if (!fit || q[1] % dims.heads != 0 || v[1] % dims.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("q ", ShapeToString(q), ", k ", ShapeToString(k),
                                                   ", v ", ShapeToString(v), " do not fit ",
                                                   dims.heads, " heads"));
  }
  dims.tokens = k[0];
  dims.size = q[1] / dims.heads;
  dims.size_v = v[1] / dims.heads;
  return dims;
}

// Returns the mask and bias of one segment, as an additive [heads, queries, tokens].
std::vector<float> SegmentBias(const KernelContext& context, const SegmentRange& segment,
                               const SegmentQueries& queries, int64_t heads) {
  const bool has_mask = HasInput(context, kMask), has_bias = HasInput(context, kBias);
  if (!has_mask && !has_bias) return {};
  const int64_t n = segment.size();
  std::vector<float> result(heads * queries.count * n, 0.0f);
  const float lowest = SegmentAttentionOp::From(context.node.attributes).lowest;
  for (int64_t at = 0; at < heads * queries.count * n; ++at) {
    const int64_t key = at % n, query = queries.place + at / n % queries.count;
    const int64_t head = at / (queries.count * n);
    if (has_bias) {
      const Shape& shape = context.inputs[kBias].shape;
      const int64_t h = shape[0] == 1 ? 0 : head, most = shape[1] - 1;
      const int64_t row = h * shape[1] + std::min(query, most);
      result[at] = context.inputs[kBias].as<float>()[row * shape[2] + std::min(key, most)];
    }
    if (!has_mask) continue;
    const TensorView& mask = context.inputs[kMask];
    if (mask.dtype == DType::kBool) {
      if (!mask.as<Bool>()[segment.begin + key]) {
        result[at] = -std::numeric_limits<float>::infinity();
      }
    } else {
      result[at] += mask.as<float>()[segment.begin + key];
      if (has_bias && result[at] < lowest) result[at] = lowest;
    }
  }
  return result;
}

}  // namespace

absl::Status CheckSegments(const InferContext& context, size_t input) {
  if (!context.has_input(input)) return absl::InvalidArgumentError("the segments are left out");
  RETURN_IF_ERROR(CheckType(context, input, TypeBit(DType::kInt32)));
  RETURN_IF_ERROR(CheckRank(context, input, 1));
  if (context.pinned_shape(input)[0] < 1)
    return absl::InvalidArgumentError("the segments have no end");
  return absl::OkStatus();
}

absl::Status CheckPlaces(const InferContext& context, size_t places, size_t segments,
                         int64_t queries) {
  if (!context.has_input(places)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckType(context, places, TypeBit(DType::kInt64)));
  const int64_t count = context.pinned_shape(segments)[0] - 1;
  if (context.pinned_shape(places) == Shape{count} && queries == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("places ", ShapeToString(context.pinned_shape(places)), " and ", queries,
                   " queries are not one for each of ", count, " segments"));
}

absl::Status SegmentAttentionRule(InferContext& context) {
  RETURN_IF_ERROR(CheckAttentionInputs(context));
  ASSIGN_OR_RETURN(const SegmentAttentionDims dims,
                   SegmentAttentionDimsOf(context.node(), [&](size_t i) -> const Shape& {
                     return context.pinned_shape(i);
                   }));
  if (context.has_input(kMask)) {
    RETURN_IF_ERROR(CheckType(context, kMask, TypeBit(DType::kFloat32) | kBools));
    if (context.pinned_shape(kMask) != Shape{dims.tokens}) {
      return absl::InvalidArgumentError(
          absl::StrCat("the mask ", ShapeToString(context.pinned_shape(kMask)),
                       " is not one value for ", dims.tokens, " tokens"));
    }
  }
  if (context.has_input(kBias)) {
    RETURN_IF_ERROR(CheckType(context, kBias, TypeBit(DType::kFloat32)));
    const Shape& bias = context.pinned_shape(kBias);
    if (bias.size() != 3 || (bias[0] != 1 && bias[0] != dims.heads) || bias[1] != bias[2] ||
        bias[1] < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the bias ", ShapeToString(bias), " is not a square for each of ", dims.heads, " heads"));
    }
  }
  RETURN_IF_ERROR(CheckSegments(context, kSegments));
  RETURN_IF_ERROR(CheckPlaces(context, kPlaces, kSegments, dims.rows));
  context.SetOutput(0, DType::kFloat32, {dims.rows, dims.heads * dims.size_v});
  return absl::OkStatus();
}

absl::Status SegmentAttentionKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const SegmentAttentionDims dims,
                   SegmentAttentionDimsOf(context.node, [&](size_t i) -> const Shape& {
                     return context.inputs[i].shape;
                   }));
  const int64_t width = dims.heads * dims.size, width_v = dims.heads * dims.size_v;
  const int64_t row = dims.packed ? 2 * width + width_v : width;
  const int64_t row_v = dims.packed ? row : width_v;
  const float* q = context.inputs[0].as<float>();
  const float* k = dims.packed ? q + width : context.inputs[1].as<float>();
  const float* v = dims.packed ? q + 2 * width : context.inputs[2].as<float>();
  float* out = context.outputs[0].as<float>();
  const auto op = SegmentAttentionOp::From(context.node.attributes);
  ForEachSegment(context, kPlaces, kSegments, dims.tokens, width_v,
                 [&](const SegmentRange& segment, const SegmentQueries& queries) {
                   const AttentionProblem p = {
                       .heads = dims.heads,
                       .queries = queries.count,
                       .keys = segment.size(),
                       .size = dims.size,
                       .size_v = dims.size_v,
                       .q = {q + queries.first * row, 0, dims.size, row},
                       .k = {k + segment.begin * row, 0, dims.size, row},
                       .v = {v + segment.begin * row_v, 0, dims.size_v, row_v},
                       .scale = op.scale,
                       .nan_to_zero = op.nan_to_zero,
                       .bias = SegmentBias(context, segment, queries, dims.heads)};
                   ComputeAttention(p, out + queries.first * width_v, 0, dims.size_v, width_v);
                 });
  return absl::OkStatus();
}

absl::Status SegmentReduceRule(InferContext& context) {
  ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context.node()));
  RETURN_IF_ERROR(CheckType(context, 0, IsMove(reduction) ? kAnyType : kNumbers));
  RETURN_IF_ERROR(CheckHasRows(context, 0));
  RETURN_IF_ERROR(CheckSegments(context, 1));
  Shape shape = context.pinned_shape(0);
  shape[0] = context.pinned_shape(1)[0] - 1;
  context.SetOutput(0, context.dtype(0), SizesOf(shape));
  return absl::OkStatus();
}

absl::Status SegmentReduceKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context.node));
  const int64_t row = RowElements(in.shape);
  const int32_t* segments = context.inputs[1].as<int32_t>();
  if (IsMove(reduction)) {
    MoveTokens(in, segments, reduction == Reduction::kFirst, context.outputs[0]);
    return absl::OkStatus();
  }
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    T* out = context.outputs[0].as<T>();
    for (int64_t s = 0; s < context.outputs[0].shape[0]; ++s, out += row) {
      const SegmentRange segment = SegmentAt(segments, s, in.shape[0]);
      const T* x = in.as<T>() + segment.begin * row;
      for (int64_t i = 0; i < row; ++i) {
        out[i] = segment.size() == 0 ? T(0) : ReduceOne(reduction, x + i, segment.size(), row);
      }
    }
  });
}

absl::Status SegmentSpreadRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kAnyType));
  RETURN_IF_ERROR(CheckHasRows(context, 0));
  RETURN_IF_ERROR(CheckSegments(context, 1));
  RETURN_IF_ERROR(CheckHasRows(context, 2));
  if (context.pinned_shape(0)[0] != context.pinned_shape(1)[0] - 1) {
    return absl::InvalidArgumentError(absl::StrCat(context.pinned_shape(0)[0], " rows for ",
                                                   context.pinned_shape(1)[0] - 1, " segments"));
  }
  Shape shape = context.pinned_shape(0);
  shape[0] = context.pinned_shape(2)[0];
  context.SetOutput(0, context.dtype(0), SizesOf(shape));
  return absl::OkStatus();
}

absl::Status SegmentSpreadKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const size_t row = RowElements(in.shape) * DTypeSize(in.dtype);
  const int32_t* segments = context.inputs[1].as<int32_t>();
  const auto* from = static_cast<const std::byte*>(in.data);
  auto* to = static_cast<std::byte*>(context.outputs[0].data);
  if (row == 0) return absl::OkStatus();
  for (int64_t s = 0; s < in.shape[0]; ++s, from += row) {
    const SegmentRange segment = SegmentAt(segments, s, context.outputs[0].shape[0]);
    for (int64_t t = segment.begin; t < segment.end; ++t) std::memcpy(to + t * row, from, row);
  }
  return absl::OkStatus();
}

absl::Status SegmentCumSumRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  RETURN_IF_ERROR(CheckHasRows(context, 0));
  RETURN_IF_ERROR(CheckSegments(context, 1));
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status SegmentCumSumKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const auto op = SegmentCumSumOp::From(context.node.attributes);
  const bool exclusive = op.exclusive;
  const bool reverse = op.reverse;
  const int64_t row = RowElements(in.shape);
  const int32_t* segments = context.inputs[1].as<int32_t>();
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    const T* x = in.as<T>();
    T* y = context.outputs[0].as<T>();
    std::fill_n(y, in.shape[0] * row, T(0));
    for (int64_t s = 0; s + 1 < context.inputs[1].shape[0]; ++s) {
      const SegmentRange segment = SegmentAt(segments, s, in.shape[0]);
      for (int64_t i = 0; i < row; ++i) {
        Sum<T> sum = 0;
        for (int64_t step = 0; step < segment.size(); ++step) {
          const int64_t t = reverse ? segment.end - 1 - step : segment.begin + step;
          const Sum<T> value = static_cast<Sum<T>>(static_cast<Compute<T>>(x[t * row + i]));
          if (!exclusive) sum += value;
          y[t * row + i] = FromSum<T>(sum);
          if (exclusive) sum += value;
        }
      }
    }
  });
}

absl::Status SegmentPlaceRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  RETURN_IF_ERROR(CheckHasRows(context, 0));
  RETURN_IF_ERROR(CheckSegments(context, 1));
  Shape shape = context.pinned_shape(0);
  shape[0] = context.pinned_shape(1)[0] - 1;
  context.SetOutput(0, DType::kInt64, SizesOf(shape));
  return absl::OkStatus();
}

absl::Status SegmentPlaceKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const auto op = SegmentPlaceOp::From(context.node.attributes);
  const bool largest = op.largest;
  const bool last = op.select_last_index;
  const int64_t row = RowElements(in.shape);
  const int32_t* segments = context.inputs[1].as<int32_t>();
  int64_t* out = context.outputs[0].as<int64_t>();
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    for (int64_t s = 0; s < context.outputs[0].shape[0]; ++s, out += row) {
      const SegmentRange segment = SegmentAt(segments, s, in.shape[0]);
      const T* x = in.as<T>() + segment.begin * row;
      for (int64_t i = 0; i < row; ++i) {
        out[i] = PlaceOfBest(x + i, segment.size(), row, largest, last);
      }
    }
  });
}

absl::Status SegmentPickRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kAnyType));
  RETURN_IF_ERROR(CheckHasRows(context, 0));
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kInt64)));
  RETURN_IF_ERROR(CheckHasRows(context, 1));
  RETURN_IF_ERROR(CheckSegments(context, 2));
  Shape shape = context.pinned_shape(1);
  if (shape[0] != context.pinned_shape(2)[0] - 1) {
    return absl::InvalidArgumentError(absl::StrCat("places of ", shape[0], " rows for ",
                                                   context.pinned_shape(2)[0] - 1, " segments"));
  }
  shape.insert(shape.end(), context.pinned_shape(0).begin() + 1, context.pinned_shape(0).end());
  context.SetOutput(0, context.dtype(0), SizesOf(shape));
  return absl::OkStatus();
}

absl::Status SegmentPickKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const size_t row = RowElements(in.shape) * DTypeSize(in.dtype);
  const int64_t picks = RowElements(context.inputs[1].shape);
  const int64_t* places = context.inputs[1].as<int64_t>();
  const int32_t* segments = context.inputs[2].as<int32_t>();
  const auto* from = static_cast<const std::byte*>(in.data);
  auto* to = static_cast<std::byte*>(context.outputs[0].data);
  if (row == 0) return absl::OkStatus();
  for (int64_t i = 0; i < context.inputs[1].num_elements(); ++i, to += row) {
    const SegmentRange segment = SegmentAt(segments, i / picks, in.shape[0]);
    const int64_t size = segment.size();
    if (size == 0) {
      std::memset(to, 0, row);
      continue;
    }
    int64_t place = places[i] < 0 ? places[i] + size : places[i];
    if (place < 0 || place >= size) {
      context.errors.Report(1, i, places[i], -size, size - 1);
      place = 0;
    }
    std::memcpy(to, from + (segment.begin + place) * row, row);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
