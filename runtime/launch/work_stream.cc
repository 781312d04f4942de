#include "runtime/launch/work_stream.h"

#include <utility>

#include "runtime/base/memory_net.h"

namespace reprise {

WorkStream::WorkStream() : thread_([this] { Run(); }) {}

WorkStream::~WorkStream() {
  {
    MutexLock lock(mutex_);
    going_ = true;
    work_.NotifyAll();
  }
  thread_.join();
}

void WorkStream::Add(Step step) {
  MutexLock lock(mutex_);
  steps_.push_back(std::move(step));
  ++added_;
  work_.NotifyOne();
}

void WorkStream::Replay(Session& session) {
  Add({.work = [&session] { return session.Replay(); }});
}

void WorkStream::Call(std::function<absl::Status()> work) { Add({.work = std::move(work)}); }

void WorkStream::Record(Event& event) {
  const int64_t number = event.Record();
  Add({.work =
           [&event, number] {
             event.Reach(number);
             return absl::OkStatus();
           },
       .always = true});
}

void WorkStream::Wait(const Event& event) {
  const int64_t number = event.recorded();
  Add({.work =
           [&event, number] {
             event.WaitFor(number);
             return absl::OkStatus();
           },
       .always = true});
}

absl::Status WorkStream::Synchronize() {
  MutexLock lock(mutex_);
  const int64_t number = added_;
  while (ended_ < number) done_.Wait(mutex_);
  return std::exchange(error_, absl::OkStatus());
}

bool WorkStream::idle() const {
  MutexLock lock(mutex_);
  return ended_ == added_;
}

void WorkStream::Run() {
  while (true) {
    Step step;
    bool skip = false;
    {
      MutexLock lock(mutex_);
      while (steps_.empty() && !going_) work_.Wait(mutex_);
      if (steps_.empty()) return;
      step = std::move(steps_.front());
      steps_.pop_front();
      skip = !step.always && !error_.ok();
    }
    absl::Status status;
    if (!skip) {
      status = WithinMemory([] { return "work of a stream"; }, [&] { return step.work(); });
    }
    step.work = nullptr;  // Its captures are destroyed before a waiter learns that it has ended.
    MutexLock lock(mutex_);
    if (error_.ok()) error_ = std::move(status);
    ++ended_;
    done_.NotifyAll();
  }
}

}  // namespace reprise
