#include "server/metrics/series.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <type_traits>

namespace reprise {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// Returns the family of that name, which several rows may share. `label`: the label that the row is
// by, if any.
template <typename T>
Family<T>& FamilyOf(const MetricScope& scope, const MetricText& text,
                    const std::string& label = "") {
  scope.views().Note(text.name, text.view, label);
  const auto build = [&](auto builder) -> Family<T>& {
    return builder.Name(text.name).Help(text.help).Register(scope.registry());
  };
  if constexpr (std::is_same_v<T, Counter>) {
    return build(prometheus::BuildCounter());
  } else if constexpr (std::is_same_v<T, Gauge>) {
    return build(prometheus::BuildGauge());
  } else {
    return build(prometheus::BuildHistogram());
  }
}

template <typename T>
T& AddSeries(Family<T>& family, const LabelValues& labels, const MetricText& text) {
  const prometheus::Labels map(labels.begin(), labels.end());
  if constexpr (std::is_same_v<T, Histogram>) {
    return family.Add(map, text.bounds);
  } else {
    return family.Add(map);
  }
}

LabelValues Plus(LabelValues labels, const std::string& label, absl::string_view value) {
  labels.emplace_back(label, std::string(value));
  return labels;
}

}  // namespace

MetricScope MetricScope::With(LabelValues more) const {
  MetricScope scope = *this;
  scope.labels_.insert(scope.labels_.end(), more.begin(), more.end());
  return scope;
}

void MetricScope::Announce(Announced kind, absl::string_view value) const {
  for (const auto& [expected, add] : *rows_) {
    if (expected == kind) add(value);
  }
}

template <typename T>
Series<T>::Series(const MetricScope& scope, const MetricText& text)
    : series_(&AddSeries(FamilyOf<T>(scope, text), scope.labels(), text)) {}

template <typename T>
SeriesBy<T>::SeriesBy(const MetricScope& scope, MetricText text, std::string label,
                      const std::vector<absl::string_view>& known, size_t most_values)
    : family_(FamilyOf<T>(scope, text, label)),
      text_(std::move(text)),
      labels_(scope.labels()),
      label_(std::move(label)),
      most_values_(most_values) {
  for (const absl::string_view value : known) at(value);
}

template <typename T>
SeriesBy<T>::SeriesBy(const MetricScope& scope, MetricText text, std::string label,
                      Announced announced)
    : SeriesBy(scope, std::move(text), std::move(label)) {
  scope.Expect(announced, [this](absl::string_view value) { at(value); });
}

template <typename T>
T& SeriesBy<T>::at(absl::string_view value) {
  MutexLock lock(mutex_);
  auto found = series_.find(value);
  if (found == series_.end() && series_.size() >= most_values_) {
    value = kOtherValue;
    found = series_.find(value);
  }
  if (found != series_.end()) return *found->second;
  T& series = AddSeries(family_, Plus(labels_, label_, value), text_);
  series_.emplace(std::string(value), &series);
  return series;
}

VerdictBy::VerdictBy(const MetricScope& scope, const MetricText& text, std::string label,
                     std::array<std::string, 2> says)
    : family_(FamilyOf<Gauge>(scope, text)),
      labels_(scope.labels()),
      label_(std::move(label)),
      says_(std::move(says)) {}

void VerdictBy::Set(const std::string& value, absl::string_view word, absl::string_view reason) {
  const LabelValues labels =
      Plus(Plus(Plus(labels_, label_, value), says_[0], word), says_[1], reason);
  MutexLock lock(mutex_);
  Gauge*& series = series_[value];
  if (series != nullptr) family_.Remove(series);
  series = &AddSeries(family_, labels, MetricText("", ""));
  series->Set(1);
}

template class Series<Counter>;
template class Series<Gauge>;
template class Series<Histogram>;
template class SeriesBy<Counter>;
template class SeriesBy<Gauge>;
template class SeriesBy<Histogram>;

}  // namespace reprise
