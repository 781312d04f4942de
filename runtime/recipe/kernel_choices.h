// KernelChoices: which of several kernels of a product is the fastest on this machine, as timed.
//
// Questions are KernelOption's: text with everything that an answer depends on. All models share
// them: a product of the same sizes has the same answer. A question without an answer here gets the
// first option.
//
// Threads: all methods from any. Bounded: beyond kMost the oldest answers are forgotten.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/recipe/record_name.h"

namespace reprise {

struct KernelChoice {
  std::string question;
  std::string kernel;
  int64_t ns = 0;        // one run of it, on one thread
  int64_t first_ns = 0;  // one run of the first option

  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

class KernelChoices {
 public:
  static constexpr size_t kMost = 4096;

  // Returns the kernel that is the answer, if it is known.
  std::optional<std::string> Find(const std::string& question) const;
  // Replaces an earlier answer.
  void Set(KernelChoice choice);
  // Returns the choices, the oldest first.
  std::vector<KernelChoice> All() const;

 private:
  struct Answer {
    std::string kernel;
    int64_t ns = 0;
    int64_t first_ns = 0;
  };
  mutable Mutex mutex_;
  HashMap<std::string, Answer> answers_ GUARDED_BY(mutex_);
  std::deque<std::string> order_ GUARDED_BY(mutex_);
};

// Returns the name of the recipe store's record of the choices timed on `device` with the kernels
// of this build.
RecordName ChoicesNameOf(const std::string& device);

std::string EncodeChoices(const std::string& device, const std::vector<KernelChoice>& choices);

// Returns DATA_LOSS for bytes that are no choices; FAILED_PRECONDITION for choices of another
// device or build.
absl::StatusOr<std::vector<KernelChoice>> DecodeChoices(absl::string_view bytes,
                                                        const std::string& device);

}  // namespace reprise
