#include "server/transport/open_answers.h"

#include <algorithm>

namespace reprise {

void OpenAnswers::Begin() {
  MutexLock lock(mutex_);
  ++open_;
}

void OpenAnswers::End() {
  MutexLock lock(mutex_);
  ended_ = std::chrono::steady_clock::now();
  if (--open_ == 0) none_.NotifyAll();
}

void OpenAnswers::Note() {
  MutexLock lock(mutex_);
  ended_ = std::chrono::steady_clock::now();
}

bool OpenAnswers::WaitUntilQuiet(std::chrono::nanoseconds quiet, std::chrono::nanoseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (open_ == 0 && (now >= ended_ + quiet || now >= end)) return true;
    if (now >= end) return false;
    none_.WaitFor(mutex_, open_ > 0 ? end - now : std::min(end, ended_ + quiet) - now);
  }
}

}  // namespace reprise
