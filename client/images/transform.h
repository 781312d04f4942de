// TransformList: the transforms of each image, declared as text.
//
//   Resize(256), CenterCrop(224), ToTensor, Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
//   RandomResizedCrop(224, scale=[0.08, 1]), RandomHorizontalFlip(0.5), ColorJitter(brightness=0.4)
//
// Transforms are separated by commas, semicolons or line ends; '#' begins a comment. Their
// names, parameters and defaults are torchvision's, and so are their results for an image of
// Pillow's; Letterbox is Ultralytics': the image within the size, grey borders around it.
// kTransformRows has all of them. ToTensor and Normalize are last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/images/resample.h"

namespace reprise::images {

enum class TransformKind {
  kResize,
  kLetterbox,
  kCenterCrop,
  kRandomResizedCrop,
  kRandomHorizontalFlip,
  kColorJitter,
  kRandomIoUCrop,
  kToTensor,
  kNormalize,
};

// One transform; a kind reads the fields that its row names.
struct Transform {
  TransformKind kind = TransformKind::kToTensor;
  std::string text;          // as it was declared: "Resize(256)"
  std::vector<double> size;  // one: the shorter side, or a square; two: height and width
  Filter filter = Filter::kBilinear;
  double max_size = 0;  // the longer side of Resize is no longer; 0: however long
  double fill = 0;      // the value of Letterbox's borders
  double probability = 0.5;
  std::vector<double> scale, ratio;  // two: least and most
  // Least and most factor; {1, 1}, and {0, 0} of the hue: nothing is changed.
  std::vector<double> brightness, contrast, saturation, hue;
  std::vector<double> mean, std;  // one for all channels, or three
};

class TransformList {
 public:
  // INVALID_ARGUMENT names the transform and parameter, and lists the known ones.
  static absl::StatusOr<TransformList> Parse(absl::string_view text);

  const std::vector<Transform>& transforms() const { return transforms_; }
  // Returns whether the result is float32, [channels, height, width]; else uint8,
  // [height, width, channels].
  bool makes_tensor() const { return makes_tensor_; }
  // Returns a list that does `transforms` in the place of its own to an image, which are of the
  // same kinds, and whose results are of this size.
  TransformList With(std::vector<Transform> transforms, int height, int width) const;
  // Returns the size of each result, {height, width}. INVALID_ARGUMENT where images keep sizes
  // of their own.
  absl::StatusOr<std::pair<int, int>> ResultSize() const;

 private:
  std::vector<Transform> transforms_;
  bool makes_tensor_ = false;
  std::optional<std::pair<int, int>> size_;  // that With was told
};

}  // namespace reprise::images
