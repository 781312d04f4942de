#include "runtime/engine/padding_proof.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model_packer.h"
#include "runtime/engine/packed_trial.h"
#include "runtime/engine/prober_lanes.h"
#include "runtime/engine/request_proof.h"
#include "runtime/passes/specialize.h"

namespace reprise {
namespace {

// Of the other axes, while one is measured at its largest size.
constexpr int64_t kOtherLength = 5;
// Most rows of a batch that is probed, before a look at the largest bucket.
constexpr int64_t kProbedRows = 5;

// More cases for a model of which the ops do not say that it may be padded.
constexpr int kSweeps = 8;

constexpr char kSwitchedOff[] = "padding along this axis is switched off in config.pbtxt";

// Every axis but the one at `position` small, one request.
Binding SmallBinding(const Model& model, size_t position, int64_t size) {
  Binding binding;
  for (size_t i = 0; i < model.axes().size(); ++i) {
    const ModelAxis& axis = model.axes()[i];
    binding.axes[axis.symbol] = i == position   ? size
                                : axis.is_batch ? 1
                                                : std::max(kOtherLength, axis.smallest);
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

// What the ops ask of the rows of these masks.
void Ask(const AxisFinding& finding, const std::vector<std::string>& masks,
         AxisCertificate& certificate) {
  for (const std::string& guard : masks) {
    if (finding.must_count == CountingPlaces::kNone) break;
    CountingPlaces& places = certificate.must_count[guard];
    places = std::max(places, finding.must_count);
  }
}

bool IsProved(const AxisFinding& finding) {
  return finding.verdict == AxisFinding::Verdict::kProved;
}

// The certificate that most models get: rows are their own, of lengths the masks tell.
AxisCertificate Guess(const ModelAxis& axis, absl::Span<const InputRange> ranges,
                      const PaddingProber& prober) {
  AxisCertificate guess = {.axis = axis.label, .certified = true};
  if (!axis.is_batch) guess.guards = prober.WithMasks(axis.symbol, ranges, {});
  return guess;
}

// What the ops say of the axis, joined with what was measured.
void Join(const AxisFinding& finding, AxisCertificate& certificate) {
  using Verdict = AxisFinding::Verdict;
  certificate.mixing = IsProved(finding) ? "" : MixingWords(finding);
  if (!certificate.certified) {
    if (certificate.mixing.empty()) return;
    certificate.reason = absl::StrCat(certificate.mixing, "; ", certificate.reason);
    return;
  }
  certificate.proved = IsProved(finding);
  const bool whole_rows = absl::c_any_of(
      certificate.must_count, [](const auto& one) { return one.second == CountingPlaces::kAll; });
  if (!certificate.proved && whole_rows) {
    // Rows of one kind show too little.
    certificate.certified = false;
    certificate.must_count.clear();
    certificate.reason =
        absl::StrCat("only rows without the fill value could be padded, and ", certificate.mixing);
    return;
  }
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
  ProberLanes lanes(model, model.graph_, context_);
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
  RETURN_IF_ERROR(lanes.ForEach(2, [&](size_t i, const PaddingProber& own) -> absl::Status {
    if (i == 1) return fit_shapes();
    ranges = own.Ranges(PaddingProber::OptionsFor(model, model.graph_, -1));
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
  PackedTrial packed(context_, model, buckets, ranges.ok() ? *ranges : std::vector<InputRange>());
  if (wanted.size() < model.axes_.size()) packed.GiveUp();
  // One axis knows nothing of the others. A core that has none left tries the packed form, which is
  // in vain where an axis that is still measured gets no certificate.
  RETURN_IF_ERROR(
      lanes.ForEach(wanted.size() + packed.wanted(), [&](size_t work, const PaddingProber& own) {
        if (work >= wanted.size()) return packed.Run(own);
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
  const RequestProof request_proof(context_, model, model.graph_);
  const bool by_request =
      packed.wanted() && wanted.size() == model.axes_.size() &&
      absl::c_any_of(model.axes_,
                     [](const ModelAxis& axis) { return !axis.certificate.certified; }) &&
      request_proof.applies();
  if (by_request) {
    std::vector<int64_t> largest;
    for (size_t i = 0; i < model.axes_.size(); ++i) {
      largest.push_back(LargestTaken(model, model.graph_, i, buckets[i]));
    }
    ModelPacker(context_).PackByRequest(model, request_proof.Run(lanes, *ranges, buckets, largest));
  } else {
    ModelPacker(context_).Pack(model, packed.Take());
  }
  if (!pending.axes.empty()) {
    pending.ranges = *ranges;
    model.pending_proof_ = std::make_shared<const PendingProof>(std::move(pending));
  }
  return absl::OkStatus();
}

absl::Status PaddingProof::MeasureAxis(Model& model, size_t i, const PaddingProber& prober,
                                       absl::Span<const InputRange> ranges,
                                       const std::vector<int64_t>& buckets,
                                       Deferred& deferred) const {
  ModelAxis& axis = model.axes_[i];
  ProbeOptions options = PaddingProber::OptionsFor(model, model.graph_, static_cast<int>(i));
  std::vector<int64_t> later;
  std::vector<int64_t>& sizes = options.padded_sizes;
  const bool split = model.options_.confirm_padding_later && !axis.is_batch &&
                     Specialize(model.graph_, SmallBinding(model, i, sizes[0])).ok() &&
                     Specialize(model.graph_, SmallBinding(model, i, 1)).ok();
  if (split) {
    later.assign(sizes.begin() + 1, sizes.end());
    sizes.resize(1);
  }
  const int64_t largest = LargestTaken(model, model.graph_, i, buckets);
  const AxisCertificate guess = Guess(axis, ranges, prober);
  const AxisFinding guessed = prober.Mixing(i, ranges, largest, guess);
  const auto look = [&]() -> absl::StatusOr<AxisFinding> {
    ASSIGN_OR_RETURN(axis.certificate, prober.Probe(ranges, options));
    axis.certificate.axis = axis.label;
    const bool same = axis.certificate.certified && axis.certificate.guards == guess.guards;
    return same ? guessed : prober.Mixing(i, ranges, largest, axis.certificate);
  };
  // Runs are most of what a load takes: where the ops prove the axis, a few are enough to begin
  // with, if the others follow behind.
  options.brief = split && IsProved(guessed);
  ASSIGN_OR_RETURN(AxisFinding finding, look());
  if (options.brief && !(axis.certificate.certified && IsProved(finding))) {
    options.brief = false;
    ASSIGN_OR_RETURN(finding, look());
  }
  if (options.brief) later.insert(later.begin(), sizes[0]);
  if (axis.certificate.certified && finding.verdict == AxisFinding::Verdict::kMixes &&
      !axis.is_batch) {
    // Ids whose padding was free may be told apart by what follows, ones that nobody drew.
    options.guards = prober.MovingInputs(axis.symbol);
    ASSIGN_OR_RETURN(AxisCertificate guarded, prober.Probe(ranges, options));
    guarded.axis = axis.label;
    const AxisFinding again = prober.Mixing(i, ranges, largest, guarded);
    if (guarded.certified && again.verdict != AxisFinding::Verdict::kMixes) {
      axis.certificate = std::move(guarded);
      finding = again;
    }
  }
  if (axis.certificate.certified && !axis.is_batch) {
    AxisCertificate bound = axis.certificate;
    bound.guards = prober.WithMasks(axis.symbol, ranges, bound.guards);
    if (bound.guards != axis.certificate.guards) {
      const AxisFinding asked = prober.Mixing(i, ranges, largest, bound);
      if (asked.must_count > finding.must_count) {
        axis.certificate.guards = bound.guards;
        finding.must_count = asked.must_count;
      }
    }
    Ask(finding, prober.MaskGuards(ranges, axis.certificate), axis.certificate);
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
    ASSIGN_OR_RETURN(const std::string line, prober.FillThatHelps(i, ranges, largest, options));
    if (line.empty()) return absl::OkStatus();
    absl::StrAppend(&axis.certificate.reason, "; ", line);
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
  const SizeSampler sampler(model.graph_, model.axes());
  const PaddingProber prober(model, model.graph_, context_, sampler, *stream, recipes);
  std::map<size_t, AxisCertificate> certificates;
  for (const auto& [position, padded_sizes] : model.pending_proof_->axes) {
    const ModelAxis& axis = model.axes_[position];
    ProbeOptions options =
        PaddingProber::OptionsFor(model, model.graph_, static_cast<int>(position));
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
  const SizeSampler sampler(model.graph_, model.axes());
  const PaddingProber prober(model, model.graph_, context_, sampler, *stream, recipes);
  ASSIGN_OR_RETURN(const std::vector<InputRange> ranges,
                   prober.Ranges(PaddingProber::OptionsFor(model, model.graph_, -1)));
  const AxisCertificate& known = model.axes_[position].certificate;
  const AxisFinding finding = prober.Mixing(position, ranges, size, known);
  if (finding.verdict == AxisFinding::Verdict::kMixes) {
    return absl::FailedPreconditionError(MixingWords(finding));
  }
  ProbeOptions options = PaddingProber::OptionsFor(model, model.graph_, static_cast<int>(position));
  SetOtherSizes(model, position, options);
  options.padded_sizes = {size};
  options.sweeps = IsProved(finding) ? 0 : kSweeps;
  ASSIGN_OR_RETURN(const AxisCertificate found, prober.Confirm(known, ranges, options));
  return found.certified ? absl::OkStatus() : absl::FailedPreconditionError(found.reason);
}

}  // namespace reprise
