// WorkItem: the base of an item that waits for a stream: one request, or one part of a request
// split by rows.
//
// The scheduler is a template over the items, so that the code that runs them gets back the queued
// type. It knows no more of an item than this base and two members, `Builder` and `Drop`:
//
//   class Part : public WorkItem<Part> {
//    public:
//     using Builder = PlanBuilder;  // see BatchBuilder
//     void Drop(const absl::Status& why);
//   };
//
// Drop ends the item without an answer of work: it was cancelled or has expired, the server stops,
// or its stream found no memory to begin or to go on. It is called with no lock held, and may come
// while a stream runs the item: the first of the two answers the item, and the second answer does
// nothing. It throws nothing: other items wait for their turn.
#pragma once

#include <cstdint>
#include <limits>
#include <list>
#include <memory>

#include "absl/status/status.h"

namespace reprise {

template <typename Item>
class ModelQueue;
template <typename Item>
class RunningBatch;
template <typename Item>
struct Lane;

inline constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

// A number of requests that wait or run.
struct WorkLoad {
  int64_t requests = 0;
  int64_t tokens = 0;
};

// Facts by which the scheduler places a request. Set before Submit, constant after.
struct WorkShape {
  int64_t rows = 1;    // size along the batch axis; 1 if there is none
  int64_t tokens = 1;  // rows times the sizes of the other axes
  int64_t bytes = 0;   // bytes of the inputs
  // Times on the scheduler's clock: when it must have been started, and when it must be answered.
  int64_t deadline_ns = kNoDeadline;
  int64_t end_ns = kNoDeadline;
  uint64_t priority = 0;  // within its share, lower goes first
  // The share that the request belongs to: waiting shares are served by their weights.
  uint64_t share = 0;
  double weight = 1;  // above 0
};

// Ownership: items are shared by the queue and by the callers that may cancel them.
template <typename Item>
class WorkItem {
 public:
  WorkShape shape;

  // Belongs to the scheduler: guarded by its mutex. Times and order stay once a stream took the
  // item.
  struct Place {
    ModelQueue<Item>* queue = nullptr;  // null: in no queue
    RunningBatch<Item>* run = nullptr;  // null: no stream runs it, or its result is not wanted any
                                        // more
    Lane<Item>* lane = nullptr;         // one of that queue
    typename std::list<std::shared_ptr<Item>>::iterator position;
    int64_t enqueued_ns = 0;
    int64_t arrival = 0;  // order of arrival in the queue
    int64_t held = 0;     // not 0: held back under this number
    bool aged = false;    // it has waited for long: goes before all of its lane that have not
    absl::Status why;     // why it is about to be dropped
  } place;

 protected:
  ~WorkItem() = default;
};

}  // namespace reprise
