// Products of matrices.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct MatMulOp {
  static constexpr char kName[] = "MatMul";
  enum Input : size_t { kA, kB };
};

struct FusedMatMulOp {
  static constexpr char kName[] = "com.microsoft.FusedMatMul";
  enum Input : size_t { kA, kB };

  bool trans_a = false;
  bool trans_b = false;
  float alpha = 1;

  static FusedMatMulOp From(const Attributes& attributes) {
    FusedMatMulOp op;
    ReadAttribute(attributes, "transA", op.trans_a);
    ReadAttribute(attributes, "transB", op.trans_b);
    ReadAttribute(attributes, "alpha", op.alpha);
    return op;
  }
  static FusedMatMulOp From(const Node& node) { return From(node.attributes); }
};

struct GemmOp {
  static constexpr char kName[] = "Gemm";
  enum Input : size_t { kA, kB, kC };

  bool trans_a = false;
  bool trans_b = false;
  float alpha = 1;
  float beta = 1;

  static GemmOp From(const Attributes& attributes) {
    GemmOp op;
    ReadAttribute(attributes, "transA", op.trans_a);
    ReadAttribute(attributes, "transB", op.trans_b);
    ReadAttribute(attributes, "alpha", op.alpha);
    ReadAttribute(attributes, "beta", op.beta);
    return op;
  }
  static GemmOp From(const Node& node) { return From(node.attributes); }
};

struct MatMulIntegerOp {
  static constexpr char kName[] = "MatMulInteger";
  enum Input : size_t { kA, kB, kAZero, kBZero };
};

struct QLinearMatMulOp {
  static constexpr char kName[] = "QLinearMatMul";
  enum Input : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };
};

struct EinsumOp {
  static constexpr char kName[] = "Einsum";

  std::string equation = "";

  static EinsumOp From(const Attributes& attributes) {
    EinsumOp op;
    ReadAttribute(attributes, "equation", op.equation);
    return op;
  }
  static EinsumOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise
