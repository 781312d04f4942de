// SequenceTable: the sequences of a model that keeps state between requests.
//
// A request names its sequence and says where that begins and ends. The requests of one sequence
// run one after another, in the order in which they came; requests of different sequences share
// replays as any others do. Between two of them the state is the table's: it is the model's last
// answer, and becomes the next one's input.
//
// A request that fails changes nothing: its sequence is as it was before. A sequence without
// requests for the model's idle time is forgotten, as are all when the model is reloaded: a table
// belongs to one load of it.
//
// Threads: all methods from any. Requests go on, and are answered, with no lock held.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "server/repository/events.h"
#include "server/requests/call.h"
#include "server/requests/sequence_inputs.h"

namespace reprise {

class SequenceTable : public std::enable_shared_from_this<SequenceTable> {
 public:
  struct Options {
    int64_t max_sequences = 1024;
    int64_t max_bytes = int64_t{1} << 30;  // the state of all of them
    int64_t max_waiting = 1024;            // requests that wait for their turn
    // Something expires before the time that Expire returned last. It must not call the table.
    std::function<void()> on_deadline = [] {};
    std::function<void(const SequenceRecord&)> on_change = [](const SequenceRecord&) {};
  };
  // Takes a request whose turn has come through the rest of its stages, into the queue. On an error
  // the request is counted as refused, and `done` is not called.
  using GoOn = std::function<absl::StatusOr<std::shared_ptr<Call>>(
      const InferRequest& asked, RequestState& state, const Call::Done& done)>;

  SequenceTable(StatefulForm form, Options options, const Clock& clock)
      : form_(std::move(form)), options_(std::move(options)), clock_(clock) {}

  // Lets the admitted request wait for its turn, or go on at once. `done` is called once,
  // unless an error is returned. Errors: INVALID_ARGUMENT for a request that belongs to no sequence
  // there is, RESOURCE_EXHAUSTED with the numbers where a limit is reached.
  absl::StatusOr<std::shared_ptr<Call>> Enter(const InferRequest& asked, RequestState state,
                                              GoOn go_on, Call::Done done);

  // Forgets sequences that were idle for too long and drops requests whose deadline has passed
  // before their turn. Returns when to ask again, kNoDeadline if only a request changes that.
  int64_t Expire();
  // Requests that wait for their turn end with `why`, as later ones do.
  void Close(const absl::Status& why);

  int64_t size() const;
  int64_t state_bytes() const;

 private:
  class Visit;
  struct Sequence;
  using VisitPtr = std::shared_ptr<Visit>;
  using SequencePtr = std::shared_ptr<Sequence>;
  // Requests to go on with, and requests to answer with an error, once the lock is released.
  struct Work {
    absl::InlinedVector<VisitPtr, 4> next;  // room without allocation for a request that leaves at
                                            // the end
    std::vector<std::pair<VisitPtr, absl::Status>> dropped;
  };

  absl::Status Join(const VisitPtr& visit, Work& work) REQUIRES(mutex_);
  absl::Status CheckRoom(const SequenceMark& mark) const REQUIRES(mutex_);
  // Begins the turn of the first request that waits in `sequence`, if it can have one.
  void NextTurn(const SequencePtr& sequence, Work& work) REQUIRES(mutex_);
  // Goes on to the next request when one has left, or removes the sequence.
  void Leave(const SequencePtr& sequence, Work& work) REQUIRES(mutex_);
  void Forget(const SequencePtr& sequence, Work& work) REQUIRES(mutex_);
  void ExpireLocked(int64_t now_ns, Work& work) REQUIRES(mutex_);
  // Something ends at `ns`.
  void EndsAt(int64_t ns) REQUIRES(mutex_);
  void Tell() REQUIRES(mutex_);
  void Do(Work work);
  // Adds the server's own inputs, and goes on.
  absl::StatusOr<std::shared_ptr<Call>> Begin(const VisitPtr& visit);
  void Finished(const VisitPtr& visit, InferResult result);
  void Cancel(const VisitPtr& visit);
  // Returns the outputs of the model that are state.
  SequenceState TakeState(InferResult& result) const;

  // Constant after construction.
  const StatefulForm form_;
  const Options options_;
  const Clock& clock_;
  // Guarded.
  mutable Mutex mutex_;
  // By their ids, after the names of the clients' keys: another key's is another sequence.
  std::map<std::string, SequencePtr> sequences_ GUARDED_BY(mutex_);
  std::deque<SequencePtr> no_place_
      GUARDED_BY(mutex_);  // those beyond the candidates, oldest first
  int64_t candidates_ GUARDED_BY(mutex_) = 0;
  int64_t waiting_ GUARDED_BY(mutex_) = 0;            // requests
  int64_t bytes_ GUARDED_BY(mutex_) = 0;              // states, and ids that are texts
  int64_t ends_ns_ GUARDED_BY(mutex_) = kNoDeadline;  // nothing expires before
  SequenceRecord counts_ GUARDED_BY(mutex_);
  absl::Status closed_ GUARDED_BY(mutex_);
};

}  // namespace reprise
