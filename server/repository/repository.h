// Repository: the models of the folders, loaded and unloaded as the control mode says.
//
// At the start every version that is to be served is listed; loader threads then load one after
// another. One that fails is unavailable with the reason and disturbs no other. Later a model is
// reloaded while it serves: the old version is served until its successor is ready, and stays where
// that one fails.
//
//   Repository repository({.folders = {"models"}, .threads = 2}, loader, events);
//   RETURN_IF_ERROR(repository.Start());
//   ASSIGN_OR_RETURN(auto found, repository.Find("minilm", ""));
//
// Operations on one model are done in the order in which they were asked for; models wait for a
// loader thread, not for each other.
//
// Ownership: versions are shared, see ModelTable.
// Threads:   all methods are safe from any thread; Start is called once.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "server/config/options.h"
#include "server/repository/model_change.h"
#include "server/repository/model_table.h"
#include "server/repository/remote_models.h"
#include "server/repository/repository_scan.h"
#include "server/repository/source_model.h"

namespace reprise {

class Repository {
 public:
  using Found = ModelTable::Found;
  using Listed = ModelTable::Listed;

  struct Options {
    std::vector<std::string> folders;  // and models: NAME=PATH, NAME=URL
    RemoteModels::Bring bring;         // used for those with a URL
    ModelControl control = ModelControl::kNone;
    // kExplicit: the models that are loaded at the start; "*" is all.
    std::vector<std::string> load_at_start;
    std::chrono::milliseconds poll_time{15000};  // used by kPoll
    int threads = 1;                             // that load
    // Called once, when every version of the start is ready or refused, by whichever thread sees it
    // first.
    std::function<void()> on_settled = [] {};
    // Work left for a version that is ready: on its loader thread, before the next load.
    std::function<void(const Servable&)> after_ready = [](const Servable&) {};
    // The memory of unloaded models, or of weights of models that sleep, has been freed.
    std::function<void()> after_unload = [] {};
    // The state of a version has changed; with no lock held.
    std::function<void()> on_change = [] {};
    ConfigStrictness strictness = ConfigStrictness::kStrict;
    // Something in a config was left out: a sentence that names the model.
    std::function<void(const std::string&)> on_hint = [](const std::string&) {};
    // A folder cannot be read any more, and the like.
    std::function<void(const absl::Status&)> on_trouble = [](const absl::Status&) {};
  };
  // Loads one version from the folder `folder` of its files. Runs on a loader thread.
  // `weights`: in place of those of its file; usually none.
  using Loader = std::function<absl::StatusOr<std::shared_ptr<const Servable>>(
      const ModelVersion& version, const std::string& folder, const ModelSettings& settings,
      const NewWeights& weights)>;
  // How it ended; on a loader thread, or on the caller's.
  using Done = std::function<void(const absl::Status&)>;

  Repository(Options options, Loader loader, ServerEvents& events);
  // Calls Stop.
  ~Repository();
  Repository(const Repository&) = delete;
  Repository& operator=(const Repository&) = delete;

  // Lists the models and begins to load them. Errors: a folder that cannot be read.
  absl::Status Start();
  // Loads that have begun are finished, others are not begun: their `done` gets UNAVAILABLE.
  void Stop();

  absl::StatusOr<Found> Find(absl::string_view name, absl::string_view version) const {
    return table_.Find(name, version);
  }
  absl::Status Answers(absl::string_view name, absl::string_view version) const {
    return table_.Answers(name, version);
  }
  std::shared_ptr<ModelVersion> FindListed(absl::string_view name,
                                           absl::string_view version) const {
    return table_.FindListed(name, version);
  }
  std::vector<Listed> List() const { return table_.List(); }

  // Loads the model from its folder as it is now, with `config` (the text of a config.pbtxt) in
  // place of its own where that is given. Versions that are served and have not changed are left as
  // they are; those that the policy chooses no more are unloaded once the others are ready. `done`
  // gets OK when all are ready. Errors: FAILED_PRECONDITION unless the mode is kExplicit;
  // NOT_FOUND; errors of the load of a version.
  void Load(const std::string& name, std::optional<std::string> config, Done done);
  // Requests that were accepted are answered, later ones refused; `done` gets OK when the memory
  // has been freed. Errors: FAILED_PRECONDITION unless the mode is kExplicit; NOT_FOUND.
  void Unload(const std::string& name, Done done);

  // Gives a version that is served (empty: the newest) new weights of the same graph, until it is
  // loaded from its folder again: `bytes` as NewWeights. Requests that were accepted before are
  // answered by the old ones, later ones by the new; recipes stay. `done` gets OK when the new ones
  // serve. Errors: as Find; INVALID_ARGUMENT where they are of another graph, and the old ones
  // stay.
  void LoadWeights(const std::string& name, const std::string& version,
                   std::shared_ptr<const std::string> bytes, Done done);

  // Returns the file of a model of the folders; `version` below 1: of the newest that is served.
  // Errors: NOT_FOUND; INVALID_ARGUMENT where it is an ensemble itself.
  absl::StatusOr<std::string> FileOf(const std::string& name, int64_t version) const;

  // Changes how a version behaves until it is unloaded or loaded again. `name` empty: all that are
  // ready; `version` empty: the newest. Returns the changed ones. Errors: as Find, and as
  // ApplyChange.
  absl::StatusOr<std::vector<Found>> Change(absl::string_view name, absl::string_view version,
                                            ModelChange change);

 private:
  // An operation that was asked for on one model.
  struct Operation {
    enum class Kind { kLoad, kUnload, kForget };  // kForget: its folder was removed
    Kind kind = Kind::kLoad;
    std::string name;
    std::optional<std::string> config;
    NewWeights weights = {};  // version `number` is to have
    int64_t number = 0;
    Done done;
    // Set once a load has begun.
    std::vector<int64_t> chosen;
    int64_t left = 0;
    absl::Status failed;  // the first of its versions that did
  };
  // One version to load.
  struct Task {
    std::shared_ptr<Operation> operation;
    std::shared_ptr<ModelVersion> version;
    std::string folder;
    ModelSettings settings;
    std::string config;  // its text
    std::string stamp;
  };

  absl::Status CheckExplicit() const;
  void Enqueue(std::shared_ptr<Operation> operation) EXCLUDES(mutex_);
  void WorkLoop();
  void Begin(const std::shared_ptr<Operation>& operation);
  // Returns the text of the configuration that the versions of `model` are to be loaded with.
  absl::StatusOr<std::string> ConfigFor(const Operation& operation, const FoundModel& model) const;
  // Returns the stamp of a version with the files of the steps of its ensemble.
  std::string StampWithSteps(const FoundModel& model, int64_t version,
                             const ModelSettings& settings) const;
  // Lists the versions of `model` to serve and makes tasks of the ones to load. Errors: there are
  // none.
  absl::Status Plan(const std::shared_ptr<Operation>& operation, const FoundModel& model,
                    bool twice);
  absl::Status BeginLoad(const std::shared_ptr<Operation>& operation);
  // Returns the models of this machine; with the one of the name, where it is brought from
  // elsewhere.
  absl::StatusOr<std::vector<FoundModel>> Scan(const std::string& name);
  // Tells that no version of the model can be loaded: served ones are still served, and otherwise
  // `number` stands for them.
  void Refuse(const std::string& name, int64_t number, const absl::Status& why);
  // Begins to serve one that is downloaded first; `wanted`: as soon as possible.
  void ListRemote(const std::string& name, bool wanted, bool twice);
  void Run(const Task& task);
  void FinishTask(const std::shared_ptr<Operation>& operation, const absl::Status& status);
  // Unloads the ready versions of the model except `kept`, and waits until they are unused.
  void UnloadAllBut(const std::string& name, const std::vector<int64_t>& kept);
  void WaitUntilUnused(std::shared_ptr<const Servable> servable);
  void Finish(const std::shared_ptr<Operation>& operation, const absl::Status& status);
  void Settle();
  void PollLoop();
  absl::Status Poll();

  // Constant after construction.
  const Options options_;
  const Loader loader_;
  const RemoteModels remote_;
  ModelTable table_;
  std::vector<std::thread> threads_;  // Start and Stop
  // Guarded.
  mutable Mutex mutex_;
  CondVar work_;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);
  // Operations by model; the first one of each has begun, or is in `ready_`.
  std::map<std::string, std::deque<std::shared_ptr<Operation>>> operations_ GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Operation>> ready_ GUARDED_BY(mutex_);  // may begin
  // The same of models that are downloaded first, which may take long: local models go before.
  std::deque<std::shared_ptr<Operation>> fetches_ GUARDED_BY(mutex_);
  // The stamps of the files from which the served versions were loaded.
  std::map<std::pair<std::string, int64_t>, std::string> stamps_ GUARDED_BY(mutex_);
  // The texts of the configurations that they were loaded with.
  std::map<std::pair<std::string, int64_t>, std::string> configs_ GUARDED_BY(mutex_);
  // kPoll: the stamp of each model when it was last asked to load.
  std::map<std::string, std::string> polled_ GUARDED_BY(mutex_);
  int64_t unsettled_ GUARDED_BY(mutex_) = 1;  // models of the start, and the listing itself
  bool stop_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
