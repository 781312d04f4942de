#include "runtime/verify/padding_prober.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/draw.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/shapes/dim_expression.h"
#include "runtime/verify/data_values.h"
#include "runtime/verify/mask_inputs.h"
#include "runtime/verify/probe_sizes.h"

namespace reprise {
namespace {

// Ids that are tried as padding, each of which takes some runs.
constexpr size_t kMostFills = 4;

// Larger numbers in a comparison are the ends of types and masks.
constexpr double kLargestTelling = 1e6;

// Numbers that a model compares something with: what it does for a rare token, or for large values
// alone, shows only where they are drawn.
std::vector<double> TellingNumbers(const Graph& graph) {
  constexpr size_t kMost = 16;
  std::set<double> numbers;
  // A number that sizes are compared with says nothing of contents.
  const std::set<ValueId> data = FindDataValues(graph);
  for (const NodeId id : graph.NodeIds()) {
    const std::vector<ValueId>& inputs = graph.node(id).inputs;
    const auto is_data = [&](ValueId input) { return data.contains(input); };
    if (!IsComparison(graph.node(id).op) || absl::c_none_of(inputs, is_data)) continue;
    for (const ValueId input : inputs) {
      const Tensor* constant = graph.ConstantOf(input);
      if (constant == nullptr || constant->num_elements() > 4) continue;
      for (const double value : constant->ToDoubles()) {
        if (std::abs(value) <= kLargestTelling) numbers.insert(value);
      }
    }
    if (numbers.size() >= kMost) break;
  }
  return {numbers.begin(), numbers.end()};
}

// Returns whether a mask is made of the input by comparing it: ids that are not padding.
bool IsCompared(const Graph& graph, const std::string& input) {
  std::vector<ValueId> itself = {graph.FindValue(input)};
  std::set<ValueId> seen(itself.begin(), itself.end());
  while (!itself.empty()) {
    const ValueId one = itself.back();
    itself.pop_back();
    if (one == kNone) continue;
    for (const NodeId user : graph.value(one).users) {
      const Node& node = graph.node(user);
      const bool to_bool =
          node.op == CastOp::kName && graph.value(node.outputs[0]).dtype == DType::kBool;
      if (IsComparison(node.op) || to_bool || node.op == SignOp::kName) return true;
      const bool keeps =
          FactsOf(node.op).HoldsAllOfFirst() || node.op == CastOp::kName || node.op == SubOp::kName;
      const bool passes = keeps && node.input(0) == one;
      if (passes && seen.insert(node.outputs[0]).second) itself.push_back(node.outputs[0]);
    }
  }
  return false;
}

// Returns the names of the outputs that hold the same whatever the inputs of the graph hold.
std::set<std::string> FixedOutputs(const Graph& graph, const std::vector<std::string>& names) {
  const std::set<ValueId> data = FindDataValues(graph);
  std::set<std::string> fixed;
  for (size_t o = 0; o < names.size() && o < graph.outputs().size(); ++o) {
    if (!data.contains(graph.outputs()[o])) fixed.insert(names[o]);
  }
  return fixed;
}

// Powers of two are multiples of what models for images divide their sides by, and the larger ones
// leave something of a recording behind convolutions that move by several samples. Models with a
// position for each part of a picture may take those of the usual side alone.
constexpr int64_t kLengths[] = {8, 16, 32, 64, 128, 224, 256, 512, 1024, 4096, 16384};

// Where the model does not take the sizes of the lengths together, as one that makes images smaller
// and larger again does not, they become the first of `kLengths` that it takes.
void SetSizesTaken(const std::vector<ModelAxis>& axes, const Graph& graph, int position,
                   ProbeOptions& options) {
  const auto takes = [&](const std::map<std::string, int64_t>& sizes) {
    Binding binding;
    for (const ModelAxis& axis : axes) {
      const auto size = sizes.find(axis.symbol);
      binding.axes[axis.symbol] = size != sizes.end() ? size->second
                                  : axis.is_batch     ? 2
                                                      : kDefaultSize;
    }
    return IsTaken(graph, binding);
  };
  if (takes(options.sizes)) return;
  for (const int64_t size : kLengths) {
    std::map<std::string, int64_t> sizes = options.sizes;
    for (const ModelAxis& axis : axes) {
      if (!axis.is_batch) sizes[axis.symbol] = axis.Fitting(size);
    }
    if (!takes(sizes)) continue;
    if (position >= 0) sizes.erase(axes[position].symbol);
    options.sizes = std::move(sizes);
    return;
  }
}

// A model that takes multiples of a number alone is padded to some of these.
void PadInSteps(ProbeOptions& options) {
  constexpr int64_t kFewSteps = 4;
  if (options.step == 1) return;
  const int64_t first =
      RoundUpTo(std::max(options.padded_sizes.front(), kFewSteps * options.step), options.step);
  options.padded_sizes = {first, 2 * first, 4 * first};
}

// A model that takes no size below several hundred, as one behind many strides, is padded to
// multiples of that.
void PadBeyondSmallest(ProbeOptions& options) {
  if (options.is_batch || options.smallest < options.padded_sizes.back()) return;
  const int64_t first = options.padded_sizes.front();
  const int64_t times = (2 * options.smallest + first - 1) / first;
  for (int64_t& size : options.padded_sizes) size *= times;
}

// Where a model is told which positions are a request's, padding holds fill values in the floats
// that lie there as well: what becomes of zeros is finite.
void BindLive(const ProofSubject& subject, ProbeOptions& options) {
  if (options.axis.empty() || options.is_batch) return;
  const auto along = [&](const ProbeInput& input) {
    return absl::c_any_of(input.dims, [&](const Dim& dim) {
      return dim.symbol == options.axis ||
             (input.live && absl::c_linear_search(ExpressionSymbols(dim.symbol), options.axis));
    });
  };
  const bool is_live = absl::c_any_of(
      subject.inputs, [&](const ProbeInput& input) { return input.live && along(input); });
  for (const ProbeInput& input : subject.inputs) {
    const bool bound = along(input) && (input.live || IsFloating(input.dtype));
    if (is_live && bound) options.guards.insert(input.name);
  }
}

// The elements that the inputs of a run may have, for a model of few weights, and how many more
// each byte of them allows.
constexpr int64_t kMostElements = int64_t{1} << 24;
constexpr int64_t kPerWeightByte = 16;

// An axis that is too large to be measured is not padded.
absl::StatusOr<AxisCertificate> OrRefused(AxisCertificate certificate,
                                          absl::StatusOr<AxisCertificate> found) {
  if (!absl::IsResourceExhausted(found.status())) return found;
  certificate.certified = certificate.proved = false;
  certificate.reason = std::string(found.status().message());
  return certificate;
}

}  // namespace

PaddingProber::PaddingProber(const ProofSubject& subject, const Graph& graph,
                             const SizeReadings& readings, ProofRunner* runner)
    : subject_(subject),
      graph_(graph),
      readings_(readings),
      runner_(runner),
      inputs_(subject.inputs),
      outputs_(subject.outputs) {
  const std::vector<double> telling = TellingNumbers(graph);
  for (ProbeInput& input : inputs_) {
    const ValueId value = graph.FindValue(input.name);
    input.is_mask = input.live || (value != kNone && IsMaskInput(graph, value));
    input.telling = telling;
    const auto depth = value == kNone || input.is_mask ? std::nullopt : HotDepth(graph, value);
    hot_depths_.push_back(depth.value_or(0));
    if (depth.has_value()) input.telling.push_back(static_cast<double>(*depth));
  }
  if (runner == nullptr) return;
  run_ = [runner](const std::vector<Tensor>& inputs) { return runner->Run(inputs); };
}

ProbeOptions PaddingProber::OptionsFor(const ProofSubject& subject, const Graph& graph,
                                       int position) {
  ProbeOptions options = {.fills = subject.fills,
                          .most_elements = kMostElements + kPerWeightByte * subject.parameter_bytes,
                          .fixed_outputs = FixedOutputs(graph, subject.outputs),
                          .dim_size = DimSize};
  if (subject.batch_axis >= 0) options.batch_axis = subject.axes[subject.batch_axis].symbol;
  if (position >= 0) {
    options.axis = subject.axes[position].symbol;
    options.smallest = subject.axes[position].smallest;
    options.is_batch = subject.axes[position].is_batch;
    options.step = subject.axes[position].step;
    PadInSteps(options);
    PadBeyondSmallest(options);
  }
  for (const ModelAxis& axis : subject.axes) {
    const int64_t size = axis.Fitting(kDefaultSize);
    if (size > kDefaultSize) options.sizes[axis.symbol] = size;
  }
  SetSizesTaken(subject.axes, graph, position, options);
  BindLive(subject, options);
  return options;
}

absl::StatusOr<std::vector<InputRange>> PaddingProber::Ranges(const ProbeOptions& options) const {
  ASSIGN_OR_RETURN(std::vector<InputRange> ranges, FindRanges(inputs_, run_, options));
  // Ids behind the depth become zeros alone: these are told apart, and no others.
  constexpr int64_t kBehind = 2;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const int64_t depth = hot_depths_[i];
    if (depth == 0 || ranges[i].limited || !IsInteger(inputs_[i].dtype)) continue;
    ranges[i] = {.low = -depth, .high = depth - 1 + kBehind, .limited = true};
  }
  return ranges;
}

absl::StatusOr<AxisCertificate> PaddingProber::Probe(absl::Span<const InputRange> ranges,
                                                     const ProbeOptions& options) const {
  return OrRefused({.axis = options.axis}, ProbeAxis(inputs_, ranges, outputs_, run_, options));
}

absl::StatusOr<AxisCertificate> PaddingProber::Confirm(const AxisCertificate& certificate,
                                                       absl::Span<const InputRange> ranges,
                                                       const ProbeOptions& options) const {
  return OrRefused(certificate, ConfirmAxis(certificate, inputs_, ranges, outputs_, run_, options));
}

AxisFinding PaddingProber::FindLeak(size_t position, absl::Span<const InputRange> ranges,
                                    int64_t largest, const AxisCertificate& certificate) const {
  return FindLeak(position, ranges, largest, certificate, subject_.fills);
}

AxisFinding PaddingProber::FindLeakUnpadded(size_t position, absl::Span<const InputRange> ranges,
                                            int64_t largest,
                                            const AxisCertificate& certificate) const {
  return FindLeak(position, ranges, largest, certificate, subject_.fills, /*own_end=*/true);
}

AxisFinding PaddingProber::FindLeak(size_t position, absl::Span<const InputRange> ranges,
                                    int64_t largest, const AxisCertificate& certificate,
                                    const std::map<std::string, double>& fills,
                                    bool own_end) const {
  PaddingLeakQuestion question = {
      .readings = readings_, .position = position, .largest = largest, .own_end = own_end};
  const std::set<std::string> moving = MovingInputs(subject_.axes[position].symbol);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const ProbeInput& input = inputs_[i];
    const bool guard = certificate.certified ? absl::c_linear_search(certificate.guards, input.name)
                                             : MayBeMask(i, ranges);
    if (!guard || !moving.contains(input.name)) continue;
    const auto fill = fills.find(input.name);
    question.guards[input.name] = fill == fills.end() ? 0 : fill->second;
    if (IsMask(i, ranges)) question.masks.insert(input.name);
    if (!input.is_mask) question.guessed_masks.insert(input.name);
  }
  return FindPaddingLeak(question);
}

std::vector<std::string> PaddingProber::MaskGuards(absl::Span<const InputRange> ranges,
                                                   const AxisCertificate& certificate) const {
  std::vector<std::string> masks;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool guard = absl::c_linear_search(certificate.guards, inputs_[i].name);
    const bool tells = guard && (IsMask(i, ranges) || IsCompared(graph_, inputs_[i].name));
    if (tells) masks.push_back(inputs_[i].name);
  }
  return masks.empty() ? certificate.guards : masks;
}

std::vector<std::string> PaddingProber::MasksAmong(const std::vector<std::string>& guards,
                                                   absl::Span<const InputRange> ranges) const {
  std::vector<std::string> masks;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::string& name = inputs_[i].name;
    if (absl::c_linear_search(guards, name) && IsMask(i, ranges)) masks.push_back(name);
  }
  return masks;
}

std::vector<std::string> PaddingProber::WithMasks(const std::string& symbol,
                                                  absl::Span<const InputRange> ranges,
                                                  const std::vector<std::string>& guards) const {
  const std::set<std::string> moving = MovingInputs(symbol);
  std::vector<std::string> all;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::string& name = inputs_[i].name;
    const bool mask = moving.contains(name) && !IsFloating(inputs_[i].dtype) &&
                      (IsMask(i, ranges) || IsCompared(graph_, name));
    if (mask || absl::c_linear_search(guards, name)) all.push_back(name);
  }
  return all;
}

std::set<std::string> PaddingProber::MovingInputs(const std::string& symbol) const {
  std::set<std::string> names;
  for (const ProbeInput& input : inputs_) {
    for (const Dim& dim : input.dims) {
      const bool moves =
          dim.symbol == symbol || absl::c_linear_search(ExpressionSymbols(dim.symbol), symbol);
      if (moves) names.insert(input.name);
    }
  }
  return names;
}

absl::StatusOr<std::string> PaddingProber::FillThatHelps(size_t position,
                                                         absl::Span<const InputRange> ranges,
                                                         int64_t largest,
                                                         const ProbeOptions& options) const {
  const std::set<std::string> moving = MovingInputs(options.axis);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::string& name = inputs_[i].name;
    if (!moving.contains(name) || subject_.fills.count(name) != 0) continue;
    for (const int64_t fill : OtherFills(i, ranges)) {
      ProbeOptions turned = options;
      turned.fills[name] = static_cast<double>(fill);
      turned.guards.insert(name);
      ASSIGN_OR_RETURN(const AxisCertificate certificate, Probe(ranges, turned));
      if (!certificate.certified) continue;
      const AxisFinding finding = FindLeak(position, ranges, largest, certificate, turned.fills);
      if (finding.verdict == AxisFinding::Verdict::kMixes) continue;
      return absl::StrCat("it may be padded where ", fill,
                          IsMask(i, ranges) ? " in the mask" : absl::StrCat(" in ", name),
                          " means padding: say so in config.pbtxt: parameters { key: "
                          "\"reprise.fill.",
                          name, "\" value { string_value: \"", fill, "\" } }");
    }
  }
  return "";
}

std::vector<int64_t> PaddingProber::OtherFills(size_t i,
                                               absl::Span<const InputRange> ranges) const {
  if (IsFloating(inputs_[i].dtype)) return {};
  if (IsMask(i, ranges)) return {1};
  std::vector<int64_t> fills;
  for (const double number : inputs_[i].telling) {
    const auto whole = static_cast<int64_t>(number);
    const bool is_id = static_cast<double>(whole) == number && whole > 0 &&
                       whole <= ranges[i].high && fills.size() < kMostFills;
    if (is_id) fills.push_back(whole);
  }
  return fills;
}

absl::Status PaddingProber::Check(PackingCheck& check, absl::Span<const InputRange> ranges,
                                  const ProbeOptions& options,
                                  const PackingCheck::Rounds& rounds) const {
  const Drawer drawer(inputs_, ranges, options);
  return check.Run({.drawer = &drawer,
                    .sequence = options.axis,
                    .batch = options.batch_axis,
                    .output_names = outputs_,
                    .runner = runner_,
                    .tolerance = options.tolerance},
                   rounds);
}

}  // namespace reprise
