#include "server/shared_memory/shared_regions.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr size_t kMostNameBytes = 4096;
constexpr int kMostShown = 8;  // names in an error

}  // namespace

absl::Status SharedRegions::Register(RegionInfo info) {
  if (info.name.empty() || info.name.size() > kMostNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the name of a shared memory region has ",
                                                   info.name.size(), " bytes, it has 1 to ",
                                                   kMostNameBytes));
  }
  std::string name = info.name;
  MutexLock lock(mutex_);
  if (const auto taken = regions_.find(name); taken != regions_.end()) {
    return absl::AlreadyExistsError(absl::StrCat("shared memory region ", QuotedText(name),
                                                 " is registered already, with key ",
                                                 QuotedText(taken->second->info().key)));
  }
  if (regions_.size() >= kMostRegions) {
    return absl::ResourceExhaustedError(absl::StrCat(
        regions_.size(), " shared memory regions are registered, the most is ", kMostRegions));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, SharedRegion::Open(std::move(info)));
  regions_.emplace(std::move(name), std::move(region));
  return absl::OkStatus();
}

void SharedRegions::Unregister(const std::string& name) {
  MutexLock lock(mutex_);
  regions_.erase(name);
}

void SharedRegions::UnregisterAll() {
  MutexLock lock(mutex_);
  regions_.clear();
}

absl::StatusOr<std::shared_ptr<const SharedRegion>> SharedRegions::Find(
    const std::string& name) const {
  MutexLock lock(mutex_);
  if (const auto found = regions_.find(name); found != regions_.end()) return found->second;
  std::string known;
  int left = kMostShown;
  for (const auto& [other, region] : regions_) {
    if (left-- == 0) {
      absl::StrAppend(&known, ", ...");
      break;
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ", ShownText(other));
  }
  return absl::NotFoundError(
      absl::StrCat("shared memory region ", QuotedText(name),
                   " is not registered; registered: ", known.empty() ? "none" : known));
}

absl::StatusOr<std::vector<RegionInfo>> SharedRegions::List(const std::string& name) const {
  std::vector<RegionInfo> infos;
  if (!name.empty()) {
    ASSIGN_OR_RETURN(const auto region, Find(name));
    infos.push_back(region->info());
    return infos;
  }
  MutexLock lock(mutex_);
  for (const auto& [other, region] : regions_) infos.push_back(region->info());
  return infos;
}

}  // namespace reprise
