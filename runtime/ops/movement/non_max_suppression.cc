#include "runtime/ops/movement/non_max_suppression.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"

namespace reprise::ops {
namespace {

struct Corners {
  float y1, x1, y2, x2;

  float area() const { return (y2 - y1) * (x2 - x1); }
};

// Returns the corners of `box`, which is four numbers: two opposite corners in any order, or a
// centre with width and height.
Corners CornersOf(const float* box, bool center) {
  if (center) {
    const float x = box[0], y = box[1], half_width = box[2] / 2, half_height = box[3] / 2;
    return {y - half_height, x - half_width, y + half_height, x + half_width};
  }
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]),
          std::max(box[1], box[3])};
}

// The kept boxes, by coordinate, so that another is compared with several at a time.
class KeptBoxes {
 public:
  size_t size() const { return areas_.size(); }
  void Clear() {
    for (std::vector<float>* values : {&y1_, &x1_, &y2_, &x2_, &areas_}) values->clear();
  }
  void Add(const Corners& box) {
    y1_.push_back(box.y1);
    x1_.push_back(box.x1);
    y2_.push_back(box.y2);
    x2_.push_back(box.x2);
    areas_.push_back(box.area());
  }
  // Returns whether `box` and one of them have more than the share `most` of their union in common.
  bool Overlap(const Corners& box, float most) const {
    constexpr size_t kBlock = 32;
    const float area = box.area();
    if (!(area > 0)) return false;
    for (size_t begin = 0; begin < size(); begin += kBlock) {
      const size_t end = std::min(begin + kBlock, size());
      int found = 0;
      for (size_t i = begin; i < end; ++i) {
        const float height = std::min(box.y2, y2_[i]) - std::max(box.y1, y1_[i]);
        const float width = std::min(box.x2, x2_[i]) - std::max(box.x1, x1_[i]);
        const float common = height * width;
        const float all = area + areas_[i] - common;
        // No branches here: which of these conditions holds is hard to predict.
        found |= static_cast<int>(height > 0) & static_cast<int>(width > 0) &
                 static_cast<int>(areas_[i] > 0) & static_cast<int>(all > 0) &
                 static_cast<int>(common / all > most);
      }
      if (found != 0) return true;
    }
    return false;
  }

 private:
  std::vector<float> y1_, x1_, y2_, x2_, areas_;
};

struct Limits {
  int64_t boxes_per_class = 0;
  float overlap = 0;
  bool has_score = false;
  float score = 0;
};

using Selected = std::vector<std::array<int64_t, 3>>;

Selected Select(const TensorView& boxes, const TensorView& scores, const Limits& limits,
                bool center) {
  Selected selected;
  const int64_t batches = scores.shape[0], classes = scores.shape[1], count = scores.shape[2];
  if (limits.boxes_per_class <= 0) return selected;
  std::vector<Corners> corners(count);
  std::vector<int64_t> order;
  KeptBoxes kept;
  for (int64_t batch = 0; batch < batches; ++batch) {
    for (int64_t i = 0; i < count; ++i) {
      corners[i] = CornersOf(boxes.as<float>() + (batch * count + i) * 4, center);
    }
    for (int64_t one = 0; one < classes; ++one) {
      const float* score = scores.as<float>() + (batch * classes + one) * count;
      order.clear();
      for (int64_t i = 0; i < count; ++i) {
        // A score that is NaN is never the best.
        if (score[i] == score[i] && (!limits.has_score || score[i] > limits.score)) {
          order.push_back(i);
        }
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return score[a] > score[b]; });
      kept.Clear();
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= limits.boxes_per_class) break;
        WatchWork(static_cast<int64_t>(kept.size()) + 1);
        if (kept.Overlap(corners[i], limits.overlap)) continue;
        kept.Add(corners[i]);
        selected.push_back({batch, one, i});
      }
    }
  }
  return selected;
}

absl::StatusOr<Limits> LimitsOf(const InferContext& context) {
  Limits limits;
  for (size_t i = 2; i < 5; ++i) {
    if (!context.has_input(i)) continue;
    RETURN_IF_ERROR(
        CheckType(context, i, i == 2 ? TypeBit(DType::kInt64) : TypeBit(DType::kFloat32)));
    if (NumElements(context.shape(i)) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has ", NumElements(context.shape(i)), " elements, not 1"));
    }
    if (context.constant(i) == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("its output shape depends on data (input ", i, ")"));
    }
  }
  if (context.has_input(2)) limits.boxes_per_class = context.constant(2)->span<int64_t>()[0];
  if (context.has_input(3)) limits.overlap = context.constant(3)->span<float>()[0];
  if (!(limits.overlap >= 0 && limits.overlap <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("iou_threshold is ", limits.overlap, ", outside [0, 1]"));
  }
  limits.has_score = context.has_input(4);
  if (limits.has_score) limits.score = context.constant(4)->span<float>()[0];
  return limits;
}

Limits LimitsOf(const KernelContext& context) {
  Limits limits;
  if (HasInput(context, 2)) limits.boxes_per_class = *context.inputs[2].as<int64_t>();
  if (HasInput(context, 3)) limits.overlap = *context.inputs[3].as<float>();
  limits.has_score = HasInput(context, 4);
  if (limits.has_score) limits.score = *context.inputs[4].as<float>();
  return limits;
}

}  // namespace

absl::Status NonMaxSuppressionRule(InferContext& context) {
  for (size_t i : {0, 1}) {
    RETURN_IF_ERROR(CheckType(context, i, TypeBit(DType::kFloat32)));
    RETURN_IF_ERROR(CheckRank(context, i, 3));
  }
  const SizeList& boxes = context.shape(0);
  const SizeList& scores = context.shape(1);
  if (boxes[2] != 4 || boxes[0] != scores[0] || boxes[1] != scores[2]) {
    return absl::InvalidArgumentError(absl::StrCat("boxes ", ShapeToString(boxes), " and scores ",
                                                   ShapeToString(scores), " do not agree"));
  }
  ASSIGN_OR_RETURN(const Limits limits, LimitsOf(context));
  for (size_t i : {0, 1}) {
    if (context.constant(i) != nullptr) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("its output shape depends on data (input ", i, ")"));
  }
  const Selected selected = Select(context.constant(0)->view(), context.constant(1)->view(), limits,
                                   context.attributes().Int("center_point_box", 0) != 0);
  context.SetOutput(0, DType::kInt64, {static_cast<int64_t>(selected.size()), 3});
  return absl::OkStatus();
}

absl::Status NonMaxSuppressionKernel(const KernelContext& context) {
  const Selected selected = Select(context.inputs[0], context.inputs[1], LimitsOf(context),
                                   context.node.attributes.Int("center_point_box", 0) != 0);
  auto* out = context.outputs[0].as<int64_t>();
  for (const auto& one : selected) out = std::copy(one.begin(), one.end(), out);
  return absl::OkStatus();
}

}  // namespace reprise::ops
