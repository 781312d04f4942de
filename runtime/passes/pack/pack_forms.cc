#include "runtime/passes/pack/pack_forms.h"

#include <algorithm>

namespace reprise::pack {
namespace {

bool AllSizes(const std::vector<DimKind>& dims, size_t first) {
  return std::all_of(dims.begin() + static_cast<int64_t>(first), dims.end(),
                     [](const DimKind& dim) { return dim.kind == DimKind::kSize; });
}

}  // namespace

std::vector<DimKind> DimKinds(const Shape& a, const Sizes& at_a, const Shape& b,
                              const Sizes& at_b) {
  std::vector<DimKind> dims;
  for (size_t d = 0; d < a.size(); ++d) {
    const int64_t x = a[d], y = a.size() == b.size() ? b[d] : -1;
    const auto is = [&](int64_t at_first, int64_t at_second) {
      return x == at_first && y == at_second;
    };
    DimKind::Kind kind = DimKind::kOther;
    if (x == y) {
      kind = DimKind::kSize;
    } else if (is(at_a.rows, at_b.rows)) {
      kind = DimKind::kRows;
    } else if (is(at_a.length, at_b.length)) {
      kind = DimKind::kLength;
    } else if (is(at_a.rows * at_a.length, at_b.rows * at_b.length)) {
      kind = DimKind::kTokens;
    }
    dims.push_back({kind, x});
  }
  return dims;
}

Form FormOf(const std::vector<DimKind>& dims) {
  const size_t rank = dims.size();
  const auto has = [&](DimKind::Kind kind) {
    return std::any_of(dims.begin(), dims.end(),
                       [&](const DimKind& dim) { return dim.kind == kind; });
  };
  if (has(DimKind::kOther)) return {};
  if (!has(DimKind::kRows) && !has(DimKind::kTokens)) return {.kind = Form::kFixed};
  size_t lead = 0;
  while (dims[lead].is_one()) ++lead;
  Form form;
  form.rows = rank - lead;
  if (dims[lead].kind == DimKind::kTokens) {
    if (!AllSizes(dims, lead + 1)) return {};
    form.kind = Form::kTokens;
    form.merged = true;
    form.rest = rank - lead - 1;
    return form;
  }
  if (dims[lead].kind != DimKind::kRows) return {};
  if (AllSizes(dims, lead + 1)) {
    form.kind = Form::kSegments;
    form.rest = rank - lead - 1;
    return form;
  }
  size_t length = lead + 1;
  while (dims[length].is_one()) ++length;
  if (dims[length].kind == DimKind::kLength && AllSizes(dims, length + 1)) {
    form.kind = Form::kTokens;
    form.rest = rank - length - 1;
    return form;
  }
  const bool one_each = rank - lead == 3;
  const bool by_heads = rank - lead == 4 && dims[rank - 3].kind == DimKind::kSize;
  if ((one_each || by_heads) && dims[rank - 2].kind == DimKind::kLength &&
      dims[rank - 1].kind == DimKind::kLength) {
    form.kind = Form::kPairs;
    return form;
  }
  return {};
}

Shape Tail(const std::vector<DimKind>& dims, size_t rest) {
  Shape shape;
  for (size_t d = dims.size() - rest; d < dims.size(); ++d) shape.push_back(dims[d].size);
  return shape;
}

}  // namespace reprise::pack
