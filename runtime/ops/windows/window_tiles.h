// Windows of 3 x 3 that are computed by tiles: four neighbours share 16 products of transformed
// inputs and weights, where one by one they take 36 (Winograd's F(2x2, 3x3)). Decides which
// convolutions are worth it, for the pass that makes them and the pass that chooses layouts by
// cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "runtime/ops/windows/windows.h"

namespace reprise::ops {

inline constexpr int64_t kTileForms = 16;

// The tiles that a plane is divided into.
struct WindowTiles {
  int64_t rows = 0, columns = 0;
  int64_t count() const { return rows * columns; }
};

// Returns the tiles of a convolution of one group, by the last two dims of `windows`; nullopt where
// it has other windows, or too few channels, maps or tiles to pay for the forms. `slices`: planes
// that share the forms of the weights at a time.
inline std::optional<WindowTiles> TilesOf(const Windows& windows, int64_t channels, int64_t maps,
                                          int64_t slices = 1) {
  // Fewer channels and maps do not pay for making the forms. Weights have 16 forms where they had 9
  // elements, and stream by for the tiles of a plane.
  constexpr int64_t kFewestChannels = 32, kFewestMaps = 32, kFewestTiles = 12;
  const auto plane_is = [](const auto& sizes, int64_t size) {
    return std::all_of(sizes.end() - 2, sizes.end(), [&](int64_t one) { return one == size; });
  };
  if (windows.kernel.size() < 2 || !plane_is(windows.kernel, 3) || !plane_is(windows.strides, 1) ||
      !plane_is(windows.dilations, 1) || channels < kFewestChannels || maps < kFewestMaps) {
    return std::nullopt;
  }
  const int64_t rows = *(windows.out.end() - 2), columns = windows.out.back();
  const WindowTiles tiles = {(rows + 1) / 2, (columns + 1) / 2};
  // Where windows of tiles lie outside of the plane little is saved: at least a quarter must be.
  const bool pay = 4 * kTileForms * tiles.count() <= 3 * 9 * rows * columns;
  if (tiles.count() * slices < kFewestTiles || !pay) return std::nullopt;
  return tiles;
}

// Returns whether channels and maps that lie last fill the vectors of any CPU.
inline bool FillVectors(int64_t channels, int64_t maps) {
  constexpr int64_t kVector = 16;
  return channels % kVector == 0 && maps % kVector == 0;
}

}  // namespace reprise::ops
