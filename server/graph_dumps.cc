#include "server/graph_dumps.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr int kMostFilesOfKey = 10'000;

}  // namespace

absl::Status GraphDumps::Prepare() const {
  if (!wanted()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error || !std::filesystem::is_directory(folder_)) {
    return absl::UnavailableError(absl::StrCat(
        "--dump-graphs ", folder_, " is not a folder that can be made: ", error.message()));
  }
  return absl::OkStatus();
}

void GraphDumps::Write(const Recipe& recipe, const RecipeGraphs& graphs) const {
  std::FILE* file = nullptr;
  std::string path;
  for (int i = 1; file == nullptr && i <= kMostFilesOfKey; ++i) {
    path =
        absl::StrCat(folder_, "/", recipe.key.hex(), i == 1 ? "" : absl::StrCat("-", i), ".graph");
    file = std::fopen(path.c_str(), "wxe");  // fails where it exists
    if (file == nullptr && errno != EEXIST) break;
  }
  if (file == nullptr) {
    return warn_(absl::StrCat("graph dump ", path, " cannot be written: ", std::strerror(errno)));
  }
  const std::string text = absl::StrCat(
      "// recipe ", recipe.key.hex(), " of model ", recipe.note.model, ", ", recipe.note.bucket,
      " (", recipe.note.binding, ")\n// precision ", recipe.key.precision, ", ", recipe.key.packing,
      ", device ", recipe.key.device, "\n// the graph before it got its sizes\n", graphs.symbolic,
      "// the graph after the passes, for which kernels were chosen\n", graphs.specialized);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) {
    warn_(absl::StrCat("graph dump ", path, " is not whole: ", std::strerror(errno)));
  }
}

}  // namespace reprise
