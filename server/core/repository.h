// Repository: which models there are, and in which state.
//
// Every version that is to be served is listed from the start; loader threads then load one after
// another. One that fails is unavailable with the reason and disturbs no other.
//
//   Repository repository({.folders = {"models"}, .threads = 2}, loader, events);
//   RETURN_IF_ERROR(repository.Start());
//   ASSIGN_OR_RETURN(auto found, repository.Find("minilm", ""));
//
// Ownership: versions are shared, and stay listed until the repository goes.
// Threads:   all methods are safe from any thread; Start is called once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "server/core/events.h"
#include "server/core/repository_scan.h"
#include "server/core/servable.h"
#include "server/core/statistics.h"
#include "server/core/warmup_progress.h"

namespace reprise {

// One version of a model, loaded or not. Its counters outlive its states.
struct ModelVersion {
  std::string name;
  int64_t number = 0;   // 0: the model as a whole was refused, no version was chosen
  std::string version;  // "3"; empty for number 0
  std::unique_ptr<ModelEvents> events;
  StatisticsRecorder statistics;
  std::shared_ptr<WarmupProgress> warmup;
};

class Repository {
 public:
  struct Options {
    std::vector<std::string> folders;
    int threads = 1;  // that load
    // Called once, when every version is ready or refused, by whichever thread sees it first.
    std::function<void()> on_settled = [] {};
    // What a version that is ready still wants done: on its loader thread, before the next load.
    std::function<void(const Servable&)> after_ready = [](const Servable&) {};
  };
  // Loads one version from the folder `folder` of its files. Runs on a loader thread.
  using Loader = std::function<absl::StatusOr<std::shared_ptr<const Servable>>(
      const ModelVersion& version, const std::string& folder, const ModelSettings& settings)>;

  Repository(Options options, Loader loader, ServerEvents& events);
  // Loads that have begun are finished, others are not begun.
  ~Repository();
  Repository(const Repository&) = delete;
  Repository& operator=(const Repository&) = delete;

  // Lists the models and begins to load them. Errors: a folder that cannot be read.
  absl::Status Start();

  struct Found {
    std::shared_ptr<ModelVersion> version;
    std::shared_ptr<const Servable> servable;
  };
  // An empty version: the newest that is ready. Errors: NOT_FOUND names what there is; UNAVAILABLE
  // while it loads, and with the reason when it was refused.
  absl::StatusOr<Found> Find(absl::string_view name, absl::string_view version) const;

  // The listed version whatever its state, for counting; null if there is none.
  std::shared_ptr<ModelVersion> FindListed(absl::string_view name, absl::string_view version) const;

  struct Listed {
    std::shared_ptr<ModelVersion> version;
    ModelState state = ModelState::kLoading;
    absl::Status why;                          // not OK: kUnavailable
    std::shared_ptr<const Servable> servable;  // not null: kReady
  };
  // By name, then by version.
  std::vector<Listed> List() const;

 private:
  struct Entry {
    std::shared_ptr<ModelVersion> version;
    std::string folder;
    ModelSettings settings;
    ModelState state = ModelState::kLoading;
    absl::Status why;
    std::shared_ptr<const Servable> servable;
  };
  // Versions by number; the model as a whole is number 0.
  using Versions = std::map<int64_t, Entry>;

  void AddModel(const FoundModel& model, bool twice);
  Entry& AddEntry(const std::string& name, int64_t number) REQUIRES(mutex_);
  // One thing less is unsettled.
  void Settle();
  void Refuse(const std::string& name, int64_t number, const absl::Status& why);
  void LoadLoop();
  absl::StatusOr<const Entry*> FindEntry(absl::string_view name, absl::string_view version) const
      REQUIRES(mutex_);

  // Constant after construction.
  const Options options_;
  const Loader loader_;
  ServerEvents& events_;
  std::vector<std::thread> threads_;
  // Guarded.
  mutable Mutex mutex_;
  std::map<std::string, Versions, std::less<>> models_ GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, int64_t>> pending_ GUARDED_BY(mutex_);  // to load, last first
  int64_t unsettled_ GUARDED_BY(mutex_) = 1;  // versions that load, and the listing itself
  bool stop_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
