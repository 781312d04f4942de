// Catalogue: the counters behind /metrics. All metrics are in metric_table.h; a series appears when
// its model is added, with the value 0, not at its first event.
//
// Ownership: owns every series. A ModelMetrics lives as long as its Catalogue, also after its model
// is unloaded: counters never go back.
// Threads:   all methods are safe from any thread. Requests call the methods of ModelMetrics, which
//            are lock-free except for histograms, which hold a mutex of their own for a few
//            nanoseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "runtime/recipe/store.h"
#include "server/metrics/exemplars.h"
#include "server/metrics/metric_table.h"
#include "server/metrics/process_metrics.h"

namespace prometheus {
struct MetricFamily;
}

namespace reprise {

// Names known of a model when it is added: their series exist from the first scrape.
struct KnownSeries {
  std::vector<std::string> buckets;  // "exact" is added
  std::vector<std::string> axes;
  std::vector<std::string> ops;        // those that may fall back to a reference kernel
  std::vector<std::string> eager_ops;  // ops at which the model is cut
};

// Memory of all models together, and of clients; read at each scrape.
struct MemoryUse {
  int64_t arena_bytes = 0;
  int64_t data_bytes = 0;  // that data decide, including arenas
  int64_t parameter_bytes = 0;
  int64_t in_flight_bytes = 0;
  int grpc_connections = 0;
  int http_connections = 0;
};

// The labels of reprise_build_info.
struct BuildInfo {
  std::string version;
  std::string compiler;
  std::string isa;
  std::string cpu;
};

class Catalogue {
 public:
  explicit Catalogue(const BuildInfo& build);
  ~Catalogue();

  // Adds the series of a model version, or returns its existing ones, with the facts known now.
  ModelMetrics& Model(const std::string& model, const std::string& version) EXCLUDES(mutex_);
  // Returns its existing series; null where none was added.
  const ModelMetrics* Find(const std::string& model, const std::string& version) const
      EXCLUDES(mutex_);
  // Creates the series that `known` names.
  void Announce(ModelMetrics& metrics, const KnownSeries& known);
  // Returns the counters by bucket of one of `num_axes` axes: the more axes there are, the fewer
  // buckets each has. The same axis always has the same series underneath.
  std::unique_ptr<AxisMetrics> MetricsOf(const ModelMetrics& metrics, const std::string& axis,
                                         size_t num_axes) const;

  // Requests that name no model that exists: one set of series with empty labels, because names
  // from outside must not become label values.
  ModelMetrics& Unknown() { return *unknown_; }

  // Returns the rows of the server itself.
  ServerMetrics& server() { return server_; }

  // Sets the recipe store that was asked for, null if it could not be opened. Once, before the
  // first scrape; the store outlives the catalogue's last scrape.
  void SetStore(const RecipeStore* store);

  // `memory` is called at each scrape. Set once, before the first; objects that it uses outlive the
  // last.
  void SetMemory(std::function<MemoryUse()> memory) { memory_ = std::move(memory); }

  // Sets `refresh`, which is called at the beginning of each scrape, and sets metrics that are
  // measured only then. Set once, as above.
  void SetRefresh(std::function<void()> refresh) { refresh_ = std::move(refresh); }

  // Has scrapes show every series, including those of single buckets and reasons. Set once, as
  // above.
  void ShowDetail() { detail_ = true; }

  // Calls `f(model, version, metrics)` for each model version, in the order of names.
  void ForEachModel(const std::function<void(const std::string&, const std::string&,
                                             const ModelMetrics&)>& f) const EXCLUDES(mutex_);
  // Returns all metrics as they are now, without detailed ones unless they were asked for.
  std::vector<prometheus::MetricFamily> Collect() const;
  // Returns all metrics as they are now, with every series and bound.
  std::vector<prometheus::MetricFamily> CollectAll() const;
  // Returns the text exposition format, version 0.0.4.
  std::string Scrape() const;
  // Returns the format of OpenMetrics, with the exemplars that were noted.
  std::string ScrapeOpenMetrics() const;

  // Notes that a value of the histogram `metric` of a model version is of a request that is traced.
  void NoteExemplar(const char* metric, const std::string& model, const std::string& version,
                    absl::string_view trace_id, double value);

 private:
  // Constant after construction.
  ViewTable views_;
  const std::unique_ptr<prometheus::Registry> registry_;
  ServerMetrics server_;
  const std::unique_ptr<ModelMetrics> unknown_;
  std::function<MemoryUse()> memory_ = [] { return MemoryUse(); };
  std::function<void()> refresh_ = [] {};
  bool detail_ = false;
  bool wants_store_ = false;
  const RecipeStore* store_ = nullptr;
  // Self-synchronised.
  mutable MachineLoad machine_;
  Exemplars exemplars_;
  // Guarded.
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<ModelMetrics>> models_
      GUARDED_BY(mutex_);
};

}  // namespace reprise
