// UnevenTables: which constants of a specialised model may differ in themselves at other sizes.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace reprise {

// Along which dims elements of a table may differ at some sizes.
struct UnevenDims {
  uint64_t along = 0;    // bit i: along the dim that has i dims after it
  bool unknown = false;  // the ops do not tell: along others too
  bool unread = false;   // nor whether it is the same table at all sizes

  bool even() const { return along == 0 && !unknown; }
  bool Along(int64_t dims_behind) const {
    return dims_behind < 64 && ((along >> dims_behind) & 1) != 0;
  }
};

// By the names of the constants.
using UnevenTables = std::map<std::string, UnevenDims>;

}  // namespace reprise
