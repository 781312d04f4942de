// BatchStream: batches as bytes, for a program that reads them from a pipe (reprise.DataLoader of
// the Python package).
//
//   first       a line of JSON: {"images": 5000, "classes": ["cat", ...], "paths": [...]}
//   a batch     a line of JSON: its "shape" (rows that are no padding), "dtype", and for each row
//               "index" in the set, "label" (null: none), "boxes" ([label, left, top, right,
//               bottom]); with targets "targets": how many boxes. Then its bytes, and those of the
//               targets: boxes as float32, labels as int64
//   an epoch    its end: {"epoch": 1}
//
// Ownership: borrows the file. Threads: one at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/images/default_boxes.h"
#include "client/images/image_loader.h"

namespace reprise::images {

class BatchStream {
 public:
  // `targets`: boxes that the objects of each image are matched with; null: none.
  BatchStream(const ImageSet& set, std::FILE* file, const DefaultBoxes* targets)
      : set_(set), file_(file), targets_(targets) {}

  // Return UNAVAILABLE, each of them, where the pipe has no reader any more.
  absl::Status Begin();
  absl::Status Write(const ImageBatch& batch);
  absl::Status EndEpoch(int64_t epoch);

 private:
  absl::Status WriteLine(const std::string& line);
  absl::Status WriteBytes(const void* bytes, size_t count);

  const ImageSet& set_;
  std::FILE* const file_;
  const DefaultBoxes* const targets_;
};

// Returns a LoaderOptions::sampler that reads a line of numbers from `file` for each epoch; past
// the last line epochs are empty.
std::function<std::vector<int64_t>(uint64_t)> OrdersFrom(std::FILE* file);

}  // namespace reprise::images
