#include "tools/serve/fetching.h"

#include <cstdio>

#include "command_line/progress.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/model_url.h"

namespace reprise::cli {

void FetchingFlags::Add(CLI::App& command, const char* meaning) {
  command.add_option("model", model, meaning)->required()->type_name("URL");
  command
      .add_option("--model-cache", cache,
                  "Folder that keeps fetched models; ~/.cache/reprise/models if not given")
      ->envname("REPRISED_MODEL_CACHE")
      ->type_name("DIR");
  command.add_option("--variant", variant, "int8 takes model_int8.onnx")->type_name("VARIANT");
  command.add_option("--max-download-mb", max_download_mb, "Most of a model, in MiB")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("MB");
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
