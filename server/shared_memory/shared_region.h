// SharedRegion: a range of an object of POSIX shared memory that a client has made.
//
// The object is never mapped. Its client may cut it at any time, and access past the cut is then
// an error of the request. The object stays open until the region goes, also where its client
// has removed its name.
//
// Threads: all methods from any thread. A client that writes while the server reads causes its
// own race. Errors: they name the region and its key.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise {

struct RegionInfo {
  std::string name;    // the client's word for it
  std::string key;     // the object's, as shm_open takes it: "/frames" or "frames"
  int64_t offset = 0;  // bytes of the object in front of the region
  int64_t bytes = 0;
};

class SharedRegion {
 public:
  // Errors: INVALID_ARGUMENT for a key that is none, an object that is smaller than the region, a
  // region without bytes; NOT_FOUND for an object that is not there; PERMISSION_DENIED.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Open(RegionInfo info);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  const RegionInfo& info() const { return info_; }

  // INVALID_ARGUMENT where `bytes` bytes from `offset` on are not within the region.
  absl::Status CheckRange(int64_t offset, int64_t bytes) const;

  // Fills `bytes` from `offset` of the region on. Errors: as CheckRange; FAILED_PRECONDITION where
  // the client has cut the object.
  absl::Status Read(int64_t offset, absl::Span<char> bytes) const;
  // Writes `bytes` there, with the same errors; RESOURCE_EXHAUSTED where no page is left for them.
  absl::Status Write(int64_t offset, absl::string_view bytes) const;

 private:
  SharedRegion(RegionInfo info, int descriptor) : info_(std::move(info)), descriptor_(descriptor) {}
  // Returns the bytes that the object has now; an error where it cannot be asked.
  absl::StatusOr<int64_t> ObjectBytes() const;
  absl::Status Cut(int64_t end, int64_t there) const;

  const RegionInfo info_;
  const int descriptor_;
};

}  // namespace reprise
