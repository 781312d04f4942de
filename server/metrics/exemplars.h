// Exemplars: for series of histograms, the traces of some of the latest values.
//
// Threads: all methods from any; values of traced requests alone come here.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"

namespace reprise {

struct Exemplar {
  std::string trace_id;
  double value = 0;
  double unix_seconds = 0;
};

class Exemplars {
 public:
  using Labels = std::map<std::string, std::string>;
  static constexpr size_t kKept = 32;  // values that a series keeps

  void Note(const std::string& metric, const Labels& labels, Exemplar exemplar) EXCLUDES(mutex_);
  // Returns the exemplars of a series, the latest first.
  std::vector<Exemplar> Find(const std::string& metric, const Labels& labels) const
      EXCLUDES(mutex_);

 private:
  struct Ring {
    std::array<Exemplar, kKept> values;
    size_t written = 0;
  };

  mutable Mutex mutex_;
  std::map<std::pair<std::string, Labels>, Ring> rings_ GUARDED_BY(mutex_);
};

}  // namespace reprise
