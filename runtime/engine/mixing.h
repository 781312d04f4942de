// FindMixingAlong: the static part of a model's certificate, for one axis.
//
// The model is specialised at a few sizes of the axis and walked (certify/axis_flow.h): first at
// two small ones, then, where nothing speaks against padding, against the largest bucket, so that
// what only long requests meet is met as well.
//
// Ownership: borrows everything. Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/certify/axis_flow.h"
#include "runtime/engine/model.h"

namespace reprise {

struct MixingQuestion {
  const Graph* graph = nullptr;  // after the load passes
  const std::vector<ModelAxis>* axes = nullptr;
  size_t position = 0;                   // of the axis
  std::map<std::string, double> guards;  // what their padding is filled with
  int64_t largest = 0;                   // bucket of the axis; 0: none
};

AxisFinding FindMixingAlong(const MixingQuestion& question);

}  // namespace reprise
