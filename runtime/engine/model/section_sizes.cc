#include "runtime/engine/model/section_sizes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/graph/extent.h"

namespace reprise {
namespace {

constexpr int64_t kSmallestBucket = 16;

// The list of sizes is cleared when it is full.
constexpr size_t kMostGiven = 1024;

// Several axes together are padded up to this times the sizes that one request would get: counts,
// and areas of planes.
constexpr double kMostWaste = 2;
constexpr double kMostPlaneWaste = 1.75;

}  // namespace

int64_t SectionBucket(int64_t size) {
  int64_t bucket = kSmallestBucket;
  while (bucket < size) {
    if (bucket + bucket / 2 >= size) return bucket + bucket / 2;
    bucket *= 2;
  }
  return bucket;
}

int64_t PlaneBucket(int64_t size, int64_t step) {
  int64_t power = 1;
  while (2 * power <= size) power *= 2;
  return RoundUpTo(size, RoundUpTo(std::max<int64_t>(power / 8, 1), step));
}

std::vector<int64_t> SectionSizes::RoundUp(const std::vector<int64_t>& sizes,
                                           const std::vector<Axis>& axes, bool of_plane) {
  const auto bucket_of = [&](size_t i, int64_t size) {
    return of_plane ? std::min(PlaneBucket(size, axes[i].step), axes[i].largest)
                    : SectionBucket(size);
  };
  std::vector<int64_t> own = sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (axes[i].padded) own[i] = bucket_of(i, sizes[i]);
  }
  const auto padded = absl::c_count_if(axes, [](const Axis& axis) { return axis.padded; });
  if (padded == 0 || (padded == 1 && !of_plane)) return own;
  const auto cost_of = [&](const std::vector<int64_t>& rounded) {
    double cost = of_plane ? 1 : 0;
    for (size_t i = 0; i < rounded.size(); ++i) {
      if (!axes[i].padded) continue;
      cost = of_plane ? cost * static_cast<double>(rounded[i])
                      : cost + static_cast<double>(rounded[i]);
    }
    return cost;
  };
  const double most = cost_of(own) * (of_plane ? kMostPlaneWaste : kMostWaste);
  // Both the least that were given, and the least that serve these and others as well.
  std::vector<int64_t> served, joint = own, grown;
  double joint_cost = std::numeric_limits<double>::max();
  for (const std::vector<int64_t>& given : given_) {
    std::vector<int64_t> both = own, needed = sizes;
    bool may_serve = true;
    for (size_t i = 0; i < own.size(); ++i) {
      both[i] = std::max(own[i], given[i]);
      needed[i] = std::max(sizes[i], given[i]);
      may_serve &= axes[i].padded ? both[i] <= axes[i].largest : given[i] == own[i];
    }
    if (!may_serve) continue;
    if (needed == given && cost_of(given) <= most &&
        (served.empty() || cost_of(given) < cost_of(served))) {
      served = given;
    }
    // Planes that grow together cost more time than they save captures.
    if (!of_plane && cost_of(both) <= most && cost_of(both) < joint_cost) {
      joint_cost = cost_of(both);
      joint = std::move(both);
      grown = given;
    }
  }
  if (!served.empty()) return served;
  // An axis that grows does so with room for more.
  for (size_t i = 0; i < grown.size(); ++i) {
    if (joint[i] == grown[i]) continue;
    std::vector<int64_t> roomy = joint;
    roomy[i] = bucket_of(i, own[i] + own[i] / 2);
    if (cost_of(roomy) <= most && roomy[i] <= axes[i].largest) joint = std::move(roomy);
  }
  if (given_.size() >= kMostGiven) given_.clear();
  given_.push_back(joint);
  return joint;
}

}  // namespace reprise
