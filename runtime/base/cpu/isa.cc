#include "runtime/base/cpu/isa.h"

namespace reprise {

absl::string_view IsaName(Isa isa) {
  absl::string_view name;
  for (const NamedIsa& named : kIsas) {
    if (isa.Covers(named.isa)) name = named.name;
  }
  return name;
}

std::optional<Isa> ParseIsa(absl::string_view name) {
  Isa cap;
  for (const NamedIsa& named : kIsas) {
    // All features of the sets so far.
    for (const CpuFeature feature :
         {CpuFeature::kAvx2, CpuFeature::kAvxVnni, CpuFeature::kAvx512, CpuFeature::kAvx512Vnni,
          CpuFeature::kAvx512Bf16, CpuFeature::kAmx}) {
      if (named.isa.Has(feature)) cap = cap.With(feature);
    }
    if (named.name == name) return cap;
  }
  return std::nullopt;
}

}  // namespace reprise
