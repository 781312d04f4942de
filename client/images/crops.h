// The part of an image that a transform keeps, and its effect on the boxes in it. Geometry alone:
// no pixel is touched.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/images/image.h"
#include "client/images/random_stream.h"
#include "client/images/transform.h"

namespace reprise::images {

// An object in an image: its class, and its corners in pixels.
struct Box {
  int64_t label = 0;
  double left = 0, top = 0, right = 0, bottom = 0;
};

struct Size {
  int width = 0, height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

// Returns the size that Resize gives an image of size `from`. RESOURCE_EXHAUSTED for more pixels
// than an image may have.
absl::StatusOr<Size> ResizedSize(const Transform& resize, const Size& from);

// Returns the part of its size that Letterbox gives to an image of size `from`, in the middle.
Rect LetterboxOf(const Transform& letterbox, const Size& from);

// Returns the part that CenterCrop keeps; it begins outside of the image where that is smaller.
Rect CenterCropOf(const Transform& crop, const Size& from);

// Returns the part that RandomResizedCrop keeps.
Rect RandomCropOf(const Transform& crop, const Size& from, RandomStream& random);

// Returns the part that RandomIoUCrop keeps, the crop of SSD (Liu et al. 2016): it overlaps
// one of the boxes by a share that is drawn, or is the whole image.
Rect IouCropOf(const Transform& crop, const Size& from, const std::vector<Box>& boxes,
               RandomStream& random);

// Boxes in the part `rect` of the image: cut at its edges. With `by_center` drops boxes whose
// center is not in it; else boxes of which nothing is left.
void CropBoxes(const Rect& rect, bool by_center, std::vector<Box>& boxes);
void ScaleBoxes(const Size& from, const Size& to, std::vector<Box>& boxes);
void MoveBoxes(int x, int y, std::vector<Box>& boxes);
void FlipBoxes(int width, std::vector<Box>& boxes);

}  // namespace reprise::images
