// Product: a matrix product as a node describes it, before a way to compute it is chosen.
//
//   out[i] = activation(alpha a[i] b[i] + beta addend) + residual      for each i of the stack
//
// All matrices lie side by side, row-major.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

struct Bf16Kernels;

inline constexpr int kNoOperand = -1;
inline constexpr size_t kMaxStackDims = 6;

struct Product {
  DType dtype = DType::kFloat32;
  int64_t m = 0, n = 0, k = 0;
  bool transposed_a = false;  // stored [k, m]
  bool transposed_b = false;  // stored [n, k]
  float alpha = 1;

  // Positions among the operands; a is 0, b is 1.
  int out = 0;
  int addend = kNoOperand;
  float beta = 1;
  // Element (row, column) of the addend is at row * row_step + column * column_step.
  int64_t addend_row_step = 0, addend_column_step = 0;
  int residual = kNoOperand;  // [m, n], after the activation

  Activation activation = Activation::kNone;
  std::string activation_name = "none";

  // The stack, outermost dim first, and each side's steps in matrices (0: repeated).
  int64_t stack = 1;
  size_t dims = 0;
  int64_t sizes[kMaxStackDims] = {};
  int64_t a_steps[kMaxStackDims] = {};
  int64_t b_steps[kMaxStackDims] = {};

  int64_t batch_rows = 0;  // NodeView::batch_rows, of stack * m
  bool weights = false;    // b is a parameter, a matrix: it can be packed once a model

  // Returns whether the addend is a single row for all rows, unscaled.
  bool has_bias() const {
    return addend != kNoOperand && beta == 1 && addend_row_step == 0 && addend_column_step == 1;
  }
  // Returns whether the addend is a whole matrix, unscaled.
  bool has_matrix_addend() const {
    return addend != kNoOperand && beta == 1 && addend_row_step == n && addend_column_step == 1;
  }
  double flops() const { return 2.0 * static_cast<double>(stack * m) * static_cast<double>(n * k); }
  // "[16, 384] x [384, 1536] + bias, gelu"
  std::string Detail() const;
  // Positions of a's and b's matrix for matrix `i` of the stack.
  struct Positions {
    int64_t a, b;
  };
  Positions MatricesOf(int64_t i) const;
  // The part of the stack, and of the rows of each matrix, that carries requests. At least one of
  // the two is whole.
  struct Extent {
    int64_t stack, rows;
  };
  Extent LiveExtent(const Frame& frame) const;
  bool takes_live_rows() const { return batch_rows > 0 && (stack == 1 || stack % batch_rows == 0); }
};

// Returns the product that the node computes, or nothing where Product cannot describe it. Any
// dtype.
std::optional<Product> LinearProduct(const NodeView& node);
std::optional<Product> IntegerLinearProduct(const NodeView& node);
std::optional<Product> MatMulProduct(const NodeView& node);
std::optional<Product> GemmProduct(const NodeView& node);

// The operands that a kernel of ours adds to a product. A node that adds something in a way that no
// kernel knows has none.
struct Addends {
  int bias = kNoOperand;
  int residual = kNoOperand;
};
std::optional<Addends> AddendsOf(const Product& product);

// Operand `operand` of a launch; null for kNoOperand.
inline const float* FloatsAt(const LaunchArgs& launch, int operand) {
  return operand == kNoOperand ? nullptr : static_cast<const float*>(launch.operands[operand]);
}
// Returns the arguments of a launch of `product` for the kernels for packed weights.
GemmArgs GemmArgsOf(const Product& product, const Addends& addends, const LaunchArgs& launch);

// Adds the work of the activation of the product's results.
void CountActivation(const Product& product, LaunchWork& work);

// Makes timing on the machine choose among `candidates`, where there are several: the question is
// equal for all products with the same answer.
void AskWhichIsFastest(const CpuTarget& target, const Product& product,
                       std::vector<Candidate>& candidates);

// plan_bf16.cc: the node's operands are to be rounded, and the product so; nothing where there is
// no kernel for its form, which is then multiplied exactly.
bool RoundsToBf16(const NodeView& node);
// Returns whether its rows are to be rounded to bytes.
bool RoundsToInt8(const NodeView& node);
std::vector<Candidate> Bf16Candidates(const CpuTarget& target, const NodeView& node,
                                      const Product& product);

// The fewest rows of products of bytes that the tile unit is offered for.
inline constexpr int64_t kFewestUnitRows = 8;
// plan_linear.cc: whether the tile unit, where there is one, is the usual one for the product.
bool SuitsTiles(const Product& product, bool int8);

// Kernels of a tile unit, which take panels of weights; null: there are none.
struct PanelKernels {
  const GemmKernels* floats = nullptr;  // faster where SuitsTiles
  const Bf16Kernels* halves = nullptr;  // take any number of rows, where a node rounds to bfloat16
};
// plan_blocks.cc: the product by weights of a few bits as they are stored; nothing where the node
// has none, or has them in a form that no kernel reads. It rounds as the node asks for; to bfloat16
// on CPUs that multiply it.
std::vector<Candidate> BlockCandidates(const CpuTarget& target, const NodeView& node,
                                       const Product& product, const PanelKernels& tiles);

// plan_foreign.cc: the product by OpenBLAS; nothing where the device has none, or for a dtype or
// size that it does not take.
std::optional<Candidate> ForeignCandidate(const CpuTarget& target, const NodeView& node,
                                          const Product& product);

}  // namespace reprise::cpu
