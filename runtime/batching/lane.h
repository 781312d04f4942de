// Lane: the items of one share in one queue. Shares: the shares of all queues, by tokens.
//
// The lane whose share has had the least, by its weight, is next: see WeightedShare.
//
// Threads: not safe; the scheduler guards them with its mutex.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "runtime/base/weighted_share.h"
#include "runtime/batching/work.h"

namespace reprise {

class Shares {
 public:
  // Returns the share `id`, at an address that stays.
  WeightedShare& Of(uint64_t id, double weight) {
    WeightedShare& share = shares_[id];
    share.weight = weight;
    return share;
  }
  // Returns the number of the next batch that is taken.
  int64_t NextTurn() { return ++turns_; }
  SharedUse& use() { return use_; }

 private:
  std::map<uint64_t, WeightedShare> shares_;  // keyed by id
  SharedUse use_;
  int64_t turns_ = 0;
};

template <typename Item>
struct Lane {
  std::list<std::shared_ptr<Item>> items;  // sorted by rank, then by arrival
  WeightedShare* share = nullptr;
  uint64_t id = 0;
  std::map<uint64_t, int64_t> tokens_by_priority;  // held ones among them
  int64_t tokens = 0, bytes = 0;                   // held ones among them
  int64_t held = 0, held_tokens = 0;
  int64_t turn = 0;           // when it last began a batch
  int64_t look_again_ns = 0;  // the next time to look for items that have waited for long

  int64_t depth() const { return static_cast<int64_t>(items.size()) + held; }
};

}  // namespace reprise
