#include "server/metrics/views.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <set>
#include <utility>

namespace reprise {
namespace {

constexpr size_t kMostBounds = 7;

using prometheus::ClientMetric;
using prometheus::MetricFamily;

std::string ValueOf(const ClientMetric& metric, const std::string& label) {
  for (const ClientMetric::Label& one : metric.label) {
    if (one.name == label) return one.value;
  }
  return "";
}

// Returns a model version; requests that name no model that exists are of the model "".
std::pair<std::string, std::string> ModelOf(const ClientMetric& metric) {
  return {ValueOf(metric, "model"), ValueOf(metric, "version")};
}

bool IsUnknownModel(const ClientMetric& metric) {
  return std::any_of(metric.label.begin(), metric.label.end(), [](const ClientMetric::Label& one) {
    return one.name == "model" && one.value.empty();
  });
}

bool IsZero(const ClientMetric& metric) {
  return metric.counter.value == 0 && metric.gauge.value == 0 && metric.histogram.sample_count == 0;
}

void Add(const ClientMetric& metric, ClientMetric& sum) {
  sum.counter.value += metric.counter.value;
  sum.gauge.value += metric.gauge.value;
  sum.histogram.sample_count += metric.histogram.sample_count;
  sum.histogram.sample_sum += metric.histogram.sample_sum;
  // All series of a family have the same bounds.
  for (size_t i = 0; i < metric.histogram.bucket.size(); ++i) {
    sum.histogram.bucket[i].cumulative_count += metric.histogram.bucket[i].cumulative_count;
  }
}

// Replaces series that differ in `label` alone by their sum, without the label.
void Fold(MetricFamily& family, const std::string& label) {
  std::vector<ClientMetric> sums;
  std::map<std::vector<std::pair<std::string, std::string>>, size_t> places;
  for (ClientMetric& metric : family.metric) {
    metric.label.erase(std::remove_if(metric.label.begin(), metric.label.end(),
                                      [&](const auto& one) { return one.name == label; }),
                       metric.label.end());
    std::vector<std::pair<std::string, std::string>> rest;
    for (const auto& one : metric.label) rest.emplace_back(one.name, one.value);
    const auto [place, is_new] = places.emplace(std::move(rest), sums.size());
    if (is_new) {
      sums.push_back(std::move(metric));
    } else {
      Add(metric, sums[place->second]);
    }
  }
  family.metric = std::move(sums);
}

// Leaves `kMostBounds` of a histogram's bounds, evenly among them, the first and the last included.
void Coarsen(ClientMetric& metric) {
  std::vector<ClientMetric::Bucket>& buckets = metric.histogram.bucket;
  if (buckets.size() <= kMostBounds + 1) return;  // one is infinity
  const size_t last = buckets.size() - 2;
  std::vector<ClientMetric::Bucket> kept;
  for (size_t i = 0; i < kMostBounds; ++i) {
    kept.push_back(buckets[(i * last + (kMostBounds - 1) / 2) / (kMostBounds - 1)]);
  }
  kept.push_back(buckets.back());
  buckets = std::move(kept);
}

}  // namespace

void ViewTable::Note(const std::string& family, ScrapeView view, const std::string& label) {
  if (view == ScrapeView::kAlways) return;
  MutexLock lock(mutex_);
  rows_[family] = {view, label};
}

void ViewTable::Reduce(std::vector<MetricFamily>& families) const {
  MutexLock lock(mutex_);
  const auto row_of = [&](const MetricFamily& family) {
    const auto found = rows_.find(family.name);
    return found == rows_.end() ? Row() : found->second;
  };
  // Views that a model has used.
  std::set<std::pair<ScrapeView, std::pair<std::string, std::string>>> used;
  for (const MetricFamily& family : families) {
    const ScrapeView view = row_of(family).view;
    if (view == ScrapeView::kAlways || view == ScrapeView::kFolded || view == ScrapeView::kDetail)
      continue;
    for (const ClientMetric& metric : family.metric) {
      if (!IsZero(metric)) used.emplace(view, ModelOf(metric));
    }
  }
  for (MetricFamily& family : families) {
    const Row row = row_of(family);
    const auto hidden = [&](const ClientMetric& metric) {
      if (row.view == ScrapeView::kDetail || (IsUnknownModel(metric) && IsZero(metric)))
        return true;
      if (row.view == ScrapeView::kAlways || row.view == ScrapeView::kFolded) return false;
      return used.count({row.view, ModelOf(metric)}) == 0;
    };
    family.metric.erase(std::remove_if(family.metric.begin(), family.metric.end(), hidden),
                        family.metric.end());
    if (row.view == ScrapeView::kFolded) Fold(family, row.label);
    for (ClientMetric& metric : family.metric) Coarsen(metric);
  }
  families.erase(std::remove_if(families.begin(), families.end(),
                                [](const MetricFamily& family) { return family.metric.empty(); }),
                 families.end());
}

}  // namespace reprise
