#include "runtime/engine/lanes.h"

#include <system_error>
#include <thread>
#include <vector>

namespace reprise {

void RunOnLanes(int lanes, const std::function<void(int lane)>& work) {
  std::vector<std::thread> threads;
  for (int lane = 1; lane < lanes; ++lane) {
    try {
      threads.emplace_back(work, lane);
    } catch (const std::system_error&) {
      break;
    }
  }
  work(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace reprise
