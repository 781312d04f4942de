#include "server/core/repository.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/config/model_config.h"

namespace reprise {

Repository::Repository(Options options, Loader loader, ServerEvents& events)
    : options_(std::move(options)), loader_(std::move(loader)), events_(events) {}

Repository::~Repository() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

Repository::Entry& Repository::AddEntry(const std::string& name, int64_t number) {
  Entry& entry = models_[name][number];
  if (entry.version == nullptr) {
    auto version = std::make_shared<ModelVersion>();
    version->name = name;
    version->number = number;
    version->version = number == 0 ? "" : absl::StrCat(number);
    version->events = events_.ForModel(name, version->version);
    version->warmup = std::make_shared<WarmupProgress>(
        [events = version->events.get()](const WarmupProgress::State& state) {
          events->OnWarmup(state.wanted, state.done);
        });
    entry.version = std::move(version);
  }
  return entry;
}

void Repository::Refuse(const std::string& name, int64_t number, const absl::Status& why) {
  std::shared_ptr<ModelVersion> version;
  {
    MutexLock lock(mutex_);
    Entry& entry = AddEntry(name, number);
    entry.state = ModelState::kUnavailable;
    entry.why = why;
    version = entry.version;
  }
  version->events->OnState(ModelState::kUnavailable, why);
}

void Repository::AddModel(const FoundModel& model, bool twice) {
  if (twice) {
    Refuse(model.name, 0, absl::InvalidArgumentError("the name is in more than one repository"));
    return;
  }
  auto text = ReadConfigFile(model);
  auto settings = text.ok() ? ParseModelConfig(*text, model.name)
                            : absl::StatusOr<ModelSettings>(text.status());
  auto versions = settings.ok() ? ChooseVersions(settings->config.version_policy(), model)
                                : absl::StatusOr<std::vector<int64_t>>(settings.status());
  if (!versions.ok()) {
    // All versions share the mistake; the newest one stands for them.
    const int64_t newest = model.versions.empty() ? 0 : model.versions.back();
    Refuse(model.name, newest, versions.status());
    return;
  }
  MutexLock lock(mutex_);
  for (const int64_t number : *versions) {
    Entry& entry = AddEntry(model.name, number);
    entry.folder = (std::filesystem::path(model.folder) / entry.version->version).string();
    entry.settings = *settings;
    pending_.emplace_back(model.name, number);
    ++unsettled_;
  }
}

absl::Status Repository::Start() {
  ASSIGN_OR_RETURN(const std::vector<FoundModel> models, ScanRepositories(options_.folders));
  std::map<std::string, int> times;
  for (const FoundModel& model : models) ++times[model.name];
  for (const FoundModel& model : models) AddModel(model, times[model.name] > 1);
  {
    MutexLock lock(mutex_);
    std::reverse(pending_.begin(), pending_.end());
  }
  Settle();
  for (int i = 0; i < std::max(1, options_.threads); ++i) {
    const bool started = WhereMemoryAllows([&] { threads_.emplace_back([this] { LoadLoop(); }); });
    if (started) continue;
    if (i > 0) break;
    return absl::ResourceExhaustedError("the system has no thread to load models on");
  }
  return absl::OkStatus();
}

void Repository::LoadLoop() {
  while (true) {
    std::shared_ptr<ModelVersion> version;
    std::string folder;
    ModelSettings settings;
    std::pair<std::string, int64_t> id;
    {
      MutexLock lock(mutex_);
      if (stop_ || pending_.empty()) return;
      id = pending_.back();
      pending_.pop_back();
      const Entry& entry = models_[id.first][id.second];
      version = entry.version;
      folder = entry.folder;
      settings = entry.settings;
    }
    const auto servable =
        WithinMemory([&] { return absl::StrCat("loading model '", id.first, "'"); },
                     [&] { return loader_(*version, folder, settings); });
    const ModelState state = servable.ok() ? ModelState::kReady : ModelState::kUnavailable;
    // Told before it is visible: whoever sees a ready model finds its series.
    WhereMemoryAllows([&] { version->events->OnState(state, servable.status()); });
    {
      MutexLock lock(mutex_);
      Entry& entry = models_[id.first][id.second];
      entry.state = state;
      entry.why = servable.status();
      if (servable.ok()) entry.servable = *servable;
    }
    Settle();
    if (servable.ok()) WhereMemoryAllows([&] { options_.after_ready(**servable); });
  }
}

void Repository::Settle() {
  {
    MutexLock lock(mutex_);
    if (--unsettled_ > 0) return;
  }
  WhereMemoryAllows(options_.on_settled);
}

absl::StatusOr<const Repository::Entry*> Repository::FindEntry(absl::string_view name,
                                                               absl::string_view version) const {
  auto found = models_.find(std::string(name));
  if (found == models_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no model \"", name, "\""));
  }
  const Versions& versions = found->second;
  if (version.empty()) {
    // The newest that is ready; if none is, the newest says why.
    for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
      if (it->second.state == ModelState::kReady) return &it->second;
    }
    return &versions.rbegin()->second;
  }
  int64_t number = 0;
  auto it = absl::SimpleAtoi(version, &number) ? versions.find(number) : versions.end();
  if (it == versions.end() || it->second.version->version != std::string(version)) {
    return absl::NotFoundError(
        absl::StrCat("model \"", name, "\" has no version \"", version, "\"; served are ",
                     absl::StrJoin(versions, ", ", [](std::string* out, const auto& entry) {
                       absl::StrAppend(out, entry.first);
                     })));
  }
  return &it->second;
}

absl::StatusOr<Repository::Found> Repository::Find(absl::string_view name,
                                                   absl::string_view version) const {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const Entry* entry, FindEntry(name, version));
  const std::string who = absl::StrCat("model \"", name, "\" version ",
                                       entry->version->number == 0 ? "?" : entry->version->version);
  switch (entry->state) {
    case ModelState::kReady:
      return Found{entry->version, entry->servable};
    case ModelState::kLoading:
      return absl::UnavailableError(absl::StrCat(who, " is loading"));
    case ModelState::kUnavailable:
      break;
  }
  return absl::UnavailableError(absl::StrCat(who, " was not loaded: ", entry->why.message()));
}

std::shared_ptr<ModelVersion> Repository::FindListed(absl::string_view name,
                                                     absl::string_view version) const {
  MutexLock lock(mutex_);
  auto entry = FindEntry(name, version);
  return entry.ok() ? (*entry)->version : nullptr;
}

std::vector<Repository::Listed> Repository::List() const {
  std::vector<Listed> list;
  MutexLock lock(mutex_);
  for (const auto& [name, versions] : models_) {
    for (const auto& [number, entry] : versions) {
      list.push_back({entry.version, entry.state, entry.why, entry.servable});
    }
  }
  return list;
}

}  // namespace reprise
