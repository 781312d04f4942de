// SharedRegions: the regions of shared memory that clients have registered, by name.
//
// A region that is unregistered serves the requests that have it to their end.
//
// Threads: all methods from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "server/shared_memory/shared_region.h"
#include "server/transport/byte_account.h"

namespace reprise {

class SharedRegions {
 public:
  // Each region holds a descriptor.
  static constexpr size_t kMostRegions = 1024;

  // Requests that read regions hold their bytes in `account`.
  explicit SharedRegions(std::shared_ptr<ConnectionBytes> account) : account_(std::move(account)) {}

  // Errors: ALREADY_EXISTS for a name that is taken, RESOURCE_EXHAUSTED for too many regions, and
  // errors of SharedRegion::Open.
  absl::Status Register(RegionInfo info);
  // Forgets a region, if it is there.
  void Unregister(const std::string& name);
  void UnregisterAll();

  // NOT_FOUND names those that are there.
  absl::StatusOr<std::shared_ptr<const SharedRegion>> Find(const std::string& name) const;
  // Returns the region `name`, or all by name where it is empty. Errors: as Find.
  absl::StatusOr<std::vector<RegionInfo>> List(const std::string& name) const;

  const std::shared_ptr<ConnectionBytes>& account() const { return account_; }

 private:
  const std::shared_ptr<ConnectionBytes> account_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const SharedRegion>> regions_ GUARDED_BY(mutex_);
};

}  // namespace reprise
