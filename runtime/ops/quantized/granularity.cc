#include "runtime/ops/quantized/granularity.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/quantized/quantize_op.h"

namespace reprise::ops {

namespace {

template <typename Number>
absl::StatusOr<BasicGranularity<Number>> GranularityOver(const Node& node,
                                                         absl::Span<const Number> data,
                                                         absl::Span<const Number> scale) {
  using Found = BasicGranularity<Number>;
  if (NumElements(scale) == 1 && QuantizeLinearOp::From(node.attributes).block_size == 0) {
    return Found{1, 1, 1, 1, false};
  }
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(node, "axis", 1, static_cast<int64_t>(data.size())));
  const Number inner = NumElements(data.subspan(axis + 1));
  const int64_t block = QuantizeLinearOp::From(node.attributes).block_size;
  if (block > 0) {
    std::vector<Number> expected(data.begin(), data.end());
    expected[axis] = data[axis] == 0 ? Number(0) : (data[axis] - 1) / block + 1;
    if (expected != scale) {
      return absl::InvalidArgumentError(absl::StrCat("the scale has the shape ",
                                                     ShapeToString(scale), ", expected ",
                                                     ShapeToString(expected)));
    }
    return Found{inner, data[axis], block, expected[axis], true};
  }
  if (scale.size() != 1 || scale[0] != data[axis]) {
    return absl::InvalidArgumentError(absl::StrCat("the scale has the shape ", ShapeToString(scale),
                                                   " for a dim of size ", data[axis]));
  }
  return Found{inner, data[axis], 1, data[axis], false};
}

}  // namespace

absl::StatusOr<Granularity> GranularityOf(const Node& node, const Shape& data, const Shape& scale) {
  return GranularityOver<int64_t>(node, data, scale);
}

absl::Status CheckGranularity(const Node& node, absl::Span<const Size> data,
                              absl::Span<const Size> scale) {
  return GranularityOver<Size>(node, data, scale).status();
}

}  // namespace reprise::ops
