#include "runtime/ops/windows/roi_align.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

// Samples of a place along a dim, at most: a client may send a region of any size.
constexpr double kMostSamples = 1024;

struct Form {
  int64_t height, width, ratio;
  double scale, offset;
  bool half_pixel, largest;
};

absl::StatusOr<Form> FormOf(const Attributes& attributes) {
  const std::string at = attributes.String("coordinate_transformation_mode", "half_pixel");
  const std::string mode = attributes.String("mode", "avg");
  if (at != "half_pixel" && at != "output_half_pixel") {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no coordinate_transformation_mode '", at, "'"));
  }
  if (mode != "avg" && mode != "max") {
    return absl::InvalidArgumentError(absl::StrCat("there is no mode '", mode, "'"));
  }
  Form form = {.height = attributes.Int("output_height", 1),
               .width = attributes.Int("output_width", 1),
               .ratio = attributes.Int("sampling_ratio", 0),
               .scale = attributes.Float("spatial_scale", 1),
               .offset = at == "half_pixel" ? 0.5 : 0,
               .half_pixel = at == "half_pixel",
               .largest = mode == "max"};
  if (form.height < 1 || form.width < 1 || form.ratio < 0 ||
      form.ratio > static_cast<int64_t>(kMostSamples)) {
    return absl::InvalidArgumentError(absl::StrCat("a region cannot be ", form.height, " by ",
                                                   form.width, " with ", form.ratio, " samples"));
  }
  return form;
}

// One sample along a dim: the elements below and above, and the weight of the one above.
struct RoiSample {
  int64_t low = 0, high = 0;
  double share = 0;
  bool inside = false;
};

RoiSample SampleAt(double x, int64_t size) {
  RoiSample sample;
  sample.inside = x >= -1 && x <= static_cast<double>(size);
  if (!sample.inside) return sample;
  x = std::max(x, 0.0);
  sample.low = std::min(static_cast<int64_t>(x), size - 1);
  sample.high = std::min(sample.low + 1, size - 1);
  sample.share = sample.low == size - 1 ? 0 : x - static_cast<double>(sample.low);
  return sample;
}

// The samples of all places along a dim of `size`: `each` of them for each of `places`.
struct Line {
  int64_t each = 0;
  std::vector<RoiSample> samples;
};

Line LineOf(const Form& form, double begin, double end, int64_t places, int64_t size) {
  begin = begin * form.scale - form.offset;
  double length = end * form.scale - form.offset - begin;
  if (!form.half_pixel) length = std::max(length, 1.0);
  const double step = length / static_cast<double>(places);
  Line line;
  line.each = form.ratio;
  // A NaN step does not give a number of samples.
  if (form.ratio == 0 && step > 0) {
    line.each = static_cast<int64_t>(std::min(std::ceil(step), kMostSamples));
  }
  for (int64_t i = 0; i < places * line.each; ++i) {
    WatchWork(4);
    const double within = static_cast<double>(i % line.each) + 0.5;
    line.samples.push_back(SampleAt(begin + static_cast<double>(i / line.each) * step +
                                        within * step / static_cast<double>(line.each),
                                    size));
  }
  return line;
}

// Returns `samples`, which go in one direction, without the ones outside at both ends.
absl::Span<const RoiSample> TrimOutside(absl::Span<const RoiSample> samples) {
  while (!samples.empty() && !samples.front().inside) samples.remove_prefix(1);
  while (!samples.empty() && !samples.back().inside) samples.remove_suffix(1);
  return samples;
}

// Returns the mean of the samples of one place, or the largest of their weighted elements. A sample
// outside counts as 0.
template <typename T>
double Pool(const T* x, int64_t width, absl::Span<const RoiSample> rows,
            absl::Span<const RoiSample> columns, bool largest) {
  const size_t count = rows.size() * columns.size();
  if (count == 0) return 0;
  rows = TrimOutside(rows);
  columns = TrimOutside(columns);
  const bool all_inside = rows.size() * columns.size() == count;
  double sum = 0, most = all_inside ? -std::numeric_limits<double>::infinity() : 0;
  const auto element = [&](int64_t row, int64_t column) -> double {
    return static_cast<Compute<T>>(x[row * width + column]);
  };
  for (const RoiSample& r : rows) {
    WatchWork(4 * static_cast<int64_t>(columns.size()));
    for (const RoiSample& c : columns) {
      for (const double part : {(1 - r.share) * (1 - c.share) * element(r.low, c.low),
                                (1 - r.share) * c.share * element(r.low, c.high),
                                r.share * (1 - c.share) * element(r.high, c.low),
                                r.share * c.share * element(r.high, c.high)}) {
        sum += part;
        most = std::max(most, part);
      }
    }
  }
  return largest ? most : sum / static_cast<double>(count);
}

}  // namespace

absl::Status RoiAlignRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloats));
  RETURN_IF_ERROR(CheckSameType(context, 0, 1));
  RETURN_IF_ERROR(CheckType(context, 2, kIndices));
  RETURN_IF_ERROR(CheckRank(context, 0, 4));
  RETURN_IF_ERROR(CheckRank(context, 1, 2));
  ASSIGN_OR_RETURN(const Form form, FormOf(context.attributes()));
  const SizeList &x = context.shape(0), &rois = context.shape(1);
  if (rois[1] != 4 || context.shape(2) != SizeList{rois[0]}) {
    return absl::InvalidArgumentError(absl::StrCat("regions ", ShapeToString(rois), " of elements ",
                                                   ShapeToString(context.shape(2)),
                                                   " are not four numbers and one element each"));
  }
  if (rois[0] > 0 && NumElements(x) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is nothing to sample in ", ShapeToString(x)));
  }
  context.SetOutput(0, context.dtype(0), {rois[0], x[1], form.height, form.width});
  return absl::OkStatus();
}

absl::Status RoiAlignKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  ASSIGN_OR_RETURN(const Form form, FormOf(context.node.attributes));
  const int64_t channels = in.shape[1], height = in.shape[2], width = in.shape[3];
  const std::vector<int64_t> elements = Int64sOf(context, 2);
  return Dispatch(FloatList{}, in.dtype, [&]<typename T>() {
    T* y = context.outputs[0].as<T>();
    for (size_t r = 0; r < elements.size(); ++r) {
      int64_t element = elements[r];
      if (element < 0 || element >= in.shape[0]) {
        context.errors.Report(2, static_cast<int64_t>(r), element, 0, in.shape[0] - 1);
        element = 0;
      }
      const T* roi = context.inputs[1].as<T>() + r * 4;
      const auto side = [&](size_t i) -> double { return static_cast<Compute<T>>(roi[i]); };
      const Line columns = LineOf(form, side(0), side(2), form.width, width);
      const Line rows = LineOf(form, side(1), side(3), form.height, height);
      for (int64_t channel = 0; channel < channels; ++channel) {
        const T* x = in.as<T>() + (element * channels + channel) * height * width;
        for (int64_t at = 0; at < form.height * form.width; ++at) {
          const auto of_place = [](const Line& line, int64_t place) {
            return absl::MakeConstSpan(line.samples).subspan(place * line.each, line.each);
          };
          const double value = Pool(x, width, of_place(rows, at / form.width),
                                    of_place(columns, at % form.width), form.largest);
          *y++ = static_cast<T>(static_cast<Compute<T>>(value));
        }
      }
    }
  });
}

}  // namespace reprise::ops
