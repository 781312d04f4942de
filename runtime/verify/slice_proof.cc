#include "runtime/verify/slice_proof.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/verify/axis_proof.h"
#include "runtime/verify/proof_sizes.h"

namespace reprise {
namespace {

// Length of the other axes, while one is looked at.
constexpr int64_t kLengthInSlice = 5;

absl::Status NotPadded(const ModelAxis& axis, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("axis ", axis.label, " is not padded there: ", why));
}

}  // namespace

SliceProof::SliceProof(const ProofSubject& subject, const SizeSlices::Slice& slice,
                       std::vector<int64_t> largest)
    : subject_(subject), largest_(std::move(largest)) {
  for (size_t i = 0; i < subject.axes.size(); ++i) {
    if (slice[i] == SizeSlices::kFree) {
      axes_.push_back(subject.axes[i]);
      positions_.push_back(i);
    } else {
      fixed_[subject.axes[i].symbol] = slice[i];
    }
  }
}

absl::Status SliceProof::Run() const {
  RETURN_IF_ERROR(CompareOutputs());
  const SizeReadings readings(subject_.graph, axes_, fixed_);
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (IsPadded(i)) RETURN_IF_ERROR(ProveAxis(readings, i));
  }
  return absl::OkStatus();
}

absl::Status SliceProof::ProveAxis(const SizeReadings& readings, size_t position) const {
  const AxisFinding finding = FindLeak(subject_, readings, position, LargestTaken(position));
  return finding.proved() ? absl::OkStatus() : NotPadded(axes_[position], MixingWords(finding));
}

int64_t SliceProof::LargestTaken(size_t position) const {
  for (int64_t size = largest_[positions_[position]]; size > 0; size /= 2) {
    if (size % axes_[position].step != 0) return 0;
    Binding binding = {.axes = fixed_};
    for (size_t i = 0; i < axes_.size(); ++i) {
      binding.axes[axes_[i].symbol] = i == position       ? size
                                      : axes_[i].is_batch ? 1
                                                          : axes_[i].Fitting(kLengthInSlice);
    }
    if (IsTaken(subject_.graph, binding)) return size;
  }
  return 0;
}

absl::Status SliceProof::CompareOutputs() const {
  std::vector<std::string> symbols;
  std::vector<FitRange> ranges;
  for (size_t i = 0; i < axes_.size(); ++i) {
    symbols.push_back(axes_[i].symbol);
    ranges.push_back({.largest = largest_[positions_[i]],
                      .from = axes_[i].smallest,
                      .step = axes_[i].step,
                      .extents = axes_[i].extents});
  }
  absl::StatusOr<OutputFit> fit = absl::UnknownError("not tried");
  std::vector<int64_t> at;  // sizes at which it was fitted, by axis of the model
  for (const int64_t length : kFitLengths) {
    Binding base = {.axes = fixed_};
    at.clear();
    for (const ModelAxis& axis : subject_.axes) {
      const bool fixed = fixed_.contains(axis.symbol);
      if (!fixed) {
        base.axes[axis.symbol] = axis.is_batch ? kFitBatch : axis.Fitting(length);
      }
      at.push_back(base.axes[axis.symbol]);
    }
    fit = FitOutputShapes(subject_.graph, symbols, base, ranges);
    if (fit.ok()) break;
  }
  if (!fit.ok()) return absl::FailedPreconditionError(fit.status().message());
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!IsPadded(i)) continue;
    if (!fit->refusals[i].empty()) return NotPadded(axes_[i], fit->refusals[i]);
    if (fit->smallest[i] > axes_[i].smallest) {
      return NotPadded(axes_[i], absl::StrCat("the model takes sizes from ", fit->smallest[i],
                                              " on, and from ", axes_[i].smallest, " elsewhere"));
    }
  }
  std::vector<int64_t> free;
  for (const size_t position : positions_) free.push_back(at[position]);
  for (size_t output = 0; output < fit->outputs.size(); ++output) {
    const std::vector<AffineDim>& dims = fit->outputs[output].dims;
    const std::vector<AffineDim>& known = subject_.output_shapes[output].dims;
    const std::string& name = subject_.outputs[output];
    if (dims.size() != known.size()) {
      return absl::FailedPreconditionError(absl::StrCat("output '", name, "' has rank ",
                                                        dims.size(), " there, and ", known.size(),
                                                        " elsewhere"));
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      bool same = known[d].open || dims[d].At(free) == known[d].At(at);
      same = same && known[d].products.empty();
      for (size_t i = 0; i < axes_.size() && same; ++i) {
        if (!IsPadded(i)) continue;
        same = dims[d].factors[i] == known[d].factors[positions_[i]] &&
               dims[d].ExtentOf(i) == known[d].ExtentOf(positions_[i]);
        if (axes_[i].is_batch && dims[d].MovesWith(i)) same = same && dims[d].IsAxis(i);
      }
      if (same) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "dim ", d, " of output '", name, "' grows there in another way than elsewhere"));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise
