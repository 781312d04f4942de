// Detections: the boxes of objects in a detector's outputs, in pixels of the picture.
//
//   YOLO v5  [1, boxes, 5 + classes]   centre, size, objectness, scores of classes
//   YOLO v8  [1, 4 + classes, boxes]   centre, size, scores of classes; v9 to v12 as well
//   DETR     logits [1, queries, classes + 1] and boxes [1, queries, 4], as parts of the picture;
//            the last class means no object. RT-DETR has no such class
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise {

enum class DetectorHead { kYoloV5, kYoloV8, kDetr, kRtDetr };
absl::string_view DetectorHeadName(DetectorHead head);

// The place of a picture in the tensor that was made of it: x of the tensor is x * scale + offset.
struct PicturePlace {
  int width = 0, height = 0;                // the picture's, upright
  int tensor_width = 0, tensor_height = 0;  // the tensor's
  double scale_x = 1, scale_y = 1, offset_x = 0, offset_y = 0;
};

struct Detection {
  int64_t label = 0;
  float score = 0;
  double left = 0, top = 0, right = 0, bottom = 0;  // pixels of the picture, within it
};

struct DetectOptions {
  double conf = 0;  // objects with a lower score go
  double iou = 0;   // boxes of a class that overlap a better one by more go
  int64_t most = 300;
};
// Returns the defaults of the authors of each head.
DetectOptions DefaultOptions(DetectorHead head);

// One picture's row of an output.
struct HeadOutput {
  absl::Span<const float> values;
  std::vector<int64_t> shape;  // its shape without the row: [boxes, 5 + classes]
};

// Returns the objects, those with the highest scores first. `outputs`: one of a YOLO; logits and
// boxes of a DETR. INVALID_ARGUMENT where shapes do not fit the head; `classes`: how many labels
// there are, 0: unknown.
absl::StatusOr<std::vector<Detection>> Detect(DetectorHead head,
                                              absl::Span<const HeadOutput> outputs, size_t classes,
                                              const PicturePlace& place,
                                              const DetectOptions& options);

}  // namespace reprise
