#include "server/requests/sequence_keeper.h"

#include <algorithm>
#include <chrono>

namespace reprise {

SequenceKeeper::SequenceKeeper(const Clock& clock) : clock_(clock), thread_([this] { Work(); }) {}

SequenceKeeper::~SequenceKeeper() { Stop(); }

void SequenceKeeper::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<SequenceTable> SequenceKeeper::Open(const ModelVersion& version,
                                                    const Servable& servable) {
  if (servable.stateful == nullptr) return nullptr;
  const ModelSettings& settings = servable.settings;
  SequenceTable::Options options = {
      .max_sequences = settings.max_live_sequences,
      .max_bytes = settings.state_bytes,
      .on_deadline = [this] { Wake(); },
      .on_change = [events = version.events.get()](
                       const SequenceRecord& record) { events->OnSequences(record); }};
  if (settings.max_queue_requests > 0) options.max_waiting = settings.max_queue_requests;
  auto table = std::make_shared<SequenceTable>(*servable.stateful, std::move(options), clock_);
  MutexLock lock(mutex_);
  std::erase_if(tables_, [](const auto& one) { return one.expired(); });
  tables_.push_back(table);
  return table;
}

std::vector<std::shared_ptr<SequenceTable>> SequenceKeeper::Tables() {
  std::vector<std::shared_ptr<SequenceTable>> tables;
  MutexLock lock(mutex_);
  for (const auto& one : tables_) {
    if (auto table = one.lock()) tables.push_back(std::move(table));
  }
  return tables;
}

void SequenceKeeper::Close(const absl::Status& why) {
  for (const auto& table : Tables()) table->Close(why);
}

void SequenceKeeper::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  changed_.NotifyAll();
}

void SequenceKeeper::Work() {
  constexpr int64_t kLongestNs = 60'000'000'000;
  while (true) {
    int64_t next_ns = kNoDeadline;
    for (const auto& table : Tables()) next_ns = std::min(next_ns, table->Expire());
    MutexLock lock(mutex_);
    if (stopping_) return;
    if (!woken_) {
      const int64_t left = next_ns == kNoDeadline ? kLongestNs : next_ns - clock_.NowNs();
      if (left > 0) {
        changed_.WaitFor(mutex_, std::chrono::nanoseconds(std::min(left, kLongestNs)));
      }
    }
    woken_ = false;
    if (stopping_) return;
  }
}

}  // namespace reprise
