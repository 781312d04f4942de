// MissReport: the recipes that were captured while the server served, why, their cost and their
// waiters.
//
// The last records are kept, each with a number that only grows, so that a reader can ask for the
// records since the last one it saw.
//
// Threads: all methods from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/engine/types/observer.h"
#include "runtime/recipe/ready_index.h"

namespace reprise {

// One field in which the nearest recipe that existed differs from the one that was needed.
struct KeyDifference {
  std::string field;  // an axis ("sequence"), "precision", "packing", "device", "compiler", ...
  std::string wanted;
  std::string had;
};

struct CaptureWaiter {
  std::string request_id;  // the client's; may be empty
  int64_t waited_ns = 0;
};

// One capture.
struct MissRecord {
  int64_t sequence = 0;  // set by the report
  std::chrono::system_clock::time_point time;
  ModelId model;
  std::string bucket;   // "b1_s128", "exact"
  std::string binding;  // "batch=1,sequence=128"
  std::string recipe;   // hex key
  std::string section;  // which section of a model cut at data; empty: the part before the cuts
  CompileReason reason = CompileReason::kNewShape;
  std::string cause;    // the difference of the graph, where that has changed; may be empty
  bool behind = false;  // no request waited when it began

  std::vector<std::string> inputs, outputs;  // the recipe's: "x: f32[8, 128]"
  std::string nearest;                       // bucket or binding of it; empty: there was none
  std::vector<KeyDifference> differences;    // key fields that differ from the nearest

  CapturePhases phases;
  // How much more memory the process had after each step than before it; other threads count too.
  int64_t compile_rss_bytes = 0;
  int64_t prepare_rss_bytes = 0;
  int64_t prime_rss_bytes = 0;
  int64_t recipe_bytes = 0;  // bytes that the cache counts for it
  int64_t frame_bytes = 0;   // bytes that a stream must hold to replay it

  std::vector<CaptureWaiter> waiters;  // the first kMaxWaiters
  int64_t num_waiters = 0;
  int64_t longest_wait_ns = 0;
  std::string suggestion;  // the line of configuration that would have avoided it

  static constexpr size_t kMaxWaiters = 16;
  void AddWaiter(std::string request_id, int64_t waited_ns);
};

// Fills in the part of a record about the recipe itself: its tensors and its memory.
void DescribeRecipe(const Recipe& recipe, MissRecord& record);

// Returns one line for the log: "captured b1_s128 of minilm (new_shape) in 31.2 ms; ...".
std::string MissText(const MissRecord& record);

// Returns the recipe of `ready` that is most like `want`, by the factors between the sizes; null if
// there is none.
std::shared_ptr<const Recipe> NearestRecipe(const RecipeList& ready, const RecipeKey& want);
// `label_of`: the users' name of the axis of a symbol.
std::vector<KeyDifference> DifferencesOf(
    const RecipeKey& want, const RecipeKey& have,
    const std::function<std::string(const std::string& symbol)>& label_of);

class MissReport {
 public:
  explicit MissReport(size_t capacity = 1024) : capacity_(capacity) {}

  // Returns the record's number.
  int64_t Add(MissRecord record);
  // Returns records with a number above `after`, oldest first, of one model or of all (`model`
  // empty).
  std::vector<MissRecord> Since(int64_t after, const std::string& model = "") const;
  int64_t last_sequence() const;

 private:
  const size_t capacity_;
  mutable Mutex mutex_;
  std::deque<MissRecord> records_ GUARDED_BY(mutex_);
  int64_t last_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
