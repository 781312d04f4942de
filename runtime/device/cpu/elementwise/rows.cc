#include "runtime/device/cpu/elementwise/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/elementwise/rows.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = HWY_LANES(float);

// f(offset, load, store) for each vector of a row: `load(p)` reads the vector at p + offset and
// `store(v, p)` writes it; for the last, partial one they touch only live lanes.
template <class F>
HWY_INLINE void ForEachVector(int64_t size, F f) {
  const F32 d;
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    f([&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); },
      [&](VF v, float* p) HWY_ATTR { hn::StoreU(v, d, p + i); });
  }
  if (i < size) {
    f([&](const float* p) HWY_ATTR { return LoadPart(d, p + i, size - i); },
      [&](VF v, float* p) HWY_ATTR { StorePart(v, d, p + i, size - i); });
  }
}

// Returns the sum over a row of f(vector).
template <class F>
HWY_INLINE float RowSum(const float* HWY_RESTRICT x, int64_t size, F f) {
  const F32 d;
  VF sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= size; i += 4 * kLanes) {
    HWY_UNROLL(4) for (int u = 0; u < 4; ++u) {
      sums[u] = hn::Add(sums[u], f(hn::LoadU(d, x + i + u * kLanes)));
    }
  }
  for (; i + kLanes <= size; i += kLanes) sums[0] = hn::Add(sums[0], f(hn::LoadU(d, x + i)));
  if (i < size) {
    const VF tail = f(LoadPart(d, x + i, size - i));
    sums[1] = hn::Add(sums[1], hn::IfThenElseZero(hn::FirstN(d, size - i), tail));
  }
  return hn::GetLane(
      hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

// Folds one vector of values into the results so far.
template <Fold fold>
struct Folding {
  static constexpr bool kOrders = fold == Fold::kMax || fold == Fold::kMin;
  static constexpr float kNeutral = fold == Fold::kMax       ? -INFINITY
                                    : fold == Fold::kMin     ? INFINITY
                                    : fold == Fold::kProduct ? 1.0f
                                                             : 0.0f;
  static HWY_INLINE VF Term(VF v) {
    if constexpr (fold == Fold::kSumOfSquares) return hn::Mul(v, v);
    if constexpr (fold == Fold::kSumOfMagnitudes) return hn::Abs(v);
    return v;
  }
  static HWY_INLINE VF Join(VF a, VF b) {
    if constexpr (fold == Fold::kMax) return hn::Max(a, b);
    if constexpr (fold == Fold::kMin) return hn::Min(a, b);
    if constexpr (fold == Fold::kProduct) return hn::Mul(a, b);
    return hn::Add(a, b);
  }
  static HWY_INLINE float Lanes(F32 d, VF v) {
    if constexpr (fold == Fold::kMax) return hn::GetLane(hn::MaxOfLanes(d, v));
    if constexpr (fold == Fold::kMin) return hn::GetLane(hn::MinOfLanes(d, v));
    if constexpr (fold == Fold::kProduct) {
      HWY_ALIGN float lanes[kLanes];
      hn::Store(v, d, lanes);
      float product = 1;
      for (float lane : lanes) product *= lane;
      return product;
    }
    return hn::GetLane(hn::SumOfLanes(d, v));
  }
};

// Returns `v` where it is NaN, else `nan`: the larger of a number and NaN depends on their order.
HWY_INLINE VF NanOf(F32 d, VF nan, VF v) { return hn::IfThenElse(hn::IsNaN(v), v, nan); }

template <Fold fold>
float FoldRow(const float* HWY_RESTRICT x, int64_t size) {
  using Of = Folding<fold>;
  const F32 d;
  const VF neutral = hn::Set(d, Of::kNeutral);
  VF folded[4] = {neutral, neutral, neutral, neutral};
  VF nan = hn::Zero(d);
  const auto join = [&](VF& to, VF v) HWY_ATTR {
    to = Of::Join(to, Of::Term(v));
    if constexpr (Of::kOrders) nan = NanOf(d, nan, v);
  };
  int64_t i = 0;
  for (; i + 4 * kLanes <= size; i += 4 * kLanes) {
    HWY_UNROLL(4) for (int u = 0; u < 4; ++u) join(folded[u], hn::LoadU(d, x + i + u * kLanes));
  }
  for (; i + kLanes <= size; i += kLanes) join(folded[0], hn::LoadU(d, x + i));
  if (i < size) {
    const VF tail = LoadPart(d, x + i, size - i);
    join(folded[1], hn::IfThenElse(hn::FirstN(d, size - i), tail, neutral));
  }
  if (Of::kOrders && !hn::AllFalse(d, hn::IsNaN(nan))) return NAN;
  return Of::Lanes(d, Of::Join(Of::Join(folded[0], folded[1]), Of::Join(folded[2], folded[3])));
}

// Rows so narrow that vectors lie across them, a row to each lane: no lanes are left to be folded.
constexpr int64_t kNarrow = kLanes > 1 ? 8 : 0;

// kLanes rows of 2 to kNarrow elements.
template <Fold fold>
HWY_INLINE VF FoldNarrow(const float* HWY_RESTRICT x, int64_t size) {
  using Of = Folding<fold>;
  const F32 d;
  VF columns[4];
  VF folded = hn::Set(d, Of::kNeutral), nan = hn::Zero(d);
  const auto join = [&](VF v) HWY_ATTR {
    folded = Of::Join(folded, Of::Term(v));
    if constexpr (Of::kOrders) nan = NanOf(d, nan, v);
  };
  if (size == 2) {
    hn::LoadInterleaved2(d, x, columns[0], columns[1]);
  } else if (size == 3) {
    hn::LoadInterleaved3(d, x, columns[0], columns[1], columns[2]);
  } else if (size == 4) {
    hn::LoadInterleaved4(d, x, columns[0], columns[1], columns[2], columns[3]);
  } else {
    const hn::RebindToSigned<F32> di;
    const auto rows = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(size)));
    for (int64_t c = 0; c < size; ++c) join(hn::GatherIndex(d, x + c, rows));
  }
  for (int64_t c = 0; size <= 4 && c < size; ++c) join(columns[c]);
  if constexpr (Of::kOrders) folded = hn::IfThenElse(hn::IsNaN(nan), nan, folded);
  return folded;
}

// out[row] = scale * rows [row_begin, row_end) of x folded.
template <Fold fold>
void FoldNarrowRows(const float* x, int64_t size, float scale, float* out, int64_t row_begin,
                    int64_t row_end) {
  const F32 d;
  const VF scales = hn::Set(d, scale);
  int64_t row = row_begin;
  for (; row + kLanes <= row_end; row += kLanes) {
    hn::StoreU(hn::Mul(scales, FoldNarrow<fold>(x + row * size, size)), d, out + row);
  }
  if (row < row_end) {
    HWY_ALIGN float rest[kLanes * kNarrow] = {};
    std::copy(x + row * size, x + row_end * size, rest);
    StorePart(hn::Mul(scales, FoldNarrow<fold>(rest, size)), d, out + row, row_end - row);
  }
}

template <Fold fold>
void FoldColumn(const float* x, int64_t stride, int64_t rows, int64_t size, float* out) {
  using Of = Folding<fold>;
  const F32 d;
  ForEachVector(size, [&](auto load, auto store) HWY_ATTR {
    VF folded = Of::Term(load(x));
    VF nan = NanOf(d, hn::Zero(d), folded);
    for (int64_t r = 1; r < rows; ++r) {
      const VF v = Of::Term(load(x + r * stride));
      folded = Of::Join(folded, v);
      if constexpr (Of::kOrders) nan = NanOf(d, nan, v);
    }
    if constexpr (Of::kOrders) folded = hn::IfThenElse(hn::IsNaN(nan), nan, folded);
    store(folded, out);
  });
}

// f(the fold as a type).
template <class F>
HWY_INLINE void WithFold(Fold fold, F f) {
  switch (fold) {
    case Fold::kSum:
      return f(std::integral_constant<Fold, Fold::kSum>());
    case Fold::kMax:
      return f(std::integral_constant<Fold, Fold::kMax>());
    case Fold::kMin:
      return f(std::integral_constant<Fold, Fold::kMin>());
    case Fold::kProduct:
      return f(std::integral_constant<Fold, Fold::kProduct>());
    case Fold::kSumOfSquares:
      return f(std::integral_constant<Fold, Fold::kSumOfSquares>());
    case Fold::kSumOfMagnitudes:
      return f(std::integral_constant<Fold, Fold::kSumOfMagnitudes>());
  }
}

void FoldRows(Fold fold, const float* x, int64_t size, float scale, float* out, int64_t row_begin,
              int64_t row_end) {
  WithFold(fold, [&](auto known) HWY_ATTR {
    if constexpr (kNarrow > 0) {
      if (size > 1 && size <= kNarrow) {
        return FoldNarrowRows<known>(x, size, scale, out, row_begin, row_end);
      }
    }
    for (int64_t row = row_begin; row < row_end; ++row) {
      out[row] = scale * FoldRow<known>(x + row * size, size);
    }
  });
}

void FoldColumns(Fold fold, const float* x, int64_t stride, int64_t rows, int64_t size,
                 float* out) {
  WithFold(fold, [&](auto known) HWY_ATTR { FoldColumn<known>(x, stride, rows, size, out); });
}

void NormRow(const NormArgs& args, int64_t row) {
  const F32 d;
  const int64_t size = args.size;
  const float* x = args.x + row * size;
  float* y = args.y + row * size;
  if (args.residual != nullptr) {
    // The sum goes to its output, if requested, else into y, which is overwritten in the last step.
    float* sum = args.sum != nullptr ? args.sum + row * size : y;
    const float* residual = args.residual + row % args.residual_rows * size;
    ForEachVector(size, [&](auto load, auto store)
                            HWY_ATTR { store(hn::Add(load(x), load(residual)), sum); });
    x = sum;
  } else if (args.sum != nullptr) {
    std::copy(x, x + size, args.sum + row * size);
  }
  const float n = static_cast<float>(size);
  float mean = args.centred ? RowSum(x, size, [](VF v) HWY_ATTR { return v; }) / n : 0.0f;
  // The sum of large numbers may be beyond those that a float holds, their mean is not.
  if (HWY_UNLIKELY(!std::isfinite(mean))) {
    mean = static_cast<float>(std::accumulate(x, x + size, 0.0) / static_cast<double>(size));
  }
  const VF mean_v = hn::Set(d, mean);
  const float squares = RowSum(x, size, [&](VF v) HWY_ATTR {
    const VF c = hn::Sub(v, mean_v);
    return hn::Mul(c, c);
  });
  const VF inverse = hn::Set(d, 1.0f / std::sqrt(squares / n + args.epsilon));
  const float* gamma = args.gamma;
  const float* beta = args.beta;
  if (gamma != nullptr && beta != nullptr) {
    ForEachVector(size, [&](auto load, auto store) HWY_ATTR {
      const VF v = hn::Mul(hn::Sub(load(x), mean_v), inverse);
      store(hn::MulAdd(v, load(gamma), load(beta)), y);
    });
    return;
  }
  ForEachVector(size, [&](auto load, auto store) HWY_ATTR {
    VF v = hn::Mul(hn::Sub(load(x), mean_v), inverse);
    if (gamma != nullptr) v = hn::Mul(v, load(gamma));
    if (beta != nullptr) v = hn::Add(v, load(beta));
    store(v, y);
  });
}

void Norm(const NormArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) NormRow(args, row);
}

// `rows` rows of few columns, classes say: each stays in one vector from its load to its store. All
// are loaded before any is stored: where y is x a load waits for a store that ends where it begins.
template <int rows>
HWY_INLINE void SoftmaxInVectors(const float* x, float* y, int64_t size) {
  const F32 d;
  const auto columns = hn::FirstN(d, size);
  VF p[rows];
  for (int r = 0; r < rows; ++r) p[r] = LoadPart(d, x + r * size, size);
  for (int r = 0; r < rows; ++r) {
    const VF max = hn::MaxOfLanes(d, hn::IfThenElse(columns, p[r], hn::Set(d, -INFINITY)));
    p[r] = hn::IfThenElseZero(columns, SoftmaxExp(d, hn::Sub(p[r], max)));
    p[r] = hn::Mul(p[r], hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, p[r])));
  }
  for (int r = 0; r < rows; ++r) StorePart(p[r], d, y + r * size, size);
}

void SoftmaxOfFew(const float* x, float* y, int64_t size, int64_t row_begin, int64_t row_end) {
  constexpr int kAtOnce = 4;
  int64_t row = row_begin;
  for (; row + kAtOnce <= row_end; row += kAtOnce) {
    SoftmaxInVectors<kAtOnce>(x + row * size, y + row * size, size);
  }
  for (; row < row_end; ++row) SoftmaxInVectors<1>(x + row * size, y + row * size, size);
}

void Softmax(const float* x, float* y, int64_t size, int64_t row_begin, int64_t row_end) {
  if (size <= kLanes) return SoftmaxOfFew(x, y, size, row_begin, row_end);
  const F32 d;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* in = x + row * size;
    float* out = y + row * size;
    VF max = hn::Set(d, -INFINITY);
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) max = hn::Max(max, hn::LoadU(d, in + i));
    if (i < size) {
      const VF tail = LoadPart(d, in + i, size - i);
      max = hn::Max(max, hn::IfThenElse(hn::FirstN(d, size - i), tail, max));
    }
    max = hn::MaxOfLanes(d, max);
    VF sum = hn::Zero(d);
    for (i = 0; i + kLanes <= size; i += kLanes) {
      const VF p = SoftmaxExp(d, hn::Sub(hn::LoadU(d, in + i), max));
      hn::StoreU(p, d, out + i);
      sum = hn::Add(sum, p);
    }
    if (i < size) {
      const VF p = SoftmaxExp(d, hn::Sub(LoadPart(d, in + i, size - i), max));
      StorePart(p, d, out + i, size - i);
      sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, size - i), p));
    }
    const VF scale = hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, sum));
    ForEachVector(size,
                  [&](auto load, auto store) HWY_ATTR { store(hn::Mul(load(out), scale), out); });
  }
}

void LogSoftmax(const float* x, float* y, int64_t size, int64_t row_begin, int64_t row_end) {
  const F32 d;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* in = x + row * size;
    float* out = y + row * size;
    const VF max_v = hn::Set(d, FoldRow<Fold::kMax>(in, size));
    // One class is certain: e^0 is 1 to the last digit here, and not in SoftmaxExp.
    const float sum = RowSum(in, size, [&](VF v) HWY_ATTR { return Exp(d, hn::Sub(v, max_v)); });
    const VF log = hn::Set(d, std::log(sum));
    ForEachVector(size, [&](auto load, auto store)
                            HWY_ATTR { store(hn::Sub(hn::Sub(load(in), max_v), log), out); });
  }
}

// Goes row by row, so that memory is read along rows; the state of each column lies in between.
template <bool log>
void SoftmaxOfColumns(const float* x, int64_t stride, int64_t rows, int64_t size, float* y) {
  const F32 d;
  HWY_ALIGN float max[kSoftmaxColumns], sum[kSoftmaxColumns] = {};
  FoldColumns(Fold::kMax, x, stride, rows, size, max);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * stride;
    float* out = y + row * stride;
    ForEachVector(size, [&](auto load, auto store) HWY_ATTR {
      const VF distance = hn::Sub(load(in), load(max));
      const VF p = log ? Exp(d, distance) : SoftmaxExp(d, distance);
      store(hn::Add(load(sum), p), sum);
      if constexpr (!log) store(p, out);
    });
  }
  // Turns the sums into the operand of the last step.
  ForEachVector(size, [&](auto load, auto store) HWY_ATTR {
    store(log ? Log(d, load(sum)) : hn::Div(hn::Set(d, 1.0f), load(sum)), sum);
  });
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * stride;
    float* out = y + row * stride;
    ForEachVector(size, [&](auto load, auto store) HWY_ATTR {
      store(log ? hn::Sub(hn::Sub(load(in), load(max)), load(sum)) : hn::Mul(load(out), load(sum)),
            out);
    });
  }
}

void SoftmaxColumns(bool log, const float* x, int64_t stride, int64_t rows, int64_t size,
                    float* y) {
  (log ? SoftmaxOfColumns<true> : SoftmaxOfColumns<false>)(x, stride, rows, size, y);
}

void SumRows(const std::byte* const* rows, int count, int64_t size, float* out) {
  const F32 d;
  // They may be misaligned for floats.
  const auto load = [&](int row, int64_t i) HWY_ATTR {
    HWY_ALIGN float lanes[kLanes];
    std::memcpy(lanes, rows[row] + i * sizeof(float), sizeof(lanes));
    return hn::Load(d, lanes);
  };
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    VF sum = load(0, i);
    for (int r = 1; r < count; ++r) sum = hn::Add(sum, load(r, i));
    hn::StoreU(sum, d, out + i);
  }
  for (; i < size; ++i) {
    out[i] = 0;
    for (int r = 0; r < count; ++r) {
      float value;
      std::memcpy(&value, rows[r] + i * sizeof(float), sizeof(value));
      out[i] = r == 0 ? value : out[i] + value;
    }
  }
}

void AddInt8Rows(const std::byte* const* rows, int count, int64_t size, float* out) {
  const F32 d;
  const hn::Rebind<int8_t, F32> d8;
  const hn::Rebind<int32_t, F32> d32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int r = 0; r < count; ++r) {
    float factor, zero;
    std::memcpy(&factor, rows[r], sizeof(factor));
    std::memcpy(&zero, rows[r] + sizeof(factor), sizeof(zero));
    const auto* values = reinterpret_cast<const int8_t*>(rows[r] + sizeof(factor) + sizeof(zero));
    const VF factors = hn::Set(d, factor), zeros = hn::Set(d, zero);
    int64_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      const VF v = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, values + i)));
      hn::StoreU(hn::MulAdd(hn::Sub(v, zeros), factors, hn::LoadU(d, out + i)), d, out + i);
    }
    for (; i < size; ++i) out[i] = std::fma(static_cast<float>(values[i]) - zero, factor, out[i]);
  }
}

void WeightedSum(const float* x, int64_t stride, const float* weights, int64_t rows, int64_t size,
                 float scale, float* out) {
  const F32 d;
  const VF scale_v = hn::Set(d, scale);
  ForEachVector(size, [&](auto load, auto store) HWY_ATTR {
    VF sum = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) {
      const VF v = load(x + r * stride);
      sum = weights == nullptr ? hn::Add(sum, v) : hn::MulAdd(v, hn::Set(d, weights[r]), sum);
    }
    store(hn::Mul(sum, scale_v), out);
  });
}

void Rotary(const float* x, const float* cosine, const float* sine, float* y, int64_t size) {
  const int64_t half = size / 2;
  ForEachVector(half, [&](auto load, auto store) HWY_ATTR {
    const VF low = load(x), high = load(x + half);
    store(hn::NegMulAdd(high, load(sine), hn::Mul(low, load(cosine))), y);
    store(hn::MulAdd(low, load(sine + half), hn::Mul(high, load(cosine + half))), y + half);
  });
}

}  // namespace

constexpr RowKernels kRowKernels = {Norm,        Softmax,  Rotary,      SumRows,    AddInt8Rows,
                                    WeightedSum, FoldRows, FoldColumns, LogSoftmax, SoftmaxColumns};

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const RowKernels& RowKernelsFor(Isa isa) { return REPRISE_CHOOSE_TARGET(isa, kRowKernels); }

}  // namespace reprise::cpu
#endif  // HWY_ONCE
