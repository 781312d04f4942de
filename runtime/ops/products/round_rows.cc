#include "runtime/ops/products/round_rows.h"

#include "runtime/base/work_watch.h"

namespace reprise::ops {
namespace {

void RoundRow(const float* row, int64_t count, bool whole, float* rounded) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(row[i])) low = std::numeric_limits<float>::quiet_NaN();
    low = std::min(low, row[i]);
    high = std::max(high, row[i]);
  }
  const RowScale scale =
      whole ? RowScaleOf(low, high) : BlockScaleOf(std::isnan(low) ? low : std::max(-low, high));
  const float least = whole ? 0 : -127, most = whole ? 255 : 127;
  const auto zero = static_cast<float>(scale.zero);
  for (int64_t i = 0; i < count; ++i) {
    const float steps =
        std::isfinite(row[i]) ? std::nearbyint(row[i] * scale.inverse) + zero : zero;
    rounded[i] = (std::clamp(steps, least, most) - zero) * scale.scale;
  }
}

}  // namespace

void RoundRows(const float* rows, int64_t count, int64_t k, int64_t block, float* rounded) {
  const int64_t length = block > 0 ? block : std::max<int64_t>(k, 1);
  for (int64_t row = 0; row < count; ++row) {
    WatchWork(k);
    for (int64_t at = 0; at < k; at += length) {
      const int64_t offset = row * k + at;
      RoundRow(rows + offset, std::min(length, k - at), block == 0, rounded + offset);
    }
  }
}

}  // namespace reprise::ops
