// BucketLearner: the buckets of one model: the set in force, and the evidence of its traffic.
//
// Requests and replays are recorded as they end. Once enough of them came, a look is due: the
// caller that is told so runs it on a thread that no request waits for (see BucketChange), and puts
// a better set in force. A set is never changed, only replaced: plans hold the one that they began
// with.
//
// Threads: all methods from any; none of them waits for a look.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "runtime/bucket/advisor.h"
#include "runtime/bucket/policy.h"
#include "runtime/engine/types/bucket_report.h"

namespace reprise {

class BucketLearner {
 public:
  struct Options {
    BucketMode mode = BucketMode::kApply;
    AdvisorOptions advisor;  // labels of its axes are the labels of `first`
    BucketPolicy first;      // used until something better is known
    // The buckets of the same model before a restart; null: nothing is known.
    const LearntBuckets* learnt = nullptr;
  };
  explicit BucketLearner(Options options);

  // Returns the set in force. Hold the pointer while you read.
  std::shared_ptr<const BucketPolicy> InForce() const;
  // Returns the cost of replays, as far as it is known; refreshed now and then, never changed.
  std::shared_ptr<const ReplayCost> Cost() const;
  // Returns the order of sizes in RecordRequest.
  const std::vector<std::string>& axes() const { return axes_; }

  // Records a request that may be padded, its sizes by axes(), its rows.
  void RecordRequest(absl::Span<const int64_t> sizes, int64_t rows, int64_t now_ns);
  struct Replay {
    int64_t rows = 1;  // rows that requests filled
    int64_t batch_bucket = 1;
    int64_t row_size = 1;  // padded elements of a row
    int64_t valid = 1;     // elements that clients sent
    int64_t ns = 0;
  };
  void RecordReplay(const Replay& replay);
  void RecordCapture(int64_t ns);
  // Returns true the first time for sizes of a replay; false always once very many were seen.
  bool IsNewShape(absl::Span<const int64_t> sizes);

  // Returns true for one caller, who owes EndLook: it is time for a look (of a set that stays: for
  // a report), and no other look is under way.
  bool BeginLook();
  struct Found {
    BucketAdvice advice;
    BucketPolicy policy;  // the set in force with these boundaries
    bool apply = false;   // else it is only shown
    bool news = false;    // it was not shown before
  };
  // Looks for a better set, and returns it if a change pays. Slow.
  std::optional<Found> Look(int64_t now_ns);
  // Puts the set that was found in force from now on.
  void Adopt(const Found& found);
  // Returns whether a look, or the change that it found, is under way.
  bool looking() const;
  // Ends the look. `failed`: a recipe that the set wanted could not be made; none is looked for in
  // a long while.
  void EndLook(bool failed = false);

  BucketReport Report() const;
  // Returns the state that a restart would lose.
  LearntBuckets Learnt() const;

 private:
  // Constant after construction.
  const BucketMode mode_;
  std::vector<std::string> axes_;
  const bool learns_;
  // Guarded.
  mutable Mutex mutex_;
  std::shared_ptr<const BucketPolicy> in_force_ GUARDED_BY(mutex_);
  std::shared_ptr<const ReplayCost> cost_ GUARDED_BY(mutex_);
  BucketAdvisor advisor_ GUARDED_BY(mutex_);
  int64_t replays_ GUARDED_BY(mutex_) = 0;
  int64_t next_report_ GUARDED_BY(mutex_) = 256;  // replays, where the set stays
  double valid_ GUARDED_BY(mutex_) = 0, computed_ GUARDED_BY(mutex_) = 0;  // elements, fading
  bool looking_ GUARDED_BY(mutex_) = false;
  int64_t quiet_until_ GUARDED_BY(mutex_) = 0;  // requests seen before which no look is due
  std::optional<BucketAdvice> suggestion_ GUARDED_BY(mutex_);
  HashSet<uint64_t> shapes_ GUARDED_BY(mutex_);  // hashes of sizes seen
};

}  // namespace reprise
