// Block formats: how GGUF files store a matrix in blocks of numbers with factors of their own.
//
// A row of a matrix is a whole number of blocks, each of a fixed number of bytes: the factors of
// the block, mostly float16, and its numbers, of four to eight bits. Each number stands for number
// * scale + offset, where formats without offsets leave that out. The layouts are defined in ggml's
// `ggml-common.h`; the products of a number and its scale are exact in float32 in all of them, so
// that each value is rounded once at most.
//
// Threads: functions are pure.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace reprise::ops {

// A block taken apart.
struct BlockParts {
  static constexpr int kMostNumbers = 256, kMostGroups = 16;
  int8_t numbers[kMostNumbers];
  float scales[kMostGroups];   // one for each group of numbers
  float offsets[kMostGroups];  // the same, where the format has them
};

struct BlockFormat {
  absl::string_view name;  // as ggml calls it: "Q4_K"
  int64_t type;            // its number in files
  int64_t numbers;         // numbers of a block
  int64_t bytes;           // bytes of a block
  int64_t group;           // numbers that share a scale
  int kept_bits;           // bits that kernels keep a number in, 4 or 8
  int middle;              // added to a number, it fits into unsigned `kept_bits` bits
  bool offsets;
  void (*take_apart)(const uint8_t* block, BlockParts& parts);

  int64_t groups() const { return numbers / group; }
};

// Returns all formats that are read.
absl::Span<const BlockFormat> BlockFormats();
// Return nullptr where there is no such format.
const BlockFormat* FindBlockFormat(absl::string_view name);
const BlockFormat* FindBlockFormat(int64_t type);

}  // namespace reprise::ops
