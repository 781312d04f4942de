#include "server/metrics/metrics_observer.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <string>
#include <vector>

namespace reprise {
namespace {

constexpr double kSecondsPerNs = 1e-9;

absl::string_view VerdictName(AxisPadding padding) {
  switch (padding) {
    case AxisPadding::kProved:
      return "proved";
    case AxisPadding::kRefused:
      return "refused";
    case AxisPadding::kOff:
      return "off";
  }
  return "";
}

class ModelMetricsObserver final : public ModelObserver {
 public:
  ModelMetricsObserver(Catalogue& catalogue, ModelMetrics& metrics, const ModelObserverSpec& spec,
                       const MetricsObserver::OnReplay& on_replay)
      : catalogue_(catalogue),
        metrics_(metrics),
        model_(spec.id.name),
        on_replay_(on_replay),
        labels_(spec.axes),
        mixing_(spec.mixing) {
    for (const std::string& axis : spec.axes) {
      axes_.push_back({&metrics.valid_elements.at(axis), &metrics.padded_elements.at(axis),
                       &metrics.request_length.at(axis),
                       catalogue.MetricsOf(metrics, axis, spec.axes.size())});
    }
  }

  void On(const ModelEvent& event) override {
    std::visit([this](const auto& of) { Count(of); }, event);
  }

 private:
  void Count(const CompileRecord& record) {
    metrics_.compiles.at(CompileReasonName(record.reason)).Increment();
    metrics_.compile_duration->Observe(record.phases.total_ns() * kSecondsPerNs);
  }

  void Count(const ReplayRecord& record) {
    metrics_.replays.at(record.bucket).Increment();
    metrics_.replay_duration.at(record.bucket).Observe(record.duration_ns * kSecondsPerNs);
    metrics_.batch_size->Observe(static_cast<double>(record.rows));
    for (size_t i = 0; i < record.axes.size(); ++i) {
      axes_[i].valid->Increment(static_cast<double>(record.axes[i].valid));
      axes_[i].padded->Increment(static_cast<double>(record.axes[i].padded));
      AxisMetrics& by_bucket = *axes_[i].by_bucket;
      by_bucket.valid.at(record.bucket).Increment(static_cast<double>(record.axes[i].valid));
      by_bucket.padded.at(record.bucket).Increment(static_cast<double>(record.axes[i].padded));
      by_bucket.wasted_seconds.at(record.bucket)
          .Increment(static_cast<double>(record.axes[i].wasted_ns) * kSecondsPerNs);
    }
    if (record.saved_capture) metrics_.captures_saved->Increment();
    if (on_replay_ != nullptr) on_replay_(model_, record);
  }

  void Count(const RequestLengths& request) {
    for (size_t i = 0; i < request.sizes.size(); ++i) {
      axes_[i].length->Observe(static_cast<double>(request.sizes[i]));
    }
  }

  void Count(const CacheLookup& lookup) {
    (lookup.hit ? metrics_.memory_hits : metrics_.memory_misses)->Increment();
  }

  void Count(const StoreRequest& request) {
    (request.miss.has_value() ? metrics_.store_misses : metrics_.store_hits)->Increment();
    if (request.miss.has_value()) {
      metrics_.store_misses_by.at(StoreMissName(*request.miss)).Increment();
    }
  }

  void Count(const CacheSize& size) {
    // While a version is reloaded two have the same series.
    metrics_.cache_recipes->Increment(
        static_cast<double>(size.recipes - recipes_.exchange(size.recipes)));
    metrics_.cache_bytes->Increment(static_cast<double>(size.bytes - bytes_.exchange(size.bytes)));
  }

  void Count(const RecipeEviction& eviction) {
    metrics_.evictions.at(EvictionReasonName(eviction.reason)).Increment();
  }

  void Count(const TunedRecipe&) { metrics_.tunes->Increment(); }

  void Count(const Thrash& thrash) { metrics_.thrash.at(thrash.bucket).Increment(); }

  void Count(const BucketsInForce& buckets) {
    const BucketReport& report = buckets.report;
    catalogue_.Announce(metrics_, {.buckets = buckets.labels});
    metrics_.bucket_waste_expected->Set(report.state.expected_waste);
    metrics_.bucket_waste_actual->Set(report.actual_waste);
    metrics_.bucket_drift->Set(report.state.drift);
    metrics_.bucket_saving->Set(report.suggestion.has_value() ? report.suggestion->saving : 0);
    // Told by one thread at a time.
    metrics_.bucket_changes->Increment(static_cast<double>(report.state.changes - changes_));
    changes_ = report.state.changes;
  }

  void Count(const EagerNodeRun& run) {
    metrics_.eager_nodes.at(run.op).Increment();
    metrics_.eager_seconds.at(run.op).Increment(static_cast<double>(run.duration_ns) *
                                                kSecondsPerNs);
  }

  void Count(const SectionRun& run) {
    metrics_.sections->Increment();
    metrics_.section_seconds->Increment(static_cast<double>(run.duration_ns) * kSecondsPerNs);
  }

  void Count(const EagerCacheLookup& lookup) {
    (lookup.hit ? metrics_.eager_hits : metrics_.eager_misses)->Increment();
  }

  void Count(const EagerCacheSize& size) {
    metrics_.eager_ops->Increment(static_cast<double>(size.ops - eager_ops_.exchange(size.ops)));
    metrics_.eager_bytes->Increment(
        static_cast<double>(size.bytes - eager_bytes_.exchange(size.bytes)));
  }

  void Count(const EagerEviction&) { metrics_.eager_evictions->Increment(); }

  void Count(const ReferenceLaunch& launch) {
    metrics_.reference_kernels.at(launch.op).Increment();
  }

  void Count(const WithheldAnswer&) { metrics_.withheld_answers->Increment(); }

  void Count(const AuditOutcome& audit) {
    metrics_.audited_answers.at(AuditResultName(audit.result)).Increment();
  }

  void Count(const Quarantine& quarantine) {
    metrics_.axis_certified.at(labels_[quarantine.axis]).Set(0);
    metrics_.axis_verdict.Set(labels_[quarantine.axis], VerdictName(AxisPadding::kRefused),
                              mixing_[quarantine.axis]);
    metrics_.audit_quarantined->Increment();
  }

  struct Axis {
    prometheus::Counter* valid;
    prometheus::Counter* padded;
    prometheus::Histogram* length;
    std::unique_ptr<AxisMetrics> by_bucket;
  };

  // Constant after construction.
  Catalogue& catalogue_;
  ModelMetrics& metrics_;
  const std::string model_;
  const MetricsObserver::OnReplay& on_replay_;  // the observer's
  const std::vector<std::string> labels_;       // the axes' labels
  const std::vector<std::string> mixing_;       // and whether their positions meet, as far as known
  std::vector<Axis> axes_;
  // The numbers that were told last.
  std::atomic<int64_t> recipes_{0}, bytes_{0}, eager_ops_{0}, eager_bytes_{0};
  // Used by one thread at a time.
  int64_t changes_ = 0;
};

}  // namespace

std::unique_ptr<ModelObserver> MetricsObserver::ForModel(const ModelObserverSpec& spec) {
  ModelMetrics& metrics = catalogue_.Model(spec.id.name, std::to_string(spec.id.version));
  metrics.audit_quarantined->Set(0);
  catalogue_.Announce(metrics,
                      {.buckets = spec.buckets, .axes = spec.axes, .eager_ops = spec.eager_ops});
  for (size_t i = 0; i < spec.padding.size(); ++i) {
    if (spec.padding[i] != AxisPadding::kOff) {
      metrics.axis_certified.at(spec.axes[i]).Set(spec.padding[i] != AxisPadding::kRefused);
    }
    metrics.axis_verdict.Set(spec.axes[i], VerdictName(spec.padding[i]), spec.mixing[i]);
  }
  return std::make_unique<ModelMetricsObserver>(catalogue_, metrics, spec, on_replay_);
}

}  // namespace reprise
