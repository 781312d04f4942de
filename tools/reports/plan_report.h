// How a plan looks: tables and charts for a terminal, a picture for a document.
#pragma once

#include <string>
#include <vector>

#include "runtime/bucket/plan.h"

namespace reprise::cli {

struct PlanFacts {
  std::string source;  // file, or model and server
  int chosen = 8;      // the number of buckets that the report ends with
  std::string axis = "sequence";
  bool measured = false;         // time is measured in replays; otherwise elements stand for it
  double bytes_per_element = 0;  // memory of a recipe; 0: not known, elements are shown
  double capture_ms = 0;         // time of one capture; 0: not known
};

// Returns the lengths, their histogram with the chosen boundaries, and four tables: waste, time,
// memory and captures by k and strategy; a chart of waste; the solver's boundaries.
std::string PlanText(const PlannedLengths& lengths, const PlanTable& table, const PlanFacts& facts);

// Lines for config.pbtxt.
std::string PlanConfig(const PlannedLengths& lengths, const Judgement& chosen,
                       const PlanFacts& facts);

// Returns the table, and the lines of PlanConfig, as JSON.
std::string PlanJson(const PlannedLengths& lengths, const PlanTable& table, const PlanFacts& facts);

// Draws two panels: waste by k for each strategy, and the histogram with the chosen boundaries.
std::string PlanSvg(const PlannedLengths& lengths, const PlanTable& table, const PlanFacts& facts);

// `sizes` as in config.pbtxt: "16,32,64".
std::string JoinSizes(const std::vector<int64_t>& sizes);

}  // namespace reprise::cli
