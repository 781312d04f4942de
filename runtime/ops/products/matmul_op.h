// Products of matrices.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct MatMulOp : NamedOp<"MatMul"> {
  enum Input : size_t { kA, kB };
};

struct FusedMatMulOp : NamedOp<"com.microsoft.FusedMatMul"> {
  enum Input : size_t { kA, kB };

  bool trans_a = false;
  bool trans_b = false;
  float alpha = 1;
  OP_ATTRIBUTES_NAMED(FusedMatMulOp, "transA, transB, alpha", trans_a, trans_b, alpha)
};

struct GemmOp : NamedOp<"Gemm"> {
  enum Input : size_t { kA, kB, kC };

  bool trans_a = false;
  bool trans_b = false;
  float alpha = 1;
  float beta = 1;
  OP_ATTRIBUTES_NAMED(GemmOp, "transA, transB, alpha, beta", trans_a, trans_b, alpha, beta)
};

struct MatMulIntegerOp : NamedOp<"MatMulInteger"> {
  enum Input : size_t { kA, kB, kAZero, kBZero };
};

struct QLinearMatMulOp : NamedOp<"QLinearMatMul"> {
  enum Input : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };
};

struct EinsumOp : NamedOp<"Einsum"> {
  std::string equation = "";
  OP_ATTRIBUTES(EinsumOp, equation)
};

}  // namespace reprise
