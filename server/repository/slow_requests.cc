#include "server/repository/slow_requests.h"

#include <algorithm>

namespace reprise {
namespace {

std::vector<std::pair<std::string, int64_t>> StagesOf(const RequestRecord& record,
                                                      int64_t total_ns) {
  const PhaseTimes& times = record.times;
  // A request that waited for a capture which another one began did so in the queue.
  const bool waited = record.capture == "waited", captured = record.capture == "captured";
  const std::pair<const char*, int64_t> all[] = {
      {"tokenizer", times.tokenizer_ns},
      {waited ? "queue, for a capture" : "queue", times.queue_ns},
      {"gather", times.compute_input_ns},
      {captured ? "capture and replay" : "replay", times.compute_infer_ns},
      {"scatter", times.compute_output_ns}};
  std::vector<std::pair<std::string, int64_t>> stages;
  int64_t rest = total_ns;
  for (const auto& [name, ns] : all) {
    if (ns > 0) stages.emplace_back(name, ns);
    rest -= ns;
  }
  // Admission, and the time between the others. The parts of a split request overlap.
  if (rest > 0) stages.emplace_back("rest", rest);
  return stages;
}

}  // namespace

const std::string& SlowRequest::slow_stage() const {
  static const std::string kNone;
  const auto longest =
      std::max_element(stages.begin(), stages.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return longest == stages.end() ? kNone : longest->first;
}

void SlowRequests::Record(const RequestRecord& record, int64_t total_ns,
                          std::chrono::system_clock::time_point now) {
  const auto tick = now.time_since_epoch().count();
  if (total_ns <= least_ns_.load(std::memory_order_relaxed) &&
      tick < until_.load(std::memory_order_relaxed)) {
    return;
  }
  SlowRequest request = {.id = std::string(record.id),
                         .bucket = std::string(record.bucket),
                         .capture = std::string(record.capture),
                         .rows = record.rows,
                         .total_ns = total_ns,
                         .time = now,
                         .stages = StagesOf(record, total_ns)};
  MutexLock lock(mutex_);
  std::erase_if(slowest_, [&](const SlowRequest& one) { return one.time + kWindow < now; });
  const auto place = std::find_if(slowest_.begin(), slowest_.end(),
                                  [&](const SlowRequest& one) { return one.total_ns < total_ns; });
  slowest_.insert(place, std::move(request));
  if (slowest_.size() > kKept) slowest_.pop_back();
  const bool full = slowest_.size() == kKept;
  auto first = slowest_.front().time;
  for (const SlowRequest& one : slowest_) first = std::min(first, one.time);
  least_ns_.store(full ? slowest_.back().total_ns : 0, std::memory_order_relaxed);
  until_.store((first + kWindow).time_since_epoch().count(), std::memory_order_relaxed);
}

std::vector<SlowRequest> SlowRequests::List(std::chrono::system_clock::time_point now) const {
  MutexLock lock(mutex_);
  std::vector<SlowRequest> recent;
  for (const SlowRequest& one : slowest_) {
    if (one.time + kWindow >= now) recent.push_back(one);
  }
  return recent;
}

}  // namespace reprise
