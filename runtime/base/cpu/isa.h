// Isa: the features of an architecture that kernels may use, as a set.
//
// A kernel that needs a feature asks for it (`Has`); nothing depends on an order of CPUs. Features
// belong to one architecture, the build's: another one adds its own here, a file next to cpu_x86.cc
// that detects them, and kernels that ask for them. Every architecture has the empty set, the
// baseline: reference kernels, and the kernels that Highway compiles for it.
//
// Threads: pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace reprise {

// Features of x86-64 beyond its baseline, in the order in which CPUs came to have them.
enum class CpuFeature : uint32_t {
  kAvx2 = 1u << 0,        // multiply-adds and conversions of halves included
  kAvxVnni = 1u << 1,     // products of bytes on vectors of AVX2; CPUs with AVX-512 may lack it
  kAvx512 = 1u << 2,      // F, BW, DQ and VL
  kAvx512Vnni = 1u << 3,  // products of bytes
  kAvx512Bf16 = 1u << 4,  // products of bfloat16
  kAmx = 1u << 5,         // the tile unit, which a process has to ask for
};

class Isa {
 public:
  // The sets that kernels are written for and that --max-isa names.
  static const Isa kBaseline, kAvx2, kAvx2Vnni, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx;

  constexpr Isa() = default;

  constexpr bool Has(CpuFeature feature) const {
    return (features_ & static_cast<uint32_t>(feature)) != 0;
  }
  // Returns whether all features of `other` are there.
  constexpr bool Covers(Isa other) const {
    return (features_ & other.features_) == other.features_;
  }
  // Returns the features that both have.
  constexpr Isa Within(Isa cap) const { return Isa(features_ & cap.features_); }
  constexpr Isa With(CpuFeature feature) const {
    return Isa(features_ | static_cast<uint32_t>(feature));
  }

  friend constexpr bool operator==(Isa, Isa) = default;

 private:
  constexpr explicit Isa(uint32_t features) : features_(features) {}

  uint32_t features_ = 0;
};

inline constexpr Isa Isa::kBaseline = Isa();
inline constexpr Isa Isa::kAvx2 = Isa::kBaseline.With(CpuFeature::kAvx2);
inline constexpr Isa Isa::kAvx2Vnni = Isa::kAvx2.With(CpuFeature::kAvxVnni);
inline constexpr Isa Isa::kAvx512 = Isa::kAvx2.With(CpuFeature::kAvx512);
inline constexpr Isa Isa::kAvx512Vnni = Isa::kAvx512.With(CpuFeature::kAvx512Vnni);
inline constexpr Isa Isa::kAvx512Bf16 = Isa::kAvx512Vnni.With(CpuFeature::kAvx512Bf16);
inline constexpr Isa Isa::kAmx = Isa::kAvx512Bf16.With(CpuFeature::kAmx);

// All features of all architectures: no cap.
inline constexpr Isa kEveryIsa = Isa::kAmx.With(CpuFeature::kAvxVnni);

struct NamedIsa {
  absl::string_view name;
  Isa isa;
};
// The values of --max-isa.
inline constexpr std::array<NamedIsa, 7> kIsas = {{{"baseline", Isa::kBaseline},
                                                   {"avx2", Isa::kAvx2},
                                                   {"avx2_vnni", Isa::kAvx2Vnni},
                                                   {"avx512", Isa::kAvx512},
                                                   {"avx512_vnni", Isa::kAvx512Vnni},
                                                   {"avx512_bf16", Isa::kAvx512Bf16},
                                                   {"amx", Isa::kAmx}}};

// Returns the last of kIsas that `isa` covers.
absl::string_view IsaName(Isa isa);
// Returns the cap that a name stands for: its features, and the features of all names before it.
std::optional<Isa> ParseIsa(absl::string_view name);

// Returns the features of `isa` that code for floats uses: products of bytes and of bfloat16 are
// all that others add.
constexpr Isa FloatTier(Isa isa) { return isa.Within(Isa::kAvx512); }

// Returns the features whose code multiplies bytes: products of bfloat16 and tiles add nothing
// there.
constexpr Isa ByteTier(Isa isa) {
  if (isa.Covers(Isa::kAvx512)) return isa.Within(Isa::kAvx512Vnni);
  return isa.Within(Isa::kAvx2Vnni);
}

}  // namespace reprise
