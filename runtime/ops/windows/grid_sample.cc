#include "runtime/ops/windows/grid_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

constexpr double kCubic = -0.75;
constexpr int kMostTaps = 4;

enum class Mode { kLinear, kNearest, kCubic };
enum class Outside { kZeros, kBorder, kReflection };

struct GridSampling {
  Mode mode = Mode::kLinear;
  Outside outside = Outside::kZeros;
  bool align_corners = false;
  int taps() const { return mode == Mode::kNearest ? 1 : mode == Mode::kLinear ? 2 : 4; }
};

absl::StatusOr<GridSampling> SamplingOf(const Node& node, int64_t dims) {
  GridSampling sampling;
  const std::string mode = node.attributes.String("mode", "linear");
  const std::string outside = node.attributes.String("padding_mode", "zeros");
  // These include the names before opset 20.
  if (mode == "linear" || mode == "bilinear") {
    sampling.mode = Mode::kLinear;
  } else if (mode == "nearest") {
    sampling.mode = Mode::kNearest;
  } else if ((mode == "cubic" || mode == "bicubic") && dims == 2) {
    sampling.mode = Mode::kCubic;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no mode '", mode, "' over ", dims, " dims"));
  }
  if (outside == "zeros") {
    sampling.outside = Outside::kZeros;
  } else if (outside == "border") {
    sampling.outside = Outside::kBorder;
  } else if (outside == "reflection") {
    sampling.outside = Outside::kReflection;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("there is no padding_mode '", outside, "'"));
  }
  sampling.align_corners = node.attributes.Int("align_corners", 0) != 0;
  return sampling;
}

// Returns `x` reflected at `low` and `high` until it is between them.
double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double from = x < low ? low - x : x - high;
  if (x >= low && x <= high) return x;
  const double times = std::floor(from / range), rest = from - times * range;
  const bool even = std::fmod(times, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

// Where dim of `size` is sampled and with which weights; a position of -1 is outside.
struct GridTaps {
  std::array<int64_t, kMostTaps> at;
  std::array<double, kMostTaps> weight;
};

int64_t IndexInside(const GridSampling& sampling, double position, int64_t size) {
  if (!(std::abs(position) < 1e15)) return -1;  // Neither infinite nor NaN.
  if (position >= 0 && position < static_cast<double>(size)) return static_cast<int64_t>(position);
  if (sampling.outside == Outside::kZeros) return -1;
  const double last = static_cast<double>(size - 1);
  if (sampling.outside == Outside::kReflection) {
    position =
        sampling.align_corners ? Reflect(position, 0, last) : Reflect(position, -0.5, last + 0.5);
    position = std::nearbyint(position);
  }
  return static_cast<int64_t>(std::clamp(position, 0.0, last));
}

// Returns the taps at position `x`, which may lie anywhere.
GridTaps TapsAt(const GridSampling& sampling, double x, int64_t size) {
  const double last = static_cast<double>(size - 1);
  // ONNX leaves NaN, and reflected infinity, open; onnxruntime takes the first border there.
  const bool nowhere = sampling.outside == Outside::kReflection ? !std::isfinite(x) : std::isnan(x);
  if (nowhere) x = sampling.align_corners ? 0 : -0.5;
  // The nearest element is found first, as ONNX's reference does, and then put inside.
  if (sampling.mode == Mode::kNearest) x = std::nearbyint(x);
  // Linear sampling clamps the place itself, cubic each of its taps: beyond these bounds all of
  // them read the border.
  if (sampling.outside == Outside::kBorder) {
    const double beyond = sampling.mode == Mode::kCubic ? kMostTaps : 0;
    x = std::clamp(x, -beyond, last + beyond);
  } else if (sampling.outside == Outside::kReflection && sampling.mode == Mode::kCubic) {
    const double period = 2 * (sampling.align_corners ? last : static_cast<double>(size));
    x = period > 0 ? std::fmod(x, period) : 0;  // however far away
  } else if (sampling.outside == Outside::kReflection) {
    x = sampling.align_corners ? Reflect(x, 0, last) : Reflect(x, -0.5, last + 0.5);
    x = std::clamp(x, 0.0, last);
  }
  GridTaps taps = {};
  if (sampling.mode == Mode::kNearest) {
    taps.at[0] = IndexInside(sampling, std::nearbyint(x), size);
    taps.weight[0] = 1;
    return taps;
  }
  const double floor = std::floor(x), t = x - floor;
  if (sampling.mode == Mode::kLinear) {
    taps.at = {IndexInside(sampling, floor, size), IndexInside(sampling, floor + 1, size)};
    taps.weight = {1 - t, t};
    // The upper neighbour of the last one has no weight.
    if (t == 0) taps.at[1] = -1;
    return taps;
  }
  const auto near = [](double d) { return ((kCubic + 2) * d - (kCubic + 3)) * d * d + 1; };
  const auto far = [](double d) {
    return ((kCubic * d - 5 * kCubic) * d + 8 * kCubic) * d - 4 * kCubic;
  };
  taps.weight = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  for (int i = 0; i < kMostTaps; ++i) taps.at[i] = IndexInside(sampling, floor + i - 1, size);
  return taps;
}

}  // namespace

absl::Status GridSampleRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kNumbers));
  RETURN_IF_ERROR(CheckType(context, 1, kFloats));
  const int64_t dims = context.rank(0) - 2;
  if (dims < 1) return RankError("its operand has no dims after batch and channel");
  RETURN_IF_ERROR(CheckRank(context, 1, context.rank(0)));
  RETURN_IF_ERROR(SamplingOf(context.node(), dims).status());
  const SizeList &x = context.shape(0), &grid = context.shape(1);
  if (grid[0] != x[0] || grid.back() != dims) {
    return absl::InvalidArgumentError(absl::StrCat("a grid ", ShapeToString(grid),
                                                   " does not fit an operand ", ShapeToString(x)));
  }
  if (NumElements(SizeList(x.begin() + 2, x.end())) == 0 && NumElements(grid) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is nothing to sample in ", ShapeToString(x)));
  }
  SizeList shape = {x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  context.SetOutput(0, context.dtype(0), std::move(shape));
  return absl::OkStatus();
}

absl::Status GridSampleKernel(const KernelContext& context) {
  const TensorView &in = context.inputs[0], &grid = context.inputs[1];
  const Shape spatial(in.shape.begin() + 2, in.shape.end());
  const size_t dims = spatial.size();
  ASSIGN_OR_RETURN(const GridSampling sampling, SamplingOf(context.node, dims));
  const int64_t batch = in.shape[0], channels = in.shape[1], plane = NumElements(spatial);
  const int64_t places = batch == 0 ? 0 : grid.num_elements() / batch / dims;
  const int64_t each = sampling.taps();
  int64_t corners = 1;
  for (size_t d = 0; d < dims; ++d) corners *= each;
  std::vector<double> positions(grid.num_elements());
  RETURN_IF_ERROR(Dispatch(FloatList{}, grid.dtype, [&]<typename T>() {
    for (size_t i = 0; i < positions.size(); ++i) {
      // The coordinates of a place are listed from the last dim to the first.
      positions[i] = GridPosition(static_cast<Compute<T>>(grid.as<T>()[i]),
                                  spatial[dims - 1 - i % dims], sampling.align_corners);
    }
  }));
  std::vector<GridTaps> taps(dims);
  std::vector<int64_t> offsets(corners);
  std::vector<double> weights(corners);
  return Dispatch(NumericList{}, in.dtype, [&]<typename T>() {
    using C = Compute<T>;
    for (int64_t at = 0; at < batch * places; ++at) {
      WatchWork((channels + 4) * corners);
      for (size_t d = 0; d < dims; ++d) {
        taps[d] = TapsAt(sampling, positions[at * dims + dims - 1 - d], spatial[d]);
      }
      for (int64_t corner = 0; corner < corners; ++corner) {
        int64_t rest = corner, stride = 1;
        offsets[corner] = 0;
        weights[corner] = 1;
        for (size_t d = dims; d-- > 0;) {
          const int64_t tap = rest % each, position = taps[d].at[tap];
          rest /= each;
          weights[corner] *= position < 0 ? 0 : taps[d].weight[tap];
          offsets[corner] += std::max<int64_t>(position, 0) * stride;
          stride *= spatial[d];
        }
      }
      const int64_t element = at / places;
      for (int64_t channel = 0; channel < channels; ++channel) {
        const T* x = in.as<T>() + (element * channels + channel) * plane;
        double sum = 0;
        for (int64_t corner = 0; corner < corners; ++corner) {
          // An element outside counts as zero, even next to an infinite element.
          if (weights[corner] == 0) continue;
          sum += weights[corner] * static_cast<double>(static_cast<C>(x[offsets[corner]]));
        }
        T* y = context.outputs[0].as<T>() + (element * channels + channel) * places;
        y[at % places] = ConvertTo<T>(sum);
      }
    }
  });
}

}  // namespace reprise::ops
