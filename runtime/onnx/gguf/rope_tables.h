// Tables of rotary positions: cosines and sines of position times frequency.
#pragma once

#include <cstdint>
#include <vector>

namespace reprise {

struct RopeScaling {
  enum class Kind { kNone, kLinear, kYarn };
  Kind kind = Kind::kNone;
  double factor = 1;
  int64_t original_context = 0;  // kYarn
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 1;  // both tables are multiplied by it
};

struct RopeTables {
  std::vector<float> cosines, sines;  // [positions, width / 2]
};

// `width`: numbers of a head that are turned; `factors`: each divides a frequency, or none.
// Linear scaling divides positions; YaRN (arXiv:2309.00071) divides the slow frequencies alone.
RopeTables MakeRopeTables(int64_t positions, int64_t width, double base, const RopeScaling& scaling,
                          const std::vector<float>& factors);

}  // namespace reprise
