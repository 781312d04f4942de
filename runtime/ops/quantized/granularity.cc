#include "runtime/ops/quantized/granularity.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/quantized/quantize_op.h"

namespace reprise::ops {

absl::StatusOr<Granularity> GranularityOf(const Node& node, const Shape& data, const Shape& scale) {
  if (NumElements(scale) == 1 && QuantizeLinearOp::From(node.attributes).block_size == 0) {
    return Granularity{1, 1, 1, 1, false};
  }
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttribute(node, "axis", 1, static_cast<int64_t>(data.size())));
  const int64_t inner = NumElements(absl::Span<const int64_t>(data).subspan(axis + 1));
  const int64_t block = QuantizeLinearOp::From(node.attributes).block_size;
  if (block > 0) {
    Shape expected = data;
    expected[axis] = data[axis] == 0 ? 0 : (data[axis] - 1) / block + 1;
    if (expected != scale) {
      return absl::InvalidArgumentError(absl::StrCat("the scale has the shape ",
                                                     ShapeToString(scale), ", expected ",
                                                     ShapeToString(expected)));
    }
    return Granularity{inner, data[axis], block, expected[axis], true};
  }
  if (scale != Shape{data[axis]}) {
    return absl::InvalidArgumentError(absl::StrCat("the scale has the shape ", ShapeToString(scale),
                                                   " for a dim of size ", data[axis]));
  }
  return Granularity{inner, data[axis], 1, data[axis], false};
}

}  // namespace reprise::ops
