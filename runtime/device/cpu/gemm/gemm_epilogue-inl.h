// The epilogue of a GEMM, which turns its sums into C. This is included inside a kernel file after
// hwy/highway.h, once for each Highway target.
#if defined(REPRISE_CPU_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_EPILOGUE_INL_H_
#undef REPRISE_CPU_GEMM_EPILOGUE_INL_H_
#else
#define REPRISE_CPU_GEMM_EPILOGUE_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// A tile of C lives in registers: 8 x 48 floats are 24 of the 32 vectors of AVX-512, 4 x 24 are 12
// of the 16 of AVX2; the rest hold a row of B and one broadcast element of A. A few rows take whole
// tiles more often where these are low and wide, and a lone row has three sums on their way.
constexpr int kVectors = HWY_TARGET == HWY_SCALAR ? 2 : 3;
// Rows of a tile of `vectors` vectors: a narrow one waits for its own sums unless it is tall.
constexpr int TileRows(int vectors) {
  if (HWY_TARGET == HWY_AVX3) return 8;
  return vectors == 3 ? 4 : vectors == 2 ? 6 : 8;
}
constexpr int kTileRows = TileRows(kVectors);
constexpr int kLanes = HWY_LANES(float);
constexpr int64_t kPanel = int64_t{kVectors} * kLanes;

// Where a tile of C goes, and how its sums are changed on the way.
struct TileOut {
  // Returns the same some rows further down.
  HWY_INLINE TileOut Below(int64_t rows) const {
    TileOut below = *this;
    below.c += rows * ldc;
    if (residual != nullptr) below.residual += rows * ld_residual;
    if (partial != nullptr) below.partial += rows * kPanel;
    return below;
  }

  float* c;
  int64_t ldc;
  const float* scale;  // one factor per column, or null
  const float* bias;
  const float* residual;
  int64_t ld_residual;
  Activation activation;
  int64_t columns;  // Live columns of the panel, 1..kPanel.
  float* partial;   // [rows of the tile][kPanel] sums of earlier stretches of k, or null.
  bool first;       // Nothing in `partial` yet.
  bool last;        // Apply the epilogue and write C.
};

// Returns the tile of `args` whose first row is `row`, and its columns the `width` from
// `column` on, or fewer at the end of a row. `scales`: of all columns, or null.
HWY_INLINE TileOut TileOutOf(const GemmArgs& args, const float* scales, int64_t row, int64_t column,
                             int64_t width) {
  TileOut out = {};
  out.c = args.c + row * args.ldc + column;
  out.ldc = args.ldc;
  out.scale = scales == nullptr ? nullptr : scales + column;
  out.bias = args.bias == nullptr ? nullptr : args.bias + column;
  out.residual =
      args.residual == nullptr ? nullptr : args.residual + row * args.ld_residual + column;
  out.ld_residual = args.ld_residual;
  out.activation = args.activation;
  out.columns = std::min(width, args.n - column);
  return out;
}

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
    case Activation::kQuickGelu:
      return QuickGelu(d, v);
    case Activation::kGeluDoubled:
      return Gelu<true>(d, v);
    case Activation::kGeluTanhDoubled:
      return GeluTanh<true>(d, v);
  }
  return v;
}

template <Activation activation>
using KnownActivation = std::integral_constant<Activation, activation>;

// Calls `finish` with the activation as a type, so that the loops within know it.
template <class Finish>
HWY_INLINE void WithActivation(Activation activation, const Finish& finish) {
  switch (activation) {
    case Activation::kNone:
      return finish(KnownActivation<Activation::kNone>());
    case Activation::kRelu:
      return finish(KnownActivation<Activation::kRelu>());
    case Activation::kGelu:
      return finish(KnownActivation<Activation::kGelu>());
    case Activation::kGeluTanh:
      return finish(KnownActivation<Activation::kGeluTanh>());
    case Activation::kTanh:
      return finish(KnownActivation<Activation::kTanh>());
    case Activation::kSigmoid:
      return finish(KnownActivation<Activation::kSigmoid>());
    case Activation::kSilu:
      return finish(KnownActivation<Activation::kSilu>());
    case Activation::kQuickGelu:
      return finish(KnownActivation<Activation::kQuickGelu>());
    case Activation::kGeluDoubled:
      return finish(KnownActivation<Activation::kGeluDoubled>());
    case Activation::kGeluTanhDoubled:
      return finish(KnownActivation<Activation::kGeluTanhDoubled>());
  }
}

// Finishes a tile that waits in `tile`, the slow half of the epilogue: gives it its activation,
// residual and partial columns.
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
  WithActivation(out.activation,
                 [&](auto activation) HWY_ATTR { FinishTile<activation>(tile, rows, out); });
}

// Finishes the sums of a whole tile of C in registers, kVecs vectors of each row.
template <int kRows, int kVecs>
HWY_INLINE void FinishSums(VF (&sums)[kRows][kVecs], const TileOut& tile_out) {
  const F32 d;
  const TileOut out = tile_out;  // a copy: no store to C can change it
  const bool whole = out.columns == int64_t{kVecs} * kLanes;
  if (out.scale != nullptr) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const VF scale = hn::LoadU(d, out.scale + v * kLanes);
      HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) sums[r][v] = hn::Mul(sums[r][v], scale);
    }
  }
  if (out.bias != nullptr) {
    HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
      const int64_t live = std::min<int64_t>(out.columns - v * kLanes, kLanes);
      const VF bias = whole || live == kLanes ? hn::LoadU(d, out.bias + v * kLanes)
                      : live > 0              ? LoadPart(d, out.bias + v * kLanes, live)
                                              : hn::Zero(d);
      HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) sums[r][v] = hn::Add(sums[r][v], bias);
    }
  }
  const bool relu = out.activation == Activation::kRelu;
  if (relu) {
    HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) sums[r][v] = Relu(d, sums[r][v]);
    }
  }
  if (!relu && out.activation != Activation::kNone) {
    HWY_ALIGN float tile[kRows * kPanel];
    HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        hn::Store(sums[r][v], d, tile + r * kPanel + v * kLanes);
      }
    }
    return FinishTile(tile, kRows, tile_out);
  }
  if (whole) {
    if (out.residual != nullptr) {
      HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
        HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
          const VF residual = hn::LoadU(d, out.residual + r * out.ld_residual + v * kLanes);
          sums[r][v] = hn::Add(sums[r][v], residual);
        }
      }
    }
    HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
        hn::StoreU(sums[r][v], d, out.c + r * out.ldc + v * kLanes);
      }
    }
    return;
  }
  HWY_UNROLL(4) for (int v = 0; v < kVecs; ++v) {
    const int64_t live = std::min<int64_t>(out.columns - v * kLanes, kLanes);
    if (live <= 0) return;
    HWY_UNROLL(12) for (int r = 0; r < kRows; ++r) {
      VF x = sums[r][v];
      if (out.residual != nullptr) {
        x = hn::Add(x, LoadPart(d, out.residual + r * out.ld_residual + v * kLanes, live));
      }
      StorePart(x, d, out.c + r * out.ldc + v * kLanes, live);
    }
  }
}

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
