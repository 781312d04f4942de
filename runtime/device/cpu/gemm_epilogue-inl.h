// What a product does to its sums before they become C. Included inside a kernel file after
// hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_EPILOGUE_INL_H_
#undef REPRISE_CPU_GEMM_EPILOGUE_INL_H_
#else
#define REPRISE_CPU_GEMM_EPILOGUE_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm.h"
#include "runtime/device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// A tile of C lives in registers: 8 x 48 floats are 24 of the 32 vectors of AVX-512, 6 x 16 are 12
// of the 16 of AVX2; the rest hold a row of B and one broadcast element of A.
#if HWY_TARGET == HWY_AVX3
constexpr int kVectors = 3;
constexpr int kTileRows = 8;
#else
constexpr int kVectors = 2;
constexpr int kTileRows = 6;
#endif
constexpr int kLanes = HWY_LANES(float);
constexpr int64_t kPanel = int64_t{kVectors} * kLanes;

// Where a tile of C goes.
struct TileOut {
  float* c;
  int64_t ldc;
  const float* scale;  // of each column, or null
  const float* bias;
  const float* residual;
  int64_t ld_residual;
  Activation activation;
  int64_t columns;  // Live columns of the panel, 1..kPanel.
  float* partial;   // [kTileRows][kPanel] sums of earlier stretches of k, or null.
  bool first;       // Nothing in `partial` yet.
  bool last;        // Apply the epilogue and write C.
};

HWY_INLINE VF Activate(F32 d, VF v, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return v;
    case Activation::kRelu:
      return Relu(d, v);
    case Activation::kGelu:
      return Gelu(d, v);
    case Activation::kGeluTanh:
      return GeluTanh(d, v);
    case Activation::kTanh:
      return Tanh(d, v);
    case Activation::kSigmoid:
      return Sigmoid(d, v);
    case Activation::kSilu:
      return Silu(d, v);
  }
  return v;
}

// The slow half of the epilogue: a tile that waits in `tile` gets its activation, residual and
// partial columns.
template <Activation activation>
HWY_NOINLINE void FinishTile(const float* HWY_RESTRICT tile, int rows, const TileOut& out) {
  const F32 d;
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t live = std::min<int64_t>(out.columns - v * kLanes, kLanes);
      if (live <= 0) break;
      VF x = Activate(d, hn::Load(d, tile + r * kPanel + v * kLanes), activation);
      float* c = out.c + r * out.ldc + v * kLanes;
      const float* residual =
          out.residual == nullptr ? nullptr : out.residual + r * out.ld_residual + v * kLanes;
      if (live == kLanes) {
        if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual));
        hn::StoreU(x, d, c);
      } else {
        if (residual != nullptr) x = hn::Add(x, LoadPart(d, residual, live));
        StorePart(x, d, c, live);
      }
    }
  }
}

HWY_MAYBE_UNUSED HWY_NOINLINE void FinishTile(const float* tile, int rows, const TileOut& out) {
  switch (out.activation) {
    case Activation::kNone:
      return FinishTile<Activation::kNone>(tile, rows, out);
    case Activation::kRelu:
      return FinishTile<Activation::kRelu>(tile, rows, out);
    case Activation::kGelu:
      return FinishTile<Activation::kGelu>(tile, rows, out);
    case Activation::kGeluTanh:
      return FinishTile<Activation::kGeluTanh>(tile, rows, out);
    case Activation::kTanh:
      return FinishTile<Activation::kTanh>(tile, rows, out);
    case Activation::kSigmoid:
      return FinishTile<Activation::kSigmoid>(tile, rows, out);
    case Activation::kSilu:
      return FinishTile<Activation::kSilu>(tile, rows, out);
  }
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
