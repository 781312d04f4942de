#include "runtime/engine/model/section_padding.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/live/live_form.h"
#include "runtime/verify/padding_leak.h"

namespace reprise {
namespace {

// Steps that are tried one after another, where sizes are multiples of them.
constexpr int64_t kSteps[] = {1, 8, 16, 32, 64};
constexpr int64_t kLeastStep = kSteps[1];
// More axes than the sides of two planes have no live form: to prove one takes seconds.
constexpr size_t kMostLive = 4;
// Sizes of axes around which an output's growth is read: primes.
constexpr int64_t kFitBase[] = {19, 29, 37, 43, 53, 61};

// Counts of findings that are fixed while others are padded: the list is cleared when it is full.
constexpr int64_t kFree = -1;
constexpr size_t kMostKnown = 1024;

// Where the size decides something a single finding is not treated as an axis: a dim of one may be
// broadcast or dropped, which no larger dim can be.
constexpr int64_t kLeastPadded = 2;

// Returns whether all elements of `places` are from 0 to below `size`.
bool LieBelow(const Tensor& places, int64_t size) {
  const Tensor read = places.Aligned();
  const auto lies_below = [size](int64_t place) { return place >= 0 && place < size; };
  return read.dtype() == DType::kInt32 ? absl::c_all_of(read.span<int32_t>(), lies_below)
                                       : absl::c_all_of(read.span<int64_t>(), lies_below);
}

}  // namespace

bool SectionPadding::IsNew(const Binding& arrived) const {
  const auto& first = witnesses_.front();
  std::map<std::string, size_t> axis_of;
  for (size_t i = 0; i < axes_.size(); ++i) {
    for (const std::string& symbol : axes_[i].symbols) {
      if (arrived.axes.at(symbol) != arrived.axes.at(axes_[i].symbols[0])) return true;
      axis_of[symbol] = i;
    }
    const int64_t size = arrived.axes.at(axes_[i].symbols[0]);
    if (axes_[i].live && size % axes_[i].step != 0 && size % kLeastStep == 0) return true;
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
  given_.Clear();
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

ModelAxis SectionPadding::ModelAxisOf(const Axis& axis) {
  return {.label = "what is found",
          .symbol = axis.symbols[0],
          .extents = axis.extents,
          .whole_from = axis.whole_from,
          .step = axis.step};
}

AxisFinding SectionPadding::FindingOf(const Graph& graph, const std::vector<ModelAxis>& axes,
                                      size_t position, const Axis& axis,
                                      const std::map<std::string, int64_t>& fixed) const {
  std::vector<ModelAxis> asked = axes;
  asked[position].is_batch = axis.repeats;
  const SizeReadings readings(graph, asked, fixed);
  PaddingLeakQuestion question = {.readings = readings,
                                  .position = position,
                                  .largest = axis.proved_to,
                                  .repeats_last = axis.repeats,
                                  .checks_places = !axis.live};
  if (axis.live) {
    // The padding of all inputs holds zeros then.
    for (const ValueId id : graph.inputs()) {
      const std::string& name = graph.value(id).name;
      question.fills[name] = 0;
      if (name.starts_with(kLiveInput)) question.live.insert(name);
    }
  }
  return FindPaddingLeak(question);
}

void SectionPadding::ProveAsIs(const Graph& merged) {
  std::vector<ModelAxis> axes;
  for (const Axis& axis : axes_) axes.push_back(ModelAxisOf(axis));
  const SizeReadings readings(merged, axes);
  for (size_t i = 0; i < axes_.size(); ++i) {
    Axis& axis = axes_[i];
    axis.repeats = false;
    const AxisFinding finding = FindingOf(merged, axes, i, axis, {});
    axis.repeats = !finding.proved();
    const AxisFinding repeated = finding.proved() ? finding : FindingOf(merged, axes, i, axis, {});
    axis.padded = repeated.proved();
    axis.places = repeated.in_request;
    axis.decides = !FindSizeChoices(readings, i, /*largest=*/0, /*forms=*/true).proved();
    if (!axis.padded) axis.why_not = MixingWords(finding);
  }
}

int64_t SectionPadding::StepOf(const std::string& symbol, int64_t most) const {
  int64_t common = 0, step = 1;
  for (const auto& witness : witnesses_) common = std::gcd(common, witness.at(symbol));
  for (const int64_t tried : kSteps) {
    if (tried <= most && common % tried == 0) step = tried;
  }
  return step;
}

bool SectionPadding::ProveLive(const Graph& merged, int64_t step) {
  std::set<std::string> symbols;
  std::vector<std::string> wanted;
  std::map<std::string, int64_t> steps;
  std::vector<Axis> tried = axes_;
  for (Axis& axis : tried) {
    symbols.insert(axis.symbols[0]);
    axis.live = true;
    axis.repeats = false;
    axis.places.clear();
    axis.proved_to = std::max(axis.proved_to, kFirstLookedAtLive);
    if (axis.padded) continue;
    wanted.push_back(axis.symbols[0]);
    axis.step = StepOf(axis.symbols[0], step);
    steps[axis.symbols[0]] = axis.step;
  }
  // Sizes are no multiples of it: this has been tried.
  if (absl::c_none_of(steps, [&](const auto& one) { return one.second == step; })) return false;
  absl::StatusOr<LiveForm> form = MakeLiveForm(merged, "", symbols, wanted, steps);
  if (!form.ok() || !RunLoadPasses(form->graph).ok()) return false;
  for (LiveForm::Axis& live : form->axes) {
    const auto axis =
        absl::c_find_if(tried, [&](const Axis& one) { return one.symbols[0] == live.symbol; });
    axis->extents = std::move(live.extents);
    axis->whole_from = live.smallest;
  }
  std::vector<ModelAxis> axes;
  axes.reserve(tried.size());
  for (const Axis& axis : tried) axes.push_back(ModelAxisOf(axis));
  const SizeReadings readings(form->graph, axes);
  bool gained = false, lost = false;
  for (size_t i = 0; i < tried.size(); ++i) {
    Axis& axis = tried[i];
    const AxisFinding finding = FindingOf(form->graph, axes, i, axis, {});
    axis.decides = !FindSizeChoices(readings, i, /*largest=*/0, /*forms=*/true).proved();
    gained |= finding.proved() && !axis.padded;
    lost |= !finding.proved() && axis.padded;
    axis.padded = finding.proved();
    if (!axis.padded) axis.why_not = axes_[i].why_not = MixingWords(finding);
  }
  if (!gained || lost) return false;
  axes_ = std::move(tried);
  ModelVariant variant;
  variant.graph = std::move(form->graph);
  variant.fingerprint = FingerprintGraph(*variant.graph);
  live_ = std::make_shared<const ModelVariant>(std::move(variant));
  return true;
}

std::vector<int64_t> SectionPadding::FitSizes() const {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < axes_.size(); ++i) {
    const int64_t base = kFitBase[i % std::size(kFitBase)];
    sizes.push_back(axes_[i].live ? RoundUpTo(std::max(base * axes_[i].step, axes_[i].whole_from),
                                              axes_[i].step)
                                  : base);
  }
  return sizes;
}

FitRange SectionPadding::FitRangeOf(const Axis& axis) {
  return {.largest = axis.proved_to,
          .from = axis.whole_from,
          .step = axis.step,
          .extents = axis.extents};
}

void SectionPadding::Prove() {
  outputs_.clear();
  holds_at_.clear();
  live_ = nullptr;
  const Graph merged = Merged();
  for (Axis& axis : axes_) {
    axis = {.symbols = std::move(axis.symbols), .proved_to = axis.proved_to, .grows = axis.grows};
  }
  ProveAsIs(merged);
  const auto is_padded = [](const Axis& axis) { return axis.padded; };
  if (!absl::c_all_of(axes_, is_padded) && axes_.size() <= kMostLive && HasWindows(merged)) {
    for (const int64_t step : kSteps) {
      if (ProveLive(merged, step)) break;
    }
  }
  if (absl::c_none_of(axes_, is_padded)) return;
  const std::vector<int64_t> sizes = FitSizes();
  std::vector<std::string> symbols;
  std::vector<FitRange> ranges;
  Binding base;
  for (size_t i = 0; i < axes_.size(); ++i) {
    symbols.push_back(axes_[i].symbols[0]);
    base.axes[symbols.back()] = sizes[i];
    ranges.push_back(FitRangeOf(axes_[i]));
  }
  auto fit = FitOutputShapes(live_ == nullptr ? merged : *live_->graph, symbols, base,
                             std::move(ranges), /*multiplies=*/live_ != nullptr);
  std::string refusal = fit.ok() ? "" : std::string(fit.status().message());
  for (size_t i = 0; i < symbols.size() && fit.ok(); ++i) {
    if (refusal.empty()) refusal = fit->refusals[i];
  }
  if (refusal.empty()) {
    outputs_ = std::move(fit->outputs);
    for (size_t i = 0; i < axes_.size(); ++i) {
      axes_[i].smallest = std::max(fit->smallest[i], axes_[i].whole_from);
    }
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
  const std::shared_ptr<const ModelVariant> live = live_;
  int64_t& proved_to = axes_[position].proved_to;
  while (proved_to < size) proved_to *= 2;
  Prove();
  const bool holds = absl::c_equal(axes_, before, [](const Axis& now, const Axis& then) {
    return now.padded == then.padded && now.live == then.live && now.step == then.step &&
           now.smallest <= then.smallest;
  });
  if (holds) return;
  axes_ = before;
  outputs_ = outputs;
  live_ = live;
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
  const Graph merged = live_ == nullptr ? Merged() : *live_->graph;
  const std::vector<int64_t> fit_sizes = FitSizes();
  std::vector<ModelAxis> axes;
  std::vector<size_t> positions;  // their indices in axes_
  std::map<std::string, int64_t> fixed;
  Binding base;
  std::vector<int64_t> at, free;  // sizes at which outputs are compared: of all, of those not fixed
  for (size_t i = 0; i < axes_.size(); ++i) {
    const std::string& symbol = axes_[i].symbols[0];
    at.push_back(sizes[i] == kFree ? fit_sizes[i] : sizes[i]);
    base.axes[symbol] = at.back();
    if (sizes[i] != kFree) {
      fixed[symbol] = sizes[i];
      continue;
    }
    axes.push_back(ModelAxisOf(axes_[i]));
    positions.push_back(i);
    free.push_back(at.back());
  }
  std::vector<std::string> symbols;
  std::vector<FitRange> ranges;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes_[positions[i]];
    symbols.push_back(axes[i].symbol);
    ranges.push_back(FitRangeOf(axis));
    if (!axis.padded) continue;
    const AxisFinding finding = FindingOf(merged, axes, i, axis, fixed);
    const bool holds = finding.proved() && absl::c_includes(axis.places, finding.in_request);
    if (!holds) return false;
  }
  const auto fit = FitOutputShapes(merged, symbols, base, std::move(ranges),
                                   /*multiplies=*/live_ != nullptr);
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
  std::vector<SectionSizes::Axis> padded;
  for (const Axis& axis : axes_) {
    const int64_t size = arrived.axes.at(axis.symbols[0]);
    sizes.push_back(size);
    const bool fits = axis.padded && size <= axis.proved_to && size % axis.step == 0 &&
                      size >= std::max(axis.decides ? kLeastPadded : 1, axis.smallest) &&
                      absl::c_all_of(axis.places, [&](const std::string& name) {
                        return LieBelow(value(name), size);
                      });
    padded.push_back({.padded = fits, .largest = axis.proved_to, .step = axis.step});
  }
  const std::vector<int64_t> rounded = given_.RoundUp(sizes, padded, live_ != nullptr);
  Fitted fitted = {.binding = arrived, .live = live_};
  if (live_ != nullptr) fitted.binding.axes.clear();
  for (size_t i = 0; i < axes_.size(); ++i) {
    for (const std::string& symbol : axes_[i].symbols) {
      fitted.binding.axes[symbol] = rounded[i];
      if (padded[i].padded) {
        fitted.padded.insert(symbol);
        fitted.largest[symbol] = axes_[i].proved_to;
      }
      if (live_ != nullptr) break;  // The others have been replaced by the first in its graph.
    }
    if (live_ == nullptr) continue;
    fitted.live_sizes[absl::StrCat(kLiveInput, axes_[i].symbols[0])] = sizes[i];
  }
  if (fitted.padded.empty()) return std::nullopt;
  std::vector<int64_t> decide(axes_.size(), kFree);
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].decides && !padded[i].padded) decide[i] = sizes[i];
  }
  if (!HoldsAt(decide)) return std::nullopt;
  for (const OutputShape& output : outputs_) {
    auto& true_sizes = fitted.true_sizes.emplace_back();
    for (const AffineDim& dim : output.dims) {
      bool moves = false;
      for (size_t i = 0; i < axes_.size(); ++i) moves |= padded[i].padded && dim.MovesWith(i);
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
