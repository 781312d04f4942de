// Pooling.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct MaxPoolOp {
  static constexpr char kName[] = "MaxPool";
  enum Input : size_t { kX };
};

struct AveragePoolOp {
  static constexpr char kName[] = "AveragePool";
  enum Input : size_t { kX };
};

struct GlobalMaxPoolOp {
  static constexpr char kName[] = "GlobalMaxPool";
  enum Input : size_t { kX };
};

struct GlobalAveragePoolOp {
  static constexpr char kName[] = "GlobalAveragePool";
  enum Input : size_t { kX };
};

}  // namespace reprise
