// The types of a row of the table of metrics (metric_table.h): a row is a member that is declared
// with its name and its help text, makes its series when its struct is made, and is counted by that
// member's name.
//
// Ownership: the registry owns the series, which stay until it goes: counters never go back.
// Threads:   all methods are safe from any thread. A Series is lock-free except for histograms,
//            which hold a mutex of their own for a few nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/mutex.h"
#include "server/metrics/views.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
template <typename T>
class Family;
}  // namespace prometheus

namespace reprise {

using LabelValues = std::vector<std::pair<std::string, std::string>>;

struct MetricText {
  MetricText(const char* of_name, const char* of_help, ScrapeView shown = ScrapeView::kAlways)
      : name(of_name), help(of_help), view(shown) {}
  MetricText(const char* of_name, const char* of_help, std::vector<double> upper_bounds,
             ScrapeView shown = ScrapeView::kAlways)
      : name(of_name), help(of_help), view(shown), bounds(std::move(upper_bounds)) {}

  const char* name;
  const char* help;
  ScrapeView view;
  std::vector<double> bounds;  // upper ones of a histogram, in the unit of the name
};

// Values of a label that are known only when a model is: those rows have a series for each of them
// as soon as MetricScope::Announce was told.
enum class Announced { kNothing, kBuckets, kAxes, kOps, kEagerOps };

// Where rows have their series: the labels that all of them share.
class MetricScope {
 public:
  // `views` gets each row, and outlives them.
  MetricScope(prometheus::Registry& registry, ViewTable& views, LabelValues labels)
      : registry_(&registry), views_(&views), labels_(std::move(labels)) {}
  // Returns the same scope with more labels.
  MetricScope With(LabelValues more) const;

  prometheus::Registry& registry() const { return *registry_; }
  ViewTable& views() const { return *views_; }
  const LabelValues& labels() const { return labels_; }

  // Makes a series for `value` in each row that waits for values of this kind, those under more
  // labels among them.
  void Announce(Announced kind, absl::string_view value) const;
  // Called by rows as they are made, before anything is announced. They outlive the scope.
  void Expect(Announced kind, std::function<void(absl::string_view)> add) const {
    rows_->emplace_back(kind, std::move(add));
  }

 private:
  using Rows = std::vector<std::pair<Announced, std::function<void(absl::string_view)>>>;

  prometheus::Registry* registry_;
  ViewTable* views_;
  LabelValues labels_;
  std::shared_ptr<Rows> rows_ = std::make_shared<Rows>();  // shared by scopes with the same origin
};

// A row with one series. T: Counter, Gauge or Histogram of prometheus.
template <typename T>
class Series {
 public:
  Series(const MetricScope& scope, const MetricText& text);
  T* operator->() const { return series_; }
  T& operator*() const { return *series_; }

 private:
  T* series_;
};

// A row with a series for each value of one more label, looked up without allocation. Values that
// were not announced are added when they first occur, up to `most_values`: buckets of many axes,
// and policies that followed each other, would otherwise add series for ever. Later values share
// the series of kOtherValue.
template <typename T>
class SeriesBy {
 public:
  static constexpr size_t kMostValues = 512;
  static constexpr absl::string_view kOtherValue = "other";

  // `known`: values that are there from the start.
  SeriesBy(const MetricScope& scope, MetricText text, std::string label,
           const std::vector<absl::string_view>& known = {}, size_t most_values = kMostValues);
  SeriesBy(const MetricScope& scope, MetricText text, std::string label, Announced announced);
  SeriesBy(const SeriesBy&) = delete;
  SeriesBy& operator=(const SeriesBy&) = delete;

  T& at(absl::string_view value) EXCLUDES(mutex_);
  // Calls `f(value, series)` for each, in the order of the values.
  template <typename F>
  void ForEach(F f) const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::map<std::string, T*> sorted(series_.begin(), series_.end());
    for (const auto& [value, series] : sorted) f(value, *series);
  }

 private:
  // Constant after construction.
  prometheus::Family<T>& family_;
  const MetricText text_;
  const LabelValues labels_;
  const std::string label_;
  const size_t most_values_;
  // Guarded.
  mutable Mutex mutex_;
  HashMap<std::string, T*> series_ GUARDED_BY(mutex_);
};

// A row of gauges that are 1 and tell, for each value of a label, a word and its reason by two more
// labels. A new word replaces the one before.
class VerdictBy {
 public:
  VerdictBy(const MetricScope& scope, const MetricText& text, std::string label,
            std::array<std::string, 2> says);
  VerdictBy(const VerdictBy&) = delete;
  VerdictBy& operator=(const VerdictBy&) = delete;

  void Set(const std::string& value, absl::string_view word, absl::string_view reason)
      EXCLUDES(mutex_);

 private:
  // Constant after construction.
  prometheus::Family<prometheus::Gauge>& family_;
  const LabelValues labels_;
  const std::string label_;
  const std::array<std::string, 2> says_;
  // Guarded.
  Mutex mutex_;
  std::map<std::string, prometheus::Gauge*> series_ GUARDED_BY(mutex_);
};

}  // namespace reprise
