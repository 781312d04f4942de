// NewShapes: which request of a model brought which shape for the first time, and where.
//
// Sizes of inputs, and the shapes that data decide at the nodes that a model is cut at. The first
// are kept; the counts tell when there were more.
//
// Threads: all methods from any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/types/request.h"

namespace reprise {

struct NewShape {
  int64_t step = 0;  // the request's number, from 1 on
  std::chrono::system_clock::time_point time;
  std::string request_id;  // the client's; may be empty
  // The inputs' sizes, one an axis, and how the request was served; empty for a node.
  std::vector<int64_t> sizes;
  CaptureOutcome outcome = CaptureOutcome::kReplayed;
  std::string bucket;
  // The node at a cut; empty for inputs.
  std::string node, op;
  std::string made;  // "indices: i64[2, 7]"
};

class NewShapes {
 public:
  static constexpr size_t kMaxKept = 256;
  static constexpr size_t kMaxSeen = 65536;

  // Counts a request that was answered. `sizes`: one an axis, then the values that decide shapes.
  void OnRequest(absl::Span<const int64_t> sizes, CaptureOutcome outcome, absl::string_view bucket,
                 absl::string_view request_id);
  // Notes that `node`, at a cut, made `value` in this shape for a request that is not answered yet.
  void OnNode(absl::string_view op, absl::string_view node, absl::string_view value,
              absl::Span<const int64_t> shape, absl::string_view request_id);

  struct Report {
    int64_t steps = 0;             // requests
    int64_t recompiled = 0;        // requests that brought a new shape, without the first
    std::vector<NewShape> shapes;  // the oldest first
  };
  Report Snapshot() const;

 private:
  void Keep(NewShape shape) REQUIRES(mutex_);

  std::atomic<int64_t> steps_{0};
  mutable Mutex mutex_;
  HashSet<uint64_t> seen_ GUARDED_BY(mutex_);  // hashes
  std::vector<NewShape> kept_ GUARDED_BY(mutex_);
  int64_t recompiled_ GUARDED_BY(mutex_) = 0;
  int64_t last_step_ GUARDED_BY(mutex_) = 0;  // the last request that brought a new shape
};

}  // namespace reprise
