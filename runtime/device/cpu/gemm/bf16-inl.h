// Says where a packed panel of bfloat16 begins (gemm_bf16.h), and how floats become such. Included
// inside a kernel file after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_BF16_INL_H_
#undef REPRISE_CPU_BF16_INL_H_
#else
#define REPRISE_CPU_BF16_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_bf16.h"
#include "runtime/device/cpu/simd/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int kBf16Vectors = 2;
constexpr int64_t kBf16Panel = int64_t{kBf16Vectors} * HWY_LANES(float);

// Rows of pairs in a packed panel.
constexpr int64_t PairRows(int64_t k) {
  return (k + kBf16Depth - 1) / kBf16Depth * (kBf16Depth / 2);
}
// Words of a packed panel.
constexpr int64_t PanelWords(int64_t k) { return PairRows(k) * kBf16Panel; }

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
