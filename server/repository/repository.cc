#include "server/repository/repository.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/config/model_config.h"
#include "server/hub/model_file.h"
#include "server/repository/flat_model.h"

namespace reprise {
namespace {

constexpr size_t kMostFetches = 4;  // models that are downloaded at a time

// Returns a stamp of the whole model as it is on disk.
std::string StampOf(const FoundModel& model) {
  std::string stamp = model.folder + "\n";
  for (const int64_t version : model.versions) stamp += StampOf(model, version);
  return stamp;
}

}  // namespace

Repository::Repository(Options options, Loader loader, ServerEvents& events)
    : options_(std::move(options)),
      loader_(std::move(loader)),
      remote_(options_.folders, options_.bring),
      table_(events, options_.on_change) {}

Repository::~Repository() { Stop(); }

void Repository::Stop() {
  std::map<std::string, std::deque<std::shared_ptr<Operation>>> left;
  {
    MutexLock lock(mutex_);
    stop_ = true;
    work_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  {
    MutexLock lock(mutex_);
    left.swap(operations_);
    tasks_.clear();
    ready_.clear();
    fetches_.clear();
  }
  for (const auto& [name, operations] : left) {
    for (const auto& operation : operations) {
      operation->done(absl::UnavailableError("the server is stopping"));
    }
  }
}

absl::Status Repository::Start() {
  ASSIGN_OR_RETURN(const std::vector<FoundModel> models, ScanRepositories(remote_.local()));
  std::map<std::string, int> times;
  for (const FoundModel& model : models) ++times[model.name];
  for (const std::string& name : remote_.names()) ++times[name];
  if (options_.control == ModelControl::kExplicit) {
    for (const std::string& name : options_.load_at_start) {
      if (name != "*" && !times.contains(name)) {
        return absl::NotFoundError(
            absl::StrCat("--load-model ", name, ": no model repository has it"));
      }
    }
  }
  const bool all = options_.control != ModelControl::kExplicit ||
                   absl::c_linear_search(options_.load_at_start, "*");
  for (const FoundModel& model : models) {
    if (!all && !absl::c_linear_search(options_.load_at_start, model.name)) {
      table_.SetWaiting(model.name, model.versions.empty() ? 0 : model.versions.back());
      continue;
    }
    auto operation = std::make_shared<Operation>(
        Operation{.name = model.name, .done = [this](const absl::Status&) { Settle(); }});
    {
      MutexLock lock(mutex_);
      if (operations_.contains(model.name)) continue;  // the second of two
      ++unsettled_;
      operations_[model.name].push_back(operation);
      if (options_.control == ModelControl::kPoll) polled_[model.name] = StampOf(model);
    }
    // Listed before anybody can ask.
    const absl::Status planned = Plan(operation, model, times[model.name] > 1);
    if (!planned.ok()) Finish(operation, planned);
  }
  const std::vector<std::string> remote = remote_.names();
  for (const std::string& name : remote) {
    ListRemote(name, all || absl::c_linear_search(options_.load_at_start, name), times[name] > 1);
  }
  Settle();
  // Bringing models takes no cores: it has threads in addition.
  const int more = static_cast<int>(std::min<size_t>(remote.size(), kMostFetches));
  for (int i = 0; i < std::max(1, options_.threads) + more; ++i) {
    const bool started = WhereMemoryAllows([&] { threads_.emplace_back([this] { WorkLoop(); }); });
    if (started) continue;
    if (i > 0) break;
    return absl::ResourceExhaustedError("the system has no thread to load models on");
  }
  if (options_.control == ModelControl::kPoll) threads_.emplace_back([this] { PollLoop(); });
  return absl::OkStatus();
}

absl::Status Repository::CheckExplicit() const {
  switch (options_.control) {
    case ModelControl::kExplicit:
      return absl::OkStatus();
    case ModelControl::kPoll:
      return absl::FailedPreconditionError(
          "models follow their folders: --model-control-mode is poll, explicit would take requests "
          "to load and unload");
    case ModelControl::kNone:
      break;
  }
  return absl::FailedPreconditionError(
      "models are loaded at start: --model-control-mode is none, explicit would take requests to "
      "load and unload");
}

void Repository::Load(const std::string& name, std::optional<std::string> config, Done done) {
  if (const absl::Status status = CheckExplicit(); !status.ok()) return done(status);
  Enqueue(std::make_shared<Operation>(
      Operation{.name = name, .config = std::move(config), .done = std::move(done)}));
}

void Repository::Unload(const std::string& name, Done done) {
  absl::Status status = CheckExplicit();
  if (status.ok() && table_.FindListed(name, "") == nullptr) {
    status = absl::NotFoundError(absl::StrCat("there is no model ", QuotedText(name)));
  }
  if (!status.ok()) return done(status);
  Enqueue(std::make_shared<Operation>(
      Operation{.kind = Operation::Kind::kUnload, .name = name, .done = std::move(done)}));
}

void Repository::LoadWeights(const std::string& name, const std::string& version,
                             std::shared_ptr<const std::string> bytes, Done done) {
  const absl::StatusOr<Found> found = Find(name, version);
  if (!found.ok()) return done(found.status());
  Enqueue(std::make_shared<Operation>(Operation{
      .name = name,
      .weights = {.bytes = std::move(bytes), .graph = found->servable->model->fingerprint()},
      .number = found->version->number,
      .done = std::move(done)}));
}

absl::StatusOr<std::string> Repository::FileOf(const std::string& name, int64_t version) const {
  ASSIGN_OR_RETURN(const std::vector<FoundModel> models, ScanRepositories(remote_.local()));
  const auto model = std::find_if(models.begin(), models.end(),
                                  [&](const FoundModel& one) { return one.name == name; });
  if (model == models.end()) {
    return absl::NotFoundError(absl::StrCat("no model repository has ", QuotedText(name)));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadConfigFile(*model));
  ASSIGN_OR_RETURN(const ModelSettings parsed,
                   ParseModelConfig(text, model->name, options_.strictness));
  if (parsed.config.has_ensemble_scheduling()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", QuotedText(name), " is an ensemble itself: name its steps"));
  }
  if (version < 1) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> versions,
                     ChooseVersions(parsed.config.version_policy(), *model));
    version = versions.back();
  } else if (!absl::c_linear_search(model->versions, version)) {
    return absl::NotFoundError(
        absl::StrCat("model ", QuotedText(name), " has no version ", version));
  }
  return ChooseModelFile(std::filesystem::path(FolderOf(*model, version)) /
                         SettingsOf(*model, parsed).model_filename)
      .string();
}

absl::StatusOr<std::vector<Repository::Found>> Repository::Change(absl::string_view name,
                                                                  absl::string_view version,
                                                                  ModelChange change) {
  std::vector<Found> changed;
  if (name.empty()) {
    for (Listed& listed : List()) {
      if (listed.servable != nullptr) changed.push_back({listed.version, listed.servable});
    }
  } else {
    ASSIGN_OR_RETURN(changed.emplace_back(), Find(name, version));
  }
  for (const Found& one : changed) {
    RETURN_IF_ERROR(ApplyChange(*one.servable, change));
    WhereMemoryAllows([&] { one.version->events->OnChange(ChangedText(change)); });
  }
  if (change == ModelChange::kSleep) WhereMemoryAllows(options_.after_unload);
  // A frozen model without a recipe answers nothing.
  WhereMemoryAllows(options_.on_change);
  return changed;
}

void Repository::PollLoop() {
  absl::Status last;
  while (true) {
    {
      MutexLock lock(mutex_);
      const auto end = std::chrono::steady_clock::now() + options_.poll_time;
      while (!stop_ && std::chrono::steady_clock::now() < end) {
        work_.WaitFor(mutex_, end - std::chrono::steady_clock::now());
      }
      if (stop_) return;
    }
    const absl::Status status =
        WithinMemory([] { return "looking for models"; }, [&] { return Poll(); });
    if (!status.ok() && status != last) {
      WhereMemoryAllows([&] { options_.on_trouble(status); });
    }
    last = status;
  }
}

absl::Status Repository::Poll() {
  ASSIGN_OR_RETURN(const std::vector<FoundModel> models, ScanRepositories(remote_.local()));
  std::map<std::string, std::string> now;
  for (const FoundModel& model : models) now[model.name] += StampOf(model);
  std::vector<std::shared_ptr<Operation>> operations;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, stamp] : now) {
      if (const auto it = polled_.find(name); it != polled_.end() && it->second == stamp) continue;
      operations.push_back(
          std::make_shared<Operation>(Operation{.name = name, .done = [](const absl::Status&) {}}));
    }
    for (const auto& [name, stamp] : polled_) {
      if (now.contains(name)) continue;
      operations.push_back(std::make_shared<Operation>(Operation{
          .kind = Operation::Kind::kForget, .name = name, .done = [](const absl::Status&) {}}));
    }
    polled_.swap(now);
  }
  for (auto& operation : operations) Enqueue(std::move(operation));
  return absl::OkStatus();
}

}  // namespace reprise
