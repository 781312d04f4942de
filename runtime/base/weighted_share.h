// WeightedShare: the use that one of several has had of what they share by their weights.
// SharedUse: that use, as those that are served compare it.
//
// The one that has had the least, by its weight, is next. One that comes back begins with the use
// of the one that was served last, so that idle ones save up nothing.
//
// Threads: not safe; whoever serves guards them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace reprise {

struct WeightedShare {
  double weight = 1;
  double had = 0;       // divided by the weight
  int64_t present = 0;  // how much of it waits or is served
};

class SharedUse {
 public:
  // Something of `share` comes to wait.
  void Enter(WeightedShare& share) {
    if (share.present++ == 0) share.had = std::max(share.had, served_);
  }
  void Leave(WeightedShare& share) { --share.present; }
  // Adds `amount` to the use of `share`.
  void Serve(WeightedShare& share, int64_t amount) {
    served_ = std::max(served_, share.had);
    share.had += static_cast<double>(amount) / share.weight;
  }

 private:
  double served_ = 0;
};

}  // namespace reprise
