#include "runtime/ops/attention/relative_attention.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/attention/segment.h"
#include "runtime/ops/kit/broadcast.h"

namespace reprise::ops {
namespace {

using In = RelativeAttentionOp;

struct RelativeDims {
  int64_t batch, length, heads, size, size_v;
  int64_t queries;     // rows of q, of each of `batch`
  bool packed;         // rows are tokens of segments
  bool one_a_segment;  // the rows of q are segments
};

template <typename F>
absl::StatusOr<RelativeDims> RelativeDimsOf(const Node& node, F shape) {
  RelativeDims dims;
  dims.packed = node.input(In::kSegments) != kNone;
  dims.heads = RelativeAttentionOp::From(node.attributes).num_heads;
  const size_t rank = dims.packed ? 2 : 3;
  dims.one_a_segment = node.input(In::kPlaces) != kNone;
  const Shape &q = shape(0), &k = shape(1), &v = shape(2);
  Shape q_like = k, v_like = k;
  if (q.size() == rank && k.size() == rank && v.size() == rank) {
    if (dims.packed && dims.one_a_segment) q_like[0] = q[0];
    v_like.back() = v.back();
  }
  if (k.size() != rank || q != q_like || v != v_like || dims.heads <= 0 ||
      q.back() % dims.heads != 0 || v.back() % dims.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("q ", ShapeToString(q), ", k ", ShapeToString(k),
                                                   ", v ", ShapeToString(v), " do not fit ",
                                                   dims.heads, " heads"));
  }
  dims.batch = dims.packed ? 1 : q[0];
  dims.length = k[rank - 2];
  dims.queries = q[rank - 2];
  dims.size = q.back() / dims.heads;
  dims.size_v = v.back() / dims.heads;
  return dims;
}

absl::Status CheckTable(const InferContext& context, const RelativeDims& dims, size_t table) {
  if (context.has_input(table) != context.has_input(table + 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("of input ", table, " and its places only ", "one is given"));
  }
  if (!context.has_input(table)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckType(context, table, TypeBit(DType::kFloat32)));
  RETURN_IF_ERROR(CheckType(context, table + 1, TypeBit(DType::kInt64)));
  const Shape &shape = context.pinned_shape(table), &places = context.pinned_shape(table + 1);
  if (shape.size() != 3 || shape[0] != dims.heads || shape[1] != dims.size || shape[2] < 1) {
    return absl::InvalidArgumentError(absl::StrCat("the table ", ShapeToString(shape),
                                                   " is not one of ", dims.heads, " heads of ",
                                                   dims.size));
  }
  if (places.size() != 1 || places[0] % 2 == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("places ", ShapeToString(places), " have no middle"));
  }
  return absl::OkStatus();
}

absl::Status CheckMasks(const InferContext& context, const RelativeDims& dims) {
  for (const size_t mask : {In::kMask, In::kQueryMask}) {
    if (!context.has_input(mask)) continue;
    if (dims.packed) {
      RETURN_IF_ERROR(CheckType(context, mask, TypeBit(DType::kFloat32)));
      const int64_t rows = mask == In::kMask ? dims.length : dims.queries;
      if (context.pinned_shape(mask) == Shape{rows}) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the mask ", ShapeToString(context.pinned_shape(mask)),
                       " is not one value for ", rows, mask == In::kMask ? " tokens" : " queries"));
    }
    if (mask == In::kQueryMask) {
      return absl::InvalidArgumentError("rows of one length have one mask");
    }
    RETURN_IF_ERROR(CheckType(context, mask, TypeBit(DType::kFloat32) | kBools));
    const Shape scores = {dims.batch, dims.heads, dims.length, dims.length};
    ASSIGN_OR_RETURN(const Shape broadcast, BroadcastShapes(scores, context.pinned_shape(mask)));
    if (broadcast != scores) {
      return absl::InvalidArgumentError(
          absl::StrCat("the mask does not broadcast to ", ShapeToString(scores)));
    }
  }
  return absl::OkStatus();
}

// Adds the products of the vectors of `rows` with the table of input `table`: query i, the first of
// which is at `place`, and key j meet at distance i - j, or j - i where the rows are keys.
void AddTable(const KernelContext& context, size_t table, const AttentionProblem& p, int64_t place,
              const HeadView& rows, bool of_keys, std::vector<float>& bias) {
  if (!HasInput(context, table)) return;
  const float* columns = context.inputs[table].as<float>();
  const int64_t* places = context.inputs[table + 1].as<int64_t>();
  const int64_t width = context.inputs[table].shape[2];
  const int64_t last = context.inputs[table + 1].shape[0] - 1;
  for (int64_t at = 0; at < static_cast<int64_t>(bias.size()); ++at) {
    const int64_t j = at % p.keys, i = at / p.keys % p.queries;
    const int64_t h = at / (p.keys * p.queries) % p.heads, b = at / (p.keys * p.queries * p.heads);
    const int64_t distance = of_keys ? j - i - place : i + place - j;
    const int64_t column = std::clamp<int64_t>(
        places[std::clamp<int64_t>(distance + last / 2, 0, last)], 0, width - 1);
    const float* x = rows.row(b, h, of_keys ? j : i);
    float dot = 0;
    for (int64_t d = 0; d < p.size; ++d) dot += x[d] * columns[(h * p.size + d) * width + column];
    bias[at] += dot;
  }
}

// Adds the masks of the segment that begins at `begin`, and of the queries that begin at `query`.
void AddSegmentMasks(const KernelContext& context, const AttentionProblem& p, int64_t begin,
                     int64_t query, std::vector<float>& bias) {
  const float lowest = RelativeAttentionOp::From(context.node.attributes).lowest;
  const auto of = [&](size_t mask, int64_t at) {
    return HasInput(context, mask) ? context.inputs[mask].as<float>()[at] : 0.0f;
  };
  for (int64_t at = 0; at < static_cast<int64_t>(bias.size()); ++at) {
    const float sum =
        of(In::kMask, begin + at % p.keys) + of(In::kQueryMask, query + at / p.keys % p.queries);
    bias[at] += std::max(sum, lowest);
  }
}

}  // namespace

absl::Status RelativeAttentionRule(InferContext& context) {
  for (const size_t i : {0, 1, 2}) RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
  ASSIGN_OR_RETURN(const RelativeDims dims,
                   RelativeDimsOf(context.node(), [&](size_t i) -> const Shape& {
                     return context.pinned_shape(i);
                   }));
  RETURN_IF_ERROR(CheckMasks(context, dims));
  for (const size_t table : {In::kQueryTable, In::kKeyTable}) {
    RETURN_IF_ERROR(CheckTable(context, dims, table));
  }
  if (dims.packed) {
    RETURN_IF_ERROR(CheckSegments(context, In::kSegments));
    RETURN_IF_ERROR(CheckPlaces(context, In::kPlaces, In::kSegments, dims.queries));
  } else if (context.has_input(In::kPlaces)) {
    return absl::InvalidArgumentError("places of queries without segments");
  }
  Shape out = context.pinned_shape(0);
  out.back() = context.pinned_shape(2).back();
  context.SetOutput(0, DType::kFloat32, SizesOf(out));
  return absl::OkStatus();
}

absl::Status RelativeAttentionKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const RelativeDims dims,
                   RelativeDimsOf(context.node, [&](size_t i) -> const Shape& {
                     return context.inputs[i].shape;
                   }));
  const int64_t width = dims.heads * dims.size, width_v = dims.heads * dims.size_v;
  float* out = context.outputs[0].as<float>();
  const auto op = RelativeAttentionOp::From(context.node.attributes);
  const auto compute = [&](int64_t batch, const SegmentRange& rows, const SegmentQueries& queries) {
    const int64_t length = rows.size();
    AttentionProblem p = {
        .batch = batch,
        .heads = dims.heads,
        .queries = queries.count,
        .keys = length,
        .size = dims.size,
        .size_v = dims.size_v,
        .q = {context.inputs[0].as<float>() + queries.first * width, length * width, dims.size,
              width},
        .k = {context.inputs[1].as<float>() + rows.begin * width, length * width, dims.size, width},
        .v = {context.inputs[2].as<float>() + rows.begin * width_v, length * width_v, dims.size_v,
              width_v},
        .scale = op.scale,
        .nan_to_zero = op.nan_to_zero};
    const Shape scores = {batch, dims.heads, queries.count, length};
    p.bias.assign(NumElements(scores), 0.0f);
    AddTable(context, In::kQueryTable, p, queries.place, p.q, /*of_keys=*/false, p.bias);
    AddTable(context, In::kKeyTable, p, queries.place, p.k, /*of_keys=*/true, p.bias);
    if (dims.packed) {
      AddSegmentMasks(context, p, rows.begin, queries.first, p.bias);
    } else if (HasInput(context, In::kMask)) {
      const std::vector<float> mask = SpreadMask(context.inputs[In::kMask], scores);
      for (size_t i = 0; i < mask.size(); ++i) p.bias[i] += mask[i];
    }
    ComputeAttention(p, out + queries.first * width_v, length * width_v, dims.size_v, width_v);
  };
  if (!dims.packed) {
    compute(dims.batch, {0, dims.length}, {0, dims.length, 0});
    return absl::OkStatus();
  }
  ForEachSegment(context, In::kPlaces, In::kSegments, dims.length, width_v,
                 [&](const SegmentRange& segment, const SegmentQueries& queries) {
                   compute(1, segment, queries);
                 });
  return absl::OkStatus();
}

}  // namespace reprise::ops
