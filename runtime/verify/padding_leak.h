// FindPaddingLeak: the static part of a model's certificate, for one axis.
//
// The model is specialised at a few sizes of the axis and walked (certify/axis_flow.h): first at
// two small ones, then, where nothing speaks against padding, against the largest bucket, so that
// what only long requests meet is met as well.
//
// Before that the symbolic model is searched for what the size of the axis decides
// (size_choices.h), which no walk at a few sizes shows.
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
#include "runtime/graph/node.h"
#include "runtime/verify/size_choices.h"

namespace reprise {

struct PaddingLeakQuestion {
  const SizeReadings& readings;         // readings of the graph after the load passes, by its axes
  size_t position = 0;                  // position of the axis
  std::map<std::string, double> fills;  // as AxisFlowOptions
  std::set<std::string> live;           // as AxisFlowOptions
  int64_t largest = 0;                  // bucket of the axis; 0: none
  bool repeats_last = false;            // as AxisFlowOptions; the axis is a batch
  bool checks_places = false;           // as AxisFlowOptions
};

AxisFinding FindPaddingLeak(const PaddingLeakQuestion& question);

}  // namespace reprise
