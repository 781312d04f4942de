#include "runtime/base/mutex.h"

#include <gtest/gtest.h>

#include <thread>

namespace reprise {
namespace {

TEST(MutexTest, WaitersSeeWhatWasSetUnderTheLock) {
  Mutex mutex;
  CondVar changed;
  bool asked = false;
  int answer = 0;
  std::thread thread([&] {
    MutexLock lock(mutex);
    while (!asked) changed.Wait(mutex);
    answer = 42;
    changed.NotifyAll();
  });
  {
    MutexLock lock(mutex);
    asked = true;
    changed.NotifyAll();
    while (answer == 0) changed.Wait(mutex);
    EXPECT_EQ(answer, 42);
  }
  thread.join();
}

TEST(MutexTest, WaitForGivesUp) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  while (never.WaitFor(mutex, std::chrono::microseconds(1))) {  // spurious wakes
  }
}

}  // namespace
}  // namespace reprise
