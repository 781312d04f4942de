#include "runtime/engine/metrics/engine_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr double kSecondsPerNs = 1e-9;

class MeteredModel final : public ModelObserver {
 public:
  MeteredModel(std::shared_ptr<EngineMetrics::Tally> tally, std::vector<std::string> axes,
               std::unique_ptr<ModelObserver> next)
      : tally_(std::move(tally)), axes_(std::move(axes)), next_(std::move(next)) {}

  void On(const ModelEvent& event) override {
    {
      MutexLock lock(tally_->mutex);
      ModelCounts& counts = tally_->counts;
      std::visit(
          OfEvent{[&](const CompileRecord& record) {
                    ++counts.compiles_by_reason[std::string(CompileReasonName(record.reason))];
                    counts.compile_seconds +=
                        static_cast<double>(record.phases.total_ns()) * kSecondsPerNs;
                  },
                  [&](const ReplayRecord& record) {
                    ++counts.replays_by_bucket[std::string(record.bucket)];
                    for (size_t i = 0; i < record.axes.size() && i < axes_.size(); ++i) {
                      ModelCounts::Padding& padding = counts.padding[axes_[i]];
                      padding.valid += static_cast<uint64_t>(record.axes[i].valid);
                      padding.padded += static_cast<uint64_t>(record.axes[i].padded);
                    }
                  },
                  [&](const CacheLookup& lookup) { ++(lookup.hit ? counts.hits : counts.misses); },
                  [&](const StoreRequest& request) {
                    ++(request.miss.has_value() ? counts.store_misses : counts.store_hits);
                  },
                  [&](const CacheSize& size) {
                    // While a version is loaded again two have the same counts.
                    counts.recipes +=
                        static_cast<uint64_t>(size.recipes - std::exchange(recipes_, size.recipes));
                    counts.recipe_bytes +=
                        static_cast<uint64_t>(size.bytes - std::exchange(bytes_, size.bytes));
                  },
                  [](const auto&) {}},
          event);
    }
    next_->On(event);
  }

 private:
  const std::shared_ptr<EngineMetrics::Tally> tally_;
  const std::vector<std::string> axes_;
  const std::unique_ptr<ModelObserver> next_;
  // The numbers that were reported last; guarded by the mutex of `tally_`.
  int64_t recipes_ = 0, bytes_ = 0;
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
