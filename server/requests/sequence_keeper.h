// SequenceKeeper: makes the tables of models that keep state, and looks after them: sequences that
// are idle for too long, and requests whose deadline passes before their turn.
//
// Ownership: tables belong to their models; the keeper forgets them when these go.
// Threads:   all methods from any; a thread of its own sleeps until the next time that counts.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "server/repository/model_table.h"
#include "server/requests/sequence_table.h"

namespace reprise {

class SequenceKeeper {
 public:
  explicit SequenceKeeper(const Clock& clock);
  ~SequenceKeeper();
  SequenceKeeper(const SequenceKeeper&) = delete;
  SequenceKeeper& operator=(const SequenceKeeper&) = delete;

  // Returns the table of `servable`, null where config.pbtxt has no sequence_batching. `version`
  // outlives it.
  std::shared_ptr<SequenceTable> Open(const ModelVersion& version, const Servable& servable);
  // Requests that wait for their turn end with `why`.
  void Close(const absl::Status& why);
  // Ends the thread: nothing expires any more.
  void Stop();

 private:
  std::vector<std::shared_ptr<SequenceTable>> Tables();
  void Wake();
  void Work();

  const Clock& clock_;
  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::weak_ptr<SequenceTable>> tables_ GUARDED_BY(mutex_);
  bool woken_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace reprise
