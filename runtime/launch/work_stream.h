// WorkStream: a thread that runs its work items, one after another, while its caller goes on.
//
//   WorkStream stream;
//   stream.Replay(*session);                    // returns at once
//   stream.Call([&] { return Use(*session); });
//   RETURN_IF_ERROR(stream.Synchronize());      // all of it is done
//
// Two streams run side by side; events order the work between them (event.h). After an error the
// later work on the stream is skipped, but for records of events, until Synchronize has returned
// the error.
//
// Ownership: objects given to a stream outlive its Synchronize(), or the stream.
// Threads:   all methods from any; work from one thread stays in its order.
// Errors:    the constructor throws std::system_error where the system has no thread.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/session.h"
#include "runtime/launch/event.h"

namespace reprise {

class WorkStream {
 public:
  WorkStream();
  // Waits for the work that it was given.
  ~WorkStream();
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;

  void Replay(Session& session);
  void Call(std::function<absl::Status()> work);
  // Makes `event` reached when all work that was given before has been done.
  void Record(Event& event);
  // Makes all later work begin only when the last record of `event` so far was reached.
  void Wait(const Event& event);

  // Waits for all work that was given so far. Returns the first error since the last call, which is
  // over then.
  absl::Status Synchronize();
  // Returns whether nothing is left to do.
  bool idle() const;

 private:
  struct Step {
    std::function<absl::Status()> work;
    bool always = false;  // also after an error
  };
  void Add(Step step);
  void Run();

  mutable Mutex mutex_;
  CondVar work_;  // a step was added, or the stream goes
  CondVar done_;  // a step has ended
  std::deque<Step> steps_ GUARDED_BY(mutex_);
  int64_t added_ GUARDED_BY(mutex_) = 0;
  int64_t ended_ GUARDED_BY(mutex_) = 0;
  bool going_ GUARDED_BY(mutex_) = false;
  absl::Status error_ GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the others
};

}  // namespace reprise
