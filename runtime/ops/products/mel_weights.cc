#include "runtime/ops/products/mel_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

constexpr size_t kBins = 0, kDftLength = 1, kRate = 2, kLower = 3, kUpper = 4;
constexpr int64_t kMostBins = 1 << 24;

absl::StatusOr<DType> ResultType(const Node& node) {
  return DTypeFromOnnx(node.attributes.Int("output_datatype", OnnxNumber(DType::kFloat32)));
}

double Mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double Hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Returns the number that operand `i` holds.
double NumberOf(const KernelContext& context, size_t i) {
  double number = 0;
  (void)Dispatch(NumericList{}, context.inputs[i].dtype, [&]<typename T>() {
    number = static_cast<double>(static_cast<Compute<T>>(*context.inputs[i].as<T>()));
  });
  return number;
}

// Returns the corners of the filters, as numbers of frequencies of the spectrum, at most 2^40 to
// either side of its beginning.
std::vector<int64_t> Corners(int64_t bins, double length, double rate, double lower, double upper) {
  constexpr double kFar = int64_t{1} << 40;
  const double low = Mel(lower);
  const double step = (Mel(upper) - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> corners;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = Hertz(low + static_cast<double>(i) * step);
    const double at = std::floor((length + 1) * hertz / rate);
    corners.push_back(static_cast<int64_t>(at > -kFar ? std::min(at, kFar) : -kFar));
  }
  return corners;
}

}  // namespace

absl::Status MelWeightMatrixRule(InferContext& context) {
  for (const size_t i : {kBins, kDftLength, kRate})
    RETURN_IF_ERROR(CheckType(context, i, kIndices));
  for (const size_t i : {kLower, kUpper}) RETURN_IF_ERROR(CheckType(context, i, kFloats));
  for (size_t i = 0; i <= kUpper; ++i) {
    if (NumElements(context.shape(i)) != 1) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ",
                                                     ShapeToString(context.shape(i)),
                                                     ", which is not a scalar"));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Size> bins, context.RequireSizes(kBins));
  ASSIGN_OR_RETURN(const std::vector<Size> length, context.RequireSizes(kDftLength));
  if (bins[0] < 0 || bins[0] > kMostBins || length[0] < 0 || length[0] > kMostBins) {
    return absl::InvalidArgumentError(absl::StrCat(bins[0], " filters of a transform of length ",
                                                   length[0], ", both go from 0 to ", kMostBins));
  }
  ASSIGN_OR_RETURN(const DType dtype, ResultType(context.node()));
  if ((TypeBit(dtype) & kNumbers) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("weights cannot be ", DTypeName(dtype)));
  }
  context.SetOutput(0, dtype, {length[0] / 2 + 1, bins[0]});
  return absl::OkStatus();
}

absl::Status MelWeightMatrixKernel(const KernelContext& context) {
  const MutableTensorView& out = context.outputs[0];
  const int64_t frequencies = out.shape[0], bins = out.shape[1];
  const double rate = NumberOf(context, kRate);
  if (!(rate > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("sample_rate is ", rate, ", not above 0"));
  }
  const double lower = NumberOf(context, kLower), upper = NumberOf(context, kUpper);
  const std::vector<int64_t> corners =
      Corners(bins, NumberOf(context, kDftLength), rate, lower, upper);
  if (out.bytes() > 0) std::memset(out.data, 0, out.bytes());
  return Dispatch(NumericList{}, out.dtype, [&]<typename T>() {
    T* const weights = out.as<T>();
    for (int64_t bin = 0; bin < bins; ++bin) {
      const int64_t left = corners[bin], centre = corners[bin + 1], right = corners[bin + 2];
      const auto set = [&](int64_t at, double weight) {
        if (at >= 0 && at < frequencies) weights[at * bins + bin] = ConvertTo<T>(weight);
      };
      if (left == centre) set(centre, 1);
      for (int64_t at = std::max<int64_t>(left, 0);
           left < centre && at <= std::min(centre, frequencies - 1); ++at) {
        set(at, static_cast<double>(at - left) / static_cast<double>(centre - left));
      }
      for (int64_t at = std::max<int64_t>(centre, 0); at < std::min(right, frequencies); ++at) {
        set(at, static_cast<double>(right - at) / static_cast<double>(right - centre));
      }
    }
  });
}

DType MelWeightMatrixTypes(const Node& node, size_t, absl::Span<const DType>) {
  return ResultType(node).value_or(DType::kUndefined);
}

}  // namespace reprise::ops
