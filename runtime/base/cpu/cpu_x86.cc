// An x86-64 CPU, as CPUID describes it. Another architecture has a file of its own next to this.
#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/cpu/cpu_info.h"

namespace reprise {
namespace {

// Returns whether this process may use the tile unit: its registers are so large that a process has
// to ask.
bool MayUseTiles() {
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;
  constexpr unsigned kAll = kAmxBf16 | kAmxTile | kAmxInt8;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  if ((edx & kAll) != kAll) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Products of bytes for vectors of AVX2: CPUID leaf 7, sub-leaf 1, EAX bit 4.
bool HasAvxVnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & (1u << 4)) != 0;
}

// AVX2 counts as present only with the features that accompany it; then follows each set that the
// CPU has whole.
Isa FindIsa() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::kBaseline;
  // Conversions of halves: no CPU has AVX2 without them, a hypervisor may hide them.
  constexpr unsigned kF16c = 1u << 29;
  unsigned low[4] = {};
  if (!__get_cpuid(1, &low[0], &low[1], &low[2], &low[3]) || (low[2] & kF16c) == 0) {
    return Isa::kBaseline;
  }
  const Isa narrow = HasAvxVnni() ? Isa::kAvx2Vnni : Isa::kAvx2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return narrow;
  }
  const Isa wide = narrow.With(CpuFeature::kAvx512);
  if (!__builtin_cpu_supports("avx512vnni")) return wide;
  const Isa bytes = wide.With(CpuFeature::kAvx512Vnni);
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // AVX512_BF16 is CPUID leaf 7, sub-leaf 1, EAX bit 5.
  if (!__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) || !(eax & (1u << 5))) return bytes;
  const Isa halves = bytes.With(CpuFeature::kAvx512Bf16);
  return MayUseTiles() ? halves.With(CpuFeature::kAmx) : halves;
}

}  // namespace

Isa DetectIsa() {
  static const Isa isa = FindIsa();
  return isa;
}

bool ConvertsBesideProducts() {
  static const bool amd = [] {
    unsigned max_leaf, ebx, ecx, edx;
    __get_cpuid(0, &max_leaf, &ebx, &ecx, &edx);
    return ebx == signature_AMD_ebx;
  }();
  return amd;
}

std::string CpuModelName() {
  unsigned regs[12] = {};
  unsigned max_leaf = __get_cpuid_max(0x80000000, nullptr);
  if (max_leaf < 0x80000004) return "unknown";
  for (unsigned i = 0; i < 3; ++i) {
    __get_cpuid(0x80000002 + i, &regs[4 * i], &regs[4 * i + 1], &regs[4 * i + 2], &regs[4 * i + 3]);
  }
  char text[49] = {};
  std::memcpy(text, regs, 48);
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  return absl::StrCat(absl::StripAsciiWhitespace(text), " (cpuid ", absl::Hex(eax & ~0xFu), ")");
}

}  // namespace reprise

#endif
