#include "runtime/ops/weights/sliced_weights.h"

#include <utility>
#include <vector>

#include "runtime/graph/tensor.h"
#include "runtime/ops/weights/block_formats.h"
#include "runtime/ops/weights/stored_op.h"

namespace reprise::ops {
namespace {

// Returns the block format of weights of a file; nullptr for other weights.
const BlockFormat* FormatOf(const ParameterExpr& weights) {
  if (weights.op() != StoredFloatsOp::kName) return nullptr;
  return FindBlockFormat(StoredFloatsOp::From(weights.attributes()).format);
}

bool IsMatrixTransposed(const ParameterExpr& weights) {
  return weights.op() == "Transpose" && weights.shape().size() == 2 &&
         weights.attributes().Ints("perm", {1, 0}) == std::vector<int64_t>{1, 0};
}

}  // namespace

ParameterExprPtr SlicedWeights(const ParameterExprPtr& weights, int64_t axis, int64_t begin,
                               int64_t count) {
  Shape shape = weights->shape();
  shape[static_cast<size_t>(axis)] = count;
  const auto of_first = [&](ParameterExprPtr part) {
    return ParameterExpr::Apply(weights->op(), weights->attributes(), {std::move(part)},
                                weights->dtype(), shape);
  };
  if (IsMatrixTransposed(*weights)) {
    return of_first(SlicedWeights(weights->inputs()[0], 1 - axis, begin, count));
  }
  if (weights->op() == "Cast" || weights->op() == "Identity") {
    return of_first(SlicedWeights(weights->inputs()[0], axis, begin, count));
  }
  if (const BlockFormat* const format = FormatOf(*weights); format != nullptr) {
    const bool along = axis + 1 == static_cast<int64_t>(shape.size());
    if (!along) return of_first(SlicedWeights(weights->inputs()[0], axis, begin, count));
    if (begin % format->numbers == 0 && count % format->numbers == 0) {
      return of_first(SlicedWeights(weights->inputs()[0], axis,
                                    begin / format->numbers * format->bytes,
                                    count / format->numbers * format->bytes));
    }
  }
  const auto number = [](int64_t one) { return ParameterExpr::Constant(Tensor::Int64s({one})); };
  return ParameterExpr::Apply("Slice", {},
                              {weights, number(begin), number(begin + count), number(axis)},
                              weights->dtype(), shape);
}

int64_t StoredTogether(const ParameterExprPtr& weights, int64_t axis) {
  if (IsMatrixTransposed(*weights)) return StoredTogether(weights->inputs()[0], 1 - axis);
  if (weights->op() == "Cast" || weights->op() == "Identity") {
    return StoredTogether(weights->inputs()[0], axis);
  }
  const BlockFormat* const format = FormatOf(*weights);
  return format != nullptr && axis + 1 == static_cast<int64_t>(weights->shape().size())
             ? format->numbers
             : 1;
}

}  // namespace reprise::ops
