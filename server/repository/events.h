// The core's reports of its work. Metrics and the log listen.
//
// Threads: all methods from any thread; they must not block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/sequences/page_pool.h"
#include "server/repository/statistics.h"

namespace reprise {

// A request that was answered.
struct RequestRecord {
  absl::StatusCode code = absl::StatusCode::kOk;
  bool queue_full = false;  // refused by a limit of the queue
  int64_t rows = 0;
  int64_t total_ns = 0;
  PhaseTimes times;  // valid if the code is OK

  // For the log; valid during the call. Model and version as the client asked for them, where none
  // was found.
  absl::string_view id, model, version;
  absl::string_view key = {};       // the name of the client's key; empty where it has none
  absl::string_view trace_id = {};  // empty: it is not traced
  int64_t bytes_in = 0;             // the bytes of tensors
  int64_t bytes_out = 0;
  absl::string_view bucket = {};   // where the code is OK
  absl::string_view capture = {};  // "replayed"
  absl::string_view why = {};      // where it is not
};

// A text that became tokens.
struct TextRecord {
  int64_t tokens = 0;
  bool truncated = false;
  int64_t tokenizer_ns = 0;
};

enum class ModelState {
  kLoading,
  kReady,
  kUnavailable,  // it was not loaded
  kUnloaded,     // it was, or waits to be asked for
};
// Returns "LOADING", "READY" or "UNAVAILABLE"; the last for both that are not served.
inline const char* ModelStateName(ModelState state) {
  if (state == ModelState::kLoading) return "LOADING";
  return state == ModelState::kReady ? "READY" : "UNAVAILABLE";
}

// Counts of a model that makes tokens: since it was loaded, and its current state.
struct GenerationRecord {
  int64_t running = 0, waiting = 0, set_back = 0, stalled = 0;  // sequences
  int64_t pages_used = 0, pages_free = 0, pages_shared = 0;
  int64_t prompt_tokens = 0, generated_tokens = 0, cached_tokens = 0;
  int64_t drafts_right = 0, drafts_wrong = 0;  // tokens that were looked up and checked
};

// Counts of a model that keeps state between requests: its current state, and since it was loaded.
struct SequenceRecord {
  int64_t live = 0, waiting = 0;  // sequences; requests that wait for their turn in one
  int64_t bytes = 0;              // their state takes
  int64_t begun = 0, ended = 0, idle = 0;
};

// One model version's events.
class ModelEvents {
 public:
  virtual ~ModelEvents() = default;
  virtual void OnQueueDepth(int64_t depth) = 0;
  virtual void OnBatch() = 0;
  virtual void OnRequest(const RequestRecord& record) = 0;
  // Called when the warm-up needs `wanted` recipes, and `done` of them are ready.
  virtual void OnWarmup(int64_t wanted, int64_t done) {}
  // After steps of a model that makes tokens, on one thread.
  virtual void OnGeneration(const GenerationRecord& record) {}
  // Tells that a page of keys and values may be found by other sequences, or no longer; on that
  // thread.
  virtual void OnPage(const PageChange& change) {}
  // New tokens were computed for clients that carry their cache, and `bytes` of keys and values
  // written to their answers.
  virtual void OnCarried(int64_t tokens, int64_t bytes) {}
  virtual void OnText(const TextRecord& record) {}
  // Called when a sound of this length was transcribed.
  virtual void OnAudio(double seconds) {}
  // Called at a sequence's first token, counted from its request; later ones, from the one before.
  virtual void OnFirstToken(int64_t ns) {}
  virtual void OnNextToken(int64_t ns) {}
  // After requests of sequences, one at a time.
  virtual void OnSequences(const SequenceRecord& record) {}
  // Called when a load of it begins, whatever of it is served meanwhile.
  virtual void OnLoading() {}
  // `why` is not OK when the state is kUnavailable.
  virtual void OnState(ModelState state, const absl::Status& why) = 0;
  // It was told to behave differently while it serves: `how`, "is frozen".
  virtual void OnChange(const char* how) {}
  // Called when its file was changed or cut in place: it answers nothing until it is loaded again.
  virtual void OnDamaged(const absl::Status& why) {}
  // It is not to be served any more, whatever became of it.
  virtual void OnDropped() {}
  // Called when a new load of it failed: the version that was served still is.
  virtual void OnKept(const absl::Status& why) {}
};

class ServerEvents {
 public:
  virtual ~ServerEvents() = default;
  virtual std::unique_ptr<ModelEvents> ForModel(const std::string& name,
                                                const std::string& version) = 0;
  // Called at a request for a model that the repository does not have.
  virtual void OnUnknownModel(const RequestRecord& record) = 0;
};

}  // namespace reprise
