#include "server/repository/model_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {

std::shared_ptr<ModelVersion> ModelTable::MakeVersion(const std::string& name, int64_t number,
                                                      bool asked_for) {
  auto version = std::make_shared<ModelVersion>();
  version->name = name;
  version->number = number;
  version->version = number == 0 ? "" : absl::StrCat(number);
  if (asked_for) version->events = events_.ForModel(name, version->version);
  version->warmup = std::make_shared<WarmupProgress>(
      [events = version->events.get()](const WarmupProgress::State& state) {
        if (events != nullptr) events->OnWarmup(state.wanted, state.done);
      });
  return version;
}

ModelTable::Entry& ModelTable::AddEntry(const std::string& name, int64_t number, bool asked_for) {
  Entry& entry = models_[name][number];
  if (entry.version == nullptr) {
    if (auto node = dropped_.extract({name, number})) entry.version = std::move(node.mapped());
  }
  // Versions are shared and read without the lock: one that has no events stays without.
  if (entry.version == nullptr || (asked_for && entry.version->events == nullptr)) {
    entry.version = MakeVersion(name, number, asked_for);
  }
  return entry;
}

std::shared_ptr<ModelVersion> ModelTable::SetLoading(const std::string& name, int64_t number) {
  std::shared_ptr<ModelVersion> version;
  {
    MutexLock lock(mutex_);
    Entry& entry = AddEntry(name, number, /*asked_for=*/true);
    if (entry.servable == nullptr) entry.state = ModelState::kLoading;
    version = entry.version;
  }
  WhereMemoryAllows([&] { version->events->OnLoading(); });
  WhereMemoryAllows(on_change_);
  return version;
}

std::shared_ptr<const Servable> ModelTable::SetLoaded(
    const ModelVersion& version, const absl::StatusOr<std::shared_ptr<const Servable>>& loaded) {
  // Told before it is visible: a client that sees a ready model finds its series.
  if (loaded.ok()) {
    WhereMemoryAllows([&] { version.events->OnState(ModelState::kReady, absl::OkStatus()); });
  }
  bool kept = false;
  std::shared_ptr<const Servable> before;
  {
    MutexLock lock(mutex_);
    Entry& entry = models_[version.name][version.number];
    kept = !loaded.ok() && entry.servable != nullptr;
    if (kept) {
      entry.why = absl::Status(loaded.status().code(),
                               absl::StrCat("not reloaded, the former version still serves: ",
                                            loaded.status().message()));
    } else {
      entry.state = loaded.ok() ? ModelState::kReady : ModelState::kUnavailable;
      entry.why = loaded.status();
    }
    if (loaded.ok()) before = std::exchange(entry.servable, *loaded);
  }
  WhereMemoryAllows([&] {
    if (kept) {
      version.events->OnKept(loaded.status());
    } else if (!loaded.ok()) {
      version.events->OnState(ModelState::kUnavailable, loaded.status());
    }
    on_change_();
  });
  return before;
}

void ModelTable::SetRefused(const std::string& name, int64_t number, const absl::Status& why) {
  std::shared_ptr<ModelVersion> version;
  {
    MutexLock lock(mutex_);
    Entry& entry = AddEntry(name, number, /*asked_for=*/true);
    entry.state = ModelState::kUnavailable;
    entry.why = why;
    version = entry.version;
  }
  version->events->OnState(ModelState::kUnavailable, why);
  on_change_();
}

void ModelTable::SetWaiting(const std::string& name, int64_t number) {
  MutexLock lock(mutex_);
  AddEntry(name, number, /*asked_for=*/false).state = ModelState::kUnloaded;
}

std::shared_ptr<const Servable> ModelTable::SetUnloaded(const std::string& name, int64_t number) {
  std::shared_ptr<const Servable> before;
  std::shared_ptr<ModelVersion> version;
  {
    MutexLock lock(mutex_);
    Entry& entry = AddEntry(name, number, /*asked_for=*/true);
    entry.state = ModelState::kUnloaded;
    entry.why = absl::OkStatus();
    before = std::exchange(entry.servable, nullptr);
    version = entry.version;
    const Versions& versions = models_[name];
    if (std::none_of(versions.begin(), versions.end(),
                     [](const auto& one) { return one.second.servable != nullptr; })) {
      complete_.erase(name);
    }
  }
  WhereMemoryAllows([&] {
    version->events->OnState(ModelState::kUnloaded, absl::OkStatus());
    on_change_();
  });
  return before;
}

void ModelTable::DropUnserved(const std::string& name) {
  std::vector<std::shared_ptr<ModelVersion>> dropped;
  {
    MutexLock lock(mutex_);
    const auto found = models_.find(name);
    if (found == models_.end()) return;
    std::erase_if(found->second, [&](auto& entry) {
      if (entry.second.servable != nullptr) return false;
      dropped.push_back(entry.second.version);
      dropped_.emplace(std::pair(name, entry.first), std::move(entry.second.version));
      return true;
    });
    if (found->second.empty()) {
      models_.erase(found);
      complete_.erase(name);
    }
  }
  for (const auto& version : dropped) {
    if (version->events != nullptr) version->events->OnDropped();
  }
  on_change_();
}

void ModelTable::SetFailedUnloaded(const std::string& name) {
  std::vector<std::shared_ptr<ModelVersion>> changed;
  {
    MutexLock lock(mutex_);
    const auto found = models_.find(name);
    if (found == models_.end()) return;
    for (auto& [number, entry] : found->second) {
      if (entry.state != ModelState::kUnavailable) continue;
      entry.state = ModelState::kUnloaded;
      entry.why = absl::OkStatus();
      changed.push_back(entry.version);
    }
  }
  for (const auto& version : changed) {
    version->events->OnState(ModelState::kUnloaded, absl::OkStatus());
  }
  on_change_();
}

void ModelTable::SetComplete(const std::string& name) {
  {
    MutexLock lock(mutex_);
    complete_.insert(name);
  }
  on_change_();
}

std::vector<int64_t> ModelTable::Ready(const std::string& name) const {
  std::vector<int64_t> numbers;
  MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return numbers;
  for (const auto& [number, entry] : found->second) {
    if (entry.state == ModelState::kReady) numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<const ModelTable::Entry*> ModelTable::FindEntry(absl::string_view name,
                                                               absl::string_view version) const {
  auto found = models_.find(std::string(name));
  if (found == models_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no model ", QuotedText(name)));
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
    return absl::NotFoundError(absl::StrCat(
        "model ", QuotedText(name), " has no version ", QuotedText(version), "; served are ",
        absl::StrJoin(versions, ", ", [](std::string* out, const auto& entry) {
          absl::StrAppend(out, entry.first);
        })));
  }
  return &it->second;
}

absl::StatusOr<ModelTable::Found> ModelTable::Find(absl::string_view name,
                                                   absl::string_view version) const {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const Entry* entry, FindEntry(name, version));
  const std::string who = absl::StrCat("model ", QuotedText(name), " version ",
                                       entry->version->number == 0 ? "?" : entry->version->version);
  switch (entry->state) {
    case ModelState::kReady:
      return Found{entry->version, entry->servable};
    case ModelState::kLoading:
      return absl::UnavailableError(absl::StrCat(who, " is loading"));
    case ModelState::kUnloaded:
      return absl::UnavailableError(absl::StrCat(who, " is not loaded"));
    case ModelState::kUnavailable:
      break;
  }
  return absl::UnavailableError(absl::StrCat(who, " was not loaded: ", entry->why.message()));
}

std::shared_ptr<ModelVersion> ModelTable::FindListed(absl::string_view name,
                                                     absl::string_view version) const {
  MutexLock lock(mutex_);
  auto entry = FindEntry(name, version);
  return entry.ok() ? (*entry)->version : nullptr;
}

absl::Status ModelTable::LookAtFiles(const ModelVersion& version, const Servable& servable) {
  if (servable.model == nullptr) return absl::OkStatus();
  absl::Status intact = servable.model->LookAtFiles();
  if (!intact.ok() && !servable.damaged.exchange(true)) {
    WhereMemoryAllows([&] { version.events->OnDamaged(intact); });
  }
  return intact;
}

absl::Status ModelTable::Answers(absl::string_view name, absl::string_view version) const {
  ASSIGN_OR_RETURN(const Found found, Find(name, version));
  RETURN_IF_ERROR(LookAtFiles(*found.version, *found.servable));
  if (const absl::Status ranks = RanksOf(*found.servable); !ranks.ok()) {
    return absl::Status(ranks.code(), absl::StrCat("model '", name, "': ", ranks.message()));
  }
  // It becomes ready once it is warmed up.
  if (!CanAnswer(*found.servable)) {
    return absl::UnavailableError(absl::StrCat(
        "model '", name, "' is frozen and has no recipe, so that nothing can serve it: name sizes ",
        "to capture in reprise.warmup, or run `reprise warmup ", name, "`"));
  }
  return absl::OkStatus();
}

std::vector<ModelTable::Listed> ModelTable::List() const {
  std::vector<Listed> list;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, versions] : models_) {
      for (const auto& [number, entry] : versions) {
        list.push_back(
            {entry.version, entry.state, entry.why, entry.servable, complete_.contains(name)});
      }
    }
  }
  for (Listed& listed : list) {
    if (listed.servable == nullptr) continue;
    const absl::Status intact = LookAtFiles(*listed.version, *listed.servable);
    if (intact.ok()) continue;
    listed.why = intact;
    listed.state = ModelState::kUnavailable;
    listed.servable = nullptr;
  }
  return list;
}

}  // namespace reprise
