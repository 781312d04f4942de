#include "runtime/verify/size_tables.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "runtime/ops/kit/element_bits.h"
#include "runtime/shapes/term.h"

namespace reprise {
namespace {

// Constants of more elements are not looked through.
constexpr int64_t kMostRead = 1 << 20;

uint64_t Bit(size_t dim, size_t rank) {
  const size_t dims_behind = rank - 1 - dim;
  return dims_behind < 64 ? uint64_t{1} << dims_behind : 0;
}

// Returns the dims of `shape` along which some of its elements differ; `same(i, j)` says which do
// not.
template <typename Same>
uint64_t DimsThatDiffer(absl::Span<const int64_t> shape, Same same) {
  uint64_t along = 0;
  const Shape strides = Strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    for (int64_t i = 0; i < NumElements(shape); ++i) {
      if (i / strides[d] % shape[d] == 0 || same(i, i - strides[d])) continue;
      along |= Bit(d, shape.size());
      break;
    }
  }
  return along;
}

// Returns the dims whose indices are in `element`.
uint64_t IndicesOf(Size element, size_t rank) {
  uint64_t along = 0;
  std::vector<const Term*> left = {element.term()};
  absl::flat_hash_set<const Term*> seen;
  while (!left.empty()) {
    const Term* const term = left.back();
    left.pop_back();
    if (term == nullptr || !term->indexed || !seen.insert(term).second) continue;
    if (term->kind == TermKind::kIndex) along |= Bit(static_cast<size_t>(term->number), rank);
    for (const TermPart& part : term->parts) {
      left.insert(left.end(), part.atoms.begin(), part.atoms.end());
    }
    for (const Size operand : term->operands) left.push_back(operand.term());
  }
  return along;
}

UnevenDims DimsOf(const KnownValue& value) {
  UnevenDims dims;
  if (value.is_table()) {
    dims.along = IndicesOf(*value.element, value.shape.size());
  } else {
    dims.along = DimsThatDiffer(HintsOf(value.shape), [&](int64_t i, int64_t j) {
      const auto at = [&](int64_t k) { return value.elements[static_cast<size_t>(k)]; };
      return at(i).Same(at(j));
    });
  }
  return dims;
}

UnevenDims DimsOf(const Tensor& tensor) {
  if (tensor.num_elements() > kMostRead) return {.unknown = true};
  const std::vector<double> elements = tensor.ToDoubles();
  return {.along = DimsThatDiffer(tensor.shape(), [&](int64_t i, int64_t j) {
            return elements[static_cast<size_t>(i)] == elements[static_cast<size_t>(j)];
          })};
}

// Returns a tensor of one number that it holds alone, whatever its shape, or itself.
Tensor OneNumber(const Tensor& tensor) {
  const size_t width = DTypeSize(tensor.dtype());
  const auto* const bytes = static_cast<const char*>(tensor.data());
  if (std::memcmp(bytes, bytes + width, tensor.bytes() - width) != 0) return tensor;
  return Tensor::Make(tensor.dtype(), {}, [&](void* data) { std::memcpy(data, bytes, width); });
}

}  // namespace

const UnevenTables& SizeTables::UnevenAt(const Binding& sizes) {
  const bool first = regions_ == nullptr;
  if (first) {
    regions_ = std::make_unique<SizeRegions>(graph_, sizes, /*most_nodes=*/0,
                                             [this](const SizeReading& reading) { Take(reading); });
  }
  if (!regions_->Takes(sizes.axes).ok()) TakeAll();
  for (const auto& [symbol, base] : sizes.axes) {
    for (int64_t size = 1; first && size <= kLargest && !regions_->has_too_many();) {
      if (!regions_->IsRefused({{symbol, size}})) (void)regions_->Takes({{symbol, size}});
      size = regions_->EndAlong(symbol, size, kLargest);
    }
  }
  if (regions_->has_too_many()) TakeAll();
  return tables_;
}

void SizeTables::Take(const SizeReading& reading) {
  for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
    const Value& value = graph_.value(id);
    if (value.kind == Value::Kind::kResult) TakeValue(value.name, reading.values[id]);
  }
}

void SizeTables::TakeValue(const std::string& name, const SizeReading::Value& value) {
  if (value.constant.has_value()) {
    TakeConstant(name, *value.constant);
  } else if (value.known.has_value() && value.known->is_table() &&
             value.known->element->is_constant()) {
    TakeConstant(name, TensorOfElements(value.known->dtype, {}, {value.known->element->hint()}));
  } else if (value.known.has_value()) {
    Join(name, DimsOf(*value.known));
  } else {
    // No term says how, or whether it is made of sizes at all.
    Join(name, {.unknown = value.determined, .unread = !value.determined});
  }
}

// It is made of sizes where it is another one in another region.
void SizeTables::TakeConstant(const std::string& name, const Tensor& tensor) {
  if (tensor.num_elements() == 0) return;
  const auto [first, is_first] = constants_.emplace(name, OneNumber(tensor));
  if (!tables_.contains(name) && (is_first || first->second == OneNumber(tensor))) return;
  Join(name, DimsOf(tensor));
}

void SizeTables::Join(const std::string& name, const UnevenDims& dims) {
  const auto [joined, is_first] = tables_.try_emplace(name);
  if (const auto constant = constants_.find(name); is_first && constant != constants_.end()) {
    joined->second = DimsOf(constant->second);
  }
  joined->second.along |= dims.along;
  joined->second.unknown |= dims.unknown;
  joined->second.unread |= dims.unread;
}

void SizeTables::TakeAll() {
  for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
    const Value& value = graph_.value(id);
    if (value.kind == Value::Kind::kResult) tables_[value.name].unknown = true;
  }
}

}  // namespace reprise
