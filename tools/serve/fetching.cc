#include "tools/serve/fetching.h"

#include <cstdio>

#include "client/cli/command.h"
#include "command_line/progress.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/model_url.h"

namespace reprise::cli {

void FetchingFlags::Add(CLI::App& command, const char* meaning) {
  AddOption(command, "model", model, "URL", meaning)->required();
  AddOption(command, "--model-cache", cache, "DIR",
            "Folder that keeps fetched models; ~/.cache/reprise/models if not given")
      ->envname("REPRISED_MODEL_CACHE");
  AddOption(command, "--variant", variant, "VARIANT", "int8 takes model_int8.onnx");
  AddOption(command, "--max-download-mb", max_download_mb, "MB", "Most of a model, in MiB")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

absl::StatusOr<FetchedModel> FetchingFlags::Fetch() const {
  ASSIGN_OR_RETURN(const ModelUrl url, ModelUrl::Parse(model));
  command_line::Progress progress(url.shown);
  FetchOptions options = {.cache = cache.empty() ? DefaultModelCache() : cache,
                          .most_bytes = max_download_mb << 20,
                          .variant = variant};
  options.on_progress = [&](const FetchProgress& now) {
    progress.Show(
        now.total > 0 ? static_cast<double>(now.done) / static_cast<double>(now.total) : 0,
        ProgressText(now));
  };
  options.on_warning = [](const std::string& text) {
    std::fprintf(stderr, "warning: %s\n", text.c_str());
  };
  return FetchModel(model, options);
}

}  // namespace reprise::cli
