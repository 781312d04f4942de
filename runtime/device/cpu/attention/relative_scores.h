// The relative position bias that attention adds to the scores of one (sequence, head).
//
//   bias[i][j] = q_i q_table[:, q_places[i - j]] + k_j k_table[:, k_places[j - i]] + masks
//
// Columns of a table are laid out by distance, once for a block of queries; then both terms are
// products whose neighbouring rows are shifted by one column, so that only columns that some pair
// needs are multiplied, and there is no lookup for each pair.
//
// Threads: pure; a call writes its own bias and scratch.
#pragma once

#include <cstdint>
#include <limits>

#include "runtime/base/cpu/cpu_info.h"

namespace reprise::cpu {

// A table of a head, [head_dim][width], and the column of each distance: places[0] is for -`reach`,
// the last for `reach`. Farther distances use the first and the last.
struct RelativeTable {
  const float* columns = nullptr;  // null: there is none
  int64_t width = 0;
  const int64_t* places = nullptr;
  int64_t reach = 0;
};

// Pointers point to the sequence and head; strides are in elements, from one row to the next.
struct RelativeScoresArgs {
  const float* q = nullptr;
  const float* k = nullptr;
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t keys = 0;
  int64_t head_dim = 0;
  RelativeTable q_table, k_table;
  // Masks, each null where there is none.
  const float* mask = nullptr;  // query i and key j read mask[i * mask_stride + j]
  int64_t mask_stride = 0;
  const float* key_mask = nullptr;    // [keys]
  const float* query_mask = nullptr;  // [queries]
  // The lower bound of the sum of the latter two masks.
  float lowest_mask = -std::numeric_limits<float>::infinity();
  float* scratch = nullptr;  // RelativeScoresKernels::scratch_floats, aligned to 64 bytes
};

// A block of queries against all keys. Rows of `values` are `stride` floats apart.
struct RelativeBias {
  const float* values;
  int64_t stride;
};

struct RelativeScoresKernels {
  // The bias of queries [begin, end), which lies in the scratch.
  RelativeBias (*bias)(const RelativeScoresArgs& args, int64_t begin, int64_t end);
  // The scratch for up to `queries` queries at once against up to `keys` keys.
  int64_t (*scratch_floats)(int64_t queries, int64_t keys, int64_t head_dim);
};

const RelativeScoresKernels& RelativeScoresKernelsFor(Isa isa);

}  // namespace reprise::cpu
