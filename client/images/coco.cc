// COCO's annotations of instances (https://cocodataset.org/#format-data).

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/images/image_set.h"
#include "runtime/base/status_macros.h"

namespace reprise::images {
namespace {

using Json = nlohmann::json;

absl::Status Refused(const std::string& file, const char* list, size_t index, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", list, "[", index, "]: ", why));
}

// Calls `take(entry, index)` for each object of the list `name`.
template <typename Take>
absl::Status ForEach(const Json& root, const std::string& file, const char* name,
                     const Take& take) {
  const auto list = root.find(name);
  if (list == root.end() || !list->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": it has no list \"", name, "\""));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    if (!(*list)[i].is_object()) return Refused(file, name, i, "it is not an object");
    RETURN_IF_ERROR(take((*list)[i], i));
  }
  return absl::OkStatus();
}

std::optional<int64_t> WholeNumber(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

std::optional<std::string> Text(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

// [x, y, width, height].
std::optional<Box> BoxOf(const Json& entry, int64_t label) {
  const auto found = entry.find("bbox");
  if (found == entry.end() || !found->is_array() || found->size() != 4) return std::nullopt;
  double numbers[4];
  for (size_t i = 0; i < 4; ++i) {
    if (!(*found)[i].is_number()) return std::nullopt;
    numbers[i] = (*found)[i].get<double>();
  }
  return Box{label, numbers[0], numbers[1], numbers[0] + numbers[2], numbers[1] + numbers[3]};
}

// COCO's numbers of classes, each with its position.
absl::StatusOr<std::map<int64_t, int64_t>> ReadClasses(const Json& root, const std::string& file,
                                                       ImageSet& set) {
  std::map<int64_t, std::string> names;
  RETURN_IF_ERROR(ForEach(root, file, "categories", [&](const Json& entry, size_t i) {
    const auto id = WholeNumber(entry, "id");
    if (!id.has_value()) return Refused(file, "categories", i, "it has no \"id\"");
    names[*id] = Text(entry, "name").value_or("");
    return absl::OkStatus();
  }));
  std::map<int64_t, int64_t> places;
  for (auto& [id, name] : names) {
    places[id] = static_cast<int64_t>(set.classes.size());
    set.classes.push_back(std::move(name));
  }
  return places;
}

}  // namespace

absl::StatusOr<ImageSet> ReadCoco(const std::string& annotations, const std::string& folder) {
  std::ifstream stream(annotations, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat(annotations, " cannot be read"));
  const Json root = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(annotations, ": it is not a JSON object"));
  }
  ImageSet set;
  ASSIGN_OR_RETURN(const auto classes, ReadClasses(root, annotations, set));
  std::map<int64_t, size_t> places;  // positions of images, by COCO's number
  RETURN_IF_ERROR(ForEach(root, annotations, "images", [&](const Json& entry, size_t i) {
    const auto id = WholeNumber(entry, "id");
    const auto name = Text(entry, "file_name");
    if (!id.has_value() || !name.has_value()) {
      return Refused(annotations, "images", i, "it lacks \"id\" or \"file_name\"");
    }
    if (!places.emplace(*id, set.images.size()).second) {
      return Refused(annotations, "images", i, "its \"id\" is there twice");
    }
    set.images.push_back({.path = (std::filesystem::path(folder) / *name).string(), .id = *id});
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEach(root, annotations, "annotations", [&](const Json& entry, size_t i) {
    const auto image = places.find(WholeNumber(entry, "image_id").value_or(-1));
    const auto label = classes.find(WholeNumber(entry, "category_id").value_or(-1));
    if (image == places.end())
      return Refused(annotations, "annotations", i, "its image is not there");
    if (label == classes.end())
      return Refused(annotations, "annotations", i, "its class is not there");
    const auto box = BoxOf(entry, label->second);
    if (!box.has_value())
      return Refused(annotations, "annotations", i, "its \"bbox\" is not four numbers");
    set.images[image->second].boxes.push_back(*box);
    return absl::OkStatus();
  }));
  if (set.images.empty()) return absl::NotFoundError(absl::StrCat(annotations, " names no image"));
  std::sort(set.images.begin(), set.images.end(),
            [](const ImageEntry& a, const ImageEntry& b) { return a.path < b.path; });
  return set;
}

}  // namespace reprise::images
