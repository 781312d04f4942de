#include "server/batching/dispatcher.h"

#include <utility>

namespace reprise {

Dispatcher::Dispatcher(Scheduler& scheduler, int streams, Execute execute)
    : scheduler_(scheduler), execute_(std::move(execute)) {
  try {
    for (int stream = 0; stream < streams; ++stream) {
      threads_.emplace_back([this, stream] {
        while (auto batch = scheduler_.Take()) {
          execute_(stream, *batch);
          scheduler_.Finish(*batch);
        }
      });
    }
    threads_.emplace_back([this] { scheduler_.ExpireUntilShutdown(); });
  } catch (...) {
    scheduler_.Shutdown(absl::UnavailableError("the streams have no threads"));
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

Dispatcher::~Dispatcher() {
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace reprise
