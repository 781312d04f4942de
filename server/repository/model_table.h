// ModelTable: which model versions there are, and in which state.
//
// Ownership: versions are shared, and stay until the table goes, also when they are listed no more:
//            their counts, and requests that still run, outlive their states.
// Threads:   all methods are safe from any thread. Events are told outside of the lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "server/repository/events.h"
#include "server/repository/servable.h"
#include "server/repository/slow_requests.h"
#include "server/repository/statistics.h"
#include "server/repository/warmup_progress.h"

namespace reprise {

// One version of a model, loaded or not. Its counters outlive its states.
struct ModelVersion {
  std::string name;
  int64_t number = 0;   // 0: the model as a whole was refused, no version was chosen
  std::string version;  // "3"; empty for number 0
  std::unique_ptr<ModelEvents> events;  // null where the version has not been asked for yet
  StatisticsRecorder statistics;
  SlowRequests slow_requests;
  std::shared_ptr<WarmupProgress> warmup;
};

class ModelTable {
 public:
  // `on_change` is called after each change of a state, with no lock held.
  explicit ModelTable(
      ServerEvents& events, std::function<void()> on_change = [] {})
      : events_(events), on_change_(std::move(on_change)) {}

  struct Found {
    std::shared_ptr<ModelVersion> version;
    std::shared_ptr<const Servable> servable;
  };
  // Finds a version; an empty one: the newest that is ready. Errors: NOT_FOUND lists the existing
  // ones; UNAVAILABLE while it loads, and with the reason when it was refused or unloaded.
  absl::StatusOr<Found> Find(absl::string_view name, absl::string_view version) const;

  // Returns the listed version whatever its state, for counting; null if there is none.
  std::shared_ptr<ModelVersion> FindListed(absl::string_view name, absl::string_view version) const;

  // OK where requests of the version are answered: it is ready, its file is as it was, and where it
  // is frozen it has a recipe. Else as Find, or UNAVAILABLE naming the file or the missing recipe.
  absl::Status Answers(absl::string_view name, absl::string_view version) const;

  struct Listed {
    std::shared_ptr<ModelVersion> version;
    ModelState state = ModelState::kLoading;
    // Not OK where kUnavailable, or where it is ready as before a load that failed.
    absl::Status why;
    std::shared_ptr<const Servable> servable;  // not null: kReady
    // All versions of its model that were to be served were, once, since it was asked for.
    bool model_was_complete = false;
  };
  // Models sorted by name, then version. One whose file has changed is kUnavailable.
  std::vector<Listed> List() const;

  // Returns the numbers of the versions that are ready.
  std::vector<int64_t> Ready(const std::string& name) const;

  // Lists the version: LOADING, unless it is served already.
  std::shared_ptr<ModelVersion> SetLoading(const std::string& name, int64_t number);
  // Records how a load ended. Where it failed, a version that is served still is. Returns the
  // servable that a new one replaces.
  std::shared_ptr<const Servable> SetLoaded(
      const ModelVersion& version, const absl::StatusOr<std::shared_ptr<const Servable>>& loaded);
  // Notes that the version was refused before it could be loaded.
  void SetRefused(const std::string& name, int64_t number, const absl::Status& why);
  // Lists a version that waits to be asked for: it has no series and raises no alert.
  void SetWaiting(const std::string& name, int64_t number);
  // Lets no request find the version from now on. Returns its servable.
  std::shared_ptr<const Servable> SetUnloaded(const std::string& name, int64_t number);
  // Takes versions that are not served from the list: their state is out of date.
  void DropUnserved(const std::string& name);
  // Versions of the model that could not be loaded are not asked for any more.
  void SetFailedUnloaded(const std::string& name);
  // Notes that all versions of the model that are to be served are.
  void SetComplete(const std::string& name);

 private:
  struct Entry {
    std::shared_ptr<ModelVersion> version;
    ModelState state = ModelState::kLoading;
    absl::Status why;
    std::shared_ptr<const Servable> servable;
  };
  // Looks at the files of a version that is ready; tells once that they are not as they were.
  static absl::Status LookAtFiles(const ModelVersion& version, const Servable& servable);
  // Versions by number; the model as a whole is number 0.
  using Versions = std::map<int64_t, Entry>;

  // `asked_for`: a request wants the version to be served; it has events from then on.
  Entry& AddEntry(const std::string& name, int64_t number, bool asked_for) REQUIRES(mutex_);
  std::shared_ptr<ModelVersion> MakeVersion(const std::string& name, int64_t number,
                                            bool asked_for);
  absl::StatusOr<const Entry*> FindEntry(absl::string_view name, absl::string_view version) const
      REQUIRES(mutex_);

  ServerEvents& events_;
  const std::function<void()> on_change_;
  // Guarded.
  mutable Mutex mutex_;
  std::map<std::string, Versions, std::less<>> models_ GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> complete_ GUARDED_BY(mutex_);
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<ModelVersion>> dropped_
      GUARDED_BY(mutex_);
};

}  // namespace reprise
