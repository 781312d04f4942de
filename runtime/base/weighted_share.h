// WeightedShare: how much one of several users has had of a resource that they share by their
// weights. SharedUse: that use, in a form in which the users are compared.
//
// The user with the least use, by its weight, is next. One that comes back begins with the use of
// the one that was served last, so that idle ones save up nothing.
//
// Threads: not safe; the server's mutex guards them.
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
  // Notes that an item of `share` begins to wait.
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
