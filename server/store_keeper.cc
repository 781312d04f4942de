#include "server/store_keeper.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/thread_priority.h"
#include "server/fetch/store_key.h"

namespace reprise {
namespace {

constexpr int kWriterNice = 10;
constexpr std::chrono::seconds kTick(5);

}  // namespace

StoreKeeper::StoreKeeper(const Options& options, const LogFunction& log, DebugLog* debug) {
  if (options.recipe_cache.empty()) return;
  auto mac = ReadStoreKey(options.store_key);
  absl::StatusOr<std::unique_ptr<RecipeStore>> store = absl::UnknownError("");
  if (!mac.ok()) {
    store = mac.status();
  } else {
    store = RecipeStore::Open(
        {.folder = options.recipe_cache,
         .max_bytes = options.recipe_cache_disk_mb << 20,
         .mac = *std::move(mac),
         .debug = debug,
         .log = [log](const std::string& text) { log(LogLevel::kWarning, text); }});
  }
  if (!store.ok()) {
    log(LogLevel::kWarning,
        absl::StrCat(std::string(store.status().message()), "; nothing is kept over a restart"));
    return;
  }
  store_ = *std::move(store);
  const RecipeStore::Stats stats = store_->GetStats();
  log(LogLevel::kInfo,
      absl::StrCat("recipe store ", options.recipe_cache, ": ", stats.entries, " files, ",
                   stats.bytes, " bytes", stats.writable ? "" : ", read-only"));
}

StoreKeeper::~StoreKeeper() { Finish(); }

void StoreKeeper::Start(std::function<void()> tick) {
  if (store_ == nullptr) return;
  writer_ = std::thread([this, tick = std::move(tick)] {
    LowerThreadPriority(kWriterNice);
    store_->RunWriter(kTick, tick);
  });
}

void StoreKeeper::Finish() {
  if (!writer_.joinable()) return;
  store_->StopWriter();
  writer_.join();
}

}  // namespace reprise
