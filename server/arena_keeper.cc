#include "server/arena_keeper.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace reprise {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

void ArenaKeeper::Lane::Take() {
  MutexLock lock(mutex_);
  while (taken_) left_.Wait(mutex_);
  taken_ = true;
}

bool ArenaKeeper::Lane::TryTake() {
  MutexLock lock(mutex_);
  if (taken_) return false;
  return taken_ = true;
}

void ArenaKeeper::Lane::Leave() {
  MutexLock lock(mutex_);
  taken_ = false;
  left_.NotifyOne();
}

ArenaKeeper::ArenaKeeper(const Clock& clock, std::function<void()> on_release)
    : clock_(clock), on_release_(std::move(on_release)), thread_([this] { Work(); }) {}

ArenaKeeper::~ArenaKeeper() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void ArenaKeeper::Add(std::unique_ptr<Stream> stream) {
  auto lane = std::make_unique<Lane>();
  lane->stream = std::move(stream);
  MutexLock lock(mutex_);
  lanes_.push_back(std::move(lane));
}

std::vector<ArenaKeeper::Lane*> ArenaKeeper::Lanes() const {
  MutexLock lock(mutex_);
  std::vector<Lane*> lanes;
  for (const auto& lane : lanes_) lanes.push_back(lane.get());
  return lanes;
}

void ArenaKeeper::ReleaseAfter(int64_t idle_ns) {
  if (idle_ns <= 0) return;
  MutexLock lock(mutex_);
  if (idle_ns_ == 0 || idle_ns < idle_ns_) idle_ns_ = idle_ns;
  asleep_ = false;
  changed_.NotifyAll();
}

void ArenaKeeper::Used(Lane& lane, size_t bytes) {
  lane.used_ns = clock_.NowNs();
  if (bytes > kLargeBytes) lane.large_ns = lane.used_ns.load();
  // The thread looks at the streams again after it has said that it sleeps: either it sees this
  // use, or this sees that it sleeps.
  const bool may_go =
      idle_ns_ > 0 || lane.stream->held_bytes() > kLargeBytes || lane.stream->data_bytes() > 0;
  if (!may_go || !asleep_.exchange(false)) return;
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

void ArenaKeeper::Run(size_t i, const std::function<void(Stream&)>& work) {
  Lane& lane = *lanes_[i];
  lane.Take();
  const Taken taken(lane);
  work(*lane.stream);
  // A replay that needs far less does not keep the memory of a larger one.
  const size_t data_bytes = lane.stream->TakeNeededDataBytes();
  if (data_bytes > lane.stream->data_bytes() / 2) lane.data_ns = clock_.NowNs();
  Used(lane, lane.stream->TakeNeededBytes());
}

void ArenaKeeper::ReleaseUnused() {
  for (Lane* const lane : Lanes()) {
    if (!lane->TryTake()) continue;
    const Taken taken(*lane);
    if (lane->stream->held_bytes() == 0) continue;
    lane->stream->Release();
    on_release_();
  }
}

void ArenaKeeper::Touch(size_t bytes) {
  for (Lane* const lane : Lanes()) {
    if (bytes > kLargeBytes) lane->large_ns = clock_.NowNs();
    lane->stream->Touch(bytes);
    Used(*lane, bytes);
  }
}

int64_t ArenaKeeper::held_bytes() const {
  int64_t bytes = 0;
  for (Lane* const lane : Lanes()) bytes += static_cast<int64_t>(lane->stream->held_bytes());
  return bytes;
}

int64_t ArenaKeeper::DueNs(const Lane& lane) const {
  const size_t held = lane.stream->held_bytes();
  const int64_t idle_ns = idle_ns_;
  int64_t due = kNever;
  if (held > 0 && idle_ns > 0) due = lane.used_ns + idle_ns;
  if (held > kLargeBytes) due = std::min(due, lane.large_ns + kLargeIdleNs);
  if (lane.stream->data_bytes() > 0) due = std::min(due, lane.data_ns + kDataIdleNs);
  return due;
}

int64_t ArenaKeeper::ReleaseIdle() {
  int64_t next = kNever;
  for (Lane* const lane : Lanes()) {
    if (const int64_t due = DueNs(*lane); due > clock_.NowNs()) {
      next = std::min(next, due);
      continue;
    }
    lane->Take();
    const Taken taken(*lane);
    // It may have been used, or released by another thread, while this waited.
    if (const int64_t due = DueNs(*lane); due > clock_.NowNs()) {
      next = std::min(next, due);
      continue;
    }
    lane->stream->Release();
    on_release_();
  }
  return next;
}

void ArenaKeeper::Work() {
  while (true) {
    asleep_ = true;
    const int64_t next = ReleaseIdle();
    MutexLock lock(mutex_);
    if (stopping_) return;
    if (next != kNever) {
      asleep_ = false;
      const int64_t left = next - clock_.NowNs();
      if (left > 0) changed_.WaitFor(mutex_, std::chrono::nanoseconds(left));
    } else if (asleep_) {
      changed_.Wait(mutex_);
    }
    if (stopping_) return;
  }
}

}  // namespace reprise
