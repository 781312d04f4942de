#include "runtime/verify/padding_proof.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/parallel_for.h"
#include "runtime/passes/read/size_regions.h"
#include "runtime/verify/padding_leak.h"
#include "runtime/verify/proof_sizes.h"
#include "runtime/verify/slice_proof.h"

namespace reprise {
namespace {

constexpr char kSwitchedOff[] = "padding along this axis is switched off in config.pbtxt";

// Refuses a batch whose rows are not rows of all outputs.
void RefuseOddOutputs(const ProofSubject& subject, size_t batch, ModelAxis& axis) {
  const std::vector<OutputShape>& outputs = subject.output_shapes;
  if (!axis.certificate.certified) return;
  for (size_t output = 0; output < outputs.size(); ++output) {
    for (const AffineDim& dim : outputs[output].dims) {
      if (!dim.MovesWith(batch) || dim.IsAxis(batch)) continue;
      Refuse(axis, absl::StrCat("a dim of output '", subject.outputs[output],
                                "' does not grow by one a row"));
    }
  }
}

// Dims that became one are cut from answers where the ops show along each of them that a request's
// elements lie in front.
void RefuseUnprovedProducts(const ProofSubject& subject, std::vector<ModelAxis>& axes) {
  const std::vector<OutputShape>& outputs = subject.output_shapes;
  for (size_t output = 0; output < outputs.size(); ++output) {
    for (const AffineDim& dim : outputs[output].dims) {
      for (const AffineDim::Product& product : dim.products) {
        ModelAxis &first = axes[product.first], &second = axes[product.second];
        const bool proved = first.certificate.certified && second.certificate.certified;
        for (ModelAxis* axis : {&first, &second}) {
          if (proved || !axis->certificate.certified) continue;
          Refuse(*axis,
                 absl::StrCat("a dim of output '", subject.outputs[output],
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

void PaddingProof::Prove(std::vector<ModelAxis>& axes, const Options& options) const {
  const std::vector<std::vector<int64_t>>& buckets = options.buckets;
  const bool all_cut = subject_.outputs.empty();
  std::vector<size_t> wanted;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (subject_.no_padding.contains(axes[i].label)) {
      Refuse(axes[i], kSwitchedOff);
    } else if (!axes[i].certificate.reason.empty()) {
      continue;  // Its output shapes are no simple function.
    } else if (all_cut) {
      axes[i].certificate = {.axis = axes[i].label,
                             .certified = true,
                             .reason = "nothing runs in front of the first cut"};
    } else {
      wanted.push_back(i);
    }
  }
  if (all_cut) return;
  // One axis knows nothing of the others.
  ForEach(wanted.size(), [&](size_t work) { ProveOne(axes[wanted[work]], wanted[work], options); });
  RefuseUnprovedProducts(subject_, axes);
  Decisions(readings_, subject_, buckets).Note(axes);
}

void PaddingProof::ForEach(size_t count, const std::function<void(size_t)>& work) const {
  const size_t lanes = std::max<size_t>(std::min(count, static_cast<size_t>(threads_)), 1);
  std::atomic<size_t> next{0};
  ParallelFor(static_cast<int>(lanes), [&](int) {
    for (size_t i; (i = next++) < count;) work(i);
  });
}

void PaddingProof::ProveOne(ModelAxis& axis, size_t position, const Options& options) const {
  const int64_t largest =
      LargestTaken(subject_.axes, subject_.graph, position, options.buckets[position]);
  const int64_t far = options.farthest == nullptr ? 0 : options.farthest(position);
  AxisFinding finding;
  // As far as buckets may open; where that is too far, up to the largest that there is.
  bool opens = far > largest &&
               WhereMemoryAllows([&] { finding = FindLeak(subject_, readings_, position, far); });
  const bool refused = opens && finding.at_any_size;
  opens = opens && finding.proved() && options.shapes_hold(position, far);
  if (!opens && !refused) finding = FindLeak(subject_, readings_, position, largest);
  axis.certificate = CertificateOf(subject_, position, finding);
  if (axis.is_batch) RefuseOddOutputs(subject_, position, axis);
  if (!opens || !axis.certificate.certified) return;
  axis.opens_to = far;
  absl::StrAppend(&axis.certificate.reason, "; for sizes up to ", far);
}

absl::Status PaddingProof::Extend(size_t position, int64_t size) const {
  const AxisFinding finding = FindLeak(subject_, readings_, position, size);
  return finding.proved() ? absl::OkStatus() : absl::FailedPreconditionError(MixingWords(finding));
}

absl::Status PaddingProof::ProvePacking(const Graph* by_request, size_t sequence,
                                        int64_t largest) const {
  const auto batch = static_cast<size_t>(subject_.batch_axis);
  if (by_request == nullptr) {
    const AxisCertificate& rows = subject_.axes[batch].certificate;
    if (!rows.certified) return absl::FailedPreconditionError(rows.reason);
  } else {
    const SizeReadings readings(*by_request, subject_.axes);
    const AxisFinding rows = FindPaddingLeak({.readings = readings, .position = batch});
    if (!rows.proved()) return absl::FailedPreconditionError(MixingWords(rows));
  }
  // Rows of one request may be apart, however many it has.
  const AxisFinding counts = FindSizeChoices(readings_, batch);
  if (!counts.proved()) return absl::FailedPreconditionError(MixingWords(counts));
  const AxisFinding sizes = FindSizeChoices(readings_, sequence, largest);
  return sizes.proved() ? absl::OkStatus() : absl::FailedPreconditionError(MixingWords(sizes));
}

}  // namespace reprise
