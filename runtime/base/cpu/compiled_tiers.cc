#include "runtime/base/cpu/compiled_tiers.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace reprise {
namespace {

// REPRISE_NATIVE_TIER: the one tier next to the baseline that was compiled, see
// runtime/device/cpu/simd/targets.h. Without it, all were.
#if defined(REPRISE_NATIVE_TIER)
constexpr bool kHasAvx2 = REPRISE_NATIVE_TIER == 2;
constexpr bool kHasAvx512 = REPRISE_NATIVE_TIER == 512;
#else
constexpr bool kHasAvx2 = true, kHasAvx512 = true;
#endif

}  // namespace

bool HasCodeFor(Isa isa) {
  if (isa.Has(CpuFeature::kAvx512)) return kHasAvx512;
  return !isa.Has(CpuFeature::kAvx2) || kHasAvx2;
}

Isa WithinCompiled(Isa isa) {
  if (HasCodeFor(isa)) return isa;
  const Isa narrow = isa.Within(Isa::kAvx2Vnni);
  return HasCodeFor(narrow) ? narrow : Isa::kBaseline;
}

std::string WhyNotIsa(absl::string_view name) {
  std::vector<absl::string_view> compiled;
  bool has_code = true;
  for (const NamedIsa& named : kIsas) {
    if (HasCodeFor(named.isa)) {
      compiled.push_back(named.name);
    } else if (named.name == name) {
      has_code = false;
    }
  }
  if (has_code) return "";
  return absl::StrCat("this build has no code for ", name,
                      ": it was compiled with REPRISE_TIERS=native, for ",
                      absl::StrJoin(compiled, ", "));
}

}  // namespace reprise
