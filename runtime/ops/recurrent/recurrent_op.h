// Recurrent layers.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

template <OpText kOp>
struct RecurrentOp : NamedOp<kOp> {
  enum Input : size_t { kX, kWeights, kRecurrence, kBias };

  int64_t layout = 0;
  std::string direction = "forward";
  OP_ATTRIBUTES(RecurrentOp, layout, direction)
};

using LstmOp = RecurrentOp<"LSTM">;
using GruOp = RecurrentOp<"GRU">;
using RnnOp = RecurrentOp<"RNN">;

}  // namespace reprise
