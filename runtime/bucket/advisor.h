// BucketAdvisor: watches the lengths of one model's requests and says which buckets would serve
// them at less cost, once a change pays.
//
// The traffic that it has seen fades, and is forgotten at once when the distribution changes. A
// change is advised only where three things hold, so that noise moves nothing:
// - it saves at least 2% of the time of requests that it was not solved on: boundaries found on one
//   half of the requests are judged on the other half, both ways;
// - that saving is four times its standard error;
// - at the present rate of requests the captures are paid back within the time that is set.
// The largest bucket of an axis stays: the model takes the same sizes before and after a change. It
// is one of the K of `auto:K` that requests fall into; where a smaller default holds all of them,
// and with percentiles, it is added to the K. It grows where more than one request in a hundred is
// larger, and the model takes that: images and sounds have sizes that no default foresees.
//
// Numbers only; the caller gives the time. Threads: not safe; the caller guards it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/bucket/boundary_choice.h"
#include "runtime/bucket/cost_model.h"
#include "runtime/bucket/histogram.h"

namespace reprise {

struct AdvisorOptions {
  std::vector<AdvisorAxis> axes;  // all but the batch
  SizeMeasure measure;            // elements of a row, over them
  int64_t first_after = 512;      // requests before the first advice
  int64_t consider_every = 128;   // requests between two looks
  double half_life = 1024;        // requests after which a request counts half
  int64_t payback_ns = int64_t{600} * 1'000'000'000;
  TakesSize takes;
};

// A recipe that a set of buckets wants ready before it is in force.
struct WantedRecipe {
  static constexpr int64_t kMostRows = 0;
  int64_t batch = 1;           // bucket of rows; kMostRows: the largest that is allowed
  std::vector<int64_t> sizes;  // one an axis
  double share = 0;            // its part of the requests
};

struct BucketAdvice {
  BoundarySets boundaries;
  double saving = 0;          // share of the computing time, on requests it was not solved on
  double expected_waste = 0;  // share of the computed elements that will be padding
  double payback_s = 0;       // time that pays the captures back
  // The most wanted first; then, of buckets that stay, the ones that serve any number of rows: most
  // of them are there already.
  std::vector<WantedRecipe> captures;
};

// The knowledge of an advisor as numbers, which would be lost at a restart.
struct LearntBuckets {
  BoundarySets start;       // the rules' first sets
  BoundarySets boundaries;  // sets in force
  double expected_waste = 0;
  std::vector<WeightedSizes> halves[2];             // remembered requests
  std::vector<std::pair<int64_t, double>> batches;  // replays by bucket of rows
  std::vector<ReplayCost::Sample> costs;
};

class BucketAdvisor {
 public:
  explicit BucketAdvisor(AdvisorOptions options);

  // Returns whether some axis learns: otherwise nothing is ever advised.
  bool learns() const { return learns_; }
  const std::vector<AdvisorAxis>& axes() const { return options_.axes; }
  int64_t seen() const { return seen_; }  // requests

  // Records a request, with its sizes by axis and its rows.
  void RecordRequest(absl::Span<const int64_t> sizes, int64_t rows, int64_t now_ns);
  // Records a replay: rows of requests, bucket of rows, padded elements of a row.
  void RecordReplay(int64_t rows, int64_t batch_bucket, int64_t row_size, int64_t ns);
  void RecordCapture(int64_t ns) { cost_.RecordCapture(ns); }

  // Returns whether enough was seen since the last look that another one may find something.
  bool due() const { return learns_ && seen_ >= next_look_; }
  // Looks for a better set, and returns it if a change pays. In two halves, so that the slow one
  // may run on a copy while the original goes on recording.
  std::optional<BucketAdvice> Consider(int64_t now_ns) {
    return BeginLook() ? Advise(now_ns) : std::nullopt;
  }
  // Decides, as the quick half, how much of the past is to be forgotten. False: the traffic is
  // changing, and advice must wait until it has.
  bool BeginLook();
  // Computes the advice, as the slow half: takes up to some tens of milliseconds.
  std::optional<BucketAdvice> Advise(int64_t now_ns) const;
  // Notes that the set is in force from now on.
  void Adopt(const BoundarySets& boundaries);

  // Returns the knowledge so far, and restores it in an advisor that has seen nothing yet.
  // Boundaries are taken over where the options are the same and they could have been solved for.
  LearntBuckets Learnt() const;
  void Restore(const LearntBuckets& learnt);

  // A summary of its knowledge, for people.
  struct State {
    BoundarySets boundaries;    // sets in force
    double expected_waste = 0;  // the waste when they came into force; of the first ones: so far
    double current_waste = 0;   // the waste on the requests that are remembered now
    double best_waste = 0;      // the waste that the solver reaches on it
    double drift = 0;           // distance to the distribution that the set was solved for
    int64_t requests = 0;       // seen since the start
    int64_t changes = 0;
    double requests_per_s = 0;
  };
  State Look() const;
  const ReplayCost& cost() const { return cost_; }
  // Returns the distance of the last requests to the distribution that the set in force was solved
  // for; until one was solved, 0. Recomputed at each look.
  double drift() const { return drift_; }
  double expected_waste() const { return expected_waste_; }
  // Returns the remembered requests by their sizes.
  std::vector<WeightedSizes> Remembered() const;

 private:
  struct Seen {
    std::vector<int64_t> sizes;
    int64_t rows;
    int64_t at_ns;
  };
  // Returns whether the cost of larger sizes, or of buckets for them, is of interest.
  bool MayGrow(size_t axis) const;
  // Returns whether buckets hold these sizes, or may hold them one day.
  bool Counts(absl::Span<const int64_t> sizes) const;
  // Returns whether this advisor could have solved for these boundaries.
  bool Sound(const BoundarySets& boundaries) const;
  void Remember(const Seen& seen);
  void ForgetAllButRecent();
  // Returns whether the distribution changed, or did and is being waited for.
  bool Drifting();
  BoundaryChoice Choice() const {
    return {options_.axes, options_.takes, cost_, boundaries_, options_.measure};
  }
  std::vector<WantedRecipe> Captures(absl::Span<const WeightedSizes> seen,
                                     const BoundarySets& sets) const;
  double RequestsPerSecond(int64_t now_ns) const;

  // Constant after construction.
  const AdvisorOptions options_;
  bool learns_ = false;

  BoundarySets boundaries_;
  ReplayCost cost_;
  // Each request is in one of them, so that the result of one half can be judged on the other.
  // Weights are rows.
  SizeHistogram halves_[2];
  std::deque<Seen> recent_;
  std::map<int64_t, double> batches_;                  // replays by bucket of rows, fading
  std::vector<std::vector<WeightedSize>> solved_for_;  // one list an axis
  int64_t seen_ = 0;
  int64_t next_look_;
  int64_t beyond_ = 0;        // requests larger than the largest bucket, since the set is in force
  int64_t settle_until_ = 0;  // seen_ at which a drift is over; 0: none
  int64_t changes_ = 0;
  double drift_ = 0;
  double expected_waste_ = 0;
};

}  // namespace reprise
