// EmulatedTileUnit: the instructions of the tile unit (AMX) in plain code, after their descriptions
// in Intel's Software Developer's Manual, volume 2. Kernels that are templates of a unit run with
// it on CPUs that lack the unit, and are compared to the bit.
//
// A use that the unit would answer with an exception ends the test: a tile without rows, operands
// whose sizes do not fit.
//
// Threads: each has tiles of its own, as on a CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/base/status_macros.h"

namespace reprise::cpu {

class EmulatedTileUnit {
 public:
  template <class Config>
  static void Configure(const Config& config) {
    REPRISE_CHECK(config.palette == 1 && config.start_row == 0);
    for (int i = 0; i < kTiles; ++i) {
      REPRISE_CHECK(config.rows[i] <= 16 && config.row_bytes[i] <= 64);
      Tile& tile = TileAt(i);
      tile = {.rows = config.rows[i], .bytes = config.row_bytes[i]};
    }
  }
  static void Release() {
    for (int i = 0; i < kTiles; ++i) TileAt(i) = {};
  }
  template <int kTile>
  static void Load(const void* from, int64_t stride) {
    Tile& tile = Used(kTile);
    std::memset(tile.data, 0, sizeof(tile.data));
    for (int r = 0; r < tile.rows; ++r) {
      std::memcpy(tile.data[r], static_cast<const uint8_t*>(from) + r * stride, tile.bytes);
    }
  }
  template <int kTile>
  static void Store(void* to, int64_t stride) {
    const Tile& tile = Used(kTile);
    for (int r = 0; r < tile.rows; ++r) {
      std::memcpy(static_cast<uint8_t*>(to) + r * stride, tile.data[r], tile.bytes);
    }
  }
  template <int kTile>
  static void Zero() {
    std::memset(Used(kTile).data, 0, sizeof(Tile::data));
  }

  template <bool kASigned, bool kBSigned, int kSums, int kA, int kB>
  static void MultiplyBytes() {
    const Operands of = Fitting(kSums, kA, kB);
    for (int m = 0; m < of.sums.rows; ++m) {
      uint32_t sums[16];  // which wrap around
      std::memcpy(sums, of.sums.data[m], sizeof(sums));
      for (int k = 0; k < of.a.bytes; ++k) {
        const int a = Byte<kASigned>(of.a.data[m][k]);
        const uint8_t* const b = of.b.data[k / 4] + k % 4;
        for (int n = 0; n < of.sums.bytes / 4; ++n) {
          sums[n] += static_cast<uint32_t>(a * Byte<kBSigned>(b[4 * n]));
        }
      }
      std::memcpy(of.sums.data[m], sums, sizeof(sums));
    }
  }

  // Sums the products of even and of odd numbers apart, then adds both; denormals count as 0.
  template <int kSums, int kA, int kB>
  static void MultiplyHalves() {
    const Operands of = Fitting(kSums, kA, kB);
    for (int m = 0; m < of.sums.rows; ++m) {
      float even[16] = {}, odd[16] = {}, sums[16];
      std::memcpy(sums, of.sums.data[m], sizeof(sums));
      for (int k = 0; k < of.a.bytes / 4; ++k) {
        const uint8_t* const a = of.a.data[m] + 4 * k;
        for (int n = 0; n < of.sums.bytes / 4; ++n) {
          const uint8_t* const b = of.b.data[k] + 4 * n;
          even[n] = Flushed(std::fma(Half(a), Half(b), even[n]));
          odd[n] = Flushed(std::fma(Half(a + 2), Half(b + 2), odd[n]));
        }
      }
      for (int n = 0; n < of.sums.bytes / 4; ++n) {
        sums[n] = Flushed(Flushed(sums[n]) + Flushed(even[n] + odd[n]));
      }
      std::memcpy(of.sums.data[m], sums, sizeof(sums));
    }
  }

 private:
  static constexpr int kTiles = 8;
  struct Tile {
    int rows = 0, bytes = 0;
    uint8_t data[16][64] = {};
  };
  struct Operands {
    Tile& sums;
    const Tile& a;
    const Tile& b;
  };

  static Tile& TileAt(int i) {
    static thread_local Tile tiles[kTiles];
    return tiles[i];
  }
  static Tile& Used(int i) {
    Tile& tile = TileAt(i);
    REPRISE_CHECK(tile.rows > 0 && tile.bytes > 0);
    return tile;
  }
  static Operands Fitting(int sums, int a, int b) {
    REPRISE_CHECK(sums != a && a != b && sums != b);
    const Operands of = {Used(sums), Used(a), Used(b)};
    REPRISE_CHECK(of.sums.rows == of.a.rows && of.sums.bytes == of.b.bytes);
    REPRISE_CHECK(of.a.bytes == 4 * of.b.rows && of.sums.bytes % 4 == 0);
    return of;
  }
  template <bool kSigned>
  static int Byte(uint8_t byte) {
    return kSigned ? static_cast<int8_t>(byte) : byte;
  }
  static float Flushed(float x) {
    return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
  }
  static float Half(const uint8_t* from) {
    uint16_t bits;
    std::memcpy(&bits, from, sizeof(bits));
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float x;
    std::memcpy(&x, &wide, sizeof(x));
    return Flushed(x);
  }
};

}  // namespace reprise::cpu
