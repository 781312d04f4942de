// DrainRate: how many tokens leave a queue in a second while requests wait in it.
//
// Two measurements. While something always waits, the time from one taken batch to the next is the
// time that its tokens took, including other work of the streams: other models, captures, rejects.
// Before that ever happened, the time that batches took on their streams is used instead.
//
// Threads: not safe; its owner guards it.
#pragma once

#include <cstdint>

namespace reprise {

class DrainRate {
 public:
  // Notes that a batch of `tokens` was taken; `more_wait`: others still wait.
  void OnTake(int64_t now_ns, int64_t tokens, bool more_wait);
  // Notes that no item waits any more that could be taken.
  void OnEmpty() { backlogged_ = false; }
  // Notes that a batch has run for `run_ns` on one of `streams` that may run at the same time.
  void OnFinished(int64_t tokens, int64_t run_ns, int64_t streams);

  // Returns 0 while nothing is known yet.
  double tokens_per_second() const;

 private:
  // Sums over about the last seconds of it.
  struct Sums {
    void Add(double tokens, double seconds);
    double tokens = 0;
    double seconds = 0;
  };

  Sums backlog_;
  Sums streams_;
  int64_t last_take_ns_ = 0;
  bool backlogged_ = false;  // something has waited ever since the last batch was taken
};

}  // namespace reprise
