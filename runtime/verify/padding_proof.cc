#include "runtime/verify/padding_proof.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/passes/read/size_regions.h"
#include "runtime/verify/packed_trial.h"
#include "runtime/verify/packing_check.h"
#include "runtime/verify/padding_leak.h"
#include "runtime/verify/probe_sizes.h"
#include "runtime/verify/request_proof.h"
#include "runtime/verify/slice_proof.h"
#include "runtime/verify/watched_form.h"

namespace reprise {
namespace {

constexpr char kSwitchedOff[] = "padding along this axis is switched off in config.pbtxt";
constexpr char kNotMeasuredYet[] =
    "whether it may be padded is measured when a request asks for that, which waits for it";

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

// Dims that became one are cut from answers where the ops show that each request's elements lie in
// front: at the few sizes of a measurement another order may look so.
void RefuseUnprovedProducts(absl::Span<const OutputShape> outputs, const PaddingProber& prober,
                            std::vector<ModelAxis>& axes) {
  for (size_t output = 0; output < outputs.size(); ++output) {
    for (const AffineDim& dim : outputs[output].dims) {
      for (const AffineDim::Product& product : dim.products) {
        ModelAxis &first = axes[product.first], &second = axes[product.second];
        const bool proved = first.certificate.certified && first.certificate.proved &&
                            second.certificate.certified && second.certificate.proved;
        for (ModelAxis* axis : {&first, &second}) {
          if (proved || !axis->certificate.certified) continue;
          Refuse(*axis,
                 absl::StrCat("a dim of output '", prober.output(output),
                              "' is several axes in one, of which it is not proved that each "
                              "request's elements lie in front; ",
                              axis->certificate.reason));
        }
      }
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

// Returns the graphs that sizes of an axis choose between, in words: "; graphs by sequence: to 100,
// from 101 (node 'gt' (Greater))". Empty: one for all sizes that are read.
std::string GraphsText(const Graph& graph, const std::vector<ModelAxis>& axes, size_t position) {
  constexpr int64_t kRead = 1024;
  constexpr size_t kShown = 4;
  const ModelAxis& axis = axes[position];
  SizeRegions regions(graph, SmallBinding(axes, position, axis.Fitting(1)));
  // One position broadcasts: it has a graph of its own in most models.
  const auto boundaries = regions.BoundariesAlong(
      axis.symbol, axis.Fitting(2), std::max(kRead, 2 * axis.smallest), axis.step, kShown + 1);
  if (boundaries.empty()) return "";
  std::string text =
      absl::StrCat("; graphs by ", axis.label, ": to ", boundaries.front().from - axis.step);
  for (size_t i = 0; i < std::min(boundaries.size(), kShown); ++i) {
    const auto& [from, node] = boundaries[i];
    absl::StrAppend(&text, ", from ", from);
    if (node != kNone) absl::StrAppend(&text, " (", AxisNodeName(graph, graph.node(node)), ")");
  }
  return boundaries.size() > kShown ? absl::StrCat(text, " and more") : text;
}

// The decisions made by sizes of axes, where some axis is padded while sizes of others decide.
class Decisions {
 public:
  // `buckets`: by axis.
  Decisions(const SizeReadings& readings, const ProofSubject& subject,
            const std::vector<std::vector<int64_t>>& buckets)
      : readings_(readings), subject_(subject), buckets_(buckets) {}

  // Fills in what each of `axes`, which are the subject's, decides. One whose padded sizes decide
  // something that matters to another one loses its certificate.
  void Note(std::vector<ModelAxis>& axes) const {
    const auto certified = [](const ModelAxis& axis) { return axis.certificate.certified; };
    if (!absl::c_any_of(axes, certified)) return;
    for (size_t i = 0; i < axes.size(); ++i) {
      const AxisFinding finding = FindSizeChoices(readings_, i, /*largest=*/0, /*forms=*/true);
      if (finding.proved()) continue;
      const std::string graphs = GraphsText(subject_.graph, axes, i);
      axes[i].decision = {.words = MixingWords(finding)};
      axes[i].certificate.reason += graphs;
      if (!axes[i].certificate.certified) continue;
      axes[i].decision.alike_up_to = LargestPadded(axes, i);
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
    if (FindSizeChoices(readings_, axis, largest, /*forms=*/true).proved()) {
      return absl::OkStatus();
    }
    SizeSlices::Slice slice(axes.size(), SizeSlices::kFree);
    slice[axis] = largest;
    std::vector<int64_t> padded_to;
    for (size_t i = 0; i < axes.size(); ++i) {
      padded_to.push_back(axes[i].certificate.certified ? LargestPadded(axes, i) : 0);
    }
    return SliceProof(subject_, slice, std::move(padded_to)).Run();
  }

  int64_t LargestPadded(const std::vector<ModelAxis>& axes, size_t axis) const {
    return axes[axis].opens_to > 0 ? axes[axis].opens_to
                                   : LargestTaken(axes, subject_.graph, axis, buckets_[axis]);
  }

  const SizeReadings& readings_;
  const ProofSubject& subject_;
  const std::vector<std::vector<int64_t>>& buckets_;
};

}  // namespace

absl::StatusOr<PaddingProof::Findings> PaddingProof::Measure(
    std::vector<ModelAxis>& axes, const Options& options,
    const std::function<absl::Status()>& fit_shapes) {
  const std::vector<std::vector<int64_t>>& buckets = options.buckets;
  Findings findings;
  if (subject_.outputs.empty()) {
    RETURN_IF_ERROR(fit_shapes());
    // All of it lies behind cuts, where nothing is padded.
    for (ModelAxis& axis : axes) {
      if (subject_.no_padding.contains(axis.label)) {
        Refuse(axis, kSwitchedOff);
      } else if (axis.certificate.reason.empty()) {
        axis.certificate = {.axis = axis.label,
                            .certified = true,
                            .proved = true,
                            .reason = "nothing runs in front of the first cut"};
      }
    }
    findings.packed = absl::UnimplementedError("nothing runs in front of the first cut");
    return findings;
  }
  absl::StatusOr<std::vector<InputRange>> ranges = absl::UnknownError("not looked for");
  // Before the smallest sizes of the axes are known, which fitting the shapes finds out meanwhile.
  const ProbeOptions small = PaddingProber::OptionsFor(subject_, subject_.graph, -1);
  RETURN_IF_ERROR(lanes_.ForEach(2, [&](size_t i, const PaddingProber& own) -> absl::Status {
    if (i == 1) return fit_shapes();
    ranges = own.Ranges(small);
    return absl::OkStatus();
  }));
  std::vector<size_t> wanted;
  for (size_t i = 0; i < axes.size(); ++i) {
    ModelAxis& axis = axes[i];
    if (subject_.no_padding.contains(axis.label)) {
      Refuse(axis, kSwitchedOff);
    } else if (!axis.certificate.reason.empty()) {
      continue;  // Its output shapes are no simple function.
    } else if (!ranges.ok()) {
      Refuse(axis, std::string(ranges.status().message()));
    } else {
      wanted.push_back(i);
    }
  }
  if (ranges.ok()) findings.ranges = *ranges;
  std::vector<std::optional<AxisMeasurement::Rest>> rests(axes.size());
  PackedTrial packed(subject_, runners_, findings.ranges);
  if (wanted.size() < axes.size()) packed.GiveUp();
  // One axis knows nothing of the others. A core that has none left tries the packed form, which is
  // in vain where an axis that is still measured gets no certificate.
  const size_t trials = options.try_packed ? 1 : 0;
  RETURN_IF_ERROR(
      lanes_.ForEach(wanted.size() + trials, [&](size_t work, const PaddingProber& own) {
        if (work >= wanted.size()) return packed.Run(own);
        const size_t i = wanted[work];
        AxisMeasurement measurement(subject_, axes[i], i, own, runners_, *ranges, buckets[i]);
        const absl::Status status = measurement.Run();
        if (axes[i].is_batch) RefuseOddOutputs(subject_.output_shapes, i, own, axes[i]);
        if (axes[i].certificate.certified) {
          rests[i] = measurement.rest();
        } else {
          packed.GiveUp();
        }
        return status;
      }));
  RETURN_IF_ERROR(lanes_.ForEach(1, [&](size_t, const PaddingProber& own) {
    RefuseUnprovedProducts(subject_.output_shapes, own, axes);
    return absl::OkStatus();
  }));
  if (ranges.ok()) RETURN_IF_ERROR(OpenFurther(axes, options, *ranges));
  Decisions(lanes_.readings(), subject_, buckets).Note(axes);
  for (const size_t i : wanted) {
    if (!rests[i].has_value() || !axes[i].certificate.certified) continue;
    findings.pending.axes.push_back({i, *std::move(rests[i])});
  }
  if (!findings.pending.axes.empty()) findings.pending.ranges = *ranges;
  findings.packed = packed.result();
  RequestProof request_proof(subject_, runners_);
  const auto refused = [](const ModelAxis& axis) { return !axis.certificate.certified; };
  if (options.try_packed && wanted.size() == axes.size() && absl::c_any_of(axes, refused) &&
      request_proof.applies()) {
    std::vector<int64_t> largest;
    for (size_t i = 0; i < axes.size(); ++i) {
      largest.push_back(LargestTaken(axes, subject_.graph, i, buckets[i]));
    }
    findings.by_request = request_proof.Run(lanes_, *ranges, largest);
  }
  return findings;
}

absl::Status PaddingProof::OpenFurther(std::vector<ModelAxis>& axes, const Options& options,
                                       absl::Span<const InputRange> ranges) {
  if (options.farthest == nullptr) return absl::OkStatus();
  return lanes_.ForEach(axes.size(), [&](size_t i, const PaddingProber& prober) {
    ModelAxis& axis = axes[i];
    if (!axis.certificate.certified || !axis.certificate.proved) return absl::OkStatus();
    const int64_t size = options.farthest(i);
    if (size == 0) return absl::OkStatus();
    AxisFinding finding;
    const bool read =
        WhereMemoryAllows([&] { finding = prober.FindLeak(i, ranges, size, axis.certificate); });
    const bool holds = read && finding.proved() &&
                       finding.needs.Within(NeedsOf(axis.certificate)) &&
                       (finding.shallow.empty() || !axis.certificate.shallow.empty());
    if (!holds || !options.shapes_hold(i, size)) return absl::OkStatus();
    axis.opens_to = size;
    absl::StrAppend(&axis.certificate.reason, "; proved for sizes up to ", size);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::optional<PendingProof>> PaddingProof::Defer(
    std::vector<ModelAxis>& axes, const Options& options,
    const std::function<absl::Status()>& fit_shapes) {
  RETURN_IF_ERROR(fit_shapes());
  for (const ModelAxis& axis : axes) {
    const bool refused =
        !axis.certificate.reason.empty() || subject_.no_padding.contains(axis.label);
    if (!axis.is_batch && !refused) return std::nullopt;
  }
  PendingProof pending = {.whole = true};
  for (ModelAxis& axis : axes) {
    if (subject_.no_padding.contains(axis.label)) {
      Refuse(axis, kSwitchedOff);
    } else if (axis.certificate.reason.empty()) {
      axis.certificate = {.axis = axis.label, .certified = true, .reason = kNotMeasuredYet};
    }
  }
  Decisions(lanes_.readings(), subject_, options.buckets).Note(axes);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].certificate.certified) pending.axes.push_back({.position = i});
  }
  return pending;
}

absl::StatusOr<PaddingProof::AnyMask> PaddingProof::MeasureAnyMask(
    absl::Span<const InputRange> ranges) {
  AnyMask found;
  RETURN_IF_ERROR(lanes_.ForEach(1, [&](size_t, const PaddingProber& prober) -> absl::Status {
    ASSIGN_OR_RETURN(const PackedForm form, runners_.Pack());
    PackingCheck check(form);
    found.holds = prober.Check(
        check, ranges, PaddingProber::OptionsFor(subject_, prober.graph(), form.sequence_axis),
        {.any_mask = true});
    found.answers = check.answers();
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<AxisCertificate> PaddingProof::ConfirmClosely(size_t position,
                                                             const AxisCertificate& certificate,
                                                             bool proved,
                                                             absl::Span<const InputRange> ranges,
                                                             const ProbeOptions& options,
                                                             const PaddingProber& prober) const {
  std::unique_ptr<const WatchedForm> watched;
  if (!proved) {
    ASSIGN_OR_RETURN(watched,
                     WatchedForm::Make(subject_, prober.readings(), runners_, position, options));
  }
  if (watched == nullptr) return prober.Confirm(certificate, ranges, options);
  return watched->prober().Confirm(certificate, ranges, watched->OptionsFrom(options));
}

absl::StatusOr<AxisCertificate> PaddingProof::ConfirmAxis(const PendingProof::Axis& left,
                                                          absl::Span<const InputRange> ranges,
                                                          const PaddingProber& prober) const {
  const auto& [position, rest] = left;
  const ModelAxis& axis = subject_.axes[position];
  ProbeOptions options =
      PaddingProber::OptionsFor(subject_, subject_.graph, static_cast<int>(position));
  if (!rest.padded_sizes.empty()) SetOtherSizes(subject_.axes, position, options);
  options.padded_sizes = rest.padded_sizes;
  options.brief = rest.brief;
  options.sweeps = axis.certificate.proved ? 0 : kSweeps;
  ASSIGN_OR_RETURN(
      AxisCertificate certificate,
      ConfirmClosely(position, axis.certificate, axis.certificate.proved, ranges, options, prober));
  SayWhereItHolds(subject_.axes, position, certificate);
  subject_.log(absl::StrCat(
      "axis ", axis.label,
      !certificate.certified ? absl::StrCat(" is no longer padded: ", certificate.reason)
      : axis.is_batch        ? " may be padded: the same whatever still other rows held"
                             : absl::StrCat(" may be padded to any size: the same at ",
                                            absl::StrJoin(rest.padded_sizes, ", "))));
  return certificate;
}

absl::StatusOr<std::map<size_t, AxisCertificate>> PaddingProof::Confirm(
    const PendingProof& pending) {
  std::map<size_t, AxisCertificate> certificates;
  RETURN_IF_ERROR(lanes_.ForEach(1, [&](size_t, const PaddingProber& prober) -> absl::Status {
    for (const PendingProof::Axis& left : pending.axes) {
      ASSIGN_OR_RETURN(certificates[left.position], ConfirmAxis(left, pending.ranges, prober));
    }
    return absl::OkStatus();
  }));
  return certificates;
}

absl::Status PaddingProof::Extend(size_t position, int64_t size) {
  return lanes_.ForEach(1, [&](size_t, const PaddingProber& prober) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<InputRange> ranges,
                     prober.Ranges(PaddingProber::OptionsFor(subject_, subject_.graph, -1)));
    const AxisCertificate& known = subject_.axes[position].certificate;
    const AxisFinding finding = prober.FindLeak(position, ranges, size, known);
    if (finding.verdict == AxisFinding::Verdict::kMixes) {
      return absl::FailedPreconditionError(MixingWords(finding));
    }
    if (!finding.shallow.empty() && known.shallow.empty()) {
      return absl::FailedPreconditionError(finding.shallow);
    }
    ProbeOptions options =
        PaddingProber::OptionsFor(subject_, subject_.graph, static_cast<int>(position));
    SetOtherSizes(subject_.axes, position, options);
    options.padded_sizes = {size};
    options.sweeps = finding.proved() ? 0 : kSweeps;
    ASSIGN_OR_RETURN(const AxisCertificate found,
                     ConfirmClosely(position, known, finding.proved(), ranges, options, prober));
    return found.certified ? absl::OkStatus() : absl::FailedPreconditionError(found.reason);
  });
}

}  // namespace reprise
