#include "runtime/engine/load/precision_trial.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/load/made_up_inputs.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/kit/precision_rules.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/verify/proof_sizes.h"

namespace reprise {
namespace {

// Lengths of the requests that are made up, where the model takes them. Short ones lose most: a
// single position has no others that errors cancel with.
constexpr int64_t kMadeUpLengths[] = {1, 2, 4, 12, 40, 96};
// A row of fewer numbers has no cosine of its own: that of a single score is always 1.
constexpr int64_t kFewNumbers = 8;
// Runs that a node's time is the least of.
constexpr int kTimedRuns = 5;

// The parts of a cosine.
struct CosineSum {
  double both = 0, exact = 0, rounded = 0;
  bool wrong = false;  // an element is a number in one of the two alone

  void Add(double a, double b) {
    if (!std::isfinite(a) || !std::isfinite(b)) {
      wrong = wrong || (!SameNumber(a, b) && std::isfinite(a) != std::isfinite(b));
      return;
    }
    both += a * b;
    exact += a * a;
    rounded += b * b;
  }
  double Loss() const {
    if (wrong) return 2;
    if (exact == 0 || rounded == 0) return exact == rounded ? 0 : 1;
    return std::clamp(1 - both / std::sqrt(exact * rounded), 0.0, 2.0);
  }
};

bool IsRoundedOutput(const Tensor& tensor) { return IsFloating(tensor.dtype()); }

// Returns the elements of a row of the output; 0: its rows count together.
int64_t OwnRow(const Tensor& tensor) {
  if (tensor.shape().size() < 2 || tensor.shape()[0] == 0) return 0;
  const int64_t width = tensor.num_elements() / tensor.shape()[0];
  return width < kFewNumbers ? 0 : width;
}

// Marks the candidates among the nodes of a graph in which all round to `precision`.
void AddCandidates(const Graph& graph, const NodePrecisions& rules, Precision precision,
                   std::vector<PrecisionTrial::Candidate>& candidates) {
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const std::string marked = node.attributes.String(kPrecisionAttribute, "");
    if (marked.empty() || node.name.empty() || rules.IsRuled(node)) continue;
    auto known = std::find_if(candidates.begin(), candidates.end(),
                              [&](const auto& one) { return one.node.name == node.name; });
    if (known == candidates.end()) {
      known = candidates.insert(
          candidates.end(),
          {.node = {
               .name = node.name, .op = node.op, .result = *graph.value(node.outputs[0]).shape}});
    }
    known->to_int8 = known->to_int8 || marked == PrecisionName(Precision::kInt8);
    known->to_bf16 = known->to_bf16 || marked == PrecisionName(Precision::kBf16);
  }
}

}  // namespace

double LossOf(const std::vector<std::vector<Tensor>>& exact,
              const std::vector<std::vector<Tensor>>& rounded) {
  double loss = 0;
  std::map<size_t, CosineSum> together;  // keyed by output
  for (size_t r = 0; r < exact.size() && r < rounded.size(); ++r) {
    for (size_t o = 0; o < exact[r].size(); ++o) {
      if (!IsRoundedOutput(exact[r][o])) continue;
      const std::vector<double> truth = exact[r][o].ToDoubles();
      const std::vector<double> answer = rounded[r][o].ToDoubles();
      const int64_t width = OwnRow(exact[r][o]);
      CosineSum row;
      for (size_t i = 0; i < truth.size(); ++i) {
        (width == 0 ? together[o] : row).Add(truth[i], answer[i]);
        if (width == 0 || (static_cast<int64_t>(i) + 1) % width != 0) continue;
        loss = std::max(loss, row.Loss());
        row = {};
      }
    }
  }
  for (const auto& one : together) loss = std::max(loss, one.second.Loss());
  return loss;
}

PrecisionTrial::PrecisionTrial(const ModelView& model, const LoaderContext& context,
                               std::unique_ptr<Stream> stream)
    : model_(model),
      context_(context),
      device_(model.options.one_order ? context.device->one_order() : *context.device),
      inputs_(InputsOf(model)),
      stream_(std::move(stream)) {}

absl::StatusOr<std::unique_ptr<PrecisionTrial>> PrecisionTrial::Make(const ModelView& model,
                                                                     const LoaderContext& context) {
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, Stream::Create({}));
  return std::unique_ptr<PrecisionTrial>(new PrecisionTrial(model, context, std::move(stream)));
}

namespace {

// The size of an axis that takes any, and the seeds of one request.
constexpr int64_t kUsualSize = 5;
constexpr uint64_t kMostInputs = 1000003;

std::vector<MadeUpInput> MadeUpInputsOf(const ModelView& model) {
  std::vector<MadeUpInput> inputs;
  for (size_t i = 0; i < model.signature.inputs.size(); ++i) {
    const ModelIo& input = model.signature.inputs[i];
    if (input.optional) continue;
    inputs.push_back({.name = input.name,
                      .dtype = input.dtype,
                      .dims = input.dims,
                      .is_mask = model.signature.mask_inputs.contains(i)});
  }
  return inputs;
}

// Returns the sizes at which the model takes its inputs together: small ones, or the first of
// kFitLengths.
MadeUpOptions MadeUpOptionsOf(const ModelView& model) {
  // The elements that a model of few weights is given, and how many more each byte of them allows.
  constexpr int64_t kMostElements = int64_t{1} << 24, kPerWeightByte = 16;
  MadeUpOptions options = {.most_elements =
                               kMostElements +
                               kPerWeightByte * model.program.owner->parameters().leaf_bytes()};
  const std::vector<ModelAxis>& axes = model.proof.axes;
  const auto sizes_at = [&](int64_t length) {
    SymbolSizes sizes;
    for (const ModelAxis& axis : axes) {
      sizes[axis.symbol] = axis.is_batch ? kFitBatch : axis.Fitting(length);
    }
    return sizes;
  };
  options.sizes = sizes_at(kUsualSize);
  for (const int64_t length : kFitLengths) {
    const SymbolSizes sizes = sizes_at(length);
    if (!IsTaken(*model.program.graph, {.axes = {sizes.begin(), sizes.end()}})) continue;
    options.sizes = sizes;
    break;
  }
  for (const ModelAxis& axis : axes) {
    if (!axis.is_batch) continue;
    options.batch_axis = axis.symbol;
    options.sizes.erase(axis.symbol);
  }
  return options;
}

}  // namespace

std::vector<ModelIo> PrecisionTrial::InputsOf(const ModelView& model) {
  std::vector<ModelIo> inputs;
  for (const ModelIo& input : model.signature.inputs) {
    if (!input.optional) inputs.push_back(input);
  }
  return inputs;
}

ExactRunner PrecisionTrial::RunnerOf(ExactRecipes& recipes, PipelineOptions passes) {
  return ExactRunner(*model_.program.graph, model_.program.fingerprint, inputs_,
                     model_.program.owner->parameters(), device_, *context_.clock, *stream_,
                     recipes, std::move(passes));
}

absl::StatusOr<PrecisionTrial::Answers> PrecisionTrial::Run(const Requests& requests, size_t most,
                                                            PipelineOptions passes) {
  ExactRecipes recipes;
  ExactRunner runner = RunnerOf(recipes, std::move(passes));
  Answers answers;
  for (size_t r = 0; r < requests.size() && r < most; ++r) {
    ASSIGN_OR_RETURN(answers.emplace_back(), runner.Run(requests[r]));
  }
  return answers;
}

absl::StatusOr<PrecisionTrial::Requests> PrecisionTrial::MakeUp() {
  const std::vector<MadeUpInput> inputs = MadeUpInputsOf(model_);
  const MadeUpOptions options = MadeUpOptionsOf(model_);
  ExactRecipes recipes;
  ExactRunner runner = RunnerOf(recipes, {});
  const auto run = [&](const std::vector<Tensor>& given) { return runner.Run(given); };
  ASSIGN_OR_RETURN(const std::vector<InputRange> ranges, FindRanges(inputs, run, options));
  std::vector<SymbolSizes> sizes;
  for (const int64_t length : kMadeUpLengths) {
    SymbolSizes& one = sizes.emplace_back(options.sizes);
    for (const ModelAxis& axis : model_.proof.axes) {
      one[axis.symbol] = axis.is_batch ? 1 : axis.Fitting(length);
    }
  }
  // Sizes that the model is known to take.
  SymbolSizes& usual = sizes.emplace_back(options.sizes);
  for (const ModelAxis& axis : model_.proof.axes) {
    if (axis.is_batch) usual[axis.symbol] = 1;
  }
  const auto draw = [&](const SymbolSizes& taken,
                        uint64_t seed) -> absl::StatusOr<std::vector<Tensor>> {
    SymbolSizes all = AllSymbols(inputs, kUsualSize);
    for (const auto& [symbol, size] : taken) all[symbol] = size;
    ASSIGN_OR_RETURN(const std::vector<Shape> shapes, ShapesAt(inputs, all, options.most_elements));
    std::vector<Tensor> request;
    for (size_t i = 0; i < inputs.size(); ++i) {
      request.push_back(reprise::MakeUp(inputs[i], ranges[i], shapes[i], seed * kMostInputs + i));
    }
    RETURN_IF_ERROR(run(request).status());
    return request;
  };
  Requests requests;
  for (size_t i = 0; i < sizes.size(); ++i) {
    absl::StatusOr<std::vector<Tensor>> request = draw(sizes[i], i + 1);
    if (!request.ok()) {
      if (requests.empty() && i + 1 == sizes.size()) return request.status();
    } else {
      requests.push_back(*std::move(request));
    }
    if (!requests.empty() && i + 2 == sizes.size()) break;
  }
  return requests;
}

absl::Status PrecisionTrial::Answer(Requests requests) {
  ASSIGN_OR_RETURN(exact_, Run(requests, requests.size(), {}));
  requests_ = std::move(requests);
  const bool has_floats = !exact_.empty() && absl::c_any_of(exact_[0], IsRoundedOutput);
  if (has_floats) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the model has no output of floats, whose cosine could be kept");
}

absl::StatusOr<std::vector<PrecisionTrial::Candidate>> PrecisionTrial::Candidates() const {
  std::vector<const Shape*> shapes;
  for (const Tensor& input : requests_.back()) shapes.push_back(&input.shape());
  Binding binding;
  ASSIGN_OR_RETURN(binding.axes, InputSignature(inputs_).Match(shapes));
  std::vector<Candidate> candidates;
  for (const Precision precision : {Precision::kInt8, Precision::kBf16}) {
    ASSIGN_OR_RETURN(Graph graph, Specialize(*model_.program.graph, binding));
    RETURN_IF_ERROR(
        RunCapturePasses(graph, {.precision = precision, .weights = model_.options.weights}));
    AddCandidates(graph, *model_.program.nodes, precision, candidates);
  }
  return candidates;
}

absl::Status PrecisionTrial::TimeAll(std::vector<Candidate>& candidates) {
  for (const Precision precision : kPrecisions) {
    Chosen all;
    for (const Candidate& one : candidates) all[one.node.name] = precision;
    const NodePrecisions nodes = model_.program.nodes->With(all);
    ExactRecipes recipes;
    ExactRunner runner = RunnerOf(recipes, {.nodes = &nodes, .weights = model_.options.weights});
    ASSIGN_OR_RETURN(const auto times, runner.TimeNodes(requests_.back(), kTimedRuns));
    for (Candidate& one : candidates) {
      const bool has = precision == Precision::kExact ||
                       (precision == Precision::kInt8 ? one.to_int8 : one.to_bf16);
      if (!has) continue;
      // Labels of launches name the node, its op, and a step of it.
      const std::string name = absl::StrCat(" '", one.node.name, "'");
      for (const auto& [label, ns] : times) {
        if (absl::StrContains(label, name)) one.ns[precision] += ns;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> PrecisionTrial::Loss(const Chosen& chosen, size_t most) {
  const NodePrecisions nodes = model_.program.nodes->With(chosen);
  ASSIGN_OR_RETURN(const Answers answers,
                   Run(requests_, most, {.nodes = &nodes, .weights = model_.options.weights}));
  return LossOf(exact_, answers);
}

}  // namespace reprise
