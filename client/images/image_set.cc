#include "client/images/image_set.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::images {
namespace {

namespace fs = std::filesystem;

bool IsImage(const fs::path& path) {
  const std::string ending = absl::AsciiStrToLower(path.extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

absl::Status CannotRead(const std::string& path, const std::string& why) {
  return absl::NotFoundError(absl::StrCat(path, " cannot be read: ", why));
}

// Adds the images below `folder`, at any depth, in the order of their paths.
absl::Status AddImagesBelow(const fs::path& folder, std::optional<int64_t> label, ImageSet& set) {
  std::vector<std::string> paths;
  std::error_code error;
  auto it = fs::recursive_directory_iterator(
      folder, fs::directory_options::follow_directory_symlink, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (IsImage(it->path()) && it->is_regular_file(error)) paths.push_back(it->path().string());
  }
  if (error) return CannotRead(folder.string(), error.message());
  std::sort(paths.begin(), paths.end());
  for (std::string& path : paths) set.images.push_back({.path = std::move(path), .label = label});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageSet> ReadImageSet(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? ReadImageFolder(path) : ReadImageList(path);
}

absl::StatusOr<ImageSet> ReadImageFolder(const std::string& folder) {
  ImageSet set;
  std::error_code error;
  auto it = fs::directory_iterator(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->is_directory(error)) set.classes.push_back(it->path().filename().string());
  }
  if (error) return CannotRead(folder, error.message());
  std::sort(set.classes.begin(), set.classes.end());
  for (size_t i = 0; i < set.classes.size(); ++i) {
    RETURN_IF_ERROR(
        AddImagesBelow(fs::path(folder) / set.classes[i], static_cast<int64_t>(i), set));
  }
  if (set.classes.empty()) RETURN_IF_ERROR(AddImagesBelow(folder, std::nullopt, set));
  if (set.images.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, " holds no image (.jpg, .jpeg, .png)"));
  }
  return set;
}

absl::StatusOr<ImageSet> ReadImageList(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return CannotRead(file, "it is neither a folder nor a file that can be opened");
  ImageSet set;
  const fs::path folder = fs::path(file).parent_path();
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    absl::string_view path = absl::StripAsciiWhitespace(line);
    if (path.empty()) continue;
    ImageEntry entry;
    if (const size_t tab = path.find('\t'); tab != absl::string_view::npos) {
      int64_t label = 0;
      if (!absl::SimpleAtoi(path.substr(tab + 1), &label)) {
        return absl::InvalidArgumentError(absl::StrCat(
            file, ", line ", number, ": ", path.substr(tab + 1), " is not the number of a class"));
      }
      entry.label = label;
      path = absl::StripTrailingAsciiWhitespace(path.substr(0, tab));
    }
    entry.path = (folder / std::string(path)).string();
    set.images.push_back(std::move(entry));
  }
  if (set.images.empty()) return absl::NotFoundError(absl::StrCat(file, " names no image"));
  return set;
}

}  // namespace reprise::images
