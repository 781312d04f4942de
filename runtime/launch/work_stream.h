// WorkStream: a thread that does what it is given, one after another, while its caller goes on.
//
//   WorkStream stream;
//   stream.Replay(*session);                    // returns at once
//   stream.Call([&] { return Use(*session); });
//   RETURN_IF_ERROR(stream.Synchronize());      // all of it is done
//
// Two streams run side by side; what one needs of the other is said by events (event.h). After an
// error what follows on the stream is left out, but for records of events, until Synchronize has
// told it.
//
// Ownership: what is given to a stream outlives its Synchronize(), or the stream.
// Threads:   all methods from any; what one thread gives stays in its order.
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
  // Waits for what it was given.
  ~WorkStream();
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;

  void Replay(Session& session);
  void Call(std::function<absl::Status()> work);
  // `event` is reached when all that was given before has been done.
  void Record(Event& event);
  // All that is given from now on begins when the last record of `event` so far was reached.
  void Wait(const Event& event);

  // Waits for all that was given by now. The first error since the last call, which is over then.
  absl::Status Synchronize();
  // Whether nothing is left to do.
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
