// Lane: the items of one share in one queue. Share: its use of the streams so far.
//
// The lane whose share has used the least, by its weight, is next. A new share begins with the use
// of the share that was served last, so that idle shares save up nothing.
//
// Threads: not safe; the scheduler guards them with its mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "runtime/batching/work.h"

namespace reprise {

struct Share {
  double weight = 1;
  double had = 0;       // tokens, by its weight
  int64_t waiting = 0;  // items in all queues
};

// The shares of all queues.
class Shares {
 public:
  // Stays where it is.
  Share& Of(uint64_t id, double weight) {
    Share& share = shares_[id];
    share.weight = weight;
    return share;
  }
  // Counts an item of `share` that begins to wait.
  void Enter(Share& share) {
    if (share.waiting++ == 0) share.had = std::max(share.had, served_);
  }
  void Leave(Share& share) { --share.waiting; }
  // Numbers the batches that were taken.
  int64_t NextTurn() { return ++turns_; }
  // Adds `tokens` to the use of `share`.
  void Serve(Share& share, int64_t tokens) {
    served_ = std::max(served_, share.had);
    share.had += static_cast<double>(tokens) / share.weight;
  }

 private:
  std::map<uint64_t, Share> shares_;  // keyed by id
  double served_ = 0;
  int64_t turns_ = 0;
};

template <typename Item>
struct Lane {
  std::list<std::shared_ptr<Item>> items;  // sorted by rank, then by arrival
  Share* share = nullptr;
  uint64_t id = 0;
  std::map<uint64_t, int64_t> tokens_by_priority;  // held ones among them
  int64_t tokens = 0, bytes = 0;                   // held ones among them
  int64_t held = 0, held_tokens = 0;
  int64_t turn = 0;           // when it began a batch, last
  int64_t look_again_ns = 0;  // the next time to look for items that have waited for long

  int64_t depth() const { return static_cast<int64_t>(items.size()) + held; }
};

}  // namespace reprise
