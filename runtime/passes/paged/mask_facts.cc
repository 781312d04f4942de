#include "runtime/passes/paged/mask_facts.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// A score that is lower than another by this weighs nothing.
constexpr double kHidden = -5000;

// One head's row of a mask.
struct Row {
  std::vector<double> added;
  std::vector<bool> hidden;
};

absl::StatusOr<Row> RowOf(const Tensor& mask, absl::Span<const double> values, int64_t head,
                          int64_t keys) {
  Shape shape(4, 1);
  if (mask.shape().size() > 4) return absl::UnimplementedError("its mask has more than four dims");
  absl::c_copy(mask.shape(), shape.end() - static_cast<ptrdiff_t>(mask.shape().size()));
  const int64_t size = NumElements(absl::MakeConstSpan(shape).subspan(1));
  for (int64_t row = 1; row < shape[0]; ++row) {
    if (!std::equal(values.begin(), values.begin() + size, values.begin() + row * size)) {
      return absl::UnimplementedError("its mask differs between rows");
    }
  }
  Row row;
  const int64_t begin = shape[1] == 1 ? 0 : head * shape[3];
  for (int64_t key = 0; key < keys; ++key) {
    const double value = values[begin + (shape[3] == 1 ? 0 : key)];
    const bool keeps = mask.dtype() == DType::kBool;
    row.added.push_back(keeps ? 0 : value);
    row.hidden.push_back(keeps ? value == 0 : value <= kHidden);
  }
  return row;
}

}  // namespace

absl::StatusOr<MaskFacts> FactsOf(const Tensor& mask, int64_t heads, int64_t keys) {
  const std::vector<double> values = mask.ToDoubles();
  MaskFacts facts;
  bool same = true;
  for (int64_t head = 0; head < heads; ++head) {
    ASSIGN_OR_RETURN(const Row row, RowOf(mask, values, head, keys));
    const auto first = absl::c_find(row.hidden, false);
    const int64_t start = first - row.hidden.begin();
    if (std::find(first, row.hidden.end(), true) != row.hidden.end() || start == keys) {
      return absl::UnimplementedError("its mask hides other keys than those before a window");
    }
    if (head > 0 && facts.visible != keys - start) {
      return absl::UnimplementedError("its heads see windows of different sizes");
    }
    facts.visible = keys - start;
    const double last = row.added[keys - 1];
    const double slope = start == keys - 1 ? 0 : last - row.added[keys - 2];
    for (int64_t key = start; key < keys; ++key) {
      const double line = last + slope * static_cast<double>(key - keys + 1);
      const double bound = 1e-4 + 1e-4 * std::abs(line);
      if (std::abs(row.added[key] - line) > bound) {
        return absl::UnimplementedError("what its mask adds is no line over the positions");
      }
    }
    facts.slopes.push_back(static_cast<float>(slope));
    same = same && slope == 0;
  }
  if (same) facts.slopes.clear();
  return facts;
}

}  // namespace reprise
