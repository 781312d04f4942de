#include "server/hub/model_file.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kOnnx = ".onnx", kGguf = ".gguf";

// Whether `name` is that of a part of a model, which its first part names: "m-00002-of-00003.gguf".
bool IsLaterPart(absl::string_view name) {
  constexpr absl::string_view kFirst = "-00001-of-00001.gguf";
  if (name.size() < kFirst.size() || !absl::EndsWith(name, ".gguf")) return false;
  name.remove_prefix(name.size() - kFirst.size());
  return name.substr(6, 4) == "-of-" && name[0] == '-' && name.substr(1, 5) != "00001";
}

// The files of `folder` and of its folder `onnx` that end with `ending`, relative to it, by name.
std::vector<std::string> ModelFiles(const fs::path& folder, absl::string_view ending) {
  std::vector<std::string> files;
  for (const char* below : {"", "onnx"}) {
    std::error_code error;
    fs::directory_iterator it(folder / below, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename().string();
      std::error_code ignored;
      if (!absl::EndsWith(name, ending) || IsLaterPart(name)) continue;
      if (!fs::is_regular_file(it->path(), ignored)) continue;
      files.push_back(*below == '\0' ? name : absl::StrCat(below, "/", name));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::string> FindModelFile(const fs::path& folder, const std::string& variant) {
  std::vector<std::string> files = ModelFiles(folder, kOnnx);
  const std::string name =
      variant.empty() ? "model.onnx" : absl::StrCat("model_", variant, ".onnx");
  const std::string encoder =
      variant.empty() ? "encoder_model.onnx" : absl::StrCat("encoder_model_", variant, ".onnx");
  for (const std::string& wanted :
       {name, absl::StrCat("onnx/", name), encoder, absl::StrCat("onnx/", encoder)}) {
    if (std::find(files.begin(), files.end(), wanted) != files.end()) return wanted;
  }
  if (files.empty()) files = ModelFiles(folder, kGguf);
  if (variant.empty() && files.size() == 1) return files[0];
  return absl::NotFoundError(absl::StrCat(
      folder.string(), " has neither ", name, " nor onnx/", name, "; it has ",
      files.empty() ? "no file .onnx or .gguf" : absl::StrJoin(files, ", "),
      files.empty() || !variant.empty() ? "" : " (--variant int8 takes model_int8.onnx)"));
}

bool IsModelName(absl::string_view name) {
  return absl::EndsWith(name, kOnnx) || absl::EndsWith(name, kGguf);
}

bool IsFlatFolder(const fs::path& folder) {
  return !ModelFiles(folder, kOnnx).empty() || !ModelFiles(folder, kGguf).empty();
}

fs::path ResolveModelFile(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? path / path.filename() : path;
}

fs::path ChooseModelFile(const fs::path& path) {
  const fs::path resolved = ResolveModelFile(path),
                 encoder = path.parent_path() / "encoder_model.onnx";
  std::error_code error;
  const bool is_default = path.filename() == "model.onnx" && !fs::exists(resolved, error);
  return is_default && fs::exists(encoder, error) ? encoder : resolved;
}

}  // namespace reprise
