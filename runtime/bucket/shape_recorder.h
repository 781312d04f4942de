// ShapeRecorder: which shapes arrive, how often, and how that changes.
//
// A shape is a list of numbers, one a column; the caller knows the meaning of the columns. Counts
// are kept since the start and in windows of equal length: the one that fills, the last full one
// and the one before it. The first two count as recent; the trend compares the last two. The table
// holds 4096 shapes; when more come, the least recently seen ones leave it.
//
// Threads: all methods from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"

namespace reprise {

// How a shape was served when it came.
enum class ShapeService {
  kReady,    // a recipe of its own bucket was ready
  kLarger,   // a larger one was ready
  kOutside,  // no ready recipe could serve it
};

// Counts over some requests.
struct ShapeTally {
  int64_t requests = 0;
  int64_t larger = 0;
  int64_t outside = 0;
  int64_t fresh = 0;  // requests that brought a shape never seen before
};

struct ShapeRow {
  std::vector<int64_t> sizes;  // one a column
  ShapeTally all;
  int64_t recent = 0, last = 0, before = 0;  // requests
};

struct ShapeTable {
  std::vector<ShapeRow> rows;  // the most frequent first, then in order of sizes
  ShapeTally all, recent, last, before;
  int64_t distinct = 0;        // shapes seen
  bool distinct_more = false;  // there are more, which are counted together
  // Returns the requests of shapes that have left the table.
  int64_t unlisted() const;
};

class ShapeRecorder {
 public:
  static constexpr size_t kMaxShapes = 4096;
  static constexpr size_t kMaxDistinct = 65536;

  // `window` in requests.
  explicit ShapeRecorder(int64_t window = 1024) : window_(window) {}

  // Records `requests` of one shape; they come into one window together.
  void Record(absl::Span<const int64_t> sizes, ShapeService service, int64_t requests = 1);

  ShapeTable Snapshot() const;

 private:
  struct Entry {
    ShapeTally all;
    int64_t filling = 0, last = 0, before = 0;
  };
  void Roll() REQUIRES(mutex_);
  void Shrink() REQUIRES(mutex_);

  const int64_t window_;
  mutable Mutex mutex_;
  HashMap<std::vector<int64_t>, Entry> entries_ GUARDED_BY(mutex_);
  HashSet<uint64_t> seen_ GUARDED_BY(mutex_);  // hashes
  ShapeTally all_ GUARDED_BY(mutex_), filling_ GUARDED_BY(mutex_), last_ GUARDED_BY(mutex_),
      before_ GUARDED_BY(mutex_);
};

}  // namespace reprise
