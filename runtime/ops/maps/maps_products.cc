// Maps of products.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/quantized/linear_form.h"

namespace reprise::ops {
namespace {

constexpr char kSums[] = "sums products over";

// a [.., rows, k] times b [.., k, columns], as MatMul has it. `trans`: the last two dims change
// places.
void Product(MapContext& context, size_t a, size_t b, bool trans_a, bool trans_b) {
  context.Says(kSums);
  const int64_t rank = context.out_rank(), rank_a = context.rank(a), rank_b = context.rank(b);
  if (rank_a < 2 || rank_b < 2 || rank != std::max(rank_a, rank_b)) return context.Unknown();
  context.Parallel(a, trans_a ? rank_a - 1 : rank_a - 2, rank - 2);
  context.Parallel(b, trans_b ? rank_b - 2 : rank_b - 1, rank - 1);
  for (const size_t i : {a, b}) {
    for (int64_t d = 0; d + 2 < context.rank(i); ++d) {
      const int64_t to = d + rank - context.rank(i);
      if (context.shape(i)[d] == context.out()[to]) context.Parallel(i, d, to);
    }
  }
}

// Tells zero points or scales of the rows of a: one for all, or one a row.
void OfRows(MapContext& context, size_t i) {
  if (!context.has_input(i) || NumElements(context.shape(i)) == 1) return;
  if (context.rank(i) == 1) return context.Parallel(i, 0, context.out_rank() - 2);
  context.Broadcast(i);
}

// Tells the same of the columns of b.
void OfColumns(MapContext& context, size_t i) {
  if (!context.has_input(i) || NumElements(context.shape(i)) == 1) return;
  if (context.rank(i) == 1) return context.Parallel(i, 0, context.out_rank() - 1);
  context.Broadcast(i);
}

// Rows of x times weights, whose columns are told apart in no map; the operands `others` broadcast
// to the result.
void RowsByWeights(MapContext& context, std::initializer_list<size_t> others) {
  context.Says(kSums);
  const int64_t last = context.out_rank() - 1;
  if (context.rank(0) < 2 || context.rank(1) != 2) return context.Unknown();
  context.Parallel(0, 0, context.rank(0) - 1, 0);
  for (const size_t i : others) {
    if (context.has_input(i)) context.Broadcast(i);
  }
  context.Set(1, 1, Link::kMixed, last);
}

}  // namespace

void MatMulMap(MapContext& context) {
  const GemmOp form = GemmOp::From(context.attributes());  // FusedMatMul has its attributes.
  if (context.attributes().Int("transBatchA", 0) + context.attributes().Int("transBatchB", 0) > 0) {
    return context.Unknown();
  }
  Product(context, 0, 1, form.trans_a, form.trans_b);
}

void GemmMap(MapContext& context) {
  MatMulMap(context);
  if (context.has_input(GemmOp::kC)) context.Broadcast(GemmOp::kC);
}

void LinearMap(MapContext& context) {
  if (GemmOp::From(context.attributes()).trans_a) return context.Unknown();
  const LinearForm& form = *LinearFormOf(context.node().op);
  RowsByWeights(context, {form.bias, form.residual});
}

void MatMulIntegerMap(MapContext& context) {
  Product(context, MatMulIntegerOp::kA, MatMulIntegerOp::kB, false, false);
  OfRows(context, MatMulIntegerOp::kAZero);
  OfColumns(context, MatMulIntegerOp::kBZero);
}

void QLinearMatMulMap(MapContext& context) {
  using In = QLinearMatMulOp;
  Product(context, In::kA, In::kB, false, false);
  for (const size_t i : {In::kAScale, In::kAZero}) OfRows(context, i);
  for (const size_t i : {In::kBScale, In::kBZero}) OfColumns(context, i);
  for (const size_t i : {In::kYScale, In::kYZero}) {
    if (NumElements(context.shape(i)) != 1) return context.Unknown();
  }
}

// Takes a scale and a zero point for each row, or one for all.
void IntegerLinearMap(MapContext& context) {
  using In = IntegerLinearOp;
  RowsByWeights(context, {In::kAScale, In::kAZero, In::kBias, In::kResidual});
}

// Sums of products along the letters that the result lacks.
void EinsumMap(MapContext& context) {
  context.Says(kSums);
  const std::string text =
      absl::StrReplaceAll(EinsumOp::From(context.attributes()).equation, {{" ", ""}});
  const std::pair<std::string, std::string> sides = absl::StrSplit(text, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides.first, ',');
  if (!absl::StrContains(text, "->") || absl::StrContains(text, ".") ||
      terms.size() != context.num_inputs()) {
    return context.Unknown();
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    if (std::ssize(terms[i]) != context.rank(i)) return context.Unknown();
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const size_t to = sides.second.find(terms[i][d]);
      if (absl::c_count(terms[i], terms[i][d]) > 1) return context.Unknown();
      if (to == std::string::npos) continue;
      context.Parallel(i, static_cast<int64_t>(d), static_cast<int64_t>(d) + 1,
                       static_cast<int64_t>(to));
    }
  }
}

// Weights of a known number of columns: the last dim meets, the others stay.
void LastDimProductMap(MapContext& context) {
  context.Says(kSums);
  context.Parallel(0, 0, context.rank(0) - 1, 0);
  context.Set(0, context.rank(0) - 1, Link::kMixed, context.out_rank() - 1);
}

void DetMap(MapContext& context) {
  context.Says("takes the determinant over");
  context.Parallel(0, 0, context.rank(0) - 2, 0);
}

void StftMap(MapContext& context) {
  context.Says("transforms frames of");
  context.Parallel(0, 0, 1, 0);
  context.Set(0, 1, Link::kWindow, 1);
}

void DistancesMap(MapContext& context) {
  context.Says("takes distances over");
  context.Parallel(0, 0, 0);
  context.Parallel(1, 1, 1);
}

}  // namespace reprise::ops
