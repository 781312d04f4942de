// MapCheck: holds an op to its index map (ops/maps): what is computed of some places of a parallel
// dim, in any order, equals the same places of the whole result.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {

struct MapFindings {
  bool has_op = false;  // a node of it was drawn: live ops are made by passes alone
  bool has_map = false;
  int64_t dims = 0;   // parallel ones that were looked at
  std::string wrong;  // empty: nothing is
};

// Draws what the nodes of `op` in `test` compute with, and looks at each of them. `seed`: of the
// places that are taken.
MapFindings CheckMap(const fuzz::TestCase& test, absl::string_view op, uint64_t seed);

}  // namespace reprise::obligations
