#include "runtime/verify/size_slices.h"

#include <utility>

#include "runtime/base/memory_net.h"

namespace reprise {

bool SizeSlices::AnyDecides(absl::Span<const int64_t> sizes) const {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (Decides(i, sizes[i])) return true;
  }
  return false;
}

SizeSlices::Slice SizeSlices::SliceOf(absl::Span<const int64_t> sizes) const {
  Slice slice(sizes.begin(), sizes.end());
  for (size_t i = 0; i < slice.size(); ++i) {
    if (slice[i] <= alike_up_to_[i]) slice[i] = kFree;
  }
  return slice;
}

SizeSlices::State SizeSlices::Find(absl::Span<const int64_t> sizes) const {
  if (!AnyDecides(sizes)) return State::kHolds;
  const Slice slice = SliceOf(sizes);
  MutexLock lock(mutex_);
  const auto it = known_.find(slice);
  return it == known_.end() ? State::kUnknown : it->second.state;
}

SizeSlices::Found SizeSlices::FindWithReason(const Slice& slice) const {
  MutexLock lock(mutex_);
  const auto it = known_.find(slice);
  return it == known_.end() ? Found() : it->second;
}

bool SizeSlices::Await(const Slice& slice, std::function<void()> done,
                       absl::FunctionRef<bool()> begin) {
  MutexLock lock(mutex_);
  if (known_.contains(slice)) return false;
  const auto [it, first] = asked_.try_emplace(slice);
  bool begun = !first;
  WhereMemoryAllows([&] { begun = begun || begin(); });
  if (!begun) {
    asked_.erase(it);
    return false;
  }
  if (done) it->second.push_back(std::move(done));
  return true;
}

void SizeSlices::Learn(const Slice& slice, const absl::Status& holds) {
  std::vector<std::function<void()>> waiting;
  {
    MutexLock lock(mutex_);
    if (const auto it = asked_.find(slice); it != asked_.end()) {
      waiting.swap(it->second);
      asked_.erase(it);
    }
    WhereMemoryAllows([&] {
      if (known_.size() >= kMostKnown) known_.clear();
      known_[slice] = holds.ok()
                          ? Found{.state = State::kHolds}
                          : Found{.state = State::kRefused, .why = std::string(holds.message())};
    });
    refused_ += holds.ok() ? 0 : 1;
  }
  for (const std::function<void()>& done : waiting) WhereMemoryAllows(done);
}

void SizeSlices::Forget() {
  MutexLock lock(mutex_);
  known_.clear();
}

size_t SizeSlices::refused() const {
  MutexLock lock(mutex_);
  return refused_;
}

}  // namespace reprise
