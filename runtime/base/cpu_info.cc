#include "runtime/base/cpu_info.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/cgroup.h"

namespace reprise {
namespace {

// Whether this process may use the tile unit: its registers are so large that a process has to ask.
bool MayUseTiles() {
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  if ((edx & kAmxBf16) == 0 || (edx & kAmxTile) == 0) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Products of bytes for vectors of AVX2: CPUID leaf 7, sub-leaf 1, EAX bit 4.
bool HasAvxVnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & (1u << 4)) != 0;
}

Isa FindIsa() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::kBaseline;
  // Conversions of halves: no CPU has AVX2 without them, a hypervisor may hide them.
  constexpr unsigned kF16c = 1u << 29;
  unsigned low[4] = {};
  if (!__get_cpuid(1, &low[0], &low[1], &low[2], &low[3]) || (low[2] & kF16c) == 0) {
    return Isa::kBaseline;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return HasAvxVnni() ? Isa::kAvx2Vnni : Isa::kAvx2;
  }
  if (!__builtin_cpu_supports("avx512vnni")) return Isa::kAvx512;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // AVX512_BF16 is CPUID leaf 7, sub-leaf 1, EAX bit 5.
  if (!__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) || !(eax & (1u << 5))) {
    return Isa::kAvx512Vnni;
  }
  return MayUseTiles() ? Isa::kAmx : Isa::kAvx512Bf16;
}

}  // namespace

absl::string_view IsaName(Isa isa) { return kIsaNames[static_cast<size_t>(isa)]; }

std::optional<Isa> ParseIsa(absl::string_view name) {
  for (size_t i = 0; i < kIsaNames.size(); ++i) {
    if (kIsaNames[i] == name) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

Isa DetectIsa() {
  static const Isa isa = FindIsa();
  return isa;
}

Isa UsableIsa(Isa cap) {
  const Isa isa = std::min(cap, DetectIsa());
  return isa == Isa::kAvx2Vnni && !HasAvxVnni() ? Isa::kAvx2 : isa;
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

int64_t FirstLevelCacheBytes() { return std::max<int64_t>(sysconf(_SC_LEVEL1_DCACHE_SIZE), 0); }
int64_t SecondLevelCacheBytes() { return std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 0); }

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  const double quota = std::ceil(CgroupCpus());
  return std::max(1, quota < allowed ? static_cast<int>(quota) : allowed);
}

}  // namespace reprise
