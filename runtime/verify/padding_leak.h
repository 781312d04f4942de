// FindPaddingLeak: the static part of a model's certificate, for one axis.
//
// The model is specialised at a few sizes of the axis and walked (certify/axis_flow.h): first at
// two small ones, then, where nothing speaks against padding, against the largest bucket, so that
// what only long requests meet is met as well.
//
// Before that the symbolic model is searched for what the size of the axis decides
// (certify/size_flow.h), which no walk at a few sizes shows.
//
// Ownership: borrows everything. Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/certify/axis_flow.h"
#include "runtime/certify/size_flow.h"
#include "runtime/graph/node.h"
#include "runtime/verify/model_axis.h"

namespace reprise {

// The numbers that a model makes of its sizes, at a few of them: the same for all its axes, so that
// one sampler does for all of them.
//
// Threads: all methods from any; the first to ask looks, the others wait for it.
class SizeSampler {
 public:
  // `fixed`: symbols of the graph that are no axes here, and their sizes.
  SizeSampler(const Graph& graph, const std::vector<ModelAxis>& axes,
              std::map<std::string, int64_t> fixed = {})
      : graph_(graph), axes_(axes), fixed_(std::move(fixed)) {}

  // With the axis at `position` at its `largest` as well.
  SizeQuestion Ask(size_t position, int64_t largest) const;
  const std::map<std::string, int64_t>& fixed() const { return fixed_; }

 private:
  std::optional<SizeSample> At(const std::vector<int64_t>& sizes) const;
  void FindGrid() const;

  const Graph& graph_;
  const std::vector<ModelAxis>& axes_;
  const std::map<std::string, int64_t> fixed_;
  mutable std::once_flag looked_;
  mutable std::vector<SizeSample> grid_;  // empty: the model takes no such sizes
};

struct PaddingLeakQuestion {
  const Graph& graph;  // as it is after the load passes
  const std::vector<ModelAxis>& axes;
  const SizeSampler& sampler;            // samples the graph, with what is fixed in it
  size_t position = 0;                   // position of the axis
  std::map<std::string, double> guards;  // what their padding is filled with
  std::set<std::string> masks;           // those of them that are masks
  std::set<std::string> guessed_masks;   // as AxisFlowOptions
  int64_t largest = 0;                   // bucket of the axis; 0: none
  bool own_end = false;                  // as AxisFlowOptions
};

AxisFinding FindPaddingLeak(const PaddingLeakQuestion& question);

// Finds what the size of the axis at `position` may decide, among sizes up to `largest` (0: all
// that a request may have): numbers, branches, and the form of what nodes compute with
// (certify/size_forms.h). Not proved where it cannot be told.
AxisFinding FindDecisions(const Graph& graph, const SizeSampler& sampler, size_t position,
                          int64_t largest = 0);

}  // namespace reprise
