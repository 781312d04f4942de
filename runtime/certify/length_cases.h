// LengthCases: which lengths a probe pads to which sizes, and with what.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/certify/draw.h"

namespace reprise {

// One length in one padded size, in elements along the axis.
struct LengthCase {
  int64_t length = 0;
  int64_t padded = 0;
  Drawer::Content content;             // content of the unpadded inputs
  Hostile hostile = Hostile::kRandom;  // what free padding holds
};

// Several for each of `options.padded_sizes`, the most telling first, with masks in which the
// places of `level` count. `confirming`: a second look at sizes that are long, with sweeps.
std::vector<LengthCase> LengthCases(const ProbeOptions& options, CountingPlaces level,
                                    bool confirming);

// More for models with floats that may be masks, of the sizes of `like`: rows that end and begin
// with what does not count, as far as `level` lets them.
std::vector<LengthCase> FloatMaskCases(const LengthCase& like, CountingPlaces level);

}  // namespace reprise
