#include "runtime/engine/model/section_padding.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/graph.h"
#include "runtime/verify/padding_leak.h"

namespace reprise {
namespace {

constexpr int64_t kSmallestBucket = 16;
// Decisions that only large sizes trigger are searched up to this size.
constexpr int64_t kLargestLookedAt = 512;
// Sizes of axes around which an output's growth is read: primes.
constexpr int64_t kFitBase[] = {19, 29, 37, 43, 53, 61};

// Counts of findings that are fixed while others are padded: the list is cleared when it is full.
constexpr int64_t kFree = -1;
constexpr size_t kMostKnown = 1024;

// A single finding is not treated as an axis: a dim of one may be broadcast, which no larger dim
// can be.
constexpr int64_t kLeastPadded = 2;

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
  }
  return graph;
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
    const AxisFinding finding =
        FindPaddingLeak({.readings = readings, .position = i, .largest = kLargestLookedAt});
    axes_[i].padded = finding.verdict == AxisFinding::Verdict::kProved;
    axes_[i].decides = !FindSizeChoices(readings, i, /*largest=*/0, /*forms=*/true).proved();
    if (!axes_[i].padded) axes_[i].why_not = MixingWords(finding);
    any |= axes_[i].padded;
  }
  if (!any) return;
  std::vector<std::string> symbols;
  Binding base;
  for (size_t i = 0; i < axes_.size(); ++i) {
    symbols.push_back(axes_[i].symbols[0]);
    base.axes[symbols.back()] = kFitBase[i % std::size(kFitBase)];
  }
  auto fit = FitOutputShapes(merged, symbols, base,
                             {symbols.size(), FitRange{.largest = kLargestLookedAt}});
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
  const SizeReadings readings(merged, axes, fixed);
  std::vector<std::string> symbols;
  for (size_t i = 0; i < axes.size(); ++i) {
    symbols.push_back(axes[i].symbol);
    if (!axes_[positions[i]].padded) continue;
    const AxisFinding finding =
        FindPaddingLeak({.readings = readings, .position = i, .largest = kLargestLookedAt});
    if (!finding.proved()) return false;
  }
  const auto fit = FitOutputShapes(merged, symbols, base,
                                   {symbols.size(), FitRange{.largest = kLargestLookedAt}});
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

std::optional<SectionPadding::Fitted> SectionPadding::Fit(const Binding& arrived) {
  if (arrived.axes.empty() || !arrived.shape_inputs.empty()) return std::nullopt;
  MutexLock lock(mutex_);
  if (witnesses_.empty()) {
    witnesses_.push_back(arrived.axes);
    return std::nullopt;
  }
  if (IsNew(arrived)) Learn(arrived);
  Fitted fitted = {.binding = arrived};
  std::vector<int64_t> sizes;
  std::vector<bool> padded;
  for (const Axis& axis : axes_) {
    const int64_t size = arrived.axes.at(axis.symbols[0]);
    sizes.push_back(size);
    padded.push_back(axis.padded && size >= std::max(kLeastPadded, axis.smallest) &&
                     size <= kLargestLookedAt);
    if (!padded.back()) continue;
    for (const std::string& symbol : axis.symbols) {
      fitted.binding.axes[symbol] = SectionBucket(size);
      fitted.padded.insert(symbol);
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
