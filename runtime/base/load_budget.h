// LoadBudget: limits on the objects and the time of loading one model, for any file.
//
// A file of a kilobyte can ask for a billion nodes (functions that call functions twice), for
// gigabytes of constants, or for hours. Everything that a load makes is counted before it is
// allocated, and the time is the processor time of the loading thread alone, so that concurrent
// traffic does not shorten it. A load that exceeds the budget fails with RESOURCE_EXHAUSTED, which
// names the amount, its purpose, and the limit; the limits grow with the file.
//
// Threads: only the thread that made it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/cpu_clock.h"

namespace reprise {

class LoadBudget {
 public:
  struct Limits {
    int64_t nodes = 0;
    int64_t bytes = 0;   // nodes and constants that are made; the file's own bytes do not count
    int64_t cpu_ns = 0;  // import, passes and axes together
  };
  // Returns the limits for a file of `file_bytes`, weights included.
  static Limits LimitsFor(int64_t file_bytes) {
    constexpr int64_t kMegabyte = 1 << 20, kSecond = 1'000'000'000;
    // No node of a file takes fewer bytes than these.
    constexpr int64_t kLeastBytesOfNode = 8;
    return {.nodes = 20'000 + file_bytes / kLeastBytesOfNode,
            .bytes = 256 * kMegabyte + 4 * file_bytes,
            .cpu_ns = 4 * kSecond + file_bytes / kMegabyte * kSecond};
  }

  explicit LoadBudget(const Limits& limits, int64_t file_bytes = 0)
      : limits_(limits), file_bytes_(file_bytes), start_ns_(ThreadCpuClock().NowNs()) {}
  explicit LoadBudget(int64_t file_bytes) : LoadBudget(LimitsFor(file_bytes), file_bytes) {}

  const Limits& limits() const { return limits_; }
  // Returns the bytes that may still be made.
  int64_t bytes_left() const { return std::max<int64_t>(limits_.bytes - bytes_, 0); }

  // Counts a node of that many bytes, made by `who`. Checks the time as well.
  absl::Status TakeNode(int64_t bytes, absl::string_view who) {
    if (++nodes_ > limits_.nodes) return Exceeded(who, "nodes", nodes_, limits_.nodes);
    return TakeBytes(bytes, who);
  }
  absl::Status TakeBytes(int64_t bytes, absl::string_view who) {
    if (bytes > limits_.bytes - bytes_) {
      int64_t taken = 0;
      if (__builtin_add_overflow(bytes_, bytes, &taken)) taken = INT64_MAX;
      return Exceeded(who, "bytes", taken, limits_.bytes);
    }
    bytes_ += bytes;
    return CheckTime(who);
  }
  absl::Status CheckTime(absl::string_view who) const {
    const int64_t taken_ns = ThreadCpuClock().NowNs() - start_ns_;
    if (taken_ns <= limits_.cpu_ns) return absl::OkStatus();
    constexpr int64_t kMillisecond = 1'000'000;
    return Exceeded(who, "ms of a core", taken_ns / kMillisecond, limits_.cpu_ns / kMillisecond);
  }

 private:
  absl::Status Exceeded(absl::string_view who, absl::string_view what, int64_t taken,
                        int64_t limit) const {
    return absl::ResourceExhaustedError(absl::StrCat(
        who, ": loading the model takes more than ", limit, " ", what, " (", taken, " by now)",
        file_bytes_ > 0 ? absl::StrCat(", the limit for a file of ", file_bytes_, " bytes") : ""));
  }

  const Limits limits_;
  const int64_t file_bytes_;
  const int64_t start_ns_;
  int64_t nodes_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace reprise
