#include "runtime/engine/padding_prober.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/draw.h"
#include "runtime/engine/mask_inputs.h"
#include "runtime/graph/dim_expression.h"
#include "runtime/ops/op.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

// Larger numbers in a comparison are the ends of types and masks.
constexpr double kLargestTelling = 1e6;

// Numbers that a model compares something with: what it does for a rare token, or for large values
// alone, shows only where they are drawn.
std::vector<double> TellingNumbers(const Graph& graph) {
  constexpr size_t kMost = 16;
  std::set<double> numbers;
  for (const NodeId id : graph.NodeIds()) {
    if (!IsComparison(graph.node(id).op)) continue;
    for (const ValueId input : graph.node(id).inputs) {
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

}  // namespace

PaddingProber::PaddingProber(const Model& model, const Graph& graph, const LoaderContext& context,
                             const SizeSampler& sampler, Stream& stream, ExactRecipes& recipes)
    : model_(model), graph_(graph), sampler_(sampler), stream_(stream) {
  const std::vector<double> telling = TellingNumbers(graph);
  for (const ModelIo& input : model.inputs()) {
    if (input.optional) continue;
    graph_inputs_.push_back(input);
    const ValueId value = graph.FindValue(input.name);
    inputs_.push_back({.name = input.name,
                       .dtype = input.dtype,
                       .dims = input.dims,
                       .is_mask = value != kNone && IsMaskInput(graph, value),
                       .telling = telling});
  }
  for (const ModelIo& output : model.recipe_outputs()) outputs_.push_back(output.name);
  runner_.emplace(graph, model.fingerprint(), graph_inputs_, model.owner()->parameters(),
                  *context.device, *context.clock, stream, recipes);
  run_ = [this](const std::vector<Tensor>& inputs) { return runner_->Run(inputs); };
}

ProbeOptions PaddingProber::OptionsFor(const Model& model, int position) {
  ProbeOptions options = {.fills = model.options().fills, .dim_size = DimSize};
  if (model.batch_axis() >= 0) options.batch_axis = model.axes()[model.batch_axis()].symbol;
  if (position >= 0) {
    options.axis = model.axes()[position].symbol;
    options.is_batch = model.axes()[position].is_batch;
  }
  return options;
}

absl::StatusOr<std::vector<InputRange>> PaddingProber::Ranges(const ProbeOptions& options) const {
  return FindRanges(inputs_, run_, options);
}

absl::StatusOr<AxisCertificate> PaddingProber::Probe(absl::Span<const InputRange> ranges,
                                                     const ProbeOptions& options) const {
  return ProbeAxis(inputs_, ranges, outputs_, run_, options);
}

absl::StatusOr<AxisCertificate> PaddingProber::Confirm(const AxisCertificate& certificate,
                                                       absl::Span<const InputRange> ranges,
                                                       const ProbeOptions& options) const {
  return ConfirmAxis(certificate, inputs_, ranges, outputs_, run_, options);
}

AxisFinding PaddingProber::Mixing(size_t position, absl::Span<const InputRange> ranges,
                                  int64_t largest, const AxisCertificate& certificate) const {
  return Mixing(position, ranges, largest, certificate, model_.options().fills);
}

AxisFinding PaddingProber::Mixing(size_t position, absl::Span<const InputRange> ranges,
                                  int64_t largest, const AxisCertificate& certificate,
                                  const std::map<std::string, double>& fills) const {
  MixingQuestion question = {.graph = graph_,
                             .axes = model_.axes(),
                             .sampler = sampler_,
                             .position = position,
                             .largest = largest};
  const std::set<std::string> moving = MovingInputs(model_.axes()[position].symbol);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const ProbeInput& input = inputs_[i];
    const bool guard = certificate.certified ? absl::c_linear_search(certificate.guards, input.name)
                                             : !ranges[i].limited && !IsFloating(input.dtype);
    if (!guard || !moving.contains(input.name)) continue;
    const auto fill = fills.find(input.name);
    question.guards[input.name] = fill == fills.end() ? 0 : fill->second;
    if (input.is_mask || (!ranges[i].limited && !IsFloating(input.dtype))) {
      question.masks.insert(input.name);
    }
  }
  return FindMixingAlong(question);
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
  for (const ProbeInput& input : inputs_) {
    const bool may_be = input.is_mask && moving.contains(input.name) &&
                        model_.options().fills.count(input.name) == 0;
    if (!may_be) continue;
    ProbeOptions turned = options;
    turned.fills[input.name] = 1;
    turned.guards.insert(input.name);
    ASSIGN_OR_RETURN(const AxisCertificate certificate, Probe(ranges, turned));
    if (!certificate.certified) continue;
    const AxisFinding finding = Mixing(position, ranges, largest, certificate, turned.fills);
    if (finding.verdict == AxisFinding::Verdict::kMixes) continue;
    return absl::StrCat("parameters { key: \"reprise.fill.", input.name,
                        "\" value { string_value: \"1\" } }");
  }
  return "";
}

absl::Status PaddingProber::Check(PackingCheck& check, size_t round,
                                  absl::Span<const InputRange> ranges,
                                  const ProbeOptions& options) const {
  const Drawer drawer(inputs_, ranges, options);
  return check.Run(round, {.drawer = &drawer,
                           .sequence = options.axis,
                           .batch = options.batch_axis,
                           .output_names = outputs_,
                           .exact = &run_,
                           .tolerance = options.tolerance,
                           .stream = &stream_});
}

}  // namespace reprise
