// The tiers that kernel tests run: all for which this build has f32 code and which this machine
// has.
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

inline std::vector<Isa> TestedTiers() {
  std::vector<Isa> tiers;
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (UsableIsa(isa) == isa) tiers.push_back(isa);
  }
  return tiers;
}

// Returns the tiers of products: also those by digits and the tile unit's, where the machine has
// them.
inline std::vector<Isa> ProductTiers() {
  std::vector<Isa> tiers = TestedTiers();
  for (Isa isa : {Isa::kAvx2Vnni, Isa::kAvx512Vnni, Isa::kAmx}) {
    if (UsableIsa(isa) == isa) tiers.push_back(isa);
  }
  return tiers;
}

// Returns the tiers for choices among all kernels: products of bytes and of bfloat16 have their
// own.
inline std::vector<Isa> EveryTier() {
  std::vector<Isa> tiers;
  for (const NamedIsa& named : kIsas) {
    if (UsableIsa(named.isa) == named.isa) tiers.push_back(named.isa);
  }
  return tiers;
}

inline std::string TierName(const testing::TestParamInfo<Isa>& info) {
  return std::string(IsaName(info.param));
}

}  // namespace reprise::cpu
