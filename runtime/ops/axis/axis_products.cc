// Axis rules of matrix products.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/ops/axis/axis_rules.h"

namespace reprise::ops {
namespace {

constexpr char kSums[] = "adds up products over";

// Multiplies two operands: `a` is [..., m, k], `b` (operand `second`) is [..., k, n], or
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
    const bool zeros = keeps_zeros && ((a_meets != nullptr && a_meets->padding == 0) ||
                                       (b_meets != nullptr && b_meets->padding == 0));
    if (!zeros) context.Mix(kSums);
    if (zeros &&
        (context.MayBeInfiniteAt(0, a_inner) || context.MayBeInfiniteAt(second, b_inner))) {
      context.Doubt(kTakesOut);
    }
  }
  AxisFlowValue flow;
  const auto add = [&](int64_t dim, const Positions& from, size_t other) {
    // Zeros make zeros of finite numbers; any other padding becomes unknown in a product.
    const bool zeros = keeps_zeros && from.padding == 0 && !context.MayBeInfinite(other);
    const PaddingValue padding = zeros ? from.padding : std::nullopt;
    for (Positions& known : flow.along) {
      if (known.dim != dim) continue;
      if (padding == 0) known.padding = padding;
      known.moved = known.moved || from.moved || known.inner != from.inner ||
                    known.repeated != from.repeated || known.extent != from.extent;
      return;
    }
    Positions product = from;
    product.dim = dim;
    product.padding = padding;
    flow.along.push_back(product);
  };
  const int64_t rows_at = rank_b == 1 ? rank - 1 : rank - 2;
  for (const Positions& positions : context.input(0).along) {
    if (positions.dim == a_inner) continue;
    const bool is_row = rank_a > 1 && positions.dim >= rank_a - 2;
    add(is_row ? rows_at : positions.dim + (rows_at - (rank_a - 2)), positions, second);
  }
  const int64_t batch_shift = (rank_a == 1 ? rank - 1 : rank - 2) - (rank_b - 2);
  for (const Positions& positions : context.input(second).along) {
    if (positions.dim == b_inner) continue;
    const bool is_column = rank_b > 1 && positions.dim >= rank_b - 2;
    add(is_column ? rank - 1 : positions.dim + batch_shift, positions, 0);
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

namespace {

// Returns whether zero points are of the lines of a: element i belongs to position i, where a has
// its positions.
bool ZeroPointsFollowLines(const AxisContext& context) {
  constexpr size_t kZeroPoint = 2;
  if (!context.has_input(kZeroPoint) || context.input(kZeroPoint).along.empty()) return true;
  if (context.rank(kZeroPoint) != context.rank(0)) return false;
  return absl::c_all_of(context.input(kZeroPoint).along, [&](const Positions& positions) {
    const Positions* own = context.input(0).At(positions.dim);
    return own != nullptr && positions.dim < context.rank(0) - 1 && own->inner == positions.inner &&
           own->moved == positions.moved && own->repeated == positions.repeated &&
           own->extent == positions.extent;
  });
}

}  // namespace

void MatMulIntegerAxis(AxisContext& context) {
  constexpr size_t kOtherZeroPoint = 3;
  const bool other =
      context.has_input(kOtherZeroPoint) && !context.input(kOtherZeroPoint).along.empty();
  if (other || !ZeroPointsFollowLines(context)) return UnknownAxis(context);
  Product(context, false, false, 1, /*keeps_zeros=*/false);
}

void QLinearMatMulAxis(AxisContext& context) {
  if (OthersHavePositions(context, 3)) return UnknownAxis(context);
  Product(context, false, false, 3, /*keeps_zeros=*/false);
}

// Sums of products along the letters that the result lacks. A letter of padding that is zero in one
// operand is zero in the product.
void EinsumAxis(AxisContext& context) {
  const std::string text =
      absl::StrReplaceAll(context.attributes().String("equation", ""), {{" ", ""}});
  const std::pair<std::string, std::string> sides = absl::StrSplit(text, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides.first, ',');
  const bool plain = absl::StrContains(text, "->") && !absl::StrContains(text, ".") &&
                     terms.size() == context.num_inputs();
  if (!plain) return UnknownAxis(context);
  AxisFlowValue flow;
  std::map<char, Positions> letters;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (static_cast<int64_t>(terms[i].size()) != context.rank(i)) return UnknownAxis(context);
    for (const Positions& positions : context.input(i).along) {
      const char letter = terms[i][positions.dim];
      if (absl::c_count(terms[i], letter) > 1) return UnknownAxis(context);
      const auto [known, is_new] = letters.emplace(letter, positions);
      Positions& joint = known->second;
      if (is_new) {
        if (joint.padding != 0) joint.padding.reset();
        continue;
      }
      if (positions.padding == 0) joint.padding = positions.padding;
      joint.moved = joint.moved || positions.moved || joint.inner != positions.inner ||
                    joint.repeated != positions.repeated || joint.extent != positions.extent;
    }
  }
  for (const auto& [letter, positions] : letters) {
    const size_t dim = sides.second.find(letter);
    if (dim != std::string::npos) {
      flow.along.push_back(positions);
      flow.along.back().dim = static_cast<int64_t>(dim);
    } else if (positions.padding != 0) {
      context.Mix(kSums);
    }
    for (size_t i = 0; i < terms.size() && positions.padding == 0; ++i) {
      const size_t own = terms[i].find(letter);
      const bool infinite = own != std::string::npos
                                ? context.MayBeInfiniteAt(i, static_cast<int64_t>(own))
                                : context.MayBeInfinite(i);
      if (infinite) context.Doubt(kTakesOut);
    }
  }
  context.Set(0, std::move(flow));
}

}  // namespace reprise::ops
