#include "server/text/text_threads.h"

#include <utility>

#include "runtime/base/memory_net.h"

namespace reprise {

TextThreads::~TextThreads() { Stop(); }

absl::Status TextThreads::Start(int threads) {
  stopping_ = false;
  {
    MutexLock lock(mutex_);
    stop_ = false;
  }
  for (int i = 0; i < threads; ++i) {
    if (WhereMemoryAllows([&] { threads_.emplace_back([this] { Loop(); }); })) continue;
    if (i > 0) break;
    return absl::ResourceExhaustedError("the system has no thread for texts");
  }
  return absl::OkStatus();
}

void TextThreads::Stop() {
  stopping_ = true;
  {
    MutexLock lock(mutex_);
    stop_ = true;
    work_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool TextThreads::Run(std::function<void()> task) noexcept {
  bool taken = false;
  WhereMemoryAllows([&] {
    MutexLock lock(mutex_);
    if (stop_) return;
    tasks_.push_back(std::move(task));
    taken = true;
    work_.NotifyOne();
  });
  return taken;
}

void TextThreads::Loop() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(mutex_);
      while (!stop_ && tasks_.empty()) work_.Wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    WhereMemoryAllows(task);  // tasks answer by themselves: nothing is left to tell
  }
}

}  // namespace reprise
