// Axis rules of matrix products.
#include <algorithm>

#include "runtime/ops/axis_rules.h"

namespace reprise::ops {
namespace {

constexpr char kSums[] = "adds up products over";

// The two operands of a product: `a` is [..., m, k], `b` (operand `second`) is [..., k, n], or
// vectors. `keeps_zeros`: nothing else is added, so that zeros times anything stay zeros.
void Product(AxisContext& context, bool transpose_a, bool transpose_b, size_t second,
             bool keeps_zeros) {
  const int64_t rank_a = context.rank(0), rank_b = context.rank(second);
  const int64_t rank = context.output_rank();
  const int64_t a_inner = transpose_a && rank_a > 1 ? rank_a - 2 : rank_a - 1;
  const int64_t b_inner = transpose_b || rank_b == 1 ? rank_b - 1 : rank_b - 2;
  const Positions* a_meets = context.input(0).At(a_inner);
  const Positions* b_meets = context.input(second).At(b_inner);
  if (a_meets != nullptr || b_meets != nullptr) {
    const bool zeros = keeps_zeros && ((a_meets != nullptr && a_meets->padding.Is(0)) ||
                                       (b_meets != nullptr && b_meets->padding.Is(0)));
    const bool guarded =
        (a_meets != nullptr && a_meets->guarded) || (b_meets != nullptr && b_meets->guarded);
    if (!zeros) context.Mix(kSums, guarded);
  }
  AxisFlowValue flow;
  const auto add = [&](int64_t dim, const Positions& from) {
    // Zeros make zeros; what else a product makes of padding is not known.
    const bool zeros = keeps_zeros && from.padding.Is(0);
    const PaddingValue padding = zeros ? from.padding : PaddingValue::Unknown();
    for (Positions& known : flow.along) {
      if (known.dim != dim) continue;
      if (padding.Is(0)) known.padding = padding;
      known.guarded = known.guarded || from.guarded;
      known.moved =
          known.moved || from.moved || known.inner != from.inner || known.repeated != from.repeated;
      return;
    }
    flow.along.push_back({dim, from.inner, padding, from.guarded, from.moved, from.repeated});
  };
  const int64_t rows_at = rank_b == 1 ? rank - 1 : rank - 2;
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim == a_inner) continue;
    const bool is_row = rank_a > 1 && positions.dim >= rank_a - 2;
    add(is_row ? rows_at : positions.dim + (rows_at - (rank_a - 2)), positions);
  }
  const int64_t batch_shift = (rank_a == 1 ? rank - 1 : rank - 2) - (rank_b - 2);
  for (const Positions& positions : context.input(second).along) {
    if (positions.dim == b_inner) continue;
    const bool is_column = rank_b > 1 && positions.dim >= rank_b - 2;
    add(is_column ? rank - 1 : positions.dim + batch_shift, positions);
  }
  context.Set(0, std::move(flow));
}

// Something other than the two operands has positions: scales of rows, as dynamic quantisation
// makes them.
bool OthersHavePositions(const AxisContext& context, size_t second) {
  for (size_t i = 1; i < context.num_inputs(); ++i) {
    if (i != second && !context.input(i).along.empty()) return true;
  }
  return false;
}

}  // namespace

void MatMulAxis(AxisContext& context) { Product(context, false, false, 1, true); }

void GemmAxis(AxisContext& context) {
  const Attributes& attributes = context.attributes();
  if (attributes.Int("transBatchA", 0) != 0 || attributes.Int("transBatchB", 0) != 0) {
    return UnknownAxis(context);
  }
  if (OthersHavePositions(context, 1)) return UnknownAxis(context);
  Product(context, attributes.Int("transA", 0) != 0, attributes.Int("transB", 0) != 0, 1,
          /*keeps_zeros=*/!context.has_input(2));
}

void MatMulIntegerAxis(AxisContext& context) {
  if (OthersHavePositions(context, 1)) return UnknownAxis(context);
  Product(context, false, false, 1, /*keeps_zeros=*/false);
}

void QLinearMatMulAxis(AxisContext& context) {
  if (OthersHavePositions(context, 3)) return UnknownAxis(context);
  Product(context, false, false, 3, /*keeps_zeros=*/false);
}

// Weights of a known number of columns: the last dim meets, the others stay.
void LastDimProductAxis(AxisContext& context) {
  AxisFlowValue flow;
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim == context.rank(0) - 1) {
      context.Mix(kSums, positions.guarded);
    } else {
      flow.along.push_back(positions);
      flow.along.back().padding = PaddingValue::Unknown();
    }
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops
