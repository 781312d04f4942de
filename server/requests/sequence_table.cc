#include "server/requests/sequence_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {

// One request of a sequence, from its arrival to its answer; the caller holds it as the call.
class SequenceTable::Visit final : public Call, public std::enable_shared_from_this<Visit> {
 public:
  Visit(std::shared_ptr<SequenceTable> table, const InferRequest& request, RequestState walked,
        GoOn then, Done answered)
      : asked(request),
        state(std::move(walked)),
        go_on(std::move(then)),
        done(std::move(answered)),
        table_(std::move(table)) {}

  void Cancel() override {
    std::shared_ptr<Call> queued;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      queued = queued_;
    }
    if (queued != nullptr) return queued->Cancel();
    table_->Cancel(shared_from_this());
  }
  // It is in the queue; it may have been answered by now.
  void SetQueued(std::shared_ptr<Call> queued) {
    bool cancelled = false;
    {
      MutexLock lock(mutex_);
      if (answered_) return;
      queued_ = queued;
      cancelled = cancelled_;
    }
    if (cancelled) queued->Cancel();
  }
  void Answer(InferResult result) {
    std::shared_ptr<Call> queued;  // holds this: let go of here
    {
      MutexLock lock(mutex_);
      answered_ = true;
      queued.swap(queued_);
    }
    done(std::move(result));
  }

  InferRequest asked;
  RequestState state;
  const GoOn go_on;
  const Done done;
  SequencePtr sequence;
  AddedInputs added;
  // The state that the request reads, which may outlive its answer, and the one that it leaves.
  std::shared_ptr<const SequenceState> reads;
  SequenceState leaves;

 private:
  const std::shared_ptr<SequenceTable> table_;
  Mutex mutex_;
  std::shared_ptr<Call> queued_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool answered_ GUARDED_BY(mutex_) = false;
};

// Guarded by the table's mutex.
struct SequenceTable::Sequence {
  std::string key;
  int64_t id_bytes = 0;                        // bytes of an id that is a text
  std::shared_ptr<const SequenceState> state;  // null: none
  bool begun = false;                          // a request has been answered since its start
  bool under_way = false;                      // a request is
  bool placed = false;                         // it is one of the candidates
  int64_t used_ns = 0;
  std::deque<VisitPtr> waiting;
};

namespace {

// Returns the key of a sequence: its id, and the key of its requests, whose name has no space.
std::string KeyOf(const InferRequest& asked) {
  const SequenceMark& mark = asked.sequence;
  const absl::string_view key = asked.key == nullptr ? "" : absl::string_view(asked.key->name());
  return mark.number != 0 ? absl::StrCat(key, " n", mark.number)
                          : absl::StrCat(key, " t", mark.text);
}

absl::Status Unknown(const SequenceMark& mark) {
  return absl::FailedPreconditionError(
      absl::StrCat("sequence ", SequenceName(mark),
                   " is not known: it has not begun on this server, has ended, was idle for too "
                   "long, or began before the model was reloaded; its first request says "
                   "sequence_start"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Call>> SequenceTable::Enter(const InferRequest& asked,
                                                           RequestState state, GoOn go_on,
                                                           Call::Done done) {
  if (!asked.sequence.any()) {
    return absl::InvalidArgumentError(
        "the model keeps state: parameter sequence_id must be a number that is not 0, or a text");
  }
  auto visit = std::make_shared<Visit>(shared_from_this(), asked, std::move(state),
                                       std::move(go_on), std::move(done));
  Work work;
  absl::Status joined;
  {
    MutexLock lock(mutex_);
    joined = Join(visit, work);
    Tell();
  }
  Do(std::move(work));
  if (!joined.ok()) return joined;
  return visit;
}

absl::Status SequenceTable::Join(const VisitPtr& visit, Work& work) {
  RETURN_IF_ERROR(closed_);
  const SequenceMark& mark = visit->asked.sequence;
  const int64_t now_ns = clock_.NowNs();
  if (now_ns >= ends_ns_) ExpireLocked(now_ns, work);
  if (waiting_ >= options_.max_waiting) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waiting_, " requests wait for their turn in a sequence, and ",
                     options_.max_waiting, " may"));
  }
  const std::string key = KeyOf(visit->asked);
  const auto found = sequences_.find(key);
  SequencePtr sequence = found == sequences_.end() ? nullptr : found->second;
  if (sequence == nullptr) {
    if (!mark.start) return Unknown(mark);
    RETURN_IF_ERROR(CheckRoom(mark));
    sequence = std::make_shared<Sequence>();
    sequence->key = key;
    sequence->id_bytes = static_cast<int64_t>(mark.text.size());
    bytes_ += sequence->id_bytes;
    sequence->used_ns = now_ns;
    sequences_.emplace(key, sequence);
    sequence->placed = form_.max_candidates == 0 || candidates_ < form_.max_candidates;
    candidates_ += sequence->placed;
    if (!sequence->placed) no_place_.push_back(sequence);
  }
  visit->sequence = sequence;
  sequence->waiting.push_back(visit);
  ++waiting_;
  NextTurn(sequence, work);
  if (!sequence->waiting.empty()) EndsAt(visit->state.deadline_ns);
  return absl::OkStatus();
}

absl::Status SequenceTable::CheckRoom(const SequenceMark& mark) const {
  if (static_cast<int64_t>(sequences_.size()) >= options_.max_sequences) {
    return absl::ResourceExhaustedError(
        absl::StrCat("sequence ", SequenceName(mark), ": the state of ", sequences_.size(),
                     " sequences is kept already, and of ", options_.max_sequences, " may"));
  }
  if (bytes_ >= options_.max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("sequence ", SequenceName(mark), ": the state of ", sequences_.size(),
                     " sequences takes ", bytes_, " bytes, and ", options_.max_bytes, " may"));
  }
  return absl::OkStatus();
}

void SequenceTable::NextTurn(const SequencePtr& sequence, Work& work) {
  if (sequence->under_way || !sequence->placed || sequence->waiting.empty()) return;
  work.next.push_back(std::move(sequence->waiting.front()));
  sequence->under_way = true;
  sequence->waiting.pop_front();
  --waiting_;
}

void SequenceTable::Leave(const SequencePtr& sequence, Work& work) {
  sequence->under_way = false;
  sequence->used_ns = clock_.NowNs();
  if (sequence->waiting.empty()) {
    EndsAt(sequence->used_ns + form_.max_idle_ns);
    if (!sequence->begun) Forget(sequence, work);
  } else {
    NextTurn(sequence, work);
  }
}

void SequenceTable::Forget(const SequencePtr& sequence, Work& work) {
  bytes_ -= sequence->id_bytes;
  if (sequence->state != nullptr) bytes_ -= BytesOf(*sequence->state);
  sequence->state = nullptr;
  sequence->begun = false;
  sequences_.erase(sequence->key);
  if (!sequence->placed) {
    std::erase(no_place_, sequence);
    return;
  }
  --candidates_;
  if (no_place_.empty()) return;
  const SequencePtr next = std::move(no_place_.front());
  no_place_.pop_front();
  next->placed = true;
  ++candidates_;
  NextTurn(next, work);
}

void SequenceTable::EndsAt(int64_t ns) {
  if (ns >= ends_ns_) return;
  ends_ns_ = ns;
  options_.on_deadline();
}

void SequenceTable::ExpireLocked(int64_t now_ns, Work& work) {
  int64_t next_ns = kNoDeadline;
  std::vector<SequencePtr> idle;
  for (const auto& [key, sequence] : sequences_) {
    for (auto visit = sequence->waiting.begin(); visit != sequence->waiting.end();) {
      const int64_t deadline_ns = (*visit)->state.deadline_ns;
      if (deadline_ns > now_ns) {
        next_ns = std::min(next_ns, deadline_ns);
        ++visit;
        continue;
      }
      work.dropped.emplace_back(
          *visit, absl::DeadlineExceededError("the deadline passed before the request's turn in "
                                              "its sequence"));
      visit = sequence->waiting.erase(visit);
      --waiting_;
    }
    if (sequence->under_way || !sequence->waiting.empty()) continue;
    const int64_t end_ns = sequence->begun ? sequence->used_ns + form_.max_idle_ns : now_ns;
    if (end_ns <= now_ns) {
      idle.push_back(sequence);
    } else {
      next_ns = std::min(next_ns, end_ns);
    }
  }
  for (const SequencePtr& sequence : idle) {
    counts_.idle += sequence->begun;
    Forget(sequence, work);
  }
  ends_ns_ = next_ns;
}

int64_t SequenceTable::Expire() {
  Work work;
  int64_t next_ns = kNoDeadline;
  {
    MutexLock lock(mutex_);
    const int64_t now_ns = clock_.NowNs();
    if (now_ns >= ends_ns_) {
      ExpireLocked(now_ns, work);
      Tell();
    }
    next_ns = ends_ns_;
  }
  Do(std::move(work));
  return next_ns;
}

void SequenceTable::Cancel(const VisitPtr& visit) {
  Work work;
  {
    MutexLock lock(mutex_);
    const SequencePtr& sequence = visit->sequence;
    if (sequence == nullptr || std::erase(sequence->waiting, visit) == 0) return;
    --waiting_;
    if (!sequence->under_way && sequence->waiting.empty() && !sequence->begun) {
      Forget(sequence, work);
    }
    Tell();
  }
  work.dropped.emplace_back(
      visit, absl::CancelledError("the client cancelled the request before it was started"));
  Do(std::move(work));
}

void SequenceTable::Close(const absl::Status& why) {
  Work work;
  {
    MutexLock lock(mutex_);
    closed_ = why;
    for (const auto& [key, sequence] : sequences_) {
      for (const VisitPtr& visit : sequence->waiting) work.dropped.emplace_back(visit, why);
      waiting_ -= static_cast<int64_t>(sequence->waiting.size());
      sequence->waiting.clear();
    }
    Tell();
  }
  Do(std::move(work));
}

void SequenceTable::Do(Work work) {
  for (auto& [visit, why] : work.dropped) visit->Answer(InferResult{.status = why});
  // A request that is refused makes room for the next one of its sequence.
  while (!work.next.empty()) {
    const VisitPtr visit = std::move(work.next.back());
    work.next.pop_back();
    const absl::StatusOr<std::shared_ptr<Call>> call =
        WithinMemory([] { return "a request of a sequence"; }, [&] { return Begin(visit); });
    if (call.ok()) {
      visit->SetQueued(*call);
      continue;
    }
    {
      MutexLock lock(mutex_);
      Leave(visit->sequence, work);
      Tell();
    }
    visit->Answer(InferResult{.status = call.status()});
  }
}

absl::StatusOr<std::shared_ptr<Call>> SequenceTable::Begin(const VisitPtr& visit) {
  const SequenceMark& mark = visit->asked.sequence;
  Sequence& sequence = *visit->sequence;
  {
    MutexLock lock(mutex_);
    // The request that was to begin it has failed, or the one before has ended it.
    if (!mark.start && !sequence.begun) return Unknown(mark);
    if (!mark.start) visit->reads = sequence.state;
    if (bytes_ > options_.max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("sequence ", SequenceName(mark), ": the state of ", sequences_.size(),
                       " sequences takes ", bytes_, " bytes, and ", options_.max_bytes, " may"));
    }
  }
  static const SequenceState kNone;
  RETURN_IF_ERROR(AddSequenceInputs(visit->state.model.servable->signature, form_,
                                    visit->reads == nullptr ? kNone : *visit->reads, visit->added,
                                    visit->asked, visit->state.request));
  // Taken first of all steps: others may write outputs to the client's regions. The call holds
  // the visit for longer than its steps.
  visit->state.on_answer.push_back([this, visit = visit.get()](InferResult& result) {
    if (!visit->asked.sequence.end) visit->leaves = TakeState(result);
    return absl::OkStatus();
  });
  return visit->go_on(visit->asked, visit->state,
                      [self = shared_from_this(), visit](InferResult result) {
                        self->Finished(visit, std::move(result));
                      });
}

SequenceState SequenceTable::TakeState(InferResult& result) const {
  SequenceState state(form_.states.size());
  for (size_t i = 0; i < form_.states.size(); ++i) {
    const size_t output = form_.states[i].output;
    OutputTensor& tensor = result.response.outputs[output];
    const bool answered = std::find(result.outputs.begin(), result.outputs.end(),
                                    static_cast<int>(output)) != result.outputs.end();
    if (answered) {
      state[i] = tensor;
    } else {
      state[i] = std::move(tensor);
    }
  }
  return state;
}

void SequenceTable::Finished(const VisitPtr& visit, InferResult result) {
  const bool ends = visit->asked.sequence.end;
  std::shared_ptr<const SequenceState> state;  // the old one is let go of without the lock
  if (result.status.ok()) {
    const absl::Status kept =
        WithinMemory([] { return "the state of a sequence"; },
                     [&] {
                       state = std::make_shared<const SequenceState>(std::move(visit->leaves));
                       return absl::OkStatus();
                     });
    if (!kept.ok()) result = InferResult{.status = kept};
  }
  Work work;
  {
    MutexLock lock(mutex_);
    Sequence& sequence = *visit->sequence;
    if (result.status.ok()) {
      bytes_ += BytesOf(*state);
      if (sequence.state != nullptr) bytes_ -= BytesOf(*sequence.state);
      sequence.state.swap(state);
      sequence.begun = !ends;
      counts_.begun += visit->asked.sequence.start;
      counts_.ended += ends;
    }
    Leave(visit->sequence, work);
    Tell();
  }
  visit->Answer(std::move(result));
  Do(std::move(work));
}

void SequenceTable::Tell() {
  counts_.live = static_cast<int64_t>(sequences_.size());
  counts_.waiting = waiting_;
  counts_.bytes = bytes_;
  options_.on_change(counts_);
}

int64_t SequenceTable::size() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(sequences_.size());
}

int64_t SequenceTable::state_bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace reprise
