#include "runtime/device/cpu/int8/packed_taps.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/ops/quantized/quantize.h"

namespace reprise::cpu {
namespace {

// Packs the words and sums of the bytes [taps, channels] that begin at `raw`.
void PackWords(const PackedTaps& packed, uint8_t* raw, bool is_signed) {
  const ByteWords& words = packed.words;
  uint8_t* to = raw + packed.RawBytes();
  auto* sums = reinterpret_cast<int32_t*>(to + packed.WordBytes());
  const uint8_t flip = is_signed ? 0 : 0x80;
  ForByteBlocks(words.channels, packed.widest, [&](int64_t first, int64_t width) {
    for (int64_t tap = 0; tap < words.column_taps; ++tap) {
      for (int64_t row = 0; row < 4 * words.words(); ++row) {
        if (row >= words.row_taps) continue;
        uint8_t* const word = to + (tap * words.words() + row / 4) * 4 * width + row % 4;
        const uint8_t* const of_tap = raw + (row * words.column_taps + tap) * words.channels;
        ForChannelsOfBlock(width, [&](int64_t i, int64_t channel) {
          word[4 * i] = of_tap[first + channel] ^ flip;
          sums[i] += static_cast<int8_t>(word[4 * i]);
        });
      }
    }
    to += words.column_taps * words.words() * 4 * width;
    sums += width;
  });
}

}  // namespace

absl::StatusOr<Tensor> RunPackTaps(const PrepareCall& call) {
  const Tensor& weights = call.weight();
  const Shape& shape = weights.shape();
  if (!ops::IsByte(weights.dtype()) || shape.size() < 3 || shape[1] != 1) {
    return absl::InternalError(
        absl::StrCat(kPackTapsOp, " of ", DTypeName(weights.dtype()), " ", ShapeToString(shape)));
  }
  PackedTaps packed;
  packed.widest = call.attributes.Int("widest", 0);
  ByteWords& words = packed.words;
  words.channels = shape[0];
  words.column_taps = shape.back();
  words.row_taps = NumElements(shape) / shape[0] / shape.back();
  const int64_t taps = words.row_taps * words.column_taps;
  std::shared_ptr<std::byte> memory_of_all =
      call.memory.Allocate(static_cast<size_t>(packed.Bytes()));
  auto* const raw = reinterpret_cast<uint8_t*>(memory_of_all.get());
  std::memset(raw, 0, static_cast<size_t>(packed.Bytes()));
  const auto* from = static_cast<const uint8_t*>(weights.data());
  for (int64_t channel = 0; channel < words.channels; ++channel) {
    for (int64_t tap = 0; tap < taps; ++tap) raw[tap * words.channels + channel] = *from++;
  }
  if (packed.widest != 0) PackWords(packed, raw, weights.dtype() == DType::kInt8);
  return Tensor(DType::kUInt8, {packed.Bytes()}, std::move(memory_of_all));
}

}  // namespace reprise::cpu
