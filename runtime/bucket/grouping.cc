#include "runtime/bucket/grouping.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace reprise {
namespace {

void Widen(std::vector<int64_t>& sizes, absl::Span<const int64_t> other) {
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::max(sizes[i], other[i]);
}

// The prices that groups of the same sizes share, computed once for each of them.
class Prices {
 public:
  struct Price {
    double row_ns = 0;
    double row_size = 0;
    int64_t most_rows = 0;
  };
  Prices(const ReplayCost& cost, const GroupingLimits& limits) : cost_(cost), limits_(limits) {}
  const Price& Of(const std::vector<int64_t>& sizes) {
    const auto [it, is_new] = prices_.try_emplace(sizes);
    if (is_new) {
      const int64_t row_size = limits_.measure.Elements(sizes);
      it->second = {cost_.RowNs(row_size), static_cast<double>(row_size), limits_.most_rows(sizes)};
    }
    return it->second;
  }
  // Returns the elements of a request alone.
  double Alone(const WaitingRequest& one) {
    return static_cast<double>(one.rows) * Of(one.sizes).row_size;
  }
  // Returns whether several requests of that many rows may share a replay of that price.
  bool Allows(int64_t rows, const Price& price, double alone) const {
    return rows <= price.most_rows &&
           PadsLittle(alone, static_cast<double>(rows) * price.row_size, limits_.most_padding);
  }
  double Ns(int64_t rows, const Price& price) const {
    return cost_.overhead_ns() + static_cast<double>(rows) * price.row_ns;
  }

 private:
  const ReplayCost& cost_;
  const GroupingLimits& limits_;
  std::map<std::vector<int64_t>, Price> prices_;
};

Grouping Neighbours(absl::Span<const WaitingRequest> waiting, Prices& prices) {
  std::vector<size_t> order(waiting.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return prices.Of(waiting[a].sizes).row_size < prices.Of(waiting[b].sizes).row_size;
  });
  // best[i]: the cheapest grouping of the first i in order, whose last group begins at from[i].
  std::vector<double> best(waiting.size() + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> from(waiting.size() + 1, 0);
  best[0] = 0;
  for (size_t end = 1; end <= waiting.size(); ++end) {
    std::vector<int64_t> joint = waiting[order[end - 1]].sizes;
    const Prices::Price* price = &prices.Of(joint);
    int64_t rows = 0;
    double alone = 0;
    for (size_t begin = end; begin-- > 0;) {
      const WaitingRequest& one = waiting[order[begin]];
      rows += one.rows;
      alone += prices.Alone(one);
      const bool wider = !std::equal(joint.begin(), joint.end(), one.sizes.begin(),
                                     [](int64_t a, int64_t b) { return a >= b; });
      if (wider) {
        Widen(joint, one.sizes);
        price = &prices.Of(joint);
      }
      if (begin + 1 < end && rows > price->most_rows) break;
      if (begin + 1 < end && !prices.Allows(rows, *price, alone)) continue;
      const double ns = best[begin] + prices.Ns(rows, *price);
      if (ns < best[end]) {
        best[end] = ns;
        from[end] = begin;
      }
    }
  }
  Grouping grouping;
  grouping.ns = best[waiting.size()];
  for (size_t end = waiting.size(); end > 0; end = from[end]) {
    std::vector<size_t> group(order.begin() + from[end], order.begin() + end);
    std::sort(group.begin(), group.end());
    grouping.groups.push_back(std::move(group));
  }
  return grouping;
}

Grouping FirstFitOf(absl::Span<const WaitingRequest> waiting, Prices& prices) {
  struct Open {
    std::vector<int64_t> sizes;
    int64_t rows = 0;
    double alone = 0;
  };
  std::vector<Open> open;
  Grouping grouping;
  for (size_t i = 0; i < waiting.size(); ++i) {
    size_t g = 0;
    for (; g < open.size(); ++g) {
      std::vector<int64_t> joint = open[g].sizes;
      Widen(joint, waiting[i].sizes);
      if (!prices.Allows(open[g].rows + waiting[i].rows, prices.Of(joint),
                         open[g].alone + prices.Alone(waiting[i]))) {
        continue;
      }
      open[g].sizes = std::move(joint);
      break;
    }
    if (g == open.size()) {
      open.push_back({.sizes = waiting[i].sizes});
      grouping.groups.emplace_back();
    }
    open[g].rows += waiting[i].rows;
    open[g].alone += prices.Alone(waiting[i]);
    grouping.groups[g].push_back(i);
  }
  for (const Open& one : open) grouping.ns += prices.Ns(one.rows, prices.Of(one.sizes));
  return grouping;
}

}  // namespace

Grouping FirstFit(absl::Span<const WaitingRequest> waiting, const ReplayCost& cost,
                  const GroupingLimits& limits) {
  Prices prices(cost, limits);
  return FirstFitOf(waiting, prices);
}

Grouping GroupByCost(absl::Span<const WaitingRequest> waiting, const ReplayCost& cost,
                     const GroupingLimits& limits) {
  Prices prices(cost, limits);
  Grouping grouping = Neighbours(waiting, prices);
  Grouping first_fit = FirstFitOf(waiting, prices);
  return first_fit.ns < grouping.ns ? std::move(first_fit) : std::move(grouping);
}

}  // namespace reprise
