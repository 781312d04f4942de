#include "runtime/engine/metrics/engine_metrics.h"

#include <atomic>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr double kSecondsPerNs = 1e-9;

class MeteredModel final : public ModelObserver {
 public:
  MeteredModel(std::shared_ptr<EngineMetrics::Tally> tally, std::vector<std::string> axes,
               std::unique_ptr<ModelObserver> next)
      : tally_(std::move(tally)), axes_(std::move(axes)), next_(std::move(next)) {}

  void OnCompile(const CompileRecord& record) override {
    Count([&](ModelCounts& counts) {
      ++counts.compiles_by_reason[std::string(CompileReasonName(record.reason))];
      counts.compile_seconds += static_cast<double>(record.phases.total_ns()) * kSecondsPerNs;
    });
    next_->OnCompile(record);
  }

  void OnReplay(const ReplayRecord& record) override {
    Count([&](ModelCounts& counts) {
      ++counts.replays_by_bucket[std::string(record.bucket)];
      for (size_t i = 0; i < record.axes.size() && i < axes_.size(); ++i) {
        ModelCounts::Padding& padding = counts.padding[axes_[i]];
        padding.valid += static_cast<uint64_t>(record.axes[i].valid);
        padding.padded += static_cast<uint64_t>(record.axes[i].padded);
      }
    });
    next_->OnReplay(record);
  }

  void OnCacheRequest(bool hit) override {
    Count([&](ModelCounts& counts) { ++(hit ? counts.hits : counts.misses); });
    next_->OnCacheRequest(hit);
  }
  void OnStoreHit() override {
    Count([](ModelCounts& counts) { ++counts.store_hits; });
    next_->OnStoreHit();
  }
  void OnStoreMiss(StoreMiss miss) override {
    Count([](ModelCounts& counts) { ++counts.store_misses; });
    next_->OnStoreMiss(miss);
  }
  void OnCacheSize(int64_t recipes, int64_t bytes) override {
    // While a version is loaded again two have the same counts.
    const int64_t more_recipes = recipes - recipes_.exchange(recipes);
    const int64_t more_bytes = bytes - bytes_.exchange(bytes);
    Count([&](ModelCounts& counts) {
      counts.recipes += static_cast<uint64_t>(more_recipes);
      counts.recipe_bytes += static_cast<uint64_t>(more_bytes);
    });
    next_->OnCacheSize(recipes, bytes);
  }

  void OnRequestLengths(absl::Span<const int64_t> sizes) override {
    next_->OnRequestLengths(sizes);
  }
  void OnEviction(EvictionReason reason) override { next_->OnEviction(reason); }
  void OnTune(absl::string_view bucket) override { next_->OnTune(bucket); }
  void OnThrash(absl::string_view bucket) override { next_->OnThrash(bucket); }
  void OnEagerNode(absl::string_view op, int64_t duration_ns) override {
    next_->OnEagerNode(op, duration_ns);
  }
  void OnSection(int64_t duration_ns) override { next_->OnSection(duration_ns); }
  void OnEagerCacheRequest(bool hit) override { next_->OnEagerCacheRequest(hit); }
  void OnEagerCacheSize(int64_t ops, int64_t bytes) override {
    next_->OnEagerCacheSize(ops, bytes);
  }
  void OnEagerEviction() override { next_->OnEagerEviction(); }
  void OnReferenceKernel(absl::string_view op, absl::string_view node) override {
    next_->OnReferenceKernel(op, node);
  }
  void OnWithheldAnswer() override { next_->OnWithheldAnswer(); }
  void OnAudit(AuditResult result) override { next_->OnAudit(result); }
  void OnQuarantine(size_t axis) override { next_->OnQuarantine(axis); }
  void OnBuckets(const BucketReport& report, const std::vector<std::string>& labels) override {
    next_->OnBuckets(report, labels);
  }

 private:
  template <typename Add>
  void Count(const Add& add) {
    MutexLock lock(tally_->mutex);
    add(tally_->counts);
  }

  const std::shared_ptr<EngineMetrics::Tally> tally_;
  const std::vector<std::string> axes_;
  const std::unique_ptr<ModelObserver> next_;
  std::atomic<int64_t> recipes_{0}, bytes_{0};  // the numbers that were reported last
};

}  // namespace

std::unique_ptr<ModelObserver> EngineMetrics::ForModel(const ModelObserverSpec& spec) {
  std::shared_ptr<Tally> tally;
  {
    MutexLock lock(mutex_);
    std::shared_ptr<Tally>& known = models_[{spec.id.name, spec.id.version}];
    if (known == nullptr) {
      known = std::make_shared<Tally>();
      MutexLock counts_lock(known->mutex);
      known->counts.model = spec.id.name;
      known->counts.version = absl::StrCat(spec.id.version);
      for (int i = 0; i < kNumCompileReasons; ++i) {
        known->counts
            .compiles_by_reason[std::string(CompileReasonName(static_cast<CompileReason>(i)))] = 0;
      }
    }
    tally = known;
  }
  return std::make_unique<MeteredModel>(std::move(tally), spec.axes, next_.ForModel(spec));
}

std::vector<ModelCounts> EngineMetrics::Counts() const {
  std::vector<ModelCounts> all;
  MutexLock lock(mutex_);
  for (const auto& [id, tally] : models_) {
    MutexLock counts_lock(tally->mutex);
    all.push_back(tally->counts);
  }
  return all;
}

}  // namespace reprise
