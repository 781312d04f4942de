#include "runtime/bucket/dynamicity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "runtime/bucket/histogram.h"

namespace reprise {
namespace {

// Fewer requests in a window do not show a trend.
constexpr int64_t kLeastWindow = 64;
constexpr double kGrowth = 1.25;
// Entropies are sums of rounded terms: limits are compared with this tolerance.
constexpr double kRoom = 1e-6;
// A distance above this many times the distance by chance, which exceeds that once in ten thousand.
constexpr double kMoveFactor = 2.2;

using Weight = std::function<int64_t(const ShapeRow&)>;

double EntropyBits(const std::vector<double>& weights) {
  double sum = 0, bits = 0;
  for (double weight : weights) sum += weight;
  for (double weight : weights) {
    if (weight > 0) bits -= weight / sum * std::log2(weight / sum);
  }
  return std::max(bits, 0.0);
}

double ShapeEntropy(const ShapeTable& table, const Weight& weight) {
  std::vector<double> weights;
  for (const ShapeRow& row : table.rows) weights.push_back(static_cast<double>(weight(row)));
  return EntropyBits(weights);
}

std::vector<WeightedSize> Column(const ShapeTable& table, size_t column, const Weight& weight) {
  std::map<int64_t, double> sizes;
  for (const ShapeRow& row : table.rows) {
    if (weight(row) > 0) sizes[row.sizes[column]] += static_cast<double>(weight(row));
  }
  std::vector<WeightedSize> result;
  for (const auto& [size, sum] : sizes) result.push_back({size, sum});
  return result;
}

DynamicityTrend TrendOf(const ShapeTable& table, const std::vector<AxisDynamicity>& axes) {
  const double least = static_cast<double>(std::min(table.last.requests, table.before.requests));
  if (least < kLeastWindow) return DynamicityTrend::kUnknown;
  const double growth =
      std::exp2(ShapeEntropy(table, [](const ShapeRow& row) { return row.last; }) -
                ShapeEntropy(table, [](const ShapeRow& row) { return row.before; }));
  if (growth >= kGrowth) return DynamicityTrend::kGrowing;
  if (growth <= 1 / kGrowth) return DynamicityTrend::kShrinking;
  const double chance = kMoveFactor * std::sqrt(2 / least);
  const bool moves = std::any_of(axes.begin(), axes.end(),
                                 [&](const AxisDynamicity& axis) { return axis.moved > chance; });
  return moves ? DynamicityTrend::kMoving : DynamicityTrend::kSteady;
}

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

const char* DynamicityVerdictName(DynamicityVerdict verdict) {
  constexpr const char* kNames[] = {"little", "some", "a lot"};
  return kNames[static_cast<size_t>(verdict)];
}

const char* DynamicityTrendName(DynamicityTrend trend) {
  constexpr const char* kNames[] = {"not known yet", "steady", "growing", "shrinking", "moving"};
  return kNames[static_cast<size_t>(trend)];
}

Dynamicity JudgeShapes(const ShapeTable& table, bool recent) {
  const Weight weight = recent ? Weight([](const ShapeRow& row) { return row.recent; })
                               : Weight([](const ShapeRow& row) { return row.all.requests; });
  const ShapeTally& tally = recent ? table.recent : table.all;
  Dynamicity result;
  result.entropy_bits = ShapeEntropy(table, weight);
  result.shapes_that_count = tally.requests > 0 ? std::exp2(result.entropy_bits) : 0;
  result.outside_share = Share(tally.outside, tally.requests);
  result.larger_share = Share(tally.larger, tally.requests);
  result.fresh_share = Share(tally.fresh, tally.requests);
  const bool much_outside = result.outside_share > kMuchOutsideShare &&
                            static_cast<double>(table.distinct) > kLittleShapes;
  // The one capture of a single shape does not show how much shapes vary.
  const bool is_first_of_its_shape = table.distinct == 1 && tally.outside == 1;
  if (result.shapes_that_count > kSomeShapes + kRoom || much_outside) {
    result.verdict = DynamicityVerdict::kALot;
  } else if (result.shapes_that_count > kLittleShapes + kRoom ||
             (result.outside_share > kOutsideShare && !is_first_of_its_shape)) {
    result.verdict = DynamicityVerdict::kSome;
  }
  const size_t columns = table.rows.empty() ? 0 : table.rows[0].sizes.size();
  for (size_t column = 0; column < columns; ++column) {
    AxisDynamicity& axis = result.axes.emplace_back();
    const std::vector<WeightedSize> sizes = Column(table, column, weight);
    std::vector<double> weights;
    for (const WeightedSize& one : sizes) weights.push_back(one.weight);
    axis.entropy_bits = EntropyBits(weights);
    axis.distinct = static_cast<int64_t>(sizes.size());
    if (!sizes.empty()) {
      axis.least = sizes.front().size;
      axis.most = sizes.back().size;
    }
    axis.moved =
        DistributionDistance(Column(table, column, [](const ShapeRow& row) { return row.last; }),
                             Column(table, column, [](const ShapeRow& row) { return row.before; }));
    const double most = result.cause < 0 ? 0 : result.axes[result.cause].entropy_bits;
    if (axis.entropy_bits > most + kRoom) result.cause = static_cast<int>(column);
  }
  result.trend = TrendOf(table, result.axes);
  return result;
}

}  // namespace reprise
