// DefaultBoxes: the boxes of an SSD (Liu et al. 2016) that a detector's outputs are about, and
// which of them an image's objects belong to.
//
// A map of n x n places has at each the same shapes: squares of two sizes, and rectangles of some
// aspect ratios, each both ways. Boxes are in parts of the image.
//
// Threads: const methods from any.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/images/crops.h"

namespace reprise::images {

struct BoxTargets {
  std::vector<float> boxes;     // [boxes, 4]: center x, center y, width, height
  std::vector<int64_t> labels;  // [boxes]: 0 where there is no object, else its class from 1 on
};

class DefaultBoxes {
 public:
  struct Map {
    int side = 1;                // places along each side
    double step = 1;             // pixels from one place to the next
    double size = 1, next = 1;   // sizes of the squares: this one, and the mean of both
    std::vector<double> ratios;  // each makes a wide rectangle and a high one
  };
  // Returns the 8,732 boxes of SSD300 as it is trained on COCO. NOT_FOUND for another name than
  // "ssd300".
  static absl::StatusOr<DefaultBoxes> Named(absl::string_view name);
  DefaultBoxes(double figure, const std::vector<Map>& maps);

  int64_t size() const { return static_cast<int64_t>(boxes_.size()); }

  // Returns which boxes have to find which of `objects`, in an image of `width` and `height`: each
  // box the object that it overlaps most, if by more than `overlap` of both together, and each
  // object at least the box that overlaps it most. A box without an object stays itself.
  BoxTargets Match(const std::vector<Box>& objects, double width, double height,
                   double overlap = 0.5) const;

 private:
  struct Corners {
    double left = 0, top = 0, right = 0, bottom = 0;
  };
  static double OverlapOf(const Corners& a, const Corners& b);

  std::vector<Corners> boxes_;
};

}  // namespace reprise::images
