// Bytes as products read them: panels of rows of words, four neighbours of a column in each, and
// the sums of the columns. Included inside a kernel file after hwy/highway.h, once for each Highway
// target.
#if defined(REPRISE_CPU_GEMM_U8S8_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_U8S8_PACK_INL_H_
#undef REPRISE_CPU_GEMM_U8S8_PACK_INL_H_
#else
#define REPRISE_CPU_GEMM_U8S8_PACK_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"

#ifndef REPRISE_CPU_U8S8_SHIFT_
#define REPRISE_CPU_U8S8_SHIFT_
namespace reprise::cpu {

// Returns the amount that packing adds to each element of B, so that exactly one of A and B is
// signed.
inline int ShiftOfB(bool a_signed, bool b_signed) {
  if (a_signed != b_signed) return 0;
  return a_signed ? 128 : -128;
}

}  // namespace reprise::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// Sums wrap around, so they are kept without a sign.
using U32 = hn::RebindToUnsigned<F32>;
using VU = hn::Vec<U32>;
using I32 = hn::RebindToSigned<F32>;

constexpr int64_t VectorsOf(int64_t columns) {
  return std::min<int64_t>((columns + kLanes - 1) / kLanes, kVectors);
}
constexpr int64_t WordRows(int64_t k) { return (k + 3) / 4; }

// `live` bytes of a row, zeros after them.
HWY_INLINE VU LoadBytes(const uint8_t* from, int64_t live) {
  const U32 d;
  const hn::Rebind<uint8_t, U32> d8;
  if (live >= kLanes) return hn::PromoteTo(d, hn::LoadU(d8, from));
  alignas(64) uint8_t part[kLanes] = {};
  std::memcpy(part, from, static_cast<size_t>(live));
  return hn::PromoteTo(d, hn::Load(d8, part));
}

// Packs the columns of one panel as rows of words; `sums` gets their sums before packing.
void PackPanel(const ByteSource& b, bool a_signed, int64_t k, int64_t n, int64_t panel,
               uint8_t* packed, int32_t* sums) {
  const U32 d;
  const int64_t first = panel * kPanel;
  const int64_t columns = std::min(kPanel, n - first);
  const int64_t vectors = VectorsOf(columns);
  const VU flips =
      hn::Set(d, ShiftOfB(a_signed, b.is_signed) == 0 ? uint32_t{0} : uint32_t{0x80808080u});
  // Signed bytes are summed as counted from -128.
  const VU raised = hn::Set(d, uint32_t{b.is_signed ? 0x80u : 0u});
  const auto* from = static_cast<const uint8_t*>(b.data) + first;
  auto* words = reinterpret_cast<uint32_t*>(packed);
  for (int64_t v = 0; v < kVectors; ++v) {
    VU sum = hn::Set(d, b.is_signed ? static_cast<uint32_t>(-128 * k) : 0u);
    if (v >= vectors) {
      hn::StoreU(hn::Zero(d), d, reinterpret_cast<uint32_t*>(sums) + v * kLanes);
      continue;
    }
    const int64_t live = std::min<int64_t>(columns - v * kLanes, kLanes);
    const auto row = [&](int64_t i) HWY_ATTR {
      const VU bytes = LoadBytes(from + i * b.ld + v * kLanes, live);
      sum = hn::Add(sum, hn::Xor(bytes, raised));
      return bytes;
    };
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
      const VU low = hn::Or(row(i), hn::ShiftLeft<8>(row(i + 1)));
      const VU high = hn::Or(hn::ShiftLeft<16>(row(i + 2)), hn::ShiftLeft<24>(row(i + 3)));
      hn::StoreU(hn::Xor(flips, hn::Or(low, high)), d, words + (i / 4 * vectors + v) * kLanes);
    }
    if (i < k) {
      VU word = row(i);
      if (i + 1 < k) word = hn::Or(word, hn::ShiftLeft<8>(row(i + 1)));
      if (i + 2 < k) word = hn::Or(word, hn::ShiftLeft<16>(row(i + 2)));
      // Times zeros of A.
      hn::StoreU(hn::Xor(flips, word), d, words + (i / 4 * vectors + v) * kLanes);
    }
    hn::StoreU(sum, d, reinterpret_cast<uint32_t*>(sums) + v * kLanes);
  }
}

HWY_MAYBE_UNUSED void Pack(const ByteSource& b, bool a_signed, int64_t k, int64_t n, void* packed) {
  const int64_t panels = (n + kPanel - 1) / kPanel;
  auto* sums = static_cast<int32_t*>(packed);
  auto* to = reinterpret_cast<uint8_t*>(sums + panels * kPanel);
  for (int64_t panel = 0; panel < panels; ++panel) {
    PackPanel(b, a_signed, k, n, panel, to + panel * WordRows(k) * 4 * kPanel,
              sums + panel * kPanel);
  }
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
