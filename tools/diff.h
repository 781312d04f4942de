// The report of `reprise diff`: the differences of two sides, and their graphs side by side.
#pragma once

#include <string>

#include "tools/diff_side.h"

namespace reprise::cli {

struct DiffOptions {
  int width = 160;   // characters of a line
  int context = 2;   // rows that are the same around those that differ
  bool all = false;  // every row
  bool json = false;
};

std::string DiffReport(const DiffSide& was, const DiffSide& now, const DiffOptions& options);

}  // namespace reprise::cli
