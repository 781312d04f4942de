#include "runtime/device/cpu/int8/byte_words.h"

#include <algorithm>

#include "runtime/device/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/cpu/int8/byte_words.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "runtime/device/cpu/int8/requantize_steps-inl.h"
#include "runtime/device/cpu/simd/byte_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reprise::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

// Windows at a time, which share the loads of weights.
constexpr int kWindows = HWY_TARGET == HWY_AVX3 ? 4 : 2;

// Makes words of four rows of bytes: the first four channels of each 16, then the next.
template <class D8>
HWY_INLINE void Words(const uint8_t* const (&from)[4], hn::Vec<D8> flip, uint8_t* to) {
  const D8 d;
  const hn::Repartition<uint16_t, D8> d16;
  constexpr int64_t kBytes = hn::MaxLanes(D8());
  hn::Vec<D8> rows[4];
  HWY_UNROLL(4) for (int i = 0; i < 4; ++i) rows[i] = hn::Xor(flip, hn::LoadU(d, from[i]));
  const auto low = hn::BitCast(d16, hn::InterleaveLower(d, rows[0], rows[1]));
  const auto high = hn::BitCast(d16, hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto low_behind = hn::BitCast(d16, hn::InterleaveLower(d, rows[2], rows[3]));
  const auto high_behind = hn::BitCast(d16, hn::InterleaveUpper(d, rows[2], rows[3]));
  const auto store = [&](int i, hn::Vec<decltype(d16)> words)
                         HWY_ATTR { hn::Store(hn::BitCast(d, words), d, to + i * kBytes); };
  store(0, hn::InterleaveLower(d16, low, low_behind));
  store(1, hn::InterleaveUpper(d16, low, low_behind));
  store(2, hn::InterleaveLower(d16, high, high_behind));
  store(3, hn::InterleaveUpper(d16, high, high_behind));
}

// Words of `count` columns from `column` on, of the channels from `first` on.
template <class D8>
HWY_INLINE void SeeColumns(const ByteWords& conv, const uint8_t* const* rows,
                           const uint8_t* padding, int64_t first, int64_t column, int64_t count,
                           uint8_t* to) {
  constexpr int64_t kBytes = hn::MaxLanes(D8());
  const auto flip = hn::Set(D8(), static_cast<uint8_t>(conv.x_signed ? 0x80 : 0));
  const int64_t words = conv.words();
  const uint8_t* const none = padding + first;
  for (int64_t word = 0; word < words; ++word) {
    const uint8_t* row[4];
    int64_t step[4];
    for (int i = 0; i < 4; ++i) {
      const uint8_t* const from = rows[4 * word + i];
      row[i] = from == nullptr ? none : from + first;
      step[i] = from == nullptr ? 0 : conv.channels;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = column + i;
      uint8_t* const out = to + (i * words + word) * 4 * kBytes;
      if (at < 0 || at >= conv.columns) {
        Words<D8>({none, none, none, none}, flip, out);
      } else {
        Words<D8>({row[0] + at * step[0], row[1] + at * step[1], row[2] + at * step[2],
                   row[3] + at * step[3]},
                  flip, out);
      }
    }
  }
}

// Computes `kCount` neighbouring windows, the first of which sees `seen`. `first` is the block's
// first channel in the arrays that lie by blocks.
template <Form form, class D8, int kCount>
HWY_INLINE void RunWindows(const ByteWords& conv, const uint8_t* seen, int64_t first,
                           const QuickSteps<hn::Repartition<float, D8>>& steps, uint8_t* y) {
  const D8 d8;
  using DF = hn::Repartition<float, D8>;
  const DF df;
  const hn::Repartition<uint32_t, D8> d;
  const hn::RebindToSigned<decltype(d)> d32;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kBytes = hn::MaxLanes(D8()), kLanes = kBytes / 4;
  const int64_t column_bytes = conv.words() * 4 * kBytes;
  const int64_t step = conv.stride * column_bytes;
  V acc[kCount][4];
  HWY_UNROLL(4) for (int v = 0; v < 4; ++v) {
    const V start = hn::BitCast(d, hn::LoadU(d32, conv.start + first + v * kLanes));
    HWY_UNROLL(4) for (int w = 0; w < kCount; ++w) acc[w][v] = start;
  }
  const int8_t* weights = conv.weights + first * conv.column_taps * conv.words() * 4;
  for (int64_t tap = 0; tap < conv.column_taps; ++tap) {
    const uint8_t* x = seen + tap * conv.dilation * column_bytes;
    for (int64_t word = 0; word < conv.words(); ++word) {
      HWY_UNROLL(4) for (int v = 0; v < 4; ++v) {
        const V factor =
            hn::BitCast(d, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(weights) + v * kBytes));
        const auto load = [&](int w) HWY_ATTR {
          return hn::BitCast(d, hn::Load(d8, x + w * step + v * kBytes));
        };
        if constexpr (form == Form::kVnni) {
#if REPRISE_HAS_VNNI
          HWY_UNROLL(4)
          for (int w = 0; w < kCount; ++w) AccumulateBytes(acc[w][v], load(w), factor);
#endif
        } else {
          const auto wide = Widened</*kSigned=*/true>(factor);
          HWY_UNROLL(4) for (int w = 0; w < kCount; ++w) {
            AccumulateWide(acc[w][v], Widened</*kSigned=*/false>(load(w)), wide);
          }
        }
      }
      x += 4 * kBytes;
      weights += 4 * kBytes;
    }
  }
  HWY_UNROLL(4) for (int w = 0; w < kCount; ++w) {
    typename QuickSteps<DF>::VInt whole[4];
    HWY_UNROLL(4) for (int v = 0; v < 4; ++v) {
      const auto sum = hn::ConvertTo(df, hn::BitCast(d32, acc[w][v]));
      const auto scaled = hn::Mul(sum, hn::LoadU(df, conv.scale + first + v * kLanes));
      whole[v] = steps.Steps(hn::Add(scaled, hn::LoadU(df, conv.bias + first + v * kLanes)));
    }
    hn::StoreU(steps.Bytes(whole[0], whole[1], whole[2], whole[3]), d8, y + w * conv.channels);
  }
}

// Computes the channels from `channel` on, as many as D8 has lanes; `first`: as above.
template <Form form, class D8>
HWY_NOINLINE void RunBlock(const ByteWords& conv, const uint8_t* const* rows,
                           const uint8_t* padding, int64_t channel, int64_t first, uint8_t* scratch,
                           uint8_t* y) {
  const QuickSteps<hn::Repartition<float, D8>> steps(*conv.bounds);
  const int64_t most = (conv.MostColumns() - conv.extent()) / conv.stride + 1;
  const int64_t window_bytes =
      conv.stride * conv.words() * 4 * static_cast<int64_t>(hn::MaxLanes(D8()));
  y += channel;
  for (int64_t begin = 0, count; begin < conv.windows; begin += count) {
    count = std::min(most, conv.windows - begin);
    SeeColumns<D8>(conv, rows, padding, channel, begin * conv.stride - conv.pad,
                   (count - 1) * conv.stride + conv.extent(), scratch);
    const uint8_t* seen = scratch;
    const auto advance = [&](int64_t windows) HWY_ATTR {
      seen += windows * window_bytes;
      y += windows * conv.channels;
    };
    int64_t i = 0;
    for (; i + kWindows <= count; i += kWindows, advance(kWindows)) {
      RunWindows<form, D8, kWindows>(conv, seen, first, steps, y);
    }
    if (kWindows > 2 && i + 2 <= count) {
      RunWindows<form, D8, 2>(conv, seen, first, steps, y);
      i += 2;
      advance(2);
    }
    if (i < count) {
      RunWindows<form, D8, 1>(conv, seen, first, steps, y);
      advance(1);
    }
  }
}

constexpr int64_t kWidest = HWY_LANES(uint8_t);

template <Form form>
void Run(const ByteWords& conv, const uint8_t* const* rows, const uint8_t* padding,
         uint8_t* scratch, uint8_t* y) {
  int64_t first = 0;
  ForByteBlocks(conv.channels, kWidest, [&](int64_t channel, int64_t width) {
    const auto run = [&](auto d) HWY_ATTR {
      RunBlock<form, decltype(d)>(conv, rows, padding, channel, first, scratch, y);
    };
    if (width == 16) run(hn::FixedTag<uint8_t, 16>());
    if (width == 32) run(hn::FixedTag<uint8_t, 32>());
#if HWY_TARGET == HWY_AVX3
    if (width == 64) run(hn::FixedTag<uint8_t, 64>());
#endif
    first += width;
  });
}

#endif

}  // namespace

#if HWY_TARGET == HWY_SCALAR
constexpr ByteWordKernels kByteWordKernels = {};
#else
constexpr ByteWordKernels kByteWordKernels = {kWidest, Run<Form::kWidened>};
#endif
#if REPRISE_HAS_VNNI
constexpr ByteWordKernels kByteWordVnniKernels = {kWidest, Run<Form::kVnni>};
#endif

}  // namespace reprise::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reprise::cpu {

const ByteWordKernels& ByteWordKernelsFor(Isa isa) {
#if REPRISE_WITH_AVX512
  if (isa.Has(CpuFeature::kAvx512Vnni)) return N_AVX3::kByteWordVnniKernels;
#endif
#if REPRISE_WITH_AVX2
  if (isa.Has(CpuFeature::kAvxVnni) && !isa.Has(CpuFeature::kAvx512))
    return N_AVX2::kByteWordVnniKernels;
#endif
  return REPRISE_CHOOSE_TARGET(isa, kByteWordKernels);
}

}  // namespace reprise::cpu
#endif  // HWY_ONCE
