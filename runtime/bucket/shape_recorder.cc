#include "runtime/bucket/shape_recorder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"

namespace reprise {
namespace {

void Add(ShapeTally& sum, const ShapeTally& more) {
  sum.requests += more.requests;
  sum.larger += more.larger;
  sum.outside += more.outside;
  sum.fresh += more.fresh;
}

}  // namespace

int64_t ShapeTable::unlisted() const {
  int64_t listed = 0;
  for (const ShapeRow& row : rows) listed += row.all.requests;
  return all.requests - listed;
}

void ShapeRecorder::Record(absl::Span<const int64_t> sizes, ShapeService service,
                           int64_t requests) {
  const uint64_t hash = absl::HashOf(sizes);
  MutexLock lock(mutex_);
  const bool fresh = seen_.size() < kMaxDistinct && seen_.insert(hash).second;
  const ShapeTally one = {.requests = requests,
                          .larger = service == ShapeService::kLarger ? requests : 0,
                          .outside = service == ShapeService::kOutside ? requests : 0,
                          .fresh = fresh ? 1 : 0};
  Entry& entry = entries_[std::vector<int64_t>(sizes.begin(), sizes.end())];
  Add(entry.all, one);
  entry.filling += requests;
  Add(all_, one);
  Add(filling_, one);
  if (entries_.size() > kMaxShapes) Shrink();
  if (filling_.requests >= window_) Roll();
}

void ShapeRecorder::Roll() {
  before_ = std::exchange(last_, std::exchange(filling_, {}));
  for (auto& [sizes, entry] : entries_) {
    entry.before = std::exchange(entry.last, std::exchange(entry.filling, 0));
  }
}

// Drops a quarter at once, so that not every new shape costs a walk through the table.
void ShapeRecorder::Shrink() {
  using Weight = std::tuple<int64_t, int64_t, int64_t>;
  const auto weight_of = [](const Entry& entry) {
    return Weight(entry.filling + entry.last, entry.before, entry.all.requests);
  };
  std::vector<std::pair<Weight, std::vector<int64_t>>> weights;
  for (const auto& [sizes, entry] : entries_) weights.emplace_back(weight_of(entry), sizes);
  std::nth_element(weights.begin(), weights.begin() + kMaxShapes / 4, weights.end());
  for (size_t i = 0; i < kMaxShapes / 4; ++i) entries_.erase(weights[i].second);
}

ShapeTable ShapeRecorder::Snapshot() const {
  ShapeTable table;
  {
    MutexLock lock(mutex_);
    for (const auto& [sizes, entry] : entries_) {
      table.rows.push_back({.sizes = sizes,
                            .all = entry.all,
                            .recent = entry.filling + entry.last,
                            .last = entry.last,
                            .before = entry.before});
    }
    table.all = all_;
    table.recent = filling_;
    Add(table.recent, last_);
    table.last = last_;
    table.before = before_;
    table.distinct = static_cast<int64_t>(seen_.size());
    table.distinct_more = seen_.size() >= kMaxDistinct;
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const ShapeRow& a, const ShapeRow& b) {
    return a.all.requests != b.all.requests ? a.all.requests > b.all.requests : a.sizes < b.sizes;
  });
  return table;
}

}  // namespace reprise
