// The series of a family that a scrape shows: storage of every one costs.
//
// All series are counted at all times; a scrape without --metrics-detail leaves out bounds of
// histograms, series of buckets and reasons, and families that a model has no use for.
//
// Threads: all methods are safe from any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"

namespace prometheus {
struct MetricFamily;
}

namespace reprise {

enum class ScrapeView {
  kAlways,
  // One series, their sum, for all values of the label that its row is by.
  kFolded,
  // Left out.
  kDetail,
  // For a model that has used one of the families with the same view: a family of tokens for a
  // model that has made some. A family that stays zero for the model's life has no series.
  kTexts,
  kSpeech,
  kTokens,
  kCarried,
  kState,
  kCuts,
  kHeld,    // the states that hold a model back: frozen, asleep
  kAudits,  // answers that were computed again
};

class ViewTable {
 public:
  // `label`: the label that the family's rows are by, if any. Rows that share a family agree.
  void Note(const std::string& family, ScrapeView view, const std::string& label) EXCLUDES(mutex_);
  // Reduces `families` to the series of a scrape without detail.
  void Reduce(std::vector<prometheus::MetricFamily>& families) const EXCLUDES(mutex_);

 private:
  struct Row {
    ScrapeView view = ScrapeView::kAlways;
    std::string label;
  };
  mutable Mutex mutex_;
  std::map<std::string, Row> rows_ GUARDED_BY(mutex_);  // those that are not shown always
};

}  // namespace reprise
