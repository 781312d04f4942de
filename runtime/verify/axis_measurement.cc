#include "runtime/verify/axis_measurement.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/verify/padding_leak.h"
#include "runtime/verify/probe_sizes.h"

namespace reprise {
namespace {

using Verdict = AxisFinding::Verdict;

// Most rows of a batch that is probed, before a look at the largest bucket.
constexpr int64_t kProbedRows = 5;
// Rows of the batches in which a length is looked at for a second time.
constexpr int64_t kOtherRows = 3;
// The size that a brief look pads to, where the model takes it.
constexpr int64_t kBriefSize = 8;

}  // namespace

AxisMeasurement::AxisMeasurement(const ProofSubject& subject, ModelAxis& axis, size_t position,
                                 const PaddingProber& prober, ProofRunners& runners,
                                 absl::Span<const InputRange> ranges,
                                 const std::vector<int64_t>& buckets)
    : subject_(subject),
      axis_(axis),
      position_(position),
      prober_(prober),
      runners_(runners),
      ranges_(ranges),
      largest_(LargestTaken(subject.axes, prober.graph(), position, buckets)),
      options_(PaddingProber::OptionsFor(subject, prober.graph(), static_cast<int>(position))),
      guess_(Guess()),
      guessed_(Ask(guess_)) {}

AxisCertificate AxisMeasurement::Guess() const {
  AxisCertificate guess = {.axis = axis_.label, .certified = true};
  const std::vector<std::string> bound(options_.guards.begin(), options_.guards.end());
  if (!axis_.is_batch) guess.guards = prober_.WithMasks(axis_.symbol, ranges_, bound);
  return guess;
}

AxisFinding AxisMeasurement::Ask(const AxisCertificate& certificate) const {
  return prober_.FindLeak(position_, ranges_, largest_, certificate);
}

// Small lengths are looked at here in any case, so the model must take them.
bool AxisMeasurement::MayFollow() const {
  if (!subject_.confirm_later) return false;
  if (axis_.is_batch) return guessed_.proved();
  const auto takes = [&](int64_t size) {
    return IsTaken(prober_.graph(), SmallBinding(subject_.axes, position_, size));
  };
  return takes(options_.padded_sizes[0]) && takes(axis_.Fitting(1));
}

absl::Status AxisMeasurement::Look() {
  ASSIGN_OR_RETURN(axis_.certificate, Measuring().Probe(ranges_, OptionsOf(options_)));
  axis_.certificate.axis = axis_.label;
  const bool as_guessed = axis_.certificate.certified && axis_.certificate.guards == guess_.guards;
  finding_ = as_guessed ? guessed_ : Ask(axis_.certificate);
  return absl::OkStatus();
}

// Runs are most of what a load takes: where the ops prove the axis, a few are enough to begin with,
// if the others follow behind.
absl::Status AxisMeasurement::FirstLook() {
  std::vector<int64_t>& sizes = options_.padded_sizes;
  const bool may_follow = MayFollow();
  if (may_follow && !axis_.is_batch) {
    later_.assign(sizes.begin() + 1, sizes.end());
    sizes.resize(1);
  }
  const std::vector<int64_t> first = sizes;
  options_.brief = may_follow && guessed_.proved();
  if (options_.brief && !axis_.is_batch && sizes[0] > kBriefSize &&
      axis_.Fitting(kBriefSize) == kBriefSize &&
      IsTaken(prober_.graph(), SmallBinding(subject_.axes, position_, kBriefSize))) {
    sizes = {kBriefSize};
  }
  RETURN_IF_ERROR(Look());
  if (options_.brief && !(axis_.certificate.certified && finding_.proved())) {
    options_.brief = false;
    sizes = first;
    RETURN_IF_ERROR(Look());
  }
  if (options_.brief && !axis_.is_batch) later_.insert(later_.begin(), first[0]);
  if (axis_.is_batch ? options_.brief : may_follow) rest_ = Rest();
  return absl::OkStatus();
}

// Ids whose padding was free may be told apart by what follows, ones that nobody drew.
absl::Status AxisMeasurement::GuardIds() {
  if (axis_.is_batch || !axis_.certificate.certified || finding_.verdict != Verdict::kMixes) {
    return absl::OkStatus();
  }
  options_.guards = prober_.MovingInputs(axis_.symbol);
  ASSIGN_OR_RETURN(AxisCertificate guarded, prober_.Probe(ranges_, options_));
  guarded.axis = axis_.label;
  const AxisFinding again = Ask(guarded);
  if (guarded.certified && again.verdict != Verdict::kMixes) {
    axis_.certificate = std::move(guarded);
    finding_ = again;
  }
  return absl::OkStatus();
}

// Where the ops do not decide, answers may be too coarse to show what padding changes.
absl::Status AxisMeasurement::Watch() {
  if (!axis_.certificate.certified || finding_.verdict != Verdict::kUndecided) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(watched_,
                   WatchedForm::Make(subject_, prober_.readings(), runners_, position_, options_));
  return watched_ == nullptr ? absl::OkStatus() : Look();
}

const PaddingProber& AxisMeasurement::Measuring() const {
  return watched_ == nullptr ? prober_ : watched_->prober();
}

ProbeOptions AxisMeasurement::OptionsOf(const ProbeOptions& options) const {
  return watched_ == nullptr ? options : watched_->OptionsFrom(options);
}

// Adds the demands of the ops on the rows of the masks.
void AxisMeasurement::AskOfMasks() {
  AxisCertificate& certificate = axis_.certificate;
  if (axis_.is_batch || !certificate.certified) return;
  AxisCertificate bound = certificate;
  bound.guards = prober_.WithMasks(axis_.symbol, ranges_, bound.guards);
  if (bound.guards != certificate.guards) {
    AxisFinding asked = Ask(bound);
    const bool deeper =
        !finding_.shallow.empty() && asked.shallow.empty() && asked.verdict <= finding_.verdict;
    if (deeper || !asked.needs.Within(finding_.needs)) {
      certificate.guards = bound.guards;
      asked.needs.Join(finding_.needs);
      if (deeper) {
        finding_ = std::move(asked);
      } else {
        finding_.needs = std::move(asked.needs);
      }
    }
  }
  certificate.together = finding_.needs.together;
  for (const ProbeInput& input : subject_.inputs) {
    if (input.live) certificate.together.erase(input.name);  // No client sends it.
  }
  if (finding_.needs.places == CountingPlaces::kNone) return;
  for (const std::string& mask : prober_.MaskGuards(ranges_, certificate)) {
    CountingPlaces& places = certificate.must_count[mask];
    places = std::max(places, finding_.needs.places);
  }
}

// Where the ops do not decide, more contents are tried, for lengths in batches of another size too:
// a sum over the rows of one batch may happen to be what padding does not change.
absl::Status AxisMeasurement::Sweep() {
  AxisCertificate& certificate = axis_.certificate;
  if (!certificate.certified || finding_.verdict != Verdict::kUndecided) return absl::OkStatus();
  ProbeOptions closer = options_;
  closer.padded_sizes.resize(axis_.is_batch ? 0 : 1);
  closer.sweeps = kSweeps;
  RETURN_IF_ERROR(SweepWith(closer));
  if (axis_.is_batch || subject_.batch_axis < 0 || !certificate.certified) return absl::OkStatus();
  closer.sizes[options_.batch_axis] = kOtherRows;
  return SweepWith(closer);
}

absl::Status AxisMeasurement::SweepWith(const ProbeOptions& options) {
  AxisCertificate& certificate = axis_.certificate;
  ASSIGN_OR_RETURN(AxisCertificate looked,
                   Measuring().Confirm(certificate, ranges_, OptionsOf(options)));
  certificate.runs = looked.runs;
  if (!looked.certified) certificate = std::move(looked);
  return absl::OkStatus();
}

// Joins the verdict of the ops on the axis with what was measured.
void AxisMeasurement::Join() {
  AxisCertificate& certificate = axis_.certificate;
  certificate.mixing = finding_.proved() ? "" : MixingWords(finding_);
  if (!certificate.certified) {
    if (certificate.mixing.empty()) return;
    certificate.reason = absl::StrCat(certificate.mixing, "; ", certificate.reason);
    return;
  }
  certificate.proved = finding_.proved();
  const bool whole_rows = absl::c_any_of(
      certificate.must_count, [](const auto& one) { return one.second == CountingPlaces::kAll; });
  if (!certificate.proved && whole_rows) {
    // Rows of one kind show too little.
    certificate.certified = false;
    certificate.must_count.clear();
    certificate.together.clear();
    certificate.reason =
        absl::StrCat("only rows without the fill value could be padded, and ", certificate.mixing);
    return;
  }
  if (certificate.proved) {
    certificate.reason =
        absl::StrCat("no node lets a position see the padding behind it; ", certificate.reason);
  } else if (finding_.verdict == Verdict::kMixes) {
    // Mixing that no answer showed may yet show for other contents.
    certificate.certified = false;
    certificate.reason =
        absl::StrCat(certificate.mixing, ", although the measurement saw no difference");
  } else {
    absl::StrAppend(&certificate.reason, "; measured, not proved: ", certificate.mixing);
  }
  if (certificate.certified && !finding_.shallow.empty()) {
    absl::StrAppend(&certificate.reason, "; packed or exact, never padded, since ",
                    finding_.shallow);
  }
}

void AxisMeasurement::SayInWhichSteps() {
  if (axis_.step == 1) return;
  absl::StrAppend(&axis_.certificate.reason, "; sizes that are no multiples of ", axis_.step,
                  " are not padded");
}

absl::Status AxisMeasurement::SayWhatHelps() {
  if (axis_.is_batch) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string line,
                   prober_.FillThatHelps(position_, ranges_, largest_, options_));
  if (!line.empty()) absl::StrAppend(&axis_.certificate.reason, "; ", line);
  return absl::OkStatus();
}

// Long sizes, here or behind readiness.
absl::Status AxisMeasurement::LookFurther() {
  const std::vector<int64_t>& sizes = options_.padded_sizes;
  int64_t measured = later_.empty() ? sizes.back() : later_.back();
  // A probe of the batch looks at few rows.
  if (axis_.is_batch) measured = axis_.certificate.proved ? largest_ : kProbedRows;
  if (largest_ > measured) later_.push_back(largest_);
  if (rest_.has_value()) {
    rest_ = {
        .proved_to = axis_.certificate.proved ? std::numeric_limits<int64_t>::max() : sizes.back(),
        .brief = options_.brief,
        .padded_sizes = std::move(later_)};
  } else if (!later_.empty()) {
    SetOtherSizes(subject_.axes, position_, options_);
    options_.padded_sizes = later_;
    ASSIGN_OR_RETURN(axis_.certificate,
                     Measuring().Confirm(axis_.certificate, ranges_, OptionsOf(options_)));
  }
  return absl::OkStatus();
}

absl::Status AxisMeasurement::Run() {
  RETURN_IF_ERROR(FirstLook());
  RETURN_IF_ERROR(GuardIds());
  RETURN_IF_ERROR(Watch());
  AskOfMasks();
  RETURN_IF_ERROR(Sweep());
  Join();
  axis_.certificate.masks = prober_.MasksAmong(axis_.certificate.guards, ranges_);
  // A measurement may have left out guards that the ops make masks of.
  const bool as_measured = axis_.certificate.certified || !finding_.shallow.empty();
  axis_.certificate.shallow = as_measured ? finding_.shallow : guessed_.shallow;
  if (axis_.certificate.certified) {
    SayInWhichSteps();
    return LookFurther();
  }
  rest_.reset();
  return SayWhatHelps();
}

}  // namespace reprise
