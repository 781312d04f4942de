#include "client/images/default_boxes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise::images {

absl::StatusOr<DefaultBoxes> DefaultBoxes::Named(absl::string_view name) {
  if (name != "ssd300") {
    return absl::NotFoundError(
        absl::StrCat("there are no default boxes of the name ", name, "; known are: ssd300"));
  }
  return DefaultBoxes(300, {{38, 8, 21, 45, {2}},
                            {19, 16, 45, 99, {2, 3}},
                            {10, 32, 99, 153, {2, 3}},
                            {5, 64, 153, 207, {2, 3}},
                            {3, 100, 207, 261, {2}},
                            {1, 300, 261, 315, {2}}});
}

DefaultBoxes::DefaultBoxes(double figure, const std::vector<Map>& maps) {
  for (const Map& map : maps) {
    const double size = map.size / figure, mean = std::sqrt(size * map.next / figure);
    std::vector<std::pair<double, double>> shapes = {{size, size}, {mean, mean}};
    for (const double ratio : map.ratios) {
      const double width = size * std::sqrt(ratio), height = size / std::sqrt(ratio);
      shapes.emplace_back(width, height);
      shapes.emplace_back(height, width);
    }
    const auto within = [](double at) { return std::clamp(at, 0.0, 1.0); };
    for (const auto& [width, height] : shapes) {
      for (int row = 0; row < map.side; ++row) {
        for (int column = 0; column < map.side; ++column) {
          const double x = within((column + 0.5) * map.step / figure);
          const double y = within((row + 0.5) * map.step / figure);
          const double w = within(width), h = within(height);
          boxes_.push_back({x - w / 2, y - h / 2, x + w / 2, y + h / 2});
        }
      }
    }
  }
}

double DefaultBoxes::OverlapOf(const Corners& a, const Corners& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const auto area = [](const Corners& box) {
    return (box.right - box.left) * (box.bottom - box.top);
  };
  const double both = width * height;
  return both / (area(a) + area(b) - both);
}

BoxTargets DefaultBoxes::Match(const std::vector<Box>& objects, double width, double height,
                               double overlap) const {
  constexpr double kCertain = 2;  // more than any overlap
  std::vector<size_t> best(boxes_.size(), 0);
  std::vector<double> most(boxes_.size(), 0);
  std::vector<Corners> corners;
  corners.reserve(objects.size());
  for (const Box& box : objects) {
    corners.push_back({box.left / width, box.top / height, box.right / width, box.bottom / height});
  }
  std::vector<size_t> nearest(objects.size(), 0);
  for (size_t object = 0; object < objects.size(); ++object) {
    double own = -1;
    for (size_t i = 0; i < boxes_.size(); ++i) {
      const double overlaps = OverlapOf(corners[object], boxes_[i]);
      if (overlaps > most[i]) {
        most[i] = overlaps;
        best[i] = object;
      }
      if (overlaps > own) {
        own = overlaps;
        nearest[object] = i;
      }
    }
  }
  for (size_t object = 0; object < objects.size(); ++object) {
    best[nearest[object]] = object;
    most[nearest[object]] = kCertain;
  }
  BoxTargets targets;
  targets.boxes.reserve(boxes_.size() * 4);
  for (size_t i = 0; i < boxes_.size(); ++i) {
    const bool has_object = most[i] > overlap;
    const Corners& box = has_object ? corners[best[i]] : boxes_[i];
    targets.boxes.push_back(static_cast<float>((box.left + box.right) / 2));
    targets.boxes.push_back(static_cast<float>((box.top + box.bottom) / 2));
    targets.boxes.push_back(static_cast<float>(box.right - box.left));
    targets.boxes.push_back(static_cast<float>(box.bottom - box.top));
    targets.labels.push_back(has_object ? objects[best[i]].label + 1 : 0);
  }
  return targets;
}

}  // namespace reprise::images
