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

// Returns whether `name` names a later part of a model, which its first part names:
// "m-00002-of-00003.gguf".
bool IsLaterPart(absl::string_view name) {
  constexpr absl::string_view kFirst = "-00001-of-00001.gguf";
  if (name.size() < kFirst.size() || !absl::EndsWith(name, ".gguf")) return false;
  name.remove_prefix(name.size() - kFirst.size());
  return name.substr(6, 4) == "-of-" && name[0] == '-' && name.substr(1, 5) != "00001";
}

// Returns the files of `folder` and of its folder `onnx` that end with `ending`, relative to it, by
// name.
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

// Returns whether weights of another kind lie in `folder`, which no graph uses.
bool HasBareWeights(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (absl::EndsWith(name, ".safetensors") || name == "pytorch_model.bin") return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> ModelFileNames(const std::string& variant) {
  const std::string end = variant.empty() ? ".onnx" : absl::StrCat("_", variant, ".onnx");
  std::vector<std::string> names;
  for (const char* name : {"model", "onnx/model", "encoder_model", "onnx/encoder_model"}) {
    names.push_back(absl::StrCat(name, end));
  }
  return names;
}

std::string ExportAdvice(const std::string& weights) {
  return absl::StrCat("weights alone are not a model: `optimum-cli export onnx --model ", weights,
                      " FOLDER` makes one of them, in FOLDER");
}

absl::StatusOr<std::string> FindModelFile(const fs::path& folder, const std::string& variant) {
  std::vector<std::string> files = ModelFiles(folder, kOnnx);
  const std::vector<std::string> names = ModelFileNames(variant);
  for (const std::string& wanted : names) {
    if (std::find(files.begin(), files.end(), wanted) != files.end()) return wanted;
  }
  if (files.empty()) files = ModelFiles(folder, kGguf);
  if (variant.empty() && files.size() == 1) return files[0];
  std::string there = absl::StrJoin(files, ", ");
  if (files.empty()) there = "no file .onnx or .gguf";
  if (files.empty() && HasBareWeights(folder)) {
    absl::StrAppend(&there, "; ", ExportAdvice(folder.string()));
  } else if (!files.empty() && variant.empty()) {
    there += " (--variant int8 takes model_int8.onnx)";
  }
  return absl::NotFoundError(absl::StrCat(folder.string(), " has neither ", names[0], " nor ",
                                          names[1], "; it has ", there));
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
