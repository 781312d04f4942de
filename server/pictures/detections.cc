#include "server/pictures/detections.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Boxes that may overlap each other are compared in pairs: with more, those with low scores go.
constexpr size_t kMostCompared = 30'000;

absl::Status WrongShape(DetectorHead head, const HeadOutput& output, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the output has shape [", absl::StrJoin(output.shape, ", "),
      "] a picture, a detector of the kind ", DetectorHeadName(head), " has ", wanted));
}

// Returns a box around a centre in the tensor, as one of the picture.
Detection InPicture(double x, double y, double width, double height, const PicturePlace& place) {
  const auto across = [&](double at) {
    return std::clamp<double>((at - place.offset_x) / place.scale_x, 0, place.width);
  };
  const auto down = [&](double at) {
    return std::clamp<double>((at - place.offset_y) / place.scale_y, 0, place.height);
  };
  return {.left = across(x - width / 2),
          .top = down(y - height / 2),
          .right = across(x + width / 2),
          .bottom = down(y + height / 2)};
}

// Returns whether it has an area: an answer that is NaN has none.
bool IsBox(const Detection& one) { return one.right > one.left && one.bottom > one.top; }

absl::StatusOr<std::vector<Detection>> OfYolo(DetectorHead head, const HeadOutput& output,
                                              size_t classes, const PicturePlace& place,
                                              double conf) {
  const bool by_rows = head == DetectorHead::kYoloV5;
  const int64_t others = by_rows ? 5 : 4;
  const absl::string_view wanted = by_rows ? "[boxes, 5 + classes]" : "[4 + classes, boxes]";
  if (output.shape.size() != 2) return WrongShape(head, output, wanted);
  const int64_t members = output.shape[by_rows ? 1 : 0], boxes = output.shape[by_rows ? 0 : 1];
  if (members <= others) return WrongShape(head, output, wanted);
  if (classes > 0 && static_cast<int64_t>(classes) != members - others) {
    return WrongShape(head, output,
                      absl::StrCat(wanted, ", and the model has ", classes, " labels"));
  }
  const auto at = [&](int64_t box, int64_t member) {
    return output
        .values[static_cast<size_t>(by_rows ? box * members + member : member * boxes + box)];
  };
  std::vector<Detection> found;
  for (int64_t box = 0; box < boxes; ++box) {
    const float objectness = by_rows ? at(box, 4) : 1;
    if (!(objectness >= conf)) continue;
    int64_t best = others;
    for (int64_t member = others; member < members; ++member) {
      if (at(box, member) > at(box, best)) best = member;
    }
    const float score = objectness * at(box, best);
    if (!(score >= conf)) continue;
    Detection one = InPicture(at(box, 0), at(box, 1), at(box, 2), at(box, 3), place);
    one.label = best - others;
    one.score = score;
    if (IsBox(one)) found.push_back(one);
  }
  return found;
}

// Finds the class of a row of logits, and its probability.
void Judge(absl::Span<const float> logits, bool exclusive, Detection& one) {
  const size_t classes = exclusive ? logits.size() - 1 : logits.size();
  const auto best = std::max_element(logits.begin(), logits.begin() + classes);
  one.label = best - logits.begin();
  if (!exclusive) {
    one.score = 1 / (1 + std::exp(-*best));
    return;
  }
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  one.score = static_cast<float>(std::exp(static_cast<double>(*best) - top) / sum);
}

absl::StatusOr<std::vector<Detection>> OfDetr(DetectorHead head,
                                              absl::Span<const HeadOutput> outputs,
                                              const PicturePlace& place, double conf) {
  const bool exclusive = head == DetectorHead::kDetr;
  const HeadOutput &logits = outputs[0], &boxes = outputs[1];
  if (logits.shape.size() != 2 || logits.shape[1] < (exclusive ? 2 : 1)) {
    return WrongShape(head, logits, "[queries, classes + 1]");
  }
  if (boxes.shape.size() != 2 || boxes.shape[1] != 4 || boxes.shape[0] != logits.shape[0]) {
    return WrongShape(head, boxes, absl::StrCat("[", logits.shape[0], ", 4]"));
  }
  const auto members = static_cast<size_t>(logits.shape[1]);
  std::vector<Detection> found;
  for (size_t query = 0; query < static_cast<size_t>(logits.shape[0]); ++query) {
    const absl::Span<const float> box = boxes.values.subspan(query * 4, 4);
    const double wide = place.tensor_width, high = place.tensor_height;
    Detection one = InPicture(box[0] * wide, box[1] * high, box[2] * wide, box[3] * high, place);
    Judge(logits.values.subspan(query * members, members), exclusive, one);
    if (one.score >= conf && IsBox(one)) found.push_back(one);
  }
  return found;
}

double Area(const Detection& one) { return (one.right - one.left) * (one.bottom - one.top); }

double Overlap(const Detection& a, const Detection& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  return width * height / (Area(a) + Area(b) - width * height);
}

// Leaves out boxes that overlap one of their class with a higher score; `sorted` by scores.
std::vector<Detection> WithoutOverlaps(const std::vector<Detection>& sorted,
                                       const DetectOptions& options) {
  std::vector<Detection> kept;
  for (const Detection& one : sorted) {
    if (static_cast<int64_t>(kept.size()) >= options.most) break;
    const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](const Detection& better) {
      return better.label == one.label && Overlap(better, one) > options.iou;
    });
    if (!overlaps) kept.push_back(one);
  }
  return kept;
}

}  // namespace

absl::string_view DetectorHeadName(DetectorHead head) {
  switch (head) {
    case DetectorHead::kYoloV5:
      return "yolov5";
    case DetectorHead::kYoloV8:
      return "yolov8";
    case DetectorHead::kDetr:
      return "detr";
    case DetectorHead::kRtDetr:
      return "rt_detr";
  }
  return "";
}

DetectOptions DefaultOptions(DetectorHead head) {
  switch (head) {
    case DetectorHead::kYoloV5:
      return {.conf = 0.25, .iou = 0.45};
    case DetectorHead::kYoloV8:
      return {.conf = 0.25, .iou = 0.7};
    case DetectorHead::kDetr:
    case DetectorHead::kRtDetr:
      break;
  }
  return {.conf = 0.5, .iou = 1};  // queries do not repeat each other
}

absl::StatusOr<std::vector<Detection>> Detect(DetectorHead head,
                                              absl::Span<const HeadOutput> outputs, size_t classes,
                                              const PicturePlace& place,
                                              const DetectOptions& options) {
  const bool is_yolo = head == DetectorHead::kYoloV5 || head == DetectorHead::kYoloV8;
  absl::StatusOr<std::vector<Detection>> found =
      is_yolo ? OfYolo(head, outputs[0], classes, place, options.conf)
              : OfDetr(head, outputs, place, options.conf);
  RETURN_IF_ERROR(found.status());
  std::stable_sort(found->begin(), found->end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  if (found->size() > kMostCompared) found->resize(kMostCompared);
  return WithoutOverlaps(*found, options);
}

}  // namespace reprise
