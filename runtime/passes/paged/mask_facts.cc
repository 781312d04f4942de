#include "runtime/passes/paged/mask_facts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

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

// Returns the slope of the values that a head adds, if they form a line over the positions.
std::optional<double> SlopeOf(const Row& row, int64_t start) {
  const auto keys = static_cast<int64_t>(row.added.size());
  const double last = row.added[keys - 1];
  const double slope = start == keys - 1 ? 0 : last - row.added[keys - 2];
  for (int64_t key = start; key < keys; ++key) {
    const double line = last + slope * static_cast<double>(key - keys + 1);
    if (std::abs(row.added[key] - line) > 1e-4 + 1e-4 * std::abs(line)) return std::nullopt;
  }
  return slope;
}

// Takes all that heads add, by distance, up to the distance after which nothing changes any more.
void TakeBiases(const std::vector<Row>& rows, MaskFacts& facts) {
  const auto added = [&](const Row& row, int64_t distance) {
    return static_cast<float>(row.added[row.added.size() - 1 - static_cast<size_t>(distance)]);
  };
  facts.span = facts.visible;
  const auto repeats_last = [&](const Row& row) {
    return added(row, facts.span - 1) == added(row, facts.span - 2);
  };
  while (facts.span > 1 && absl::c_all_of(rows, repeats_last)) --facts.span;
  for (const Row& row : rows) {
    for (int64_t distance = 0; distance < facts.span; ++distance) {
      facts.biases.push_back(added(row, distance));
    }
  }
}

}  // namespace

absl::StatusOr<MaskFacts> FactsOf(const Tensor& mask, int64_t heads, int64_t keys) {
  const std::vector<double> values = mask.ToDoubles();
  MaskFacts facts;
  bool same = true, lines = true;
  std::vector<Row> rows;
  for (int64_t head = 0; head < heads; ++head) {
    ASSIGN_OR_RETURN(Row row, RowOf(mask, values, head, keys));
    const auto first = absl::c_find(row.hidden, false);
    const int64_t start = first - row.hidden.begin();
    if (std::find(first, row.hidden.end(), true) != row.hidden.end() || start == keys) {
      return absl::UnimplementedError("its mask hides other keys than those before a window");
    }
    if (head > 0 && facts.visible != keys - start) {
      return absl::UnimplementedError("its heads see windows of different sizes");
    }
    facts.visible = keys - start;
    const std::optional<double> slope = SlopeOf(row, start);
    lines = lines && slope.has_value();
    facts.slopes.push_back(static_cast<float>(slope.value_or(0)));
    same = same && slope == 0;
    rows.push_back(std::move(row));
  }
  if (same || !lines) facts.slopes.clear();
  if (!lines) TakeBiases(rows, facts);
  return facts;
}

bool HidesLaterKeys(const Tensor& mask, int64_t queries, int64_t keys) {
  Shape shape(4, 1);
  if (mask.shape().size() > 4) return false;
  absl::c_copy(mask.shape(), shape.end() - static_cast<ptrdiff_t>(mask.shape().size()));
  const std::vector<double> values = mask.ToDoubles();
  const bool keeps = mask.dtype() == DType::kBool;
  for (int64_t head = 0; head < shape[0] * shape[1]; ++head) {
    for (int64_t query = 0; query < queries; ++query) {
      const int64_t row = head * shape[2] + (shape[2] == 1 ? 0 : query);
      for (int64_t key = keys - queries + query + 1; key < keys; ++key) {
        const double value = values[row * shape[3] + (shape[3] == 1 ? 0 : key)];
        if (keeps ? value != 0 : value > kHidden) return false;
      }
    }
  }
  return true;
}

}  // namespace reprise
