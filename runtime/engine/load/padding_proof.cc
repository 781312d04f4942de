#include "runtime/engine/load/padding_proof.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/load/model_packer.h"
#include "runtime/engine/load/packed_trial.h"
#include "runtime/engine/load/probe_sizes.h"
#include "runtime/engine/load/request_proof.h"
#include "runtime/engine/load/slice_proof.h"
#include "runtime/engine/model/padding_leak.h"
#include "runtime/engine/packing/packing_check.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {
namespace {

constexpr char kSwitchedOff[] = "padding along this axis is switched off in config.pbtxt";

// A probe of the batch sees outputs at a few sizes only; the fitted shapes tell about all sizes.
void RefuseOddOutputs(absl::Span<const OutputShape> outputs, size_t batch,
                      const PaddingProber& prober, ModelAxis& axis) {
  if (!axis.certificate.certified) return;
  for (size_t output = 0; output < outputs.size(); ++output) {
    for (const AffineDim& dim : outputs[output].dims) {
      if (!dim.MovesWith(batch) || dim.IsAxis(batch)) continue;
      Refuse(axis, absl::StrCat("a dim of output '", prober.output(output),
                                "' does not grow by one a row"));
    }
  }
}

// Adds to what is said of the axis at `position` which sizes of others its certificate hangs on.
void SayWhereItHolds(const std::vector<ModelAxis>& axes, size_t position,
                     AxisCertificate& certificate) {
  if (!certificate.certified) return;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto& [words, alike_up_to] = axes[i].decision;
    if (i == position || words.empty()) continue;
    const std::string where = absl::StrCat(
        "; looked at anew for each size of ", axes[i].label,
        alike_up_to == 0 ? "" : absl::StrCat(" above ", alike_up_to), ", since ", words);
    if (!absl::StrContains(certificate.reason, where)) certificate.reason += where;
  }
}

// The decisions made by sizes of axes, where some axis is padded while sizes of others decide.
class Decisions {
 public:
  // `buckets`: by axis.
  Decisions(const SizeSampler& sampler, const Graph& graph, const Model& model,
            const std::vector<std::vector<int64_t>>& buckets)
      : sampler_(sampler), graph_(graph), model_(model), buckets_(buckets) {}

  // Fills in what each of `axes`, which are the model's, decides. One whose padded sizes decide
  // something that matters to another one loses its certificate.
  void Note(std::vector<ModelAxis>& axes) const {
    const auto certified = [](const ModelAxis& axis) { return axis.certificate.certified; };
    if (!absl::c_any_of(axes, certified)) return;
    for (size_t i = 0; i < axes.size(); ++i) {
      const AxisFinding finding = FindDecisions(graph_, sampler_, i);
      if (finding.proved()) continue;
      axes[i].decision = {.words = MixingWords(finding)};
      if (!axes[i].certificate.certified) continue;
      axes[i].decision.alike_up_to = LargestTaken(model_, graph_, i, buckets_[i]);
      const absl::Status alike = CheckPadded(axes, i);
      if (alike.ok()) continue;
      axes[i].decision.alike_up_to = 0;
      Refuse(axes[i], absl::StrCat(MixingWords(finding), ", so that at its largest bucket ",
                                   std::string(alike.message())));
    }
    for (size_t i = 0; i < axes.size(); ++i) SayWhereItHolds(axes, i, axes[i].certificate);
  }

 private:
  // Sizes up to the largest bucket decide nothing, or nothing that matters: what holds at small
  // ones holds at that one, and what nodes make of straight lines is the same in between.
  absl::Status CheckPadded(const std::vector<ModelAxis>& axes, size_t axis) const {
    const int64_t largest = axes[axis].decision.alike_up_to;
    if (largest == 0) return absl::OkStatus();  // It has no buckets, and is not padded either.
    if (FindDecisions(graph_, sampler_, axis, largest).proved()) return absl::OkStatus();
    SizeSlices::Slice slice(axes.size(), SizeSlices::kFree);
    slice[axis] = largest;
    std::vector<int64_t> padded_to;
    for (size_t i = 0; i < axes.size(); ++i) {
      padded_to.push_back(
          axes[i].certificate.certified ? LargestTaken(model_, graph_, i, buckets_[i]) : 0);
    }
    return SliceProof(model_, slice, std::move(padded_to)).Run();
  }

  const SizeSampler& sampler_;
  const Graph& graph_;
  const Model& model_;
  const std::vector<std::vector<int64_t>>& buckets_;
};

// It is packed, and there are masks with which it may not be padded, as a measurement has it.
bool AsksOfMasks(const Model& model) {
  if (model.packing() == nullptr || !model.packing()->takes_any_mask()) return false;
  return absl::c_any_of(model.axes(), [](const ModelAxis& axis) {
    return !axis.certificate.proved && axis.certificate.asks_of_masks();
  });
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
  std::vector<std::optional<AxisMeasurement::Rest>> rests(model.axes_.size());
  PackedTrial packed(context_, model, buckets, ranges.ok() ? *ranges : std::vector<InputRange>());
  if (wanted.size() < model.axes_.size()) packed.GiveUp();
  // One axis knows nothing of the others. A core that has none left tries the packed form, which is
  // in vain where an axis that is still measured gets no certificate.
  RETURN_IF_ERROR(
      lanes.ForEach(wanted.size() + packed.wanted(), [&](size_t work, const PaddingProber& own) {
        if (work >= wanted.size()) return packed.Run(own);
        const size_t i = wanted[work];
        AxisMeasurement measurement(model, model.axes_[i], i, own, *ranges, buckets[i]);
        const absl::Status status = measurement.Run();
        if (model.axes_[i].is_batch) {
          RefuseOddOutputs(model.output_shapes_, i, own, model.axes_[i]);
        }
        if (model.axes_[i].certificate.certified) {
          rests[i] = measurement.rest();
        } else {
          packed.GiveUp();
        }
        return status;
      }));
  Decisions(lanes.sampler(), model.graph_, model, buckets).Note(model.axes_);
  PendingProof pending;
  for (const size_t i : wanted) {
    if (!rests[i].has_value() || !model.axes_[i].certificate.certified) continue;
    model.padding_.Defer(i, rests[i]->proved_to);
    pending.axes.push_back({i, *std::move(rests[i])});
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
    if (AsksOfMasks(model)) RETURN_IF_ERROR(MeasureAnyMask(model, lanes, *ranges));
  }
  if (!pending.axes.empty()) {
    pending.ranges = *ranges;
    model.pending_proof_ = std::make_shared<const PendingProof>(std::move(pending));
  }
  return absl::OkStatus();
}

absl::Status PaddingProof::MeasureAnyMask(Model& model, ProberLanes& lanes,
                                          absl::Span<const InputRange> ranges) const {
  return lanes.ForEach(1, [&](size_t, const PaddingProber& prober) {
    PackingCheck check(*model.packing_, {.parameters = &model.owner_->parameters(),
                                         .device = context_.device,
                                         .clock = context_.clock});
    const absl::Status status = prober.Check(
        check, ranges,
        PaddingProber::OptionsFor(model, prober.graph(), model.packing_->sequence_axis()),
        {.any_mask = true});
    model.any_mask_measured_ = status.ok();
    context_.log(absl::StrCat(
        "model ", model.id().name, ": requests are packed ",
        status.ok() ? "whatever their masks hold: the same as alone in "
                    : "where their masks may be padded: ",
        status.ok() ? absl::StrCat(check.answers(), " answers") : std::string(status.message())));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::map<size_t, AxisCertificate>> PaddingProof::Confirm(const Model& model) const {
  // A core of its own: no replay waits for one of the others.
  HelperPool own_core(1);
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, Stream::Create({.cores = &own_core}));
  ExactRecipes recipes;
  const SizeSampler sampler(model.graph_, model.axes());
  const PaddingProber prober(model, model.graph_, context_, sampler, *stream, recipes);
  std::map<size_t, AxisCertificate> certificates;
  for (const auto& [position, rest] : model.pending_proof_->axes) {
    const ModelAxis& axis = model.axes_[position];
    ProbeOptions options =
        PaddingProber::OptionsFor(model, model.graph_, static_cast<int>(position));
    if (!rest.padded_sizes.empty()) SetOtherSizes(model, position, options);
    options.padded_sizes = rest.padded_sizes;
    options.brief = rest.brief;
    options.sweeps = axis.certificate.proved ? 0 : kSweeps;
    ASSIGN_OR_RETURN(AxisCertificate certificate,
                     prober.Confirm(axis.certificate, model.pending_proof_->ranges, options));
    SayWhereItHolds(model.axes_, position, certificate);
    context_.log(absl::StrCat(
        "model ", model.id().name, ": axis ", axis.label,
        !certificate.certified ? absl::StrCat(" is no longer padded: ", certificate.reason)
        : axis.is_batch        ? " may be padded: the same whatever still other rows held"
                               : absl::StrCat(" may be padded to any size: the same at ",
                                              absl::StrJoin(rest.padded_sizes, ", "))));
    certificates[position] = std::move(certificate);
  }
  return certificates;
}

absl::Status PaddingProof::Extend(const Model& model, size_t position, int64_t size) const {
  HelperPool own_core(1);
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
  options.sweeps = finding.proved() ? 0 : kSweeps;
  ASSIGN_OR_RETURN(const AxisCertificate found, prober.Confirm(known, ranges, options));
  return found.certified ? absl::OkStatus() : absl::FailedPreconditionError(found.reason);
}

}  // namespace reprise
