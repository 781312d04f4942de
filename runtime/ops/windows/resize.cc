#include "runtime/ops/windows/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/ops/kit/typed.h"
#include "runtime/ops/windows/resize_antialias.h"
#include "runtime/ops/windows/resize_op.h"

namespace reprise::ops {
namespace {

// Returns whether it is given: Torch writes an empty list for an operand that is left out.
bool IsGiven(const std::vector<double>& values) { return !values.empty(); }

struct Request {
  std::vector<double> scales, sizes, roi;
};

// How one dim is sampled.
struct DimSampling {
  int64_t in = 0, out = 0;
  float scale = 1;
  float roi_start = 0, roi_end = 1;
};

// Returns the scales of all dims where `sizes` asks for the sizes of `axes`, under the policy for
// the ratio.
std::vector<double> ScalesOf(const Shape& in, const std::vector<int64_t>& axes,
                             const std::vector<double>& sizes, absl::string_view policy) {
  std::vector<double> scales;
  for (size_t i = 0; i < axes.size(); ++i) {
    const double size = static_cast<double>(std::max<int64_t>(1, in[axes[i]]));
    scales.push_back(sizes[i] / size);
  }
  if (policy == "stretch" || scales.empty()) return scales;
  const double one = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                            : *std::max_element(scales.begin(), scales.end());
  std::fill(scales.begin(), scales.end(), one);
  return scales;
}

absl::StatusOr<std::vector<DimSampling>> SamplingsOf(const Node& node, const Shape& in,
                                                     const Request& request) {
  std::vector<int64_t> all(in.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<int64_t> axes = node.attributes.Ints("axes", all);
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(in.size());
    if (axis < 0 || axis >= static_cast<int64_t>(in.size())) {
      return absl::InvalidArgumentError("'axes' is out of range");
    }
  }
  const bool by_size = IsGiven(request.sizes);
  if (by_size == IsGiven(request.scales)) {
    return absl::InvalidArgumentError("takes either scales or sizes");
  }
  const std::vector<double>& wanted = by_size ? request.sizes : request.scales;
  if (wanted.size() != axes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(by_size ? "sizes" : "scales", " has ",
                                                   wanted.size(), " elements instead of ",
                                                   axes.size()));
  }
  const std::string policy = node.attributes.String("keep_aspect_ratio_policy", "stretch");
  const std::vector<double> scales = by_size ? ScalesOf(in, axes, wanted, policy) : wanted;
  std::vector<DimSampling> samplings(in.size());
  for (size_t d = 0; d < in.size(); ++d) samplings[d].in = samplings[d].out = in[d];
  for (size_t i = 0; i < axes.size(); ++i) {
    DimSampling& s = samplings[axes[i]];
    s.scale = static_cast<float>(scales[i]);
    double out = by_size && policy == "stretch" ? wanted[i]
                 : by_size                      ? std::round(scales[i] * s.in)
                                                : std::floor(s.scale * static_cast<float>(s.in));
    if (!(out >= 0 && out <= static_cast<double>(int64_t{1} << 40)) || !(s.scale > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("dim ", axes[i], " of ", s.in, " cannot be made ", out));
    }
    s.out = static_cast<int64_t>(out);
    if (request.roi.size() == 2 * axes.size()) {
      s.roi_start = static_cast<float>(request.roi[i]);
      s.roi_end = static_cast<float>(request.roi[i + axes.size()]);
    }
  }
  return samplings;
}

using Coordinate = float (*)(const DimSampling&, float);

float HalfPixel(const DimSampling& s, float x) { return (x + 0.5f) / s.scale - 0.5f; }
float HalfPixelSymmetric(const DimSampling& s, float x) {
  const float in = static_cast<float>(s.in);
  const float adjustment = static_cast<float>(s.out) / (s.scale * in);
  return in / 2 * (1 - adjustment) + HalfPixel(s, x);
}
float PytorchHalfPixel(const DimSampling& s, float x) { return s.out > 1 ? HalfPixel(s, x) : 0; }
float AlignCorners(const DimSampling& s, float x) {
  return s.out > 1 ? x * static_cast<float>(s.in - 1) / static_cast<float>(s.out - 1) : 0;
}
float Asymmetric(const DimSampling& s, float x) { return x / s.scale; }
float CropAndResize(const DimSampling& s, float x) {
  const float last = static_cast<float>(s.in - 1);
  if (s.out <= 1) return 0.5f * (s.roi_start + s.roi_end) * last;
  return s.roi_start * last + x * (s.roi_end - s.roi_start) * last / static_cast<float>(s.out - 1);
}

struct CoordinateRow {
  absl::string_view name;
  Coordinate coordinate;
};
constexpr CoordinateRow kCoordinates[] = {
    {"half_pixel", HalfPixel},
    {"half_pixel_symmetric", HalfPixelSymmetric},
    {"pytorch_half_pixel", PytorchHalfPixel},
    {"align_corners", AlignCorners},
    {"asymmetric", Asymmetric},
    {"tf_crop_and_resize", CropAndResize},
};

absl::StatusOr<Coordinate> CoordinateOf(const Node& node) {
  const std::string name = node.attributes.String("coordinate_transformation_mode", "half_pixel");
  for (const CoordinateRow& row : kCoordinates) {
    if (row.name == name) return row.coordinate;
  }
  return absl::UnimplementedError(absl::StrCat("coordinate_transformation_mode '", name, "'"));
}

float Nearest(absl::string_view mode, float x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5f);
  return std::ceil(x - 0.5f);
}

using Tap = ResizeTap;

// Returns whether the dim stays as it is, which costs nothing.
bool StaysAsItIs(const DimSampling& s, Coordinate coordinate) {
  return s.in == s.out && s.scale == 1 && coordinate != CropAndResize;
}

// Returns the four weights of cubic convolution at a distance of `t` past the second.
std::array<float, 4> CubicWeights(float a, float t) {
  const auto near = [a](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [a](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

// Finds the taps of one dim's positions.
class Sampler {
 public:
  Sampler(const Node& node, const DimSampling& sampling, Coordinate coordinate)
      : mode_(node.attributes.String("mode", "nearest")),
        nearest_(node.attributes.String("nearest_mode", "round_prefer_floor")),
        cubic_(node.attributes.Float("cubic_coeff_a", -0.75f)),
        exclude_(node.attributes.Int("exclude_outside", 0) != 0),
        antialias_(node.attributes.Int("antialias", 0) != 0),
        sampling_(sampling),
        coordinate_(coordinate) {}

  int64_t positions() const { return sampling_.out; }
  bool copies() const { return mode_ == "nearest"; }
  bool stays() const { return StaysAsItIs(sampling_, coordinate_); }

  // Returns whether position `i` of a crop is beyond the operand.
  bool IsOutside(int64_t i) const {
    if (coordinate_ != CropAndResize) return false;
    const float x = coordinate_(sampling_, static_cast<float>(i));
    // A coordinate that is not a number lies outside as well.
    return !(x >= 0 && x <= Last());
  }

  // Adds the taps of position `i`.
  void Append(int64_t i, ResizeTaps& taps) const {
    const float x = coordinate_(sampling_, static_cast<float>(i)), before = std::floor(x);
    if (antialias_ && !copies()) {
      for (const Tap& tap :
           WideTaps(sampling_.in, sampling_.scale, x, mode_ == "cubic", cubic_, exclude_)) {
        taps.Add(tap);
      }
    } else if (copies()) {
      taps.Add({At(Nearest(nearest_, x)), 1});
    } else if (mode_ == "linear") {
      taps.Add({At(before), 1 - (x - before)});
      taps.Add({At(before + 1), x - before});
    } else {
      AppendCubic(x, before, taps);
    }
    taps.End();
  }

 private:
  float Last() const { return static_cast<float>(sampling_.in - 1); }
  // Returns the element at `at`; the first one stands for NaN.
  int64_t At(float at) const { return static_cast<int64_t>(at > 0 ? std::min(at, Last()) : 0.0f); }

  void AppendCubic(float x, float before, ResizeTaps& taps) const {
    const std::array<float, 4> weights = CubicWeights(cubic_, x - before);
    const auto is_left_out = [&](float at) { return exclude_ && (at < 0 || at > Last()); };
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      if (!is_left_out(before + static_cast<float>(k - 1))) sum += weights[k];
    }
    for (int k = 0; k < 4; ++k) {
      const float at = before + static_cast<float>(k - 1);
      if (is_left_out(at)) continue;
      taps.Add({At(at), exclude_ ? weights[k] / sum : weights[k]});
    }
  }

  const std::string mode_, nearest_;
  const float cubic_;
  const bool exclude_, antialias_;
  const DimSampling sampling_;
  const Coordinate coordinate_;
};

// Samples between integers are cut off, or rounded.
template <typename T, typename C>
T AsElement(C value, float half) {
  if constexpr (std::is_integral_v<T> && std::is_same_v<C, float>) {
    return static_cast<T>(value + std::copysign(half + kResizeSumsAreOffBy, value));
  } else {
    return static_cast<T>(value);
  }
}

// Returns dim `d` of `values`, whose dims are `shape`, sampled by `sampler`. Taps are kept of some
// positions at a time: a dim may be as long as the data of a request say.
template <typename C>
std::vector<C> SampleDim(const std::vector<C>& values, Shape& shape, size_t d,
                         const Sampler& sampler) {
  constexpr int64_t kAtATime = 4096;
  const int64_t outer = NumElements(absl::Span<const int64_t>(shape).subspan(0, d));
  const int64_t inner = NumElements(absl::Span<const int64_t>(shape).subspan(d + 1));
  const int64_t in = shape[d], out = sampler.positions();
  std::vector<C> result(outer * out * inner);
  ResizeTaps taps;
  for (int64_t begin = 0; begin < out; begin += kAtATime) {
    const int64_t count = std::min(kAtATime, out - begin);
    taps.Clear();
    for (int64_t i = 0; i < count; ++i) sampler.Append(begin + i, taps);
    for (int64_t o = 0; o < outer; ++o) {
      WatchWork(count * inner * static_cast<int64_t>(taps[0].size()));
      const C* const line = values.data() + o * in * inner;
      C* to = result.data() + (o * out + begin) * inner;
      for (int64_t i = 0; i < count; ++i, to += inner) {
        for (const Tap& tap : taps[i]) {
          const C* const from = line + tap.at * inner;
          if (sampler.copies()) {
            std::copy_n(from, inner, to);
          } else {
            const C weight = static_cast<C>(tap.weight);
            for (int64_t k = 0; k < inner; ++k) to[k] += weight * from[k];
          }
        }
      }
    }
  }
  shape[d] = out;
  return result;
}

// Returns the dims, the ones that shrink most first: intermediate results are never larger than
// both operand and result.
std::vector<size_t> BySize(const std::vector<DimSampling>& samplings) {
  std::vector<size_t> dims(samplings.size());
  std::iota(dims.begin(), dims.end(), 0);
  const auto growth = [&](size_t d) {
    return static_cast<double>(samplings[d].out) / static_cast<double>(samplings[d].in);
  };
  std::stable_sort(dims.begin(), dims.end(),
                   [&](size_t a, size_t b) { return growth(a) < growth(b); });
  return dims;
}

absl::StatusOr<std::vector<double>> KnownValues(const InferContext& context, size_t i) {
  if (!context.has_input(i)) return std::vector<double>();
  if (context.constant(i) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("its output shape depends on data (input ", i, ")"));
  }
  return context.constant(i)->ToDoubles();
}

std::vector<double> GivenValues(const KernelContext& context, size_t i) {
  if (!HasInput(context, i)) return {};
  const TensorView& view = context.inputs[i];
  std::vector<double> values(view.num_elements());
  (void)Dispatch(NumericList{}, view.dtype, [&]<typename T>() {
    for (size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<double>(static_cast<Compute<T>>(view.as<T>()[k]));
    }
  });
  return values;
}

}  // namespace

namespace {

// Returns floor(scale * size) as float arithmetic has it. A scale of few digits, as 2 and 0.5 are,
// makes no rounding error over sizes that are not huge; others hold for one size.
Size ScaledSize(float scale, Size size) {
  constexpr int kDigits = 16;
  constexpr int64_t kMostExact = int64_t{1} << 23;
  if (!size.is_constant()) {
    for (int shift = 0; shift <= kDigits / 2; ++shift) {
      const float scaled = std::ldexp(scale, shift);
      if (scaled != std::floor(scaled) || !(scaled < (1 << kDigits / 2))) continue;
      const auto factor = static_cast<int64_t>(scaled);
      if (factor > 0 && size < kMostExact / factor) {
        return FloorDivide(size * factor, int64_t{1} << shift);
      }
    }
  }
  return static_cast<int64_t>(std::floor(scale * static_cast<float>(size.Pinned())));
}

// Returns the shape of the result; `samplings` holds for the hints. `wanted`: the requested sizes.
SizeList SampledShape(const InferContext& context, const std::vector<DimSampling>& samplings,
                      const std::vector<Size>& wanted) {
  SizeList shape = context.shape(ResizeOp::Input::kX);
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = context.attributes().Ints("axes", axes);
  const bool stretches =
      context.attributes().String("keep_aspect_ratio_policy", "stretch") == "stretch";
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i] < 0 ? axes[i] + context.rank(0) : axes[i]);
    const DimSampling& sampling = samplings[d];
    if (wanted.empty()) {
      shape[d] = ScaledSize(sampling.scale, shape[d]);
    } else if (stretches && wanted[i] > 0) {
      shape[d] = wanted[i];
    } else {
      // Each scale depends on all dims.
      for (const int64_t axis : axes) {
        (void)context.shape(0)[static_cast<size_t>(axis < 0 ? axis + context.rank(0) : axis)]
            .Pinned();
      }
      for (const Size size : wanted) (void)size.Pinned();
      shape[d] = sampling.out;
    }
  }
  return shape;
}

}  // namespace

absl::Status ResizeRule(InferContext& context) {
  using enum ResizeOp::Input;
  const std::string mode = context.attributes().String("mode", "nearest");
  if (mode != "nearest" && mode != "linear" && mode != "cubic") {
    return absl::UnimplementedError(absl::StrCat("mode '", mode, "'"));
  }
  // ONNX leaves open how cubic samples of integers, which may lie beyond them, are rounded.
  constexpr uint32_t kBetween =
      kFloats | TypeBit(DType::kUInt8) | TypeBit(DType::kInt8) | TypeBit(DType::kInt32);
  RETURN_IF_ERROR(CheckType(context, kX,
                            mode == "nearest"  ? kNumbers
                            : mode == "linear" ? kBetween
                                               : kFloats));
  RETURN_IF_ERROR(CoordinateOf(context.node()).status());
  Request request;
  ASSIGN_OR_RETURN(request.scales, KnownValues(context, kScales));
  std::vector<Size> wanted;
  if (context.has_input(kSizes)) {
    ASSIGN_OR_RETURN(wanted, context.RequireSizes(kSizes));
  }
  for (const Size size : wanted) request.sizes.push_back(static_cast<double>(size.hint()));
  const absl::StatusOr<std::vector<DimSampling>> found =
      SamplingsOf(context.node(), HintsOf(context.shape(kX)), request);
  if (!found.ok()) {
    // It may take other sizes.
    context.PinSizes();
    return found.status();
  }
  const std::vector<DimSampling>& samplings = *found;
  const SizeList shape = SampledShape(context, samplings, wanted);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (context.shape(kX)[d] == 0 && shape[d] != 0) {
      return absl::InvalidArgumentError("samples an empty dim");
    }
  }
  context.SetOutput(0, context.dtype(kX), shape);
  return absl::OkStatus();
}

absl::Status ResizeKernel(const KernelContext& context) {
  using enum ResizeOp::Input;
  const TensorView& in = context.inputs[kX];
  const MutableTensorView& out = context.outputs[0];
  const Request request = {.scales = GivenValues(context, kScales),
                           .sizes = GivenValues(context, kSizes),
                           .roi = GivenValues(context, kRoi)};
  ASSIGN_OR_RETURN(const std::vector<DimSampling> samplings,
                   SamplingsOf(context.node, in.shape, request));
  ASSIGN_OR_RETURN(const Coordinate coordinate, CoordinateOf(context.node));
  if (NumElements(out.shape) == 0) return absl::OkStatus();
  const bool copy = context.node.attributes.String("mode", "nearest") == "nearest";
  const float beyond = context.node.attributes.Float("extrapolation_value", 0);
  const float half = RoundingOfIntegers(context.node);
  // Samples as `C`, and then as the elements.
  const auto sample = [&]<typename T, typename C>() {
    std::vector<C> values(in.as<T>(), in.as<T>() + in.num_elements());
    Shape shape = in.shape;
    std::vector<std::vector<bool>> outside(shape.size());
    for (const size_t d : BySize(samplings)) {
      const Sampler sampler(context.node, samplings[d], coordinate);
      if (!sampler.stays()) values = SampleDim(values, shape, d, sampler);
      if (coordinate != CropAndResize) continue;
      for (int64_t i = 0; i < shape[d]; ++i) outside[d].push_back(sampler.IsOutside(i));
    }
    const bool all_inside = absl::c_all_of(
        outside, [](const std::vector<bool>& dim) { return !absl::c_linear_search(dim, true); });
    if (all_inside) {
      std::transform(values.begin(), values.end(), out.as<T>(),
                     [&](C value) { return AsElement<T, C>(value, half); });
      return;
    }
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
      int64_t rest = i;
      bool is_outside = false;
      for (size_t d = shape.size(); d-- > 0;) {
        is_outside |= outside[d][rest % shape[d]];
        rest /= shape[d];
      }
      out.as<T>()[i] = is_outside ? ConvertTo<T>(beyond) : AsElement<T, C>(values[i], half);
    }
  };
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      if (!copy) return sample.template operator()<T, float>();
    }
    sample.template operator()<T, Compute<T>>();
  });
}

absl::StatusOr<std::vector<ResizeTaps>> ResizeTapsOf(const Node& node, const Shape& in,
                                                     const std::vector<double>& scales,
                                                     const std::vector<double>& sizes) {
  ASSIGN_OR_RETURN(const std::vector<DimSampling> samplings,
                   SamplingsOf(node, in, {.scales = scales, .sizes = sizes}));
  ASSIGN_OR_RETURN(const Coordinate coordinate, CoordinateOf(node));
  if (coordinate == CropAndResize) return absl::UnimplementedError("samples of a crop");
  std::vector<ResizeTaps> taps(in.size());
  for (size_t d = 0; d < in.size(); ++d) {
    const Sampler sampler(node, samplings[d], coordinate);
    if (sampler.stays()) continue;
    if (sampler.positions() > kMostKeptPositions) {
      return absl::UnimplementedError("more positions than are kept");
    }
    for (int64_t i = 0; i < sampler.positions(); ++i) sampler.Append(i, taps[d]);
  }
  return taps;
}

}  // namespace reprise::ops
