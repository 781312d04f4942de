#include "runtime/passes/read/known_value.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/ops/kit/element_bits.h"

namespace reprise {
namespace {

constexpr int64_t kMostTableBytes = 1 << 24;

// Element `operand 0` of a constant.
class Lookup final : public SizeFunction {
 public:
  explicit Lookup(Tensor tensor)
      : tensor_(std::move(tensor)),
        key_(absl::StrCat("constant@", reinterpret_cast<uintptr_t>(tensor_.data()), ":",
                          DTypeName(tensor_.dtype()), ":", tensor_.num_elements())) {}
  const std::string& key() const override { return key_; }
  std::optional<int64_t> At(absl::Span<const int64_t> operands) const override {
    if (operands[0] < 0 || operands[0] >= tensor_.num_elements()) return std::nullopt;
    return ElementBits(tensor_.dtype(), tensor_.data(), operands[0]);
  }

 private:
  const Tensor tensor_;
  const std::string key_;
};

// Operand 1 + `operand 0`.
class Pick final : public SizeFunction {
 public:
  const std::string& key() const override {
    static const std::string* const key = new std::string("pick");
    return *key;
  }
  std::optional<int64_t> At(absl::Span<const int64_t> operands) const override {
    if (operands[0] < 0 || operands[0] + 1 >= std::ssize(operands)) return std::nullopt;
    return operands[static_cast<size_t>(operands[0] + 1)];
  }
};

class Predicate final : public SizeFunction {
 public:
  explicit Predicate(bool zero) : zero_(zero), key_(zero ? "is_zero" : "not_negative") {}
  const std::string& key() const override { return key_; }
  std::optional<int64_t> At(absl::Span<const int64_t> operands) const override {
    return zero_ ? operands[0] == 0 : operands[0] >= 0;
  }
  Interval range() const override { return {0, 1}; }

 private:
  const bool zero_;
  const std::string key_;
};

// Returns the one element that a constant has everywhere.
std::optional<int64_t> Uniform(const Tensor& tensor) {
  if (tensor.num_elements() == 0) return std::nullopt;
  const int64_t first = ElementBits(tensor.dtype(), tensor.data(), 0);
  for (int64_t i = 1; i < tensor.num_elements(); ++i) {
    if (ElementBits(tensor.dtype(), tensor.data(), i) != first) return std::nullopt;
  }
  return first;
}

// Whether a place lies in one part of a join: `operand 0` is how far before its last place.
class InPart final : public SizeFunction {
 public:
  const std::string& key() const override {
    static const std::string* const key = new std::string("in_part");
    return *key;
  }
  std::optional<int64_t> At(absl::Span<const int64_t> operands) const override {
    return operands[0] >= 0;
  }
  Interval range() const override { return {0, 1}; }
};

Size LinearIndex(absl::Span<const Size> shape, absl::Span<const Size> index) {
  Size linear = 0;
  for (size_t d = 0; d < shape.size(); ++d) linear = linear * shape[d] + index[d];
  return linear;
}

}  // namespace

Size KnownOperand::At(SizeTable& table, absl::Span<const Size> index) const {
  if (value != nullptr && value->is_table()) return table.Substitute(*value->element, index);
  const Size linear = LinearIndex(shape(), index);
  if (constant != nullptr) {
    if (linear.is_constant()) {
      return ElementBits(constant->dtype(), constant->data(), linear.hint());
    }
    if (const auto uniform = Uniform(*constant)) return *uniform;
    return table.Call(std::make_shared<Lookup>(*constant), {linear});
  }
  if (linear.is_constant()) return value->elements[static_cast<size_t>(linear.hint())];
  std::vector<Size> operands = {linear};
  operands.insert(operands.end(), value->elements.begin(), value->elements.end());
  return table.Call(std::make_shared<Pick>(), std::move(operands));
}

std::optional<Tensor> TensorAt(const KnownValue& value, SizeEvaluator& evaluator, int64_t most) {
  Shape shape;
  for (const Size size : value.shape) {
    const std::optional<int64_t> number = evaluator.At(size);
    if (!number.has_value() || *number < 0) return std::nullopt;
    shape.push_back(*number);
  }
  const auto count = CheckedNumElements(absl::MakeConstSpan(shape));
  if (!count.ok() || *count > most || *count > kMostTableBytes) return std::nullopt;
  std::vector<int64_t> elements;
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < *count; ++i) {
    const std::optional<int64_t> element =
        value.is_table() ? evaluator.At(*value.element, index)
                         : evaluator.At(value.elements[static_cast<size_t>(i)]);
    if (!element.has_value()) return std::nullopt;
    elements.push_back(*element);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return TensorOfElements(value.dtype, shape, elements);
}

Size NotNegative(SizeTable& table, Size size) {
  const auto decided = table.open() ? table.KnownNotNegative(size) : table.IsNotNegative(size);
  if (decided.has_value()) return *decided ? 1 : 0;
  return table.Call(std::make_shared<Predicate>(false), {size});
}

Size LiesInPart(SizeTable& table, Size size) {
  const Size lies = NotNegative(table, size);
  if (lies.is_constant() || !table.open()) return lies;
  return table.Call(std::make_shared<InPart>(), {size});
}

bool IsInPart(const Term& term) {
  return term.kind == TermKind::kCall && dynamic_cast<const InPart*>(term.function) != nullptr;
}

Size IsZero(SizeTable& table, Size size) {
  const auto decided = table.open() ? table.KnownZero(size) : table.IsZero(size);
  if (decided.has_value()) return *decided ? 1 : 0;
  return table.Call(std::make_shared<Predicate>(true), {size});
}

Size Choose(SizeTable& table, Size condition, Size yes, Size no) {
  if (yes.Same(no)) return yes;
  if (condition.is_constant()) return condition.hint() != 0 ? yes : no;
  const auto zero = table.open() ? table.KnownZero(condition) : table.IsZero(condition);
  if (zero.has_value()) return *zero ? no : yes;
  return table.Choice(condition, yes, no);
}

}  // namespace reprise
