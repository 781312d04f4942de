// Metadata of an ONNX file, as exporters write it: ModelProto.metadata_props, read without the
// graph.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace reprise {

// Returns names and values; none where the file has none or cannot be read: the model is loaded
// elsewhere, which says why.
std::map<std::string, std::string> ReadMetadata(const std::filesystem::path& model_file);

// Returns the labels of "{0: 'person', 1: 'bicycle'}", as Ultralytics writes `names`; none where it
// is not that.
std::vector<std::string> LabelsOfNames(absl::string_view names);

// Returns height and width of "[640, 480]", as Ultralytics writes `imgsz`; none where it is not
// that.
std::vector<int64_t> SidesOfSize(absl::string_view size);

}  // namespace reprise
