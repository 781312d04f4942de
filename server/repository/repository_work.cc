// The work on models: operations that were asked for, one after another for each model, on the
// threads that load.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/config/model_config.h"
#include "server/repository/flat_model.h"
#include "server/repository/repository.h"

namespace reprise {
namespace {

// How often a version that is unloaded is looked at, and how long its last requests may take.
constexpr std::chrono::milliseconds kLookTime(2);
constexpr std::chrono::seconds kLongestUse(60);

absl::Status TwiceError() {
  return absl::InvalidArgumentError("the name is in more than one repository");
}

absl::Status NameError() {
  return absl::InvalidArgumentError(
      "the name on disk is not UTF-8, so that no client can ask for the model");
}

}  // namespace

void Repository::ListRemote(const std::string& name, bool wanted, bool twice) {
  if (!wanted) return table_.SetWaiting(name, 1);
  if (twice) return table_.SetRefused(name, 0, TwiceError());
  table_.SetLoading(name, 1);
  auto operation = std::make_shared<Operation>(
      Operation{.name = name, .done = [this](const absl::Status&) { Settle(); }});
  MutexLock lock(mutex_);
  ++unsettled_;
  operations_[name].push_back(operation);
  fetches_.push_back(std::move(operation));
}

absl::StatusOr<std::string> Repository::ConfigFor(const Operation& operation,
                                                  const FoundModel& model) const {
  if (operation.config.has_value()) return *operation.config;
  if (operation.weights.bytes != nullptr) {
    MutexLock lock(mutex_);
    const auto known = configs_.find({model.name, operation.number});
    if (known != configs_.end()) return known->second;
  }
  return ReadConfigFile(model);
}

std::string Repository::StampWithSteps(const FoundModel& model, int64_t version,
                                       const ModelSettings& settings) const {
  std::string stamp = StampOf(model, version);
  for (const auto& step : settings.config.ensemble_scheduling().step()) {
    const auto file = FileOf(step.model_name(), step.model_version());
    std::error_code error;
    if (!file.ok()) continue;  // The load says why.
    absl::StrAppend(&stamp, "\n", *file, " ", std::filesystem::file_size(*file, error), " ",
                    std::filesystem::last_write_time(*file, error).time_since_epoch().count());
  }
  return stamp;
}

void Repository::Enqueue(std::shared_ptr<Operation> operation) {
  {
    MutexLock lock(mutex_);
    if (!stop_) {
      auto& queue = operations_[operation->name];
      queue.push_back(operation);
      if (queue.size() > 1) return;  // it begins when those before it have finished
      (remote_.Has(operation->name) ? fetches_ : ready_).push_back(std::move(operation));
      work_.NotifyOne();
      return;
    }
  }
  operation->done(absl::UnavailableError("the server is stopping"));
}

void Repository::WorkLoop() {
  while (true) {
    std::shared_ptr<Operation> operation;
    Task task;
    {
      MutexLock lock(mutex_);
      while (!stop_ && ready_.empty() && tasks_.empty() && fetches_.empty()) work_.Wait(mutex_);
      if (stop_) return;
      if (!ready_.empty()) {
        operation = std::move(ready_.front());
        ready_.pop_front();
      } else if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      } else {
        operation = std::move(fetches_.front());
        fetches_.pop_front();
      }
    }
    if (operation != nullptr) {
      Begin(operation);
    } else {
      Run(task);
    }
  }
}

void Repository::Begin(const std::shared_ptr<Operation>& operation) {
  if (operation->kind == Operation::Kind::kLoad) {
    const absl::Status status =
        WithinMemory([&] { return absl::StrCat("loading model '", operation->name, "'"); },
                     [&] { return BeginLoad(operation); });
    if (!status.ok()) Finish(operation, status);
    return;
  }
  UnloadAllBut(operation->name, {});
  if (operation->kind == Operation::Kind::kForget) {
    table_.DropUnserved(operation->name);
  } else {
    table_.SetFailedUnloaded(operation->name);
  }
  Finish(operation, absl::OkStatus());
}

absl::Status Repository::BeginLoad(const std::shared_ptr<Operation>& operation) {
  ASSIGN_OR_RETURN(const std::vector<FoundModel> models, Scan(operation->name));
  const auto is_it = [&](const FoundModel& model) { return model.name == operation->name; };
  const auto model = std::find_if(models.begin(), models.end(), is_it);
  if (model == models.end()) {
    return absl::NotFoundError(
        absl::StrCat("no model repository has ", QuotedText(operation->name)));
  }
  return Plan(operation, *model, std::count_if(models.begin(), models.end(), is_it) > 1);
}

absl::StatusOr<std::vector<FoundModel>> Repository::Scan(const std::string& name) {
  std::vector<std::string> repositories = remote_.local();
  if (remote_.Has(name)) {
    const auto stops = [this] {
      MutexLock lock(mutex_);
      return stop_;
    };
    absl::StatusOr<std::string> fetched = remote_.Fetch(name, stops);
    if (!fetched.ok()) {
      Refuse(name, 1, fetched.status());
      return fetched.status();
    }
    repositories.push_back(*std::move(fetched));
  }
  return ScanRepositories(repositories);
}

void Repository::Refuse(const std::string& name, int64_t number, const absl::Status& why) {
  const std::vector<int64_t> served = table_.Ready(name);
  for (const int64_t one : served) table_.SetLoaded(*table_.SetLoading(name, one), why);
  if (served.empty()) table_.SetRefused(name, number, why);
}

absl::Status Repository::Plan(const std::shared_ptr<Operation>& operation, const FoundModel& model,
                              bool twice) {
  auto text = !model.is_named ? absl::StatusOr<std::string>(NameError())
              : twice         ? absl::StatusOr<std::string>(TwiceError())
                              : ConfigFor(*operation, model);
  auto settings = text.ok() ? ParseModelConfig(*text, model.name, options_.strictness)
                            : absl::StatusOr<ModelSettings>(text.status());
  auto versions = settings.ok() ? ChooseVersions(settings->config.version_policy(), model)
                                : absl::StatusOr<std::vector<int64_t>>(settings.status());
  if (settings.ok()) {
    for (const std::string& hint : settings->hints) {
      options_.on_hint(absl::StrCat("model ", QuotedText(model.name), ": config.pbtxt: ", hint));
    }
  }
  if (!versions.ok()) {
    // All versions share the mistake.
    Refuse(model.name, twice || model.versions.empty() ? 0 : model.versions.back(),
           versions.status());
    return versions.status();
  }
  const std::vector<int64_t> served = table_.Ready(model.name);
  std::deque<Task> tasks;
  const bool only_weights = operation->weights.bytes != nullptr;
  if (only_weights) {
    versions = served;  // The others stay as they are.
    if (!absl::c_linear_search(served, operation->number)) {
      return absl::UnavailableError("it was unloaded before its new weights were loaded");
    }
  }
  for (const int64_t number : *versions) {
    if (only_weights && number != operation->number) continue;
    std::string stamp = only_weights
                            ? "weights that came by request"
                            : absl::StrCat(*text, "\n", StampWithSteps(model, number, *settings));
    if (!only_weights) {
      MutexLock lock(mutex_);
      const auto it = stamps_.find({model.name, number});
      if (absl::c_linear_search(served, number) && it != stamps_.end() && it->second == stamp)
        continue;
    }
    tasks.push_back({.operation = operation,
                     .version = table_.SetLoading(model.name, number),
                     .folder = FolderOf(model, number),
                     .settings = SettingsOf(model, *settings),
                     .config = *text,
                     .stamp = std::move(stamp)});
  }
  operation->chosen = *std::move(versions);
  operation->left = std::ssize(tasks) + 1;
  {
    MutexLock lock(mutex_);
    for (Task& task : tasks) tasks_.push_back(std::move(task));
    work_.NotifyAll();
  }
  FinishTask(operation, absl::OkStatus());
  return absl::OkStatus();
}

void Repository::Run(const Task& task) {
  const std::string& name = task.version->name;
  const auto servable = WithinMemory(
      [&] { return absl::StrCat("loading model '", name, "'"); },
      [&] { return loader_(*task.version, task.folder, task.settings, task.operation->weights); });
  if (servable.ok()) {
    MutexLock lock(mutex_);
    WhereMemoryAllows([&] {
      stamps_[{name, task.version->number}] = task.stamp;
      configs_[{name, task.version->number}] = task.config;
    });
  }
  std::shared_ptr<const Servable> before = table_.SetLoaded(*task.version, servable);
  absl::Status status = servable.status();
  if (!status.ok()) {
    status =
        absl::Status(status.code(), absl::StrCat("model ", QuotedText(name), " version ",
                                                 task.version->version, ": ", status.message()));
  }
  if (before != nullptr) {
    WaitUntilUnused(std::move(before));
    WhereMemoryAllows(options_.after_unload);
  }
  FinishTask(task.operation, status);
  if (servable.ok()) WhereMemoryAllows([&] { options_.after_ready(**servable); });
}

void Repository::FinishTask(const std::shared_ptr<Operation>& operation,
                            const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    if (operation->failed.ok()) operation->failed = status;
    if (--operation->left > 0) return;
  }
  // Where a successor failed, the former version goes on.
  if (operation->failed.ok()) {
    UnloadAllBut(operation->name, operation->chosen);
    table_.DropUnserved(operation->name);
    table_.SetComplete(operation->name);
  }
  Finish(operation, operation->failed);
}

void Repository::UnloadAllBut(const std::string& name, const std::vector<int64_t>& kept) {
  std::vector<std::shared_ptr<const Servable>> unloaded;
  for (const int64_t number : table_.Ready(name)) {
    if (!absl::c_linear_search(kept, number)) unloaded.push_back(table_.SetUnloaded(name, number));
  }
  if (unloaded.empty()) return;
  for (auto& servable : unloaded) WaitUntilUnused(std::move(servable));
  WhereMemoryAllows(options_.after_unload);
}

void Repository::WaitUntilUnused(std::shared_ptr<const Servable> servable) {
  const auto end = std::chrono::steady_clock::now() + kLongestUse;
  while (servable.use_count() > 1 && std::chrono::steady_clock::now() < end) {
    MutexLock lock(mutex_);
    if (stop_) return;
    CondVar().WaitFor(mutex_, kLookTime);
  }
  servable.reset();  // memory is freed here, not on a thread that answers a request
}

void Repository::Finish(const std::shared_ptr<Operation>& operation, const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    const auto it = operations_.find(operation->name);
    // Gone where the repository stops: then it is told there.
    if (it == operations_.end()) return;
    it->second.pop_front();
    if (it->second.empty()) {
      operations_.erase(it);
    } else {
      WhereMemoryAllows([&] {
        (remote_.Has(operation->name) ? fetches_ : ready_).push_back(it->second.front());
      });
      work_.NotifyOne();
    }
  }
  WhereMemoryAllows([&] { operation->done(status); });
}

void Repository::Settle() {
  {
    MutexLock lock(mutex_);
    if (--unsettled_ > 0) return;
  }
  WhereMemoryAllows(options_.on_settled);
}

}  // namespace reprise
