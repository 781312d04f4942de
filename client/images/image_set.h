// ImageSet: a list of images, and the facts about each. No pixel is read.
//
//   ImageFolder   DIR/<class>/**/<image>: classes are numbered by name, from 0; a folder without
//   folders
//                 has images without a class
//   COCO          an annotations file (instances_*.json) and the folder of its images: boxes and
//   classes a list        a text file, an image a line: PATH, or PATH, a tab and a number of its
//   class;
//                 relative paths count from the list's folder
//
// Images are .jpg, .jpeg and .png, in the order of their paths.
//
// Errors: NOT_FOUND for a missing file, INVALID_ARGUMENT naming the file, and the line or entry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/images/crops.h"

namespace reprise::images {

struct ImageEntry {
  std::string path;
  std::optional<int64_t> label;  // the class of the whole image
  std::vector<Box> boxes;        // COCO
  int64_t id = 0;                // COCO's number of the image
};

struct ImageSet {
  std::vector<ImageEntry> images;
  // Names of the classes; the label of an image or box is the position of its class. Empty where
  // classes have numbers alone.
  std::vector<std::string> classes;
};

// Reads a folder, or a list, depending on `path`.
absl::StatusOr<ImageSet> ReadImageSet(const std::string& path);
absl::StatusOr<ImageSet> ReadImageFolder(const std::string& folder);
absl::StatusOr<ImageSet> ReadImageList(const std::string& file);
// `folder` holds the images that `annotations` names. Classes are numbered in the order of COCO's
// numbers, which have gaps.
absl::StatusOr<ImageSet> ReadCoco(const std::string& annotations, const std::string& folder);

}  // namespace reprise::images
