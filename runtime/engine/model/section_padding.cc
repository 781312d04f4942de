#include "runtime/engine/model/section_padding.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/graph.h"
#include "runtime/verify/padding_leak.h"

namespace reprise {
namespace {

constexpr int64_t kSmallestBucket = 16;
// Sizes of axes around which an output's growth is read: primes.
constexpr int64_t kFitBase[] = {19, 29, 37, 43, 53, 61};

// Counts of findings that are fixed while others are padded: the list is cleared when it is full.
constexpr int64_t kFree = -1;
constexpr size_t kMostKnown = 1024;

// Where the size decides something a single finding is not treated as an axis: a dim of one may be
// broadcast or dropped, which no larger dim can be.
constexpr int64_t kLeastPadded = 2;

// Several axes together are padded up to this times the sizes that one request would get.
constexpr int64_t kMostWaste = 2;

// Returns whether all elements of `places` are from 0 to below `size`.
bool LieBelow(const Tensor& places, int64_t size) {
  const Tensor read = places.Aligned();
  const auto lies_below = [size](int64_t place) { return place >= 0 && place < size; };
  return read.dtype() == DType::kInt32 ? absl::c_all_of(read.span<int32_t>(), lies_below)
                                       : absl::c_all_of(read.span<int64_t>(), lies_below);
}

}  // namespace

int64_t SectionBucket(int64_t size) {
  int64_t bucket = kSmallestBucket;
  while (bucket < size) {
    if (bucket + bucket / 2 >= size) return bucket + bucket / 2;
    bucket *= 2;
  }
  return bucket;
}

bool SectionPadding::IsNew(const Binding& arrived) const {
  const auto& first = witnesses_.front();
  std::map<std::string, size_t> axis_of;
  for (size_t i = 0; i < axes_.size(); ++i) {
    for (const std::string& symbol : axes_[i].symbols) {
      if (arrived.axes.at(symbol) != arrived.axes.at(axes_[i].symbols[0])) return true;
      axis_of[symbol] = i;
    }
  }
  return absl::c_any_of(arrived.axes, [&](const auto& one) {
    return !axis_of.contains(one.first) && one.second != first.at(one.first);
  });
}

void SectionPadding::Learn(const Binding& arrived) {
  witnesses_.push_back(arrived.axes);
  std::map<std::vector<int64_t>, std::vector<std::string>> by_sizes;
  for (const auto& [symbol, size] : arrived.axes) {
    std::vector<int64_t> sizes;
    for (const auto& witness : witnesses_) sizes.push_back(witness.at(symbol));
    const bool moves = absl::c_any_of(sizes, [&](int64_t one) { return one != sizes[0]; });
    if (moves) by_sizes[sizes].push_back(symbol);
  }
  axes_.clear();
  given_.clear();
  for (auto& [sizes, symbols] : by_sizes) axes_.push_back({.symbols = std::move(symbols)});
  Prove();
}

// Merges the symbols of each axis into one; a size that has not moved is a size like any other of
// the model.
Graph SectionPadding::Merged() const {
  std::map<std::string, std::string> renamed;
  for (const Axis& axis : axes_) {
    for (const std::string& symbol : axis.symbols) renamed[symbol] = axis.symbols[0];
  }
  Graph graph = *section_.graph;
  for (const ValueId id : graph.inputs()) {
    for (Dim& dim : graph.value(id).dims) {
      const auto it = renamed.find(dim.symbol);
      dim = it == renamed.end() ? Dim{.size = witnesses_.front().at(dim.symbol)}
                                : Dim{.symbol = it->second};
    }
    Value& input = graph.value(id);
    if (!absl::c_all_of(input.dims, [](const Dim& dim) { return dim.is_constant(); })) continue;
    input.shape.emplace();
    for (const Dim& dim : input.dims) input.shape->push_back(dim.size);
  }
  return graph;
}

AxisFinding SectionPadding::FindingOf(const Graph& merged, const std::vector<ModelAxis>& axes,
                                      size_t position, bool repeats, int64_t largest,
                                      const std::map<std::string, int64_t>& fixed) const {
  std::vector<ModelAxis> asked = axes;
  asked[position].is_batch = repeats;
  const SizeReadings readings(merged, asked, fixed);
  return FindPaddingLeak({.readings = readings,
                          .position = position,
                          .largest = largest,
                          .repeats_last = repeats,
                          .checks_places = true});
}

void SectionPadding::Prove() {
  outputs_.clear();
  holds_at_.clear();
  const Graph merged = Merged();
  std::vector<ModelAxis> axes;
  for (const Axis& axis : axes_) {
    axes.push_back({.label = "what is found", .symbol = axis.symbols[0]});
  }
  const SizeReadings readings(merged, axes);
  bool any = false;
  for (size_t i = 0; i < axes_.size(); ++i) {
    Axis& axis = axes_[i];
    const AxisFinding finding = FindingOf(merged, axes, i, false, axis.proved_to, {});
    const AxisFinding repeated =
        finding.proved() ? finding : FindingOf(merged, axes, i, true, axis.proved_to, {});
    axis.padded = repeated.proved();
    axis.repeats = !finding.proved();
    axis.places = repeated.needs.in_request;
    axis.decides = !FindSizeChoices(readings, i, /*largest=*/0, /*forms=*/true).proved();
    if (!axis.padded) axis.why_not = MixingWords(finding);
    any |= axis.padded;
  }
  if (!any) return;
  std::vector<std::string> symbols;
  std::vector<FitRange> ranges;
  Binding base;
  for (size_t i = 0; i < axes_.size(); ++i) {
    symbols.push_back(axes_[i].symbols[0]);
    base.axes[symbols.back()] = kFitBase[i % std::size(kFitBase)];
    ranges.push_back({.largest = axes_[i].proved_to});
  }
  auto fit = FitOutputShapes(merged, symbols, base, std::move(ranges));
  std::string refusal = fit.ok() ? "" : std::string(fit.status().message());
  for (size_t i = 0; i < symbols.size() && fit.ok(); ++i) {
    if (refusal.empty()) refusal = fit->refusals[i];
  }
  if (refusal.empty()) {
    outputs_ = std::move(fit->outputs);
    for (size_t i = 0; i < axes_.size(); ++i) axes_[i].smallest = fit->smallest[i];
    return;
  }
  // The size that an answer would have is not known then, for any padding.
  for (Axis& axis : axes_) {
    if (axis.padded) axis.why_not = absl::StrCat("the sizes of its results: ", refusal);
    axis.padded = false;
  }
}

void SectionPadding::ProveUpTo(size_t position, int64_t size) {
  const std::vector<Axis> before = axes_;
  const std::vector<OutputShape> outputs = outputs_;
  int64_t& proved_to = axes_[position].proved_to;
  while (proved_to < size) proved_to *= 2;
  Prove();
  const bool holds = absl::c_equal(axes_, before, [](const Axis& now, const Axis& then) {
    return now.padded == then.padded && now.smallest <= then.smallest;
  });
  if (holds) return;
  axes_ = before;
  outputs_ = outputs;
  holds_at_.clear();
  axes_[position].grows = false;
}

bool SectionPadding::HoldsAt(const std::vector<int64_t>& sizes) {
  if (absl::c_all_of(sizes, [](int64_t size) { return size == kFree; })) return true;
  if (const auto it = holds_at_.find(sizes); it != holds_at_.end()) return it->second;
  if (holds_at_.size() >= kMostKnown) holds_at_.clear();
  return holds_at_[sizes] = ProveAt(sizes);
}

bool SectionPadding::ProveAt(const std::vector<int64_t>& sizes) const {
  const Graph merged = Merged();
  std::vector<ModelAxis> axes;
  std::vector<size_t> positions;  // their indices in axes_
  std::map<std::string, int64_t> fixed;
  Binding base;
  std::vector<int64_t> at, free;  // sizes at which outputs are compared: of all, of those not fixed
  for (size_t i = 0; i < axes_.size(); ++i) {
    const std::string& symbol = axes_[i].symbols[0];
    at.push_back(sizes[i] == kFree ? kFitBase[i % std::size(kFitBase)] : sizes[i]);
    base.axes[symbol] = at.back();
    if (sizes[i] != kFree) {
      fixed[symbol] = sizes[i];
      continue;
    }
    axes.push_back({.label = "what is found", .symbol = symbol});
    positions.push_back(i);
    free.push_back(at.back());
  }
  std::vector<std::string> symbols;
  std::vector<FitRange> ranges;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes_[positions[i]];
    symbols.push_back(axes[i].symbol);
    ranges.push_back({.largest = axis.proved_to});
    if (!axis.padded) continue;
    const AxisFinding finding = FindingOf(merged, axes, i, axis.repeats, axis.proved_to, fixed);
    const bool holds = finding.proved() && absl::c_includes(axis.places, finding.needs.in_request);
    if (!holds) return false;
  }
  const auto fit = FitOutputShapes(merged, symbols, base, std::move(ranges));
  if (!fit.ok()) return false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool taken = fit->refusals[i].empty() && fit->smallest[i] <= axes_[positions[i]].smallest;
    if (!taken) return false;
  }
  for (size_t output = 0; output < outputs_.size(); ++output) {
    const std::vector<AffineDim>&dims = fit->outputs[output].dims, &known = outputs_[output].dims;
    if (dims.size() != known.size()) return false;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].At(free) != known[d].At(at)) return false;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (dims[d].factors[i] != known[d].factors[positions[i]]) return false;
      }
    }
  }
  return true;
}

std::vector<int64_t> SectionPadding::RoundedUp(const std::vector<int64_t>& sizes,
                                               const std::vector<bool>& padded) {
  std::vector<int64_t> own = sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (padded[i]) own[i] = SectionBucket(sizes[i]);
  }
  if (absl::c_count(padded, true) < 2) return own;
  const auto cost_of = [&](const std::vector<int64_t>& rounded) {
    int64_t cost = 0;
    for (size_t i = 0; i < rounded.size(); ++i) cost += padded[i] ? rounded[i] : 0;
    return cost;
  };
  const int64_t most = kMostWaste * cost_of(own);
  // Both the least that were given, and the least that serve these and others as well.
  std::vector<int64_t> served, joint = own, grown;
  int64_t joint_cost = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& given : given_) {
    std::vector<int64_t> both = own;
    bool may_serve = true;
    for (size_t i = 0; i < own.size(); ++i) {
      both[i] = std::max(own[i], given[i]);
      may_serve &= padded[i] ? both[i] <= axes_[i].proved_to : given[i] == own[i];
    }
    if (!may_serve || cost_of(both) > most) continue;
    if (both == given && (served.empty() || cost_of(given) < cost_of(served))) served = given;
    if (cost_of(both) < joint_cost) {
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
    roomy[i] = SectionBucket(own[i] + own[i] / 2);
    if (cost_of(roomy) <= most && roomy[i] <= axes_[i].proved_to) joint = std::move(roomy);
  }
  if (given_.size() >= kMostKnown) given_.clear();
  given_.push_back(joint);
  return joint;
}

std::optional<SectionPadding::Fitted> SectionPadding::Fit(const Binding& arrived, FindValue value) {
  if (arrived.axes.empty() || !arrived.shape_inputs.empty()) return std::nullopt;
  MutexLock lock(mutex_);
  if (witnesses_.empty()) {
    witnesses_.push_back(arrived.axes);
    return std::nullopt;
  }
  if (IsNew(arrived)) Learn(arrived);
  for (size_t i = 0; i < axes_.size(); ++i) {
    const int64_t size = arrived.axes.at(axes_[i].symbols[0]);
    const bool beyond = axes_[i].padded && axes_[i].grows && size > axes_[i].proved_to;
    if (beyond && size <= kLargestLookedAt) ProveUpTo(i, size);
  }
  std::vector<int64_t> sizes;
  std::vector<bool> padded;
  for (const Axis& axis : axes_) {
    const int64_t size = arrived.axes.at(axis.symbols[0]);
    sizes.push_back(size);
    padded.push_back(
        axis.padded && size >= std::max(axis.decides ? kLeastPadded : 1, axis.smallest) &&
        size <= axis.proved_to && absl::c_all_of(axis.places, [&](const std::string& name) {
          return LieBelow(value(name), size);
        }));
  }
  const std::vector<int64_t> rounded = RoundedUp(sizes, padded);
  Fitted fitted = {.binding = arrived};
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!padded[i]) continue;
    for (const std::string& symbol : axes_[i].symbols) {
      fitted.binding.axes[symbol] = rounded[i];
      fitted.padded.insert(symbol);
      fitted.largest[symbol] = axes_[i].proved_to;
    }
  }
  if (fitted.padded.empty()) return std::nullopt;
  std::vector<int64_t> decide(axes_.size(), kFree);
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].decides && !padded[i]) decide[i] = sizes[i];
  }
  if (!HoldsAt(decide)) return std::nullopt;
  for (const OutputShape& output : outputs_) {
    auto& true_sizes = fitted.true_sizes.emplace_back();
    for (const AffineDim& dim : output.dims) {
      bool moves = false;
      for (size_t i = 0; i < axes_.size(); ++i) moves |= padded[i] && dim.MovesWith(i);
      true_sizes.push_back(moves ? std::optional(dim.At(sizes)) : std::nullopt);
    }
  }
  return fitted;
}

std::vector<std::string> SectionPadding::Words() const {
  MutexLock lock(mutex_);
  std::vector<std::string> words;
  for (const Axis& axis : axes_) {
    const std::string dims = absl::StrJoin(axis.symbols, ", ");
    words.push_back(axis.padded ? absl::StrCat(dims, ": padded, which the ops prove safe")
                                : absl::StrCat(dims, ": exact, since ", axis.why_not));
  }
  return words;
}

}  // namespace reprise
