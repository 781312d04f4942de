// The epilogue of the tile unit (AMX), which finishes its sums on their way to C. This is included
// inside a kernel file and needs AVX-512.
#if defined(REPRISE_CPU_GEMM_AMX_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPRISE_CPU_GEMM_AMX_SUMS_INL_H_
#undef REPRISE_CPU_GEMM_AMX_SUMS_INL_H_
#else
#define REPRISE_CPU_GEMM_AMX_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_amx_operands-inl.h"
#include "runtime/device/cpu/gemm/gemm_epilogue-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

// The most row tiles whose sums the unit holds at a time.
constexpr int64_t kHeldTiles = 2;

// Finishes sums on their way to C, a few rows at a time while the unit computes the next ones.
template <class Element>
class Waiting {
 public:
  Waiting() = default;
  // Finishes `rows` rows of `sums`, [rows][kPanel], at most kHeldTiles: the product of `a` and
  // `panel`, in `turns` turns.
  Waiting(float* sums, int64_t rows, const TileOut& out, const float* a, const GemmArgs& args,
          const Element* panel, int64_t turns)
      : out_(out),
        sums_(sums),
        rows_(rows),
        per_turn_((rows * kOne + turns - 1) / turns),
        a_(a),
        lda_(args.lda),
        k_(args.k),
        panel_(panel) {}

  HWY_INLINE void TakeTurn() {
    due_ += per_turn_;
    const int64_t end = due_ >> kOneBits;
    if (end > next_ && next_ < rows_) FinishTo(std::min(end, rows_));
  }
  void Finish() {
    if (next_ < rows_) FinishTo(rows_);
  }

 private:
  static constexpr int kOneBits = 16;
  static constexpr int64_t kOne = int64_t{1} << kOneBits;

  HWY_NOINLINE void FinishTo(int64_t end) {
    if (next_ == 0) Mend();
    if (out_.columns < kPanel) {
      FinishNarrow(end);
    } else {
      FinishRows(end);
    }
    next_ = end;
  }

  // Sums that are NaN are computed again as floats: one of their operands is infinite or NaN, or a
  // sum became infinite on the way.
  void Mend() {
    const F32 d;
    const VF zero = hn::Zero(d);
    // 0 times a finite number is 0.
    VF odd[kVectors] = {zero, zero, zero};
    for (int64_t r = 0; r < rows_; ++r) {
      HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
        odd[v] = hn::MulAdd(hn::Load(d, sums_ + r * kPanel + v * kLanes), zero, odd[v]);
      }
    }
    if (hn::AllFalse(d, hn::IsNaN(hn::Add(hn::Add(odd[0], odd[1]), odd[2])))) return;
    for (int64_t r = 0; r < rows_; ++r) MendRow(a_ + r * lda_, sums_ + r * kPanel);
  }
  HWY_NOINLINE void MendRow(const float* a, float* row) const {
    const F32 d;
    bool right = true;
    for (int v = 0; v < kVectors; ++v) {
      right &= hn::AllFalse(d, hn::IsNaN(hn::Load(d, row + v * kLanes)));
    }
    if (right) return;
    VF again[kVectors] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (int64_t i = 0; i < k_; ++i) {
      HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
        again[v] = hn::MulAdd(hn::Set(d, a[i]), LoadWeights(d, panel_ + i * kPanel + v * kLanes),
                              again[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      const VF x = hn::Load(d, row + v * kLanes);
      hn::Store(hn::IfThenElse(hn::IsNaN(x), again[v], x), d, row + v * kLanes);
    }
  }

  // One pass from the sums to C.
  template <Activation activation>
  HWY_NOINLINE void FinishWhole(int64_t end) const {
    const F32 d;
    VF scale[kVectors], bias[kVectors];
    HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
      scale[v] = out_.scale == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, out_.scale + v * kLanes);
      bias[v] = out_.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, out_.bias + v * kLanes);
    }
    const float* HWY_RESTRICT from = sums_ + next_ * kPanel;
    float* c = out_.c + next_ * out_.ldc;
    const float* residual =
        out_.residual == nullptr ? nullptr : out_.residual + next_ * out_.ld_residual;
    for (int64_t r = next_; r < end; ++r, from += kPanel, c += out_.ldc) {
      HWY_UNROLL(3) for (int v = 0; v < kVectors; ++v) {
        // Two roundings, as everywhere else.
        VF x = hn::Add(hn::Mul(hn::Load(d, from + v * kLanes), scale[v]), bias[v]);
        x = Activate(d, x, activation);
        if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual + v * kLanes));
        hn::StoreU(x, d, c + v * kLanes);
      }
      if (residual != nullptr) residual += out_.ld_residual;
    }
  }
  void FinishRows(int64_t end) const {
    WithActivation(out_.activation,
                   [&](auto activation) HWY_ATTR { FinishWhole<activation>(end); });
  }
  // The last panel, where it is not whole.
  HWY_NOINLINE void FinishNarrow(int64_t end) const {
    const F32 d;
    HWY_ALIGN float tile[kHeldTiles * kRowsOfTile * kPanel];
    for (int v = 0; v < kVectors; ++v) {
      const int64_t live = out_.columns - v * kLanes;
      const VF scale =
          out_.scale == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, out_.scale + v * kLanes);
      const VF bias =
          out_.bias == nullptr ? hn::Zero(d) : LoadFirst(d, out_.bias + v * kLanes, live);
      for (int64_t r = next_; r < end; ++r) {
        const VF x = hn::Load(d, sums_ + r * kPanel + v * kLanes);
        hn::Store(hn::Add(hn::Mul(x, scale), bias), d, tile + (r - next_) * kPanel + v * kLanes);
      }
    }
    FinishTile(tile, static_cast<int>(end - next_), out_.Below(next_));
  }

  TileOut out_ = {};
  float* sums_ = nullptr;  // [rows][kPanel]
  int64_t rows_ = 0;
  int64_t next_ = 0;
  int64_t per_turn_ = 0;  // rows, times kOne
  int64_t due_ = 0;       // rows, times kOne
  // The operands that the sums were made from.
  const float* a_ = nullptr;
  int64_t lda_ = 0;
  int64_t k_ = 0;
  const Element* panel_ = nullptr;  // [k_][kPanel]
};

}  // namespace
}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#endif  // include guard
