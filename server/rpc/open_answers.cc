#include "server/rpc/open_answers.h"

namespace reprise {

void OpenAnswers::Begin() {
  MutexLock lock(mutex_);
  ++open_;
}

void OpenAnswers::End() {
  MutexLock lock(mutex_);
  if (--open_ == 0) none_.NotifyAll();
}

bool OpenAnswers::WaitUntilNone(std::chrono::nanoseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (open_ > 0) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    none_.WaitFor(mutex_, left);
  }
  return true;
}

}  // namespace reprise
