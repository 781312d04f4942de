// Conversions of float8. `form`: the number that ONNX gives to it.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

template <OpText kOp>
struct CastFloat8Op : NamedOp<kOp> {
  enum Input : size_t { kX };

  int64_t form = 0;
  OP_ATTRIBUTES(CastFloat8Op, form)
};

using FromFloat8Op = CastFloat8Op<"reprise.FromFloat8">;
using ToFloat8Op = CastFloat8Op<"reprise.ToFloat8">;

template <OpText kOp>
struct ScaleFloat8Op : NamedOp<kOp> {
  enum Input : size_t { kX, kScale };

  int64_t form = 0;
  OP_ATTRIBUTES(ScaleFloat8Op, form)
};

using DequantizeFloat8Op = ScaleFloat8Op<"reprise.DequantizeFloat8">;
using QuantizeFloat8Op = ScaleFloat8Op<"reprise.QuantizeFloat8">;

}  // namespace reprise
