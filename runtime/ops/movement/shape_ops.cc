#include "runtime/ops/movement/shape_ops.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/movement/reshape_op.h"

namespace reprise::ops {

std::pair<int64_t, int64_t> ShapeRange(const Node& node, int64_t rank) {
  int64_t start = node.attributes.Int("start", 0);
  int64_t end = node.attributes.Int("end", rank);
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  start = std::clamp<int64_t>(start, 0, rank);
  end = std::clamp<int64_t>(end, start, rank);
  return {start, end};
}

absl::Status ShapeRule(InferContext& context) {
  const auto [start, end] = ShapeRange(context.node(), context.rank(0));
  context.SetOutput(0, DType::kInt64, {end - start});
  return absl::OkStatus();
}

absl::Status ShapeKernel(const KernelContext& context) {
  const Shape& shape = context.inputs[0].shape;
  const auto [start, end] = ShapeRange(context.node, static_cast<int64_t>(shape.size()));
  std::copy(shape.begin() + start, shape.begin() + end, context.outputs[0].as<int64_t>());
  return absl::OkStatus();
}

absl::Status SizeRule(InferContext& context) {
  context.SetOutput(0, DType::kInt64, {});
  return absl::OkStatus();
}

absl::Status SizeKernel(const KernelContext& context) {
  *context.outputs[0].as<int64_t>() = context.inputs[0].num_elements();
  return absl::OkStatus();
}

absl::Status ReshapeRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kInt64)));
  ASSIGN_OR_RETURN(const std::vector<Size> wanted, context.RequireSizes(1));
  const bool zero_is_zero = context.attributes().Int("allowzero", 0) != 0;
  const SizeList& from = context.shape(0);
  const Size elements = NumElements(from);
  const auto disagree = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot give ", elements, " elements the shape ", ShapeToString(wanted)));
  };
  SizeList shape;
  Size known = 1;
  int unknown = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Size size = wanted[i];
    if (size == 0 && !zero_is_zero) {
      if (i >= from.size()) {
        return RankError(absl::StrCat("the shape ", ShapeToString(wanted), " copies dim ", i,
                                      " of an input of rank ", from.size()));
      }
      size = from[i];
    }
    if (size < -1 || (size == -1 && unknown >= 0)) return disagree();
    if (size == -1) {
      unknown = static_cast<int>(i);
    } else if (MultiplyOverflows(known, size, &known)) {
      return disagree();
    }
    shape.push_back(size);
  }
  if (unknown >= 0) {
    if (known == 0 ? elements != 0 : elements % known != 0) return disagree();
    shape[unknown] = known == 0 ? Size(0) : elements / known;
  } else if (known != elements) {
    return disagree();
  }
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status SqueezeRule(InferContext& context) {
  const SizeList& from = context.shape(0);
  std::vector<int64_t> axes;
  if (context.has_input(1)) {
    ASSIGN_OR_RETURN(axes, context.RequireInt64s(1));
    for (int64_t& axis : axes) {
      ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, context.rank(0)));
      if (from[axis] != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("dim ", axis, " has size ", from[axis], ", not 1"));
      }
    }
  } else {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 1) axes.push_back(static_cast<int64_t>(i));
    }
  }
  SizeList shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) {
      shape.push_back(from[i]);
    }
  }
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status UnsqueezeRule(InferContext& context) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> raw, context.RequireInt64s(1));
  const int64_t rank = context.rank(0) + static_cast<int64_t>(raw.size());
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, NormalizeAxes(raw, rank));
  SizeList shape = context.shape(0);
  for (int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status FlattenRule(InferContext& context) {
  int64_t axis = FlattenOp::From(context.attributes()).axis;
  if (axis != context.rank(0)) {  // The rank itself puts every dim on the left.
    ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, context.rank(0)));
  }
  const absl::Span<const Size> from = context.shape(0);
  context.SetOutput(0, context.dtype(0),
                    {NumElements(from.first(axis)), NumElements(from.subspan(axis))});
  return absl::OkStatus();
}

absl::Status ConstantOfShapeRule(InferContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Size> sizes, context.RequireSizes(0));
  for (const Size size : sizes) {
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat("negative size ", size));
  }
  DType dtype = DType::kFloat32;
  if (const Tensor* value = context.attributes().Get<Tensor>("value"); value != nullptr) {
    if (value->num_elements() != 1) {
      return absl::InvalidArgumentError("attribute 'value' does not have one element");
    }
    dtype = value->dtype();
  }
  context.SetOutput(0, dtype, SizeList(sizes.begin(), sizes.end()));
  return absl::OkStatus();
}

absl::Status ConstantOfShapeKernel(const KernelContext& context) {
  const Tensor* value = context.node.attributes.Get<Tensor>("value");
  const MutableTensorView& out = context.outputs[0];
  DispatchSize(out.dtype, [&]<typename T>() {
    std::fill_n(out.as<T>(), out.num_elements(),
                value == nullptr ? T(0) : *static_cast<const T*>(value->data()));
  });
  return absl::OkStatus();
}

namespace {

constexpr double kMostCount = 1e15;

absl::Status IntegerRange(InferContext& context) {
  Size bounds[2];
  for (size_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(const std::vector<Size> bound, context.RequireSizes(i));
    bounds[i] = bound[0];
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> step, context.RequireInt64s(2));
  if (step[0] == 0) return absl::InvalidArgumentError("the step is 0");
  const bool up = step[0] > 0;
  const int64_t stride = up ? step[0] : step[0] == INT64_MIN ? INT64_MAX : -step[0];
  // As doubles, since the distance may overflow.
  const double distance =
      static_cast<double>(bounds[1].hint()) - static_cast<double>(bounds[0].hint());
  if (const double count = (up ? distance : -distance) / static_cast<double>(stride);
      !(count < kMostCount)) {
    return absl::ResourceExhaustedError(absl::StrCat("a range of ", count, " elements"));
  }
  // A distance that int64 does not hold has a step that leaves few elements.
  if (!(std::abs(distance) < 9e18)) {
    const double count = std::ceil((up ? distance : -distance) / static_cast<double>(stride));
    context.SetOutput(0, context.dtype(0), {static_cast<int64_t>(std::max(0.0, count))});
    return absl::OkStatus();
  }
  const Size apart = up ? bounds[1] - bounds[0] : bounds[0] - bounds[1];
  Size count;
  if (stride == 1) {
    // Nothing to decide at 0, where it is a count like any other.
    count = apart < 0 ? Size(0) : apart;
  } else {
    count = apart <= 0 ? Size(0) : (apart - 1) / stride + 1;
  }
  context.SetOutput(0, context.dtype(0), {count});
  return absl::OkStatus();
}

}  // namespace

absl::Status RangeRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  for (size_t i = 0; i < 3; ++i) {
    RETURN_IF_ERROR(CheckSameType(context, 0, i));
    if (NumElements(context.shape(i)) != 1) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is not a scalar"));
    }
  }
  if (IsInteger(context.dtype(0))) return IntegerRange(context);
  double bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (context.constant(i) == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("its output shape depends on data (input ", i, ")"));
    }
    bounds[i] = context.constant(i)->ToDoubles()[0];
    if (std::isnan(bounds[i])) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is not a number"));
    }
  }
  if (bounds[2] == 0) return absl::InvalidArgumentError("the step is 0");
  const double count = std::max(0.0, std::ceil((bounds[1] - bounds[0]) / bounds[2]));
  if (!(count < kMostCount)) {
    return absl::ResourceExhaustedError(absl::StrCat("a range of ", count, " elements"));
  }
  context.SetOutput(0, context.dtype(0), {static_cast<int64_t>(count)});
  return absl::OkStatus();
}

absl::Status RangeKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  return Dispatch(NumericList{}, out.dtype, [&]<typename T>() {
    using C = std::conditional_t<std::is_integral_v<T>, uint64_t, Compute<T>>;
    const C start = static_cast<C>(*context.inputs[0].as<T>());
    const C step = static_cast<C>(*context.inputs[2].as<T>());
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      out.as<T>()[i] = static_cast<T>(start + static_cast<C>(i) * step);
    }
  });
}

absl::Status EyeLikeRule(InferContext& context) {
  RETURN_IF_ERROR(CheckRank(context, 0, 2));
  DType dtype = context.dtype(0);
  if (const int64_t* number = context.attributes().Get<int64_t>("dtype"); number != nullptr) {
    ASSIGN_OR_RETURN(dtype, DTypeFromOnnx(*number));
  }
  context.SetOutput(0, dtype, context.shape(0));
  return absl::OkStatus();
}

absl::Status EyeLikeKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  const int64_t k = context.node.attributes.Int("k", 0);
  return Dispatch(AllList{}, out.dtype, [&]<typename T>() {
    for (int64_t row = 0; row < out.shape[0]; ++row) {
      for (int64_t column = 0; column < out.shape[1]; ++column) {
        out.as<T>()[row * out.shape[1] + column] = ConvertTo<T>(column - row == k ? 1 : 0);
      }
    }
  });
}

}  // namespace reprise::ops
