#include "client/images/crops.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/images/decode.h"

namespace reprise::images {
namespace {

int RoundHalfToEven(double value) { return static_cast<int>(std::nearbyint(value)); }

bool HoldsCenter(const Rect& rect, const Box& box) {
  const double x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
  return rect.x < x && x < rect.x + rect.width && rect.y < y && y < rect.y + rect.height;
}

// Returns the area that both share, divided by the area of both together.
double Overlap(const Rect& rect, const Box& box) {
  const double width =
      std::min<double>(rect.x + rect.width, box.right) - std::max<double>(rect.x, box.left);
  const double height =
      std::min<double>(rect.y + rect.height, box.bottom) - std::max<double>(rect.y, box.top);
  if (width <= 0 || height <= 0) return 0;
  const double both = static_cast<double>(rect.width) * rect.height +
                      (box.right - box.left) * (box.bottom - box.top);
  return width * height / (both - width * height);
}

// Returns whether the part holds the center of a box, and overlaps one of these by `least`.
bool Takes(const Rect& rect, const std::vector<Box>& boxes, double least) {
  double most = -1;
  for (const Box& box : boxes) {
    if (HoldsCenter(rect, box)) most = std::max(most, Overlap(rect, box));
  }
  return most >= least;
}

}  // namespace

absl::StatusOr<Size> ResizedSize(const Transform& resize, const Size& from) {
  if (resize.size.size() == 2) {
    return Size{static_cast<int>(resize.size[1]), static_cast<int>(resize.size[0])};
  }
  const auto side = static_cast<int64_t>(resize.size[0]);
  const bool is_tall = from.width <= from.height;
  const int64_t long_side = is_tall ? from.height : from.width;
  const int64_t short_side = is_tall ? from.width : from.height;
  const auto longer =
      static_cast<int64_t>(static_cast<double>(side * long_side) / static_cast<double>(short_side));
  if (longer > DecodeLimits().max_pixels / side) {
    return absl::ResourceExhaustedError(
        absl::StrCat(resize.text, " of an image of ", from.height, " x ", from.width, " makes ",
                     side, " x ", longer, ", the most is ", DecodeLimits().max_pixels, " pixels"));
  }
  int a = static_cast<int>(side), b = static_cast<int>(longer);
  if (resize.max_size > 0 && b > resize.max_size) {
    a = std::max(1, static_cast<int>(resize.max_size * a / b));
    b = static_cast<int>(resize.max_size);
  }
  return is_tall ? Size{a, b} : Size{b, a};
}

Rect LetterboxOf(const Transform& letterbox, const Size& from) {
  const int height = static_cast<int>(letterbox.size.front());
  const int width = static_cast<int>(letterbox.size.back());
  const double scale =
      std::min(static_cast<double>(height) / from.height, static_cast<double>(width) / from.width);
  const int wide = std::clamp(RoundHalfToEven(from.width * scale), 1, width);
  const int high = std::clamp(RoundHalfToEven(from.height * scale), 1, height);
  // The smaller half of an odd border is in front.
  return {(width - wide) / 2, (height - high) / 2, wide, high};
}

Rect CenterCropOf(const Transform& crop, const Size& from) {
  const int height = static_cast<int>(crop.size.front());
  const int width = static_cast<int>(crop.size.back());
  // A smaller image is first padded on both sides, by the smaller half in front.
  const auto start = [](int have, int want) {
    return have < want ? -((want - have) / 2) : RoundHalfToEven((have - want) / 2.0);
  };
  return {start(from.width, width), start(from.height, height), width, height};
}

Rect RandomCropOf(const Transform& crop, const Size& from, RandomStream& random) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(from.width) * from.height;
  for (int i = 0; i < kAttempts; ++i) {
    const double wanted = area * random.Between(crop.scale[0], crop.scale[1]);
    const double ratio = std::exp(random.Between(std::log(crop.ratio[0]), std::log(crop.ratio[1])));
    const int width = RoundHalfToEven(std::sqrt(wanted * ratio));
    const int height = RoundHalfToEven(std::sqrt(wanted / ratio));
    if (width <= 0 || height <= 0 || width > from.width || height > from.height) continue;
    const int y = static_cast<int>(random.Below(from.height - height + 1));
    const int x = static_cast<int>(random.Below(from.width - width + 1));
    return {x, y, width, height};
  }
  // The largest part in the middle whose ratio is allowed.
  int width = from.width, height = from.height;
  const double ratio = static_cast<double>(width) / height;
  if (ratio < crop.ratio[0]) height = std::min(height, RoundHalfToEven(width / crop.ratio[0]));
  if (ratio > crop.ratio[1]) width = std::min(width, RoundHalfToEven(height * crop.ratio[1]));
  width = std::max(width, 1);
  height = std::max(height, 1);
  return {(from.width - width) / 2, (from.height - height) / 2, width, height};
}

Rect IouCropOf(const Transform& crop, const Size& from, const std::vector<Box>& boxes,
               RandomStream& random) {
  constexpr double kOverlaps[] = {0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0};
  constexpr int kTrials = 40;
  const Rect whole = {0, 0, from.width, from.height};
  if (boxes.empty()) return whole;
  while (true) {
    const double least = kOverlaps[random.Below(std::size(kOverlaps))];
    if (least >= 1.0) return whole;
    for (int i = 0; i < kTrials; ++i) {
      const int width = static_cast<int>(from.width * random.Between(crop.scale[0], crop.scale[1]));
      const int height =
          static_cast<int>(from.height * random.Between(crop.scale[0], crop.scale[1]));
      const double x = random.Unit(), y = random.Unit();
      if (width <= 0 || height <= 0) continue;
      const double ratio = static_cast<double>(width) / height;
      if (ratio < crop.ratio[0] || ratio > crop.ratio[1]) continue;
      const Rect rect = {static_cast<int>((from.width - width) * x),
                         static_cast<int>((from.height - height) * y), width, height};
      if (Takes(rect, boxes, least)) return rect;
    }
  }
}

void CropBoxes(const Rect& rect, bool by_center, std::vector<Box>& boxes) {
  if (by_center) std::erase_if(boxes, [&](const Box& box) { return !HoldsCenter(rect, box); });
  for (Box& box : boxes) {
    box.left = std::clamp<double>(box.left - rect.x, 0, rect.width);
    box.right = std::clamp<double>(box.right - rect.x, 0, rect.width);
    box.top = std::clamp<double>(box.top - rect.y, 0, rect.height);
    box.bottom = std::clamp<double>(box.bottom - rect.y, 0, rect.height);
  }
  std::erase_if(boxes,
                [](const Box& box) { return box.left >= box.right || box.top >= box.bottom; });
}

void ScaleBoxes(const Size& from, const Size& to, std::vector<Box>& boxes) {
  const double across = static_cast<double>(to.width) / from.width;
  const double down = static_cast<double>(to.height) / from.height;
  for (Box& box : boxes) {
    box.left *= across;
    box.right *= across;
    box.top *= down;
    box.bottom *= down;
  }
}

void MoveBoxes(int x, int y, std::vector<Box>& boxes) {
  for (Box& box : boxes) {
    box.left += x;
    box.right += x;
    box.top += y;
    box.bottom += y;
  }
}

void FlipBoxes(int width, std::vector<Box>& boxes) {
  for (Box& box : boxes) {
    const double left = box.left;
    box.left = width - box.right;
    box.right = width - left;
  }
}

}  // namespace reprise::images
