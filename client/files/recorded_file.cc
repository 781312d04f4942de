#include "client/files/recorded_file.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::client {
namespace {

using nlohmann::ordered_json;

absl::StatusOr<RecordedShape> ShapeOf(const ordered_json& json) {
  if (!json.is_object() || !json.contains("sizes") || !json["sizes"].is_object()) {
    return absl::InvalidArgumentError("it has no object \"sizes\"");
  }
  RecordedShape shape;
  if (json.contains("count") && json["count"].is_number_unsigned()) {
    shape.count = json["count"].get<uint64_t>();
  }
  for (const auto& [axis, size] : json["sizes"].items()) {
    if (!size.is_number_integer() || size.get<int64_t>() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the size of axis '", axis, "' is ", size.dump(), ", no positive number"));
    }
    shape.sizes[axis] = size.get<int64_t>();
  }
  return shape;
}

}  // namespace

std::string RecordedLine(const std::string& model, const RecordedShape& shape) {
  const ordered_json line = {{"model_name", model},
                             {"count", shape.count},
                             {"sizes", shape.sizes},
                             {"inputs", shape.inputs}};
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::vector<RecordedShape>> ReadRecordedFile(const std::string& path,
                                                            const std::string& model) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("'", path, "' cannot be read"));
  std::vector<RecordedShape> shapes;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const ordered_json json = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("model_name") && !model.empty() &&
        json["model_name"] != model)
      continue;
    auto shape = json.is_discarded() ? absl::InvalidArgumentError("it is no JSON") : ShapeOf(json);
    if (!shape.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "' line ", number, " is no recorded request: ", shape.status().message()));
    }
    shapes.push_back(*std::move(shape));
  }
  if (shapes.empty()) {
    return absl::NotFoundError(absl::StrCat("'", path, "' has no request of model '", model, "'"));
  }
  return shapes;
}

}  // namespace reprise::client
