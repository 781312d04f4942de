// KnownValue: a value of a graph whose elements follow from the sizes of axes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "runtime/graph/tensor.h"
#include "runtime/shapes/region.h"
#include "runtime/shapes/size.h"
#include "runtime/shapes/term.h"

namespace reprise {

// Elements are integers, or the bits of another type (ops/kit/element_bits.h).
struct KnownValue {
  // The most elements that are kept one by one.
  static constexpr int64_t kMostElements = 64;

  DType dtype = DType::kUndefined;
  SizeList shape;
  std::vector<Size> elements;   // where the shape is of constants, and small
  std::optional<Size> element;  // else: over the indices of its dims
  // Its terms tell what elements follow, and give no numbers (opaque_rules.h).
  bool opaque = false;

  bool is_table() const { return element.has_value(); }
};

// An operand of a node: known by its sizes, a constant, or neither.
struct KnownOperand {
  const KnownValue* value = nullptr;
  const Tensor* constant = nullptr;

  bool known() const { return value != nullptr || constant != nullptr; }
  DType dtype() const { return value != nullptr ? value->dtype : constant->dtype(); }
  SizeList shape() const { return value != nullptr ? value->shape : SizesOf(constant->shape()); }
  // Returns the element at `index`, one an dim; it lies within the shape.
  Size At(SizeTable& table, absl::Span<const Size> index) const;
};

// Returns the elements at the sizes that `evaluator` has; nullopt where one has no number, or there
// are more than `most`.
std::optional<Tensor> TensorAt(const KnownValue& value, SizeEvaluator& evaluator, int64_t most);

// 1 where `size` is not negative, or is 0, else 0. Decided at once, but for sizes with an index and
// what is left open in an open table.
Size NotNegative(SizeTable& table, Size size);
Size IsZero(SizeTable& table, Size size);
// Returns the same as NotNegative does, where a place lies `size` before the last one of a part of
// a join. An open table tells it from a comparison that a model makes.
Size LiesInPart(SizeTable& table, Size size);
bool IsInPart(const Term& term);
// `yes` or `no` by a condition of that kind.
Size Choose(SizeTable& table, Size condition, Size yes, Size no);

}  // namespace reprise
