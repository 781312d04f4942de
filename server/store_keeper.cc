#include "server/store_keeper.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr int64_t kSavePeriodMs = 10'000;
constexpr int kWriterNice = 10;

// On Linux the priority of a thread, not of the process.
void BeNice() {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kWriterNice);
}

}  // namespace

StoreKeeper::StoreKeeper(const Options& options, const LogFunction& log) {
  if (options.recipe_cache.empty()) return;
  auto store =
      RecipeStore::Open({.folder = options.recipe_cache,
                         .max_bytes = options.recipe_cache_disk_mb << 20,
                         .log = [log](const std::string& text) { log(LogLevel::kWarning, text); }});
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

void StoreKeeper::Start(std::function<void()> save_usage) {
  if (store_ == nullptr) return;
  save_usage_ = std::move(save_usage);
  writer_ = std::thread([this] {
    BeNice();
    store_->RunWriter(kSavePeriodMs, save_usage_);
  });
}

void StoreKeeper::Finish() {
  if (!writer_.joinable()) return;
  save_usage_();
  store_->StopWriter();
  writer_.join();
}

}  // namespace reprise
