// Captures: the captures that are under way on the threads of a CapturePool, and the requests that
// wait for them.
//
// A key is captured once however many ask: later askers join. A request that a capture under way
// will be able to serve (a larger bucket) joins it too, rather than begin one of its own.
//
// A capture ends at its next step when the pool stops, and when its model is unloaded, unless a
// request for its successor, a model of the same graph, waits for it by then. One whose waiters are
// all gone goes on for later requests, but not for long; a capture of an exact shape, which may
// never come again, ends.
//
// Threads: all methods from any. Callbacks run on a capture thread with no lock held.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/capture/capture.h"
#include "runtime/engine/capture/capture_pool.h"
#include "runtime/engine/types/capture_ticket.h"

namespace reprise {

class Captures {
 public:
  // Called once for each waiter: OK when the recipe is in the cache.
  using Done = std::function<void(absl::Status)>;
  struct Waiter {
    std::vector<std::string> request_ids;  // empty: no request waits, the caller wants to be told
    Done done;
  };

  // Called for each recipe of a bucket that was captured. An exact shape may never come again.
  using OnRecipe = std::function<void(const Model& model, const Recipe& recipe)>;

  // All outlive the object. `pool` may be null: Begin then answers null.
  Captures(const EngineOptions& options, RecipeCache& cache, MissReport& report, CapturePool* pool,
           OnRecipe on_recipe)
      : options_(options),
        cache_(cache),
        report_(report),
        pool_(pool),
        on_recipe_(std::move(on_recipe)) {}

  // Begins the capture, or joins it. Returns null, and `waiter` is not called, when the pool takes
  // nothing.
  std::shared_ptr<CaptureTicket> Begin(std::shared_ptr<const Model> model, CaptureTarget target,
                                       CaptureUrgency urgency, Waiter waiter);
  // Joins a capture under way that will serve `want`, if there is one (see CanServe). A capture
  // that is queued becomes urgent.
  std::shared_ptr<CaptureTicket> Join(const RecipeKey& want, const std::set<std::string>& paddable,
                                      Waiter waiter);

 private:
  struct Flight {
    std::shared_ptr<const Model> model;
    CaptureTarget target;
    std::shared_ptr<CaptureTicket> ticket = std::make_shared<CaptureTicket>();
    bool behind = false;
    std::atomic<bool> ahead{false};  // some caller wants it for requests that are to come
    // Guarded by the mutex.
    bool urgent = false;   // a job for it waits in, or came from, the urgent lane
    bool started = false;  // the first of its up to two jobs runs it
    struct Waiting {
      Waiter waiter;
      int64_t since_ns = 0;
    };
    std::vector<Waiting> waiting;
  };
  using FlightPtr = std::shared_ptr<Flight>;

  // A capture that no request waits for any more may take this long in all.
  static constexpr int64_t kAbandonedNs = 10'000'000'000;

  bool AddJob(const FlightPtr& flight, CaptureUrgency urgency);
  // Returns whether requests wait: the ones that began or joined the capture of `flight` hold its
  // ticket.
  static bool HasWaiters(const Flight& flight) { return flight.ticket.use_count() > 1; }
  void AddWaiter(Flight& flight, Waiter waiter) REQUIRES(mutex_);
  // Returns whether the capture that began at `start_ns` goes on; if not, why.
  absl::Status GoesOn(const Flight& flight, int64_t start_ns) const;
  // Restarts the capture of a flight that GoesOn ended, but that a request has joined meanwhile.
  bool BeginAnew(const FlightPtr& flight);
  std::shared_ptr<CaptureTicket> JoinLocked(const FlightPtr& flight, CaptureUrgency urgency,
                                            Waiter waiter) REQUIRES(mutex_);
  void Run(const FlightPtr& flight, Stream* stream);
  // Tells the log and the report of misses about a capture, and which of `waiting` waited for it.
  void Tell(const Flight& flight, MissRecord record, const std::vector<Flight::Waiting>& waiting);

  // Constant after construction.
  const EngineOptions& options_;
  RecipeCache& cache_;
  MissReport& report_;
  CapturePool* const pool_;
  const OnRecipe on_recipe_;
  // Guarded.
  Mutex mutex_;
  std::list<FlightPtr> flights_ GUARDED_BY(mutex_);
};

}  // namespace reprise
