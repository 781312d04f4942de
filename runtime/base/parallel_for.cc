#include "runtime/base/parallel_for.h"

#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"

namespace reprise {

void ParallelFor(int lanes, const std::function<void(int lane)>& work) {
  Mutex mutex;
  std::exception_ptr thrown;
  const auto guarded = [&](int lane) {
    try {
      work(lane);
    } catch (...) {
      MutexLock lock(mutex);
      if (thrown == nullptr) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(lanes));
  for (int lane = 1; lane < lanes; ++lane) {
    try {
      threads.emplace_back(guarded, lane);
    } catch (const std::system_error&) {
      break;
    }
  }
  guarded(0);
  for (std::thread& thread : threads) thread.join();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace reprise
