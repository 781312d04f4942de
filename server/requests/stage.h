// Stage: one step of a request on its way to the queue.
//
// The stages of a server are one list (RequestStages in stages.h). Inference::Start calls them one
// after another with the request and its state: a stage reads the results of the stages before it
// and adds its own. The first error ends the walk, and is the answer.
//
// A stage that has something to do with the answer as well (to translate it, to give something
// back) adds a step to `on_answer`, which holds whatever that step needs.
//
// Ownership: the memory that InferRequest points into is the transport's until the request is
//            answered. The state owns the results of a stage; the state lives until the answer is
//            handed over.
// Threads:   stages run on the transport's thread that brought the request, several requests at a
//            time, and neither wait nor compute: a stage that computes lets the request begin
//            again on a thread of its own (tokenize.h). A step of `on_answer` runs on the thread
//            that finishes the request's last part.
// Memory:    both may throw for want of memory, which is then the request's error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/batching/work.h"
#include "runtime/engine/engine.h"
#include "server/repository/repository.h"
#include "server/requests/request.h"
#include "server/requests/result.h"

namespace reprise {

class RegionInputs;

// May change an answer that is OK, or turn it into an error.
using AnswerStep = std::function<absl::Status(InferResult& result)>;

struct RequestState;

// Begins a request again, once the thing that it waits for is there.
class Resumer {
 public:
  virtual ~Resumer() = default;
  // Begins a copy of the request, as `state` has it by now: may be called from any thread, once. It
  // keeps its time of arrival, and its key has counted it.
  virtual std::function<void()> Resume(const RequestState& state) const = 0;
};

struct RequestState {
  // A stage that has to wait for a load hands a Resume() to it, says so by `waits`, and ends the
  // walk by an error, which is not shown. Null where requests are not resumed.
  const Resumer* resumer = nullptr;
  bool waits = false;
  bool to_text_threads = false;  // the Resume() is called on one of them

  int64_t start_ns = 0;  // when it came
  absl::string_view id;  // as in InferRequest: the transport's memory
  // The client's key, and its count of the request, which ends when the state goes.
  std::shared_ptr<KeyUse> key;
  KeyUse::Ticket ticket;

  std::shared_ptr<RequestTrace> trace;  // null: it is not traced

  // Inputs that lie in shared memory; null where none does. See regions.h.
  std::shared_ptr<RegionInputs> region_inputs;

  // The time that texts took to become tokens: before `start_ns`, and since then.
  int64_t early_tokenizer_ns = 0;
  int64_t tokenizer_ns = 0;

  // Set by the stage `admit`.
  Repository::Found model;
  Request request;           // points into the transport's memory, or into results of a stage
  std::vector<int> outputs;  // positions, in the order in which the client asked
  int64_t deadline_ns = kNoDeadline;  // when it must have been started
  int64_t end_ns = kNoDeadline;       // when it must be answered
  uint64_t priority = 0;

  // Set by the stage `shape`; the queue takes the parts.
  std::vector<RequestPart> parts;  // each goes into a replay of its own
  int64_t rows = 0;                // sum over all parts
  int64_t bytes_in = 0;            // the bytes of tensors, over all parts
  std::vector<int64_t> columns;    // see ShapeColumns

  // Steps that an answer which is OK goes through, the last one first.
  std::vector<AnswerStep> on_answer;
};

using Stage = std::function<absl::Status(const InferRequest& asked, RequestState& state)>;

}  // namespace reprise
