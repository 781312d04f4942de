// The epilogue of a tile of sums that become more than plain floats: activations of convolutions, a
// residual before or after them, requantization to bytes. This is included inside a kernel file
// after hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_GEMM_U8S8_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_U8S8_FINISH_INL_H_
#undef REPRISE_CPU_GEMM_U8S8_FINISH_INL_H_
#else
#define REPRISE_CPU_GEMM_U8S8_FINISH_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"
#include "runtime/device/cpu/int8/requantize_finish-inl.h"
#include "runtime/device/cpu/simd/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// `rows` of `tile`, [rows][kPanel]; where `bytes` says so C is of bytes from there on.
template <Follows follows, bool kBytes>
HWY_NOINLINE void FinishByteTile(const float* HWY_RESTRICT tile, int rows, const TileOut& out,
                                 const ByteFinish& finish, uint8_t* bytes) {
  const F32 d;
  const ByteSteps steps(kBytes ? *finish.scale : 1, finish.zero.At(0), finish.zero.is_signed);
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t live = std::min<int64_t>(out.columns - v * kLanes, kLanes);
      if (live <= 0) break;
      VF x = hn::Load(d, tile + r * kPanel + v * kLanes);
      VF residual = hn::Zero(d);
      if (out.residual != nullptr) {
        const float* from = out.residual + r * out.ld_residual + v * kLanes;
        residual = live == kLanes ? hn::LoadU(d, from) : LoadPart(d, from, live);
        if (finish.residual_first) x = hn::Add(x, residual);
      }
      x = ActivateBy<follows>(d, x, finish.activation);
      if (out.residual != nullptr && !finish.residual_first) x = hn::Add(x, residual);
      if constexpr (kBytes) {
        uint8_t* const y = bytes + r * out.ldc + v * kLanes;
        if (live == kLanes) {
          steps.Store(x, y);
        } else {
          uint8_t part[kLanes];
          steps.Store(x, part);
          std::memcpy(y, part, static_cast<size_t>(live));
        }
      } else {
        float* const y = out.c + r * out.ldc + v * kLanes;
        if (live == kLanes) {
          hn::StoreU(x, d, y);
        } else {
          StorePart(x, d, y, live);
        }
      }
    }
  }
}

HWY_MAYBE_UNUSED HWY_NOINLINE void FinishByteTile(const float* tile, int rows, const TileOut& out,
                                                  const ByteFinish& finish, uint8_t* bytes) {
  WithFollows(finish.activation, [&](auto follows) HWY_ATTR {
    if (finish.scale == nullptr) {
      FinishByteTile<follows, false>(tile, rows, out, finish, bytes);
    } else {
      FinishByteTile<follows, true>(tile, rows, out, finish, bytes);
    }
  });
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
