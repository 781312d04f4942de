#include "runtime/engine/padding_proof.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/draw.h"
#include "runtime/engine/lanes.h"
#include "runtime/engine/mask_inputs.h"
#include "runtime/engine/mixing.h"
#include "runtime/engine/model_packer.h"
#include "runtime/engine/packing_check.h"
#include "runtime/graph/dim_expression.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

// Of the other axes, while one is measured at its largest size.
constexpr int64_t kOtherLength = 5;
// Most rows of a batch that is probed, before a look at the largest bucket.
constexpr int64_t kProbedRows = 5;

// More cases for a model of which the ops do not say that it may be padded.
constexpr int kSweeps = 8;

// Larger numbers in a comparison are the ends of types and masks.
constexpr double kLargestTelling = 1e6;

constexpr char kSwitchedOff[] = "padding along this axis is switched off in config.pbtxt";

// Numbers that a model compares something with: what it does for a rare token, or for large values
// alone, shows only where they are drawn.
std::vector<double> TellingNumbers(const Graph& graph) {
  constexpr size_t kMost = 16;
  static const auto* const kCompare =
      new std::set<absl::string_view>{"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  std::set<double> numbers;
  for (const NodeId id : graph.NodeIds()) {
    if (!kCompare->contains(graph.node(id).op)) continue;
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

// The model as the certificate's measurements see it. One caller at a time.
class PaddingProof::Prober {
 public:
  Prober(const Model& model, const LoaderContext& context, ParameterStore& parameters,
         const Graph& graph, const GraphFingerprint& fingerprint, Stream& stream,
         ExactRecipes& recipes)
      : graph_(graph), stream_(stream), sampler_(graph, model.axes()) {
    for (const ModelIo& input : model.inputs()) {
      if (input.optional) continue;
      graph_inputs_.push_back(input);
      const ValueId value = graph.FindValue(input.name);
      inputs_.push_back({.name = input.name,
                         .dtype = input.dtype,
                         .dims = input.dims,
                         .is_mask = value != kNone && IsMaskInput(graph, value),
                         .telling = TellingNumbers(graph)});
    }
    for (const ModelIo& output : model.recipe_outputs()) outputs_.push_back(output.name);
    runner_.emplace(graph, fingerprint, graph_inputs_, parameters, *context.device, *context.clock,
                    stream, recipes);
    run_ = [this](const std::vector<Tensor>& inputs) { return runner_->Run(inputs); };
  }

  // For the axis at `position`, or for none (-1).
  static ProbeOptions OptionsFor(const Model& model, int position) {
    ProbeOptions options = {.fills = model.options().fills, .dim_size = DimSize};
    if (model.batch_axis() >= 0) options.batch_axis = model.axes()[model.batch_axis()].symbol;
    if (position >= 0) {
      options.axis = model.axes()[position].symbol;
      options.is_batch = model.axes()[position].is_batch;
    }
    return options;
  }

  absl::StatusOr<std::vector<InputRange>> Ranges(const ProbeOptions& options) const {
    return FindRanges(inputs_, run_, options);
  }
  absl::StatusOr<AxisCertificate> Probe(absl::Span<const InputRange> ranges,
                                        const ProbeOptions& options) const {
    return ProbeAxis(inputs_, ranges, outputs_, run_, options);
  }
  absl::StatusOr<AxisCertificate> Confirm(const AxisCertificate& certificate,
                                          absl::Span<const InputRange> ranges,
                                          const ProbeOptions& options) const {
    return ConfirmAxis(certificate, inputs_, ranges, outputs_, run_, options);
  }
  // What the ops say of the axis at `position`, with the guards that were measured; without a
  // certificate, with the inputs that may be masks by their dtype and range.
  AxisFinding Mixing(const Model& model, size_t position, absl::Span<const InputRange> ranges,
                     int64_t largest, const AxisCertificate& certificate) const {
    return Mixing(model, position, ranges, largest, certificate, model.options().fills);
  }
  AxisFinding Mixing(const Model& model, size_t position, absl::Span<const InputRange> ranges,
                     int64_t largest, const AxisCertificate& certificate,
                     const std::map<std::string, double>& fills) const {
    MixingQuestion question = {.graph = &graph_,
                               .axes = &model.axes(),
                               .position = position,
                               .largest = largest,
                               .sampler = &sampler_};
    const std::set<std::string> moving = MovingInputs(model.axes()[position].symbol);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ProbeInput& input = inputs_[i];
      const bool guard = certificate.certified
                             ? absl::c_linear_search(certificate.guards, input.name)
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
  // The names of the inputs that have the axis, in whatever form.
  std::set<std::string> MovingInputs(const std::string& symbol) const {
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
  // A line for config.pbtxt with which the axis may be padded, where that takes no more than a mask
  // in which what does not count is 1; else nothing.
  absl::StatusOr<std::string> FillThatHelps(const Model& model, size_t position,
                                            absl::Span<const InputRange> ranges, int64_t largest,
                                            const ProbeOptions& options) const {
    const std::set<std::string> moving = MovingInputs(options.axis);
    for (const ProbeInput& input : inputs_) {
      const bool may_be = input.is_mask && moving.contains(input.name) &&
                          model.options().fills.count(input.name) == 0;
      if (!may_be) continue;
      ProbeOptions turned = options;
      turned.fills[input.name] = 1;
      turned.guards.insert(input.name);
      ASSIGN_OR_RETURN(const AxisCertificate certificate, Probe(ranges, turned));
      if (!certificate.certified) continue;
      const AxisFinding finding =
          Mixing(model, position, ranges, largest, certificate, turned.fills);
      if (finding.verdict == AxisFinding::Verdict::kMixes) continue;
      return absl::StrCat("parameters { key: \"reprise.fill.", input.name,
                          "\" value { string_value: \"1\" } }");
    }
    return "";
  }
  const std::string& output(size_t i) const { return outputs_[i]; }
  // A round of the packed model, against the model unpadded.
  absl::Status Check(PackingCheck& check, size_t round, absl::Span<const InputRange> ranges,
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

 private:
  const Graph& graph_;
  Stream& stream_;
  SizeSampler sampler_;
  std::vector<ModelIo> graph_inputs_;
  std::vector<ProbeInput> inputs_;
  std::vector<std::string> outputs_;
  std::optional<ExactRunner> runner_;
  ProbeRunner run_;
};

// The probers of the threads that share what there is to measure.
class PaddingProof::Lanes {
 public:
  Lanes(const Model& model, const LoaderContext& context) : model_(model), context_(context) {}

  // Calls `work` for each of [0, count), on as many threads as there are cores. Returns the first
  // error. RESOURCE_EXHAUSTED: no memory for a stream.
  absl::Status ForEach(size_t count,
                       const std::function<absl::Status(size_t, const Prober&)>& work) {
    const size_t cores = context_.cores == nullptr ? 1 : context_.cores->cores();
    const size_t lanes = std::max<size_t>(std::min(count, cores), 1);
    while (lanes_.size() < lanes) RETURN_IF_ERROR(AddLane());
    std::vector<absl::Status> results(count);
    std::atomic<size_t> next{0};
    RunOnLanes(static_cast<int>(lanes), [&](int lane) {
      for (size_t i; (i = next++) < count;) results[i] = work(i, *lanes_[lane].prober);
    });
    for (const absl::Status& result : results) RETURN_IF_ERROR(result);
    return absl::OkStatus();
  }

 private:
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<const Prober> prober;
  };

  absl::Status AddLane() {
    // One thread: a team on a busy machine waits for its slowest member after every launch.
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, Stream::Create({.cores = context_.cores}));
    auto prober = std::make_unique<Prober>(model_, context_, model_.owner()->parameters(),
                                           model_.graph_, model_.fingerprint(), *stream, recipes_);
    lanes_.push_back({std::move(stream), std::move(prober)});
    return absl::OkStatus();
  }

  const Model& model_;
  const LoaderContext& context_;
  ExactRecipes recipes_;
  std::vector<Lane> lanes_;
};

// The packed form of a model, tried while its axes are still measured.
class PaddingProof::PackedTrial {
 public:
  PackedTrial(const PaddingProof& proof, const Model& model,
              const std::vector<std::vector<int64_t>>& buckets, std::vector<InputRange> ranges)
      : proof_(proof), model_(model), buckets_(buckets), ranges_(std::move(ranges)) {}

  // Rounds to run; in any order, on any threads.
  size_t rounds() const {
    return model_.options_.packing == PackingMode::kOff ? 0 : PackingCheck::kRounds;
  }
  // The model is padded whatever comes out: what has not begun is left out.
  void GiveUp() { given_up_ = true; }

  absl::Status Run(size_t round, const Prober& prober) {
    if (given_up_) return absl::OkStatus();
    {
      MutexLock lock(mutex_);
      if (!tried_) Begin();
      if (!packing_.ok()) return absl::OkStatus();
    }
    absl::Status checked = prober.Check(*check_, round, ranges_,
                                        Prober::OptionsFor(model_, (*packing_)->sequence_axis()));
    if (checked.ok()) return absl::OkStatus();
    MutexLock lock(mutex_);
    if (wrong_.ok()) wrong_ = std::move(checked);
    return absl::OkStatus();
  }

  // After all rounds: the packed form, or why there is none.
  absl::StatusOr<std::unique_ptr<Packing>> Take() {
    MutexLock lock(mutex_);
    check_.reset();
    if (!wrong_.ok()) return wrong_;
    return std::move(packing_);
  }

 private:
  void Begin() REQUIRES(mutex_) {
    tried_ = true;
    packing_ = ModelPacker(proof_.context_).Make(model_, buckets_);
    if (!packing_.ok()) return;
    check_.emplace(**packing_, PackingCheck::Options{.parameters = &model_.owner_->parameters(),
                                                     .device = proof_.context_.device,
                                                     .clock = proof_.context_.clock});
  }

  const PaddingProof& proof_;
  const Model& model_;
  const std::vector<std::vector<int64_t>>& buckets_;
  const std::vector<InputRange> ranges_;
  std::atomic<bool> given_up_{false};
  Mutex mutex_;
  bool tried_ GUARDED_BY(mutex_) = false;
  absl::Status wrong_ GUARDED_BY(mutex_);
  // Set by Begin, and constant from then on until Take.
  absl::StatusOr<std::unique_ptr<Packing>> packing_ = absl::UnknownError("not tried");
  std::optional<PackingCheck> check_;
};

namespace {

// Every axis but the one at `position` small, one request.
Binding SmallBinding(const Model& model, size_t position, int64_t size) {
  Binding binding;
  for (size_t i = 0; i < model.axes().size(); ++i) {
    const ModelAxis& axis = model.axes()[i];
    binding.axes[axis.symbol] = i == position ? size : axis.is_batch ? 1 : kOtherLength;
  }
  return binding;
}

void SetOtherSizes(const Model& model, size_t position, ProbeOptions& options) {
  for (const auto& [symbol, size] : SmallBinding(model, position, 0).axes) {
    if (symbol != model.axes()[position].symbol) options.sizes[symbol] = size;
  }
}

// The largest bucket that the model takes (those beyond are dropped later); 0 without one.
int64_t LargestTaken(const Model& model, const Graph& graph, size_t position,
                     const std::vector<int64_t>& buckets) {
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    if (Specialize(graph, SmallBinding(model, position, *bucket)).ok()) return *bucket;
  }
  return 0;
}

// What the ops say of the axis, joined with what was measured.
void Join(const AxisFinding& finding, AxisCertificate& certificate) {
  using Verdict = AxisFinding::Verdict;
  certificate.mixing = finding.verdict == Verdict::kProved ? "" : MixingWords(finding);
  if (!certificate.certified) {
    if (certificate.mixing.empty()) return;
    certificate.reason = absl::StrCat(certificate.mixing, "; ", certificate.reason);
    return;
  }
  certificate.proved = finding.verdict == Verdict::kProved;
  if (certificate.proved) {
    certificate.reason =
        absl::StrCat("no node lets a position see the padding behind it; ", certificate.reason);
  } else if (finding.verdict == Verdict::kMixes) {
    // What no answer showed may yet show for other contents.
    certificate.certified = false;
    certificate.reason =
        absl::StrCat(certificate.mixing, ", although the measurement saw no difference");
  } else {
    absl::StrAppend(&certificate.reason, "; measured, not proved: ", certificate.mixing);
  }
}

}  // namespace

void Refuse(ModelAxis& axis, std::string reason) {
  axis.certificate.axis = axis.label;
  axis.certificate.certified = axis.certificate.proved = false;
  axis.certificate.reason = std::move(reason);
}

absl::Status PaddingProof::Measure(Model& model, const std::vector<std::vector<int64_t>>& buckets,
                                   const std::function<absl::Status()>& fit_shapes) const {
  Lanes lanes(model, context_);
  if (model.recipe_outputs_.empty()) {
    RETURN_IF_ERROR(fit_shapes());
    // All of it lies behind cuts, where nothing is padded.
    for (ModelAxis& axis : model.axes_) {
      if (model.options_.no_padding.contains(axis.label)) {
        Refuse(axis, kSwitchedOff);
      } else if (axis.certificate.reason.empty()) {
        axis.certificate = {.axis = axis.label,
                            .certified = true,
                            .proved = true,
                            .reason = "nothing runs in front of the first cut"};
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<InputRange>> ranges = absl::UnknownError("not looked for");
  RETURN_IF_ERROR(lanes.ForEach(2, [&](size_t i, const Prober& own) -> absl::Status {
    if (i == 1) return fit_shapes();
    ranges = own.Ranges(Prober::OptionsFor(model, -1));
    return absl::OkStatus();
  }));
  std::vector<size_t> wanted;
  for (size_t i = 0; i < model.axes_.size(); ++i) {
    ModelAxis& axis = model.axes_[i];
    if (model.options_.no_padding.contains(axis.label)) {
      Refuse(axis, kSwitchedOff);
    } else if (!axis.certificate.reason.empty()) {
      continue;  // Its output shapes are no simple function.
    } else if (!ranges.ok()) {
      Refuse(axis, std::string(ranges.status().message()));
    } else {
      wanted.push_back(i);
    }
  }
  std::vector<Deferred> deferred(model.axes_.size());
  PackedTrial packed(*this, model, buckets, ranges.ok() ? *ranges : std::vector<InputRange>());
  if (wanted.size() < model.axes_.size()) packed.GiveUp();
  // One axis knows nothing of the others. A core that has none left tries the packed form, which is
  // in vain where an axis that is still measured gets no certificate.
  RETURN_IF_ERROR(
      lanes.ForEach(wanted.size() + packed.rounds(), [&](size_t work, const Prober& own) {
        if (work >= wanted.size()) return packed.Run(work - wanted.size(), own);
        const size_t i = wanted[work];
        const absl::Status status = MeasureAxis(model, i, own, *ranges, buckets[i], deferred[i]);
        if (!model.axes_[i].certificate.certified) packed.GiveUp();
        return status;
      }));
  PendingProof pending;
  for (const size_t i : wanted) {
    if (!deferred[i].any) continue;
    model.padding_.Defer(i, deferred[i].proved_to);
    pending.axes.push_back({i, std::move(deferred[i].padded_sizes)});
  }
  for (const ModelAxis& axis : model.axes_) {
    context_.log(
        absl::StrCat("model ", model.id().name, ": axis ", axis.label,
                     axis.certificate.certified ? " may be padded: " : " is never padded: ",
                     axis.certificate.reason));
  }
  ModelPacker(context_).Pack(model, packed.Take());
  if (!pending.axes.empty()) {
    pending.ranges = *ranges;
    model.pending_proof_ = std::make_shared<const PendingProof>(std::move(pending));
  }
  return absl::OkStatus();
}

absl::Status PaddingProof::MeasureAxis(Model& model, size_t i, const Prober& prober,
                                       absl::Span<const InputRange> ranges,
                                       const std::vector<int64_t>& buckets,
                                       Deferred& deferred) const {
  ModelAxis& axis = model.axes_[i];
  ProbeOptions options = Prober::OptionsFor(model, static_cast<int>(i));
  std::vector<int64_t> later;
  std::vector<int64_t>& sizes = options.padded_sizes;
  const bool split = model.options_.confirm_padding_later && !axis.is_batch &&
                     Specialize(model.graph_, SmallBinding(model, i, sizes[0])).ok() &&
                     Specialize(model.graph_, SmallBinding(model, i, 1)).ok();
  if (split) {
    later.assign(sizes.begin() + 1, sizes.end());
    sizes.resize(1);
  }
  ASSIGN_OR_RETURN(axis.certificate, prober.Probe(ranges, options));
  axis.certificate.axis = axis.label;
  const int64_t largest = LargestTaken(model, model.graph_, i, buckets);
  AxisFinding finding = prober.Mixing(model, i, ranges, largest, axis.certificate);
  if (axis.certificate.certified && finding.verdict == AxisFinding::Verdict::kMixes &&
      !axis.is_batch) {
    // Ids whose padding was free may be told apart by what follows, ones that nobody drew.
    options.guards = prober.MovingInputs(axis.symbol);
    ASSIGN_OR_RETURN(AxisCertificate guarded, prober.Probe(ranges, options));
    guarded.axis = axis.label;
    const AxisFinding again = prober.Mixing(model, i, ranges, largest, guarded);
    if (guarded.certified && again.verdict != AxisFinding::Verdict::kMixes) {
      axis.certificate = std::move(guarded);
      finding = again;
    }
  }
  if (axis.certificate.certified && finding.verdict == AxisFinding::Verdict::kUndecided &&
      !axis.is_batch) {
    ProbeOptions closer = options;
    closer.padded_sizes.resize(1);
    closer.sweeps = kSweeps;
    ASSIGN_OR_RETURN(AxisCertificate looked, prober.Confirm(axis.certificate, ranges, closer));
    axis.certificate.runs = looked.runs;
    if (!looked.certified) axis.certificate = std::move(looked);
  }
  Join(finding, axis.certificate);
  if (!axis.certificate.certified) {
    if (axis.is_batch) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string line,
                     prober.FillThatHelps(model, i, ranges, largest, options));
    if (line.empty()) return absl::OkStatus();
    absl::StrAppend(&axis.certificate.reason,
                    "; it may be padded where 1 in the mask means padding: say so in "
                    "config.pbtxt: ",
                    line);
    return absl::OkStatus();
  }
  int64_t measured = later.empty() ? sizes.back() : later.back();
  // A probe of the batch looks at few rows.
  if (axis.is_batch) measured = axis.certificate.proved ? largest : kProbedRows;
  if (largest > measured) later.push_back(largest);
  if (split) {
    deferred = {.any = true,
                .proved_to = axis.certificate.proved ? PaddingProgress::kAnySize : sizes.back(),
                .padded_sizes = std::move(later)};
  } else if (!later.empty()) {
    SetOtherSizes(model, i, options);
    options.padded_sizes = later;
    ASSIGN_OR_RETURN(axis.certificate, prober.Confirm(axis.certificate, ranges, options));
  }
  // What the probe saw at a few sizes, the fitted shapes say for all.
  for (size_t output = 0; axis.is_batch && output < model.output_shapes_.size(); ++output) {
    for (const AffineDim& dim : model.output_shapes_[output].dims) {
      if (!dim.MovesWith(i) || dim.IsAxis(i)) continue;
      Refuse(axis, absl::StrCat("a dim of output '", prober.output(output),
                                "' does not grow by one a row"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<size_t, AxisCertificate>> PaddingProof::Confirm(const Model& model) const {
  // A core of its own: no replay waits for one of the others.
  CorePool own_core(1);
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, Stream::Create({.cores = &own_core}));
  ExactRecipes recipes;
  const Prober prober(model, context_, model.owner_->parameters(), model.graph_, model.fingerprint_,
                      *stream, recipes);
  std::map<size_t, AxisCertificate> certificates;
  for (const auto& [position, padded_sizes] : model.pending_proof_->axes) {
    const ModelAxis& axis = model.axes_[position];
    ProbeOptions options = Prober::OptionsFor(model, static_cast<int>(position));
    SetOtherSizes(model, position, options);
    options.padded_sizes = padded_sizes;
    options.sweeps = axis.certificate.proved ? 0 : kSweeps;
    ASSIGN_OR_RETURN(AxisCertificate certificate,
                     prober.Confirm(axis.certificate, model.pending_proof_->ranges, options));
    context_.log(absl::StrCat("model ", model.id().name, ": axis ", axis.label,
                              certificate.certified
                                  ? absl::StrCat(" may be padded to any size: the same at ",
                                                 absl::StrJoin(padded_sizes, ", "))
                                  : absl::StrCat(" is no longer padded: ", certificate.reason)));
    certificates[position] = std::move(certificate);
  }
  return certificates;
}

absl::Status PaddingProof::Extend(const Model& model, size_t position, int64_t size) const {
  CorePool own_core(1);
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, Stream::Create({.cores = &own_core}));
  ExactRecipes recipes;
  const Prober prober(model, context_, model.owner_->parameters(), model.graph_, model.fingerprint_,
                      *stream, recipes);
  ASSIGN_OR_RETURN(const std::vector<InputRange> ranges,
                   prober.Ranges(Prober::OptionsFor(model, -1)));
  const AxisCertificate& known = model.axes_[position].certificate;
  const AxisFinding finding = prober.Mixing(model, position, ranges, size, known);
  if (finding.verdict == AxisFinding::Verdict::kMixes) {
    return absl::FailedPreconditionError(MixingWords(finding));
  }
  ProbeOptions options = Prober::OptionsFor(model, static_cast<int>(position));
  SetOtherSizes(model, position, options);
  options.padded_sizes = {size};
  options.sweeps = finding.verdict == AxisFinding::Verdict::kProved ? 0 : kSweeps;
  ASSIGN_OR_RETURN(const AxisCertificate found, prober.Confirm(known, ranges, options));
  return found.certified ? absl::OkStatus() : absl::FailedPreconditionError(found.reason);
}

}  // namespace reprise
