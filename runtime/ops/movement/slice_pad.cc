#include "runtime/ops/movement/slice_pad.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/broadcast.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

template <typename Number>
using ListOf = absl::InlinedVector<Number, 6>;

template <typename Number>
absl::StatusOr<SliceSpec<Number>> ResolveSlice(
    const ListOf<Number>& shape, const std::vector<Number>& starts, const std::vector<Number>& ends,
    std::vector<int64_t> axes, std::vector<int64_t> steps, bool has_axes, bool has_steps) {
  if (!has_axes) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (!has_steps) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return absl::InvalidArgumentError(absl::StrCat(starts.size(), " starts, ", ends.size(),
                                                   " ends, ", axes.size(), " axes and ",
                                                   steps.size(), " steps do not agree"));
  }
  const int64_t rank = static_cast<int64_t>(shape.size());
  SliceSpec<Number> spec{shape, ListOf<Number>(rank, 0), Shape(rank, 1)};
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < starts.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(axes[i], rank));
    if (seen[axis]) return absl::InvalidArgumentError("an axis is listed twice");
    seen[axis] = true;
    const Number size = shape[axis];
    const int64_t step = steps[i];
    if (step == 0) {
      return absl::InvalidArgumentError(absl::StrCat("step ", i, " is 0, it may be any other"));
    }
    // Clamped before the size is added, so that INT64_MIN and INT64_MAX mean "all the way".
    const Number low = step > 0 ? 0 : -1;
    const Number high = step > 0 ? size : size - 1;
    const auto clamp = [&](Number at) {
      at = std::clamp<Number>(at, -size - 1, size);
      return std::clamp<Number>(at < 0 ? at + size : at, low, high);
    };
    // A start before the first element is the first, going down too (as ONNX and onnxruntime have
    // it).
    Number start = clamp(starts[i]);
    if (start < 0 && size != 0) start = 0;
    const Number end = clamp(ends[i]);
    const Number distance = step > 0 ? end - start : start - end;
    // A step longer than the distance takes one element, and INT64_MIN has no magnitude.
    const int64_t stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
    if (stride == 1) {
      // Nothing to decide at 0, where it is a size like any other.
      spec.sizes[axis] = distance < 0 ? Number(0) : distance;
    } else {
      spec.sizes[axis] = distance <= 0 ? Number(0) : (distance - 1) / stride + 1;
    }
    spec.starts[axis] = start;
    spec.steps[axis] = step;
  }
  return spec;
}

template <typename Number>
struct Pads {
  std::vector<Number> begin;
  std::vector<Number> end;
};

template <typename Number>
absl::StatusOr<Pads<Number>> ResolvePads(int64_t rank, const std::vector<Number>& pads,
                                         std::vector<int64_t> axes, bool has_axes) {
  if (!has_axes) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (pads.size() != 2 * axes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(pads.size(), " pads for ", axes.size(), " axes"));
  }
  Pads<Number> result{std::vector<Number>(rank, 0), std::vector<Number>(rank, 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(axes[i], rank));
    result.begin[axis] = pads[i];
    result.end[axis] = pads[i + axes.size()];
  }
  return result;
}

}  // namespace

int64_t PaddedDim::Source(absl::string_view mode, int64_t at) const {
  // Elements that negative pads cut off cannot be repeated.
  const int64_t first = std::max<int64_t>(0, -begin);
  const int64_t kept = size - first - std::max<int64_t>(0, -end);
  at -= begin + first;
  if (at >= 0 && at < kept) return at + first;
  if (kept <= 0 || mode == "constant") return -1;
  if (mode == "edge") return first + (at < 0 ? 0 : kept - 1);
  if (mode == "wrap") return first + ((at % kept) + kept) % kept;
  const int64_t period = std::max<int64_t>(1, 2 * (kept - 1));  // reflect
  at = ((at % period) + period) % period;
  return first + (at < kept ? at : period - at);
}

absl::StatusOr<SliceSpec<Size>> ResolvedSlice(const InferContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Size> starts, context.RequireSizes(1));
  ASSIGN_OR_RETURN(const std::vector<Size> ends, context.RequireSizes(2));
  std::vector<int64_t> axes, steps;
  if (context.has_input(3)) {
    ASSIGN_OR_RETURN(axes, context.RequireInt64s(3));
  }
  if (context.has_input(4)) {
    ASSIGN_OR_RETURN(steps, context.RequireInt64s(4));
  }
  return ResolveSlice<Size>(context.shape(0), starts, ends, std::move(axes), std::move(steps),
                            context.has_input(3), context.has_input(4));
}

absl::Status SliceRule(InferContext& context) {
  ASSIGN_OR_RETURN(SliceSpec<Size> spec, ResolvedSlice(context));
  context.SetOutput(0, context.dtype(0), std::move(spec.sizes));
  return absl::OkStatus();
}

absl::Status SliceKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  ASSIGN_OR_RETURN(const SliceSpec<int64_t> spec,
                   ResolveSlice<int64_t>(in.shape, Int64sOf(context, 1), Int64sOf(context, 2),
                                         Int64sOf(context, 3), Int64sOf(context, 4),
                                         HasInput(context, 3), HasInput(context, 4)));
  if (out.num_elements() == 0) return absl::OkStatus();
  Shape strides = Strides(in.shape);
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    offset += spec.starts[d] * strides[d];
    if (spec.sizes[d] > 1) strides[d] *= spec.steps[d];
  }
  DispatchSize(in.dtype, [&]<typename T>() {
    CopyStrided(spec.sizes, in.as<T>() + offset, strides, out.as<T>());
  });
  return absl::OkStatus();
}

absl::Status PadRule(InferContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Size> raw, context.RequireSizes(1));
  const bool has_axes = context.has_input(3);
  std::vector<int64_t> axes;
  if (has_axes) {
    ASSIGN_OR_RETURN(axes, context.RequireInt64s(3));
  }
  if (context.has_input(2)) {
    // Before opset 11 the value was a float attribute, at any float type of the input.
    const bool float_value = IsFloating(context.dtype(0)) && context.dtype(2) == DType::kFloat32;
    if (!float_value) RETURN_IF_ERROR(CheckSameType(context, 0, 2));
  }
  const std::string mode = context.attributes().String("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") {
    return absl::InvalidArgumentError(absl::StrCat("unknown mode '", mode, "'"));
  }
  ASSIGN_OR_RETURN(const Pads<Size> pads, ResolvePads<Size>(context.rank(0), raw, axes, has_axes));
  SizeList shape = context.shape(0);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (AddOverflows(shape[d], pads.begin[d], &shape[d]) ||
        AddOverflows(shape[d], pads.end[d], &shape[d]) || shape[d] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("pads of ", pads.begin[d], " and ",
                                                     pads.end[d], " do not fit dim ", d, " of ",
                                                     context.shape(0)[d]));
    }
  }
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status PadKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const MutableTensorView& out = context.outputs[0];
  const int64_t rank = static_cast<int64_t>(in.shape.size());
  ASSIGN_OR_RETURN(
      const Pads<int64_t> pads,
      ResolvePads<int64_t>(rank, Int64sOf(context, 1), Int64sOf(context, 3), HasInput(context, 3)));
  const std::string mode = context.node.attributes.String("mode", "constant");
  // For each dim and output position, the input offset it reads, or -1.
  std::vector<std::vector<int64_t>> sources(rank);
  const Shape strides = Strides(in.shape);
  for (int64_t d = 0; d < rank; ++d) {
    for (int64_t i = 0; i < out.shape[d]; ++i) {
      const int64_t source = PaddedDim{in.shape[d], pads.begin[d], pads.end[d]}.Source(mode, i);
      sources[d].push_back(source < 0 ? -1 : source * strides[d]);
    }
  }
  const bool has_value = HasInput(context, 2) && context.inputs[2].num_elements() > 0;
  return Dispatch(AllList{}, in.dtype, [&]<typename T>() {
    T fill = static_cast<T>(static_cast<Compute<T>>(0));
    if (has_value && context.inputs[2].dtype == in.dtype) fill = *context.inputs[2].as<T>();
    if (has_value && context.inputs[2].dtype != in.dtype) {
      fill = ConvertTo<T>(*context.inputs[2].as<float>());
    }
    Shape index(rank, 0);
    const int64_t count = out.num_elements();
    for (int64_t i = 0; i < count; ++i) {
      int64_t offset = 0;
      for (int64_t d = 0; d < rank && offset >= 0; ++d) {
        const int64_t source = sources[d][index[d]];
        offset = source < 0 ? -1 : offset + source;
      }
      out.as<T>()[i] = offset < 0 ? fill : in.as<T>()[offset];
      for (int64_t d = rank - 1; d >= 0 && ++index[d] == out.shape[d]; --d) index[d] = 0;
    }
  });
}

}  // namespace reprise::ops
