#include "server/model_bringer.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/fetch_model.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kTellTime(5);

absl::StatusOr<std::string> Bring(const Options& options, const LogFunction& log,
                                  const std::string& url, const std::function<bool()>& cancelled) {
  auto told = std::chrono::steady_clock::now() - kTellTime;
  const auto tell = [&](const FetchProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told < kTellTime) return;
    told = now;
    log(LogLevel::kInfo, ProgressText(progress));
  };
  ASSIGN_OR_RETURN(
      const FetchedModel model,
      FetchModel(url,
                 {.cache = options.model_cache.empty() ? DefaultModelCache() : options.model_cache,
                  .most_bytes = options.max_download_mb << 20,
                  .variant = options.variant,
                  .on_progress = tell,
                  .on_warning = [&](const std::string& text) { log(LogLevel::kWarning, text); },
                  .cancelled = cancelled}));
  if (!model.is_stale) {
    log(LogLevel::kInfo, absl::StrCat(model.shown, " is here, version ", model.version));
  }
  return model.path;
}

}  // namespace

RemoteModels::Bring ModelBringer(const Options& options, LogFunction log) {
  return [&options, log = std::move(log)](const std::string& url,
                                          const std::function<bool()>& cancelled) {
    return Bring(options, log, url, cancelled);
  };
}

}  // namespace reprise
