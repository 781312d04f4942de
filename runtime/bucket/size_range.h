// SizeRange: the sizes that requests may have along an axis, as people write them:
//
//   min 8, max 512, multiple 8, usual 128
//
// Each part may be left out. The usual size is no bound: it is captured before all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bucket/boundaries.h"

namespace reprise {

struct SizeRange {
  int64_t least = 1;
  int64_t most = kLargestSize;
  int64_t multiple = 1;  // sizes are multiples of it
  std::optional<int64_t> usual;

  bool Allows(int64_t size) const { return size >= least && size <= most && size % multiple == 0; }
  // Returns the least and the largest size that it allows.
  int64_t First() const { return (least + multiple - 1) / multiple * multiple; }
  int64_t Last() const { return most / multiple * multiple; }
  // Returns "8 to 512 in multiples of 8".
  std::string Text() const;
  // Returns `sizes`, ascending buckets, cut to the range: multiples from the first to the last
  // size, with the usual one, and the last where there is a limit.
  std::vector<int64_t> Cut(const std::vector<int64_t>& sizes) const;
};

// Returns INVALID_ARGUMENT naming the part of `text` that is wrong, or both sizes that disagree.
absl::StatusOr<SizeRange> ParseSizeRange(absl::string_view text);

}  // namespace reprise
