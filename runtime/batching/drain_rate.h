// DrainRate: how many tokens leave a queue in a second while requests wait in it.
//
// Two measurements. While something always waits, the time from one batch that is taken to the next
// is what its tokens took, whatever else the streams do: other models, captures, rejects. Before
// that ever happened, the time that batches took on their streams stands for it.
//
// Threads: not safe; whoever owns it guards it.
#pragma once

#include <cstdint>

namespace reprise {

class DrainRate {
 public:
  // A batch of `tokens` was taken; `more_wait`: others wait on.
  void OnTake(int64_t now_ns, int64_t tokens, bool more_wait);
  // Nothing waits any more that could be taken.
  void OnEmpty() { backlogged_ = false; }
  // A batch has run for `run_ns` on one of `streams` that may run at the same time.
  void OnFinished(int64_t tokens, int64_t run_ns, int64_t streams);

  // 0: nothing is known yet.
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
