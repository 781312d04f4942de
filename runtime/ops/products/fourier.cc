#include "runtime/ops/products/fourier.h"

#include <algorithm>
#include <complex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/products/fourier_sums.h"

namespace reprise::ops {
namespace {

using Complex = std::complex<double>;

template <typename Number>
struct Axis {
  Number outer = 1, inner = 1;
  Number given, taken, made;  // elements of the axis: of the signal, used of it, of the result
  Number length;
};

bool IsSet(const Node& node, absl::string_view name) { return node.attributes.Int(name, 0) != 0; }

template <typename Number>
absl::StatusOr<Axis<Number>> AxisOf(const Node& node, absl::Span<const Number> x,
                                    int64_t axis_given, std::optional<Number> length) {
  const auto rank = static_cast<int64_t>(x.size());
  if (rank < 2 || (x.back() != 1 && x.back() != 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a signal of ", rank == 0 ? Number(0) : x.back(), " parts and rank ", rank,
                     ", neither real nor complex numbers along an axis"));
  }
  const int64_t axis = axis_given < 0 ? axis_given + rank : axis_given;
  if (axis < 0 || axis > rank - 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis_given, " of a signal of rank ", rank));
  }
  const bool half_in = IsSet(node, "inverse") && IsSet(node, "onesided");
  const bool half_out = !IsSet(node, "inverse") && IsSet(node, "onesided");
  Axis<Number> sizes;
  sizes.given = x[axis];
  sizes.length = length.value_or(half_in ? 2 * (sizes.given - 1) : sizes.given);
  if (sizes.length < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a transform of length ", sizes.length));
  }
  if (sizes.length > (int64_t{1} << 40)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a transform of length ", sizes.length, ", the limit is 2^40"));
  }
  const Number half = sizes.length / 2 + 1;
  sizes.taken = std::min(sizes.given, half_in ? half : sizes.length);
  sizes.made = half_out ? half : sizes.length;
  for (int64_t i = 0; i < axis; ++i) sizes.outer *= x[i];
  for (int64_t i = axis + 1; i < rank - 1; ++i) sizes.inner *= x[i];
  return sizes;
}

template <typename T>
void Transform(const Node& node, const TensorView& in, const Axis<int64_t>& s,
               const MutableTensorView& out) {
  const bool inverse = IsSet(node, "inverse"), real_out = inverse && IsSet(node, "onesided");
  const int64_t parts = in.shape.back(), parts_out = real_out ? 1 : 2;
  FourierSums transform(s.length);
  std::vector<Complex> x(s.length);
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t i = 0; i < s.inner; ++i) {
      std::fill(x.begin(), x.end(), Complex());
      for (int64_t k = 0; k < s.taken; ++k) {
        const T* from = in.as<T>() + ((o * s.given + k) * s.inner + i) * parts;
        x[k] = Complex(static_cast<double>(static_cast<Compute<T>>(from[0])),
                       parts == 2 ? static_cast<double>(static_cast<Compute<T>>(from[1])) : 0);
      }
      if (real_out) {
        // The middle of an even length mirrors itself, as the first does.
        for (int64_t k = 1; 2 * k < s.length; ++k) x[s.length - k] = std::conj(x[k]);
        x[0] = x[0].real();
        if (s.length % 2 == 0) x[s.length / 2] = x[s.length / 2].real();
      }
      if (inverse) {
        for (Complex& value : x) value = std::conj(value) / static_cast<double>(s.length);
      }
      transform.Run(x);
      for (int64_t k = 0; k < s.made; ++k) {
        T* to = out.as<T>() + ((o * s.made + k) * s.inner + i) * parts_out;
        to[0] = static_cast<T>(static_cast<Compute<T>>(x[k].real()));
        if (parts_out == 2) {
          to[1] = static_cast<T>(static_cast<Compute<T>>(inverse ? -x[k].imag() : x[k].imag()));
        }
      }
    }
  }
}

}  // namespace

absl::Status DftRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  std::optional<Size> length;
  int64_t axis = -2;
  if (context.has_input(1)) {
    RETURN_IF_ERROR(CheckType(context, 1, kIndices));
    ASSIGN_OR_RETURN(const std::vector<Size> values, context.RequireSizes(1));
    if (values.size() != 1) return absl::InvalidArgumentError("dft_length is not a scalar");
    length = values[0];
  }
  if (context.has_input(2)) {
    RETURN_IF_ERROR(CheckType(context, 2, kIndices));
    ASSIGN_OR_RETURN(const std::vector<int64_t> values, context.RequireInt64s(2));
    if (values.size() != 1) return absl::InvalidArgumentError("the axis is not a scalar");
    axis = values[0];
  }
  SizeList shape = context.shape(0);
  ASSIGN_OR_RETURN(const Axis<Size> sizes, AxisOf<Size>(context.node(), shape, axis, length));
  const bool real_in = !IsSet(context.node(), "inverse") && IsSet(context.node(), "onesided");
  if (real_in && shape.back() != 1) {
    return absl::InvalidArgumentError("a one-sided transform of complex numbers");
  }
  shape[axis < 0 ? axis + context.rank(0) : axis] = sizes.made;
  shape.back() = IsSet(context.node(), "inverse") && IsSet(context.node(), "onesided") ? 1 : 2;
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status DftKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  std::optional<int64_t> length;
  if (HasInput(context, 1)) length = Int64sOf(context, 1)[0];
  const int64_t axis = HasInput(context, 2) ? Int64sOf(context, 2)[0] : -2;
  ASSIGN_OR_RETURN(
      const Axis<int64_t> sizes,
      AxisOf<int64_t>(context.node, Shape(in.shape.begin(), in.shape.end()), axis, length));
  return Dispatch(FloatList{}, in.dtype,
                  [&]<typename T>() { Transform<T>(context.node, in, sizes, context.outputs[0]); });
}

}  // namespace reprise::ops
