#include "runtime/certify/probe_batch.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/probe_run.h"

namespace reprise {
namespace {

// Rows of the batches tried: a request of two rows and one of one row, among others.
constexpr int64_t kSmallBatch = 3;
constexpr int64_t kLargeBatch = 5;

// A sweep adds these to its random floats: logarithms and roots see no number below 0, and a
// maximum with a bounded function none above it.
constexpr double kSweepShifts[] = {0, 3, -3, 0.5, -1};

Shape At(const std::vector<size_t>& dims, size_t rank, int64_t offset) {
  Shape start(rank, 0);
  for (size_t d : dims) start[d] = offset;
  return start;
}

}  // namespace

BatchProbe::BatchProbe(const Drawer& drawer, absl::Span<const std::string> output_names,
                       const ProbeRunner& runner, const ProbeOptions& options)
    : drawer_(drawer), output_names_(output_names), runner_(runner), options_(options) {
  certificate_.axis = options.axis;
}

absl::Status BatchProbe::Prepare() {
  bool any = false;
  for (size_t i = 0; i < drawer_.size(); ++i) {
    row_dims_.push_back(drawer_.MovingDims(i, options_.axis));
    any = any || !row_dims_.back().empty();
  }
  if (any) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no input has a dim that moves with axis '", options_.axis, "'"));
}

absl::StatusOr<std::vector<Tensor>> BatchProbe::Execute(const std::vector<Numbers>& inputs) {
  ++certificate_.runs;
  return RunOnce(runner_, inputs, output_names_.size());
}

absl::StatusOr<BatchProbe::Request> BatchProbe::Alone(int64_t rows,
                                                      const Drawer::Content& content) {
  Request request;
  request.rows = rows;
  SymbolSizes sizes = drawer_.base_sizes();
  sizes[options_.axis] = rows;
  for (size_t i = 0; i < drawer_.size(); ++i) {
    ASSIGN_OR_RETURN(const Shape shape, drawer_.ShapeAt(i, sizes));
    // An input without rows is the same for all requests of a batch.
    Drawer::Content drawn = content;
    if (row_dims_[i].empty()) drawn.seed = 0;
    request.inputs.push_back(drawer_.Draw(i, shape, drawn));
  }
  ASSIGN_OR_RETURN(request.expected, Execute(request.inputs));
  for (const Tensor& output : request.expected) saw_finite_ = saw_finite_ || HasFinite(output);
  if (rows == 1) told_.Note(request.expected, options_.tolerance);
  return request;
}

absl::StatusOr<std::vector<size_t>> BatchProbe::RowDims(size_t o, const Request& request,
                                                        const Tensor& batch, int64_t total) const {
  const Shape& alone = request.expected[o].shape();
  const Shape& shape = batch.shape();
  const auto refuse = [&] {
    return absl::FailedPreconditionError(absl::StrCat(
        OutputWords(options_, output_names_[o]), " has shape ", ShapeToString(alone), " for ",
        request.rows, request.rows == 1 ? " row" : " rows", " and ", ShapeToString(shape), " for ",
        total, ": a dim that moves with the batch, but not by one a row"));
  };
  if (alone.size() != shape.size()) return refuse();
  std::vector<size_t> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (alone[d] == shape[d]) continue;
    if (alone[d] != request.rows || shape[d] != total) return refuse();
    dims.push_back(d);
  }
  return dims;
}

double BatchProbe::UsualSizeOf(size_t o) {
  constexpr uint64_t kDraws = 5, kFirstSeed = 900;
  std::vector<double> sizes;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const auto request = Alone(1, {.patterns = {MaskPattern::kRagged}, .seed = kFirstSeed + i});
    if (request.ok()) sizes.push_back(LargestOf(request->expected[o]));
  }
  return UsualSize(std::move(sizes));
}

absl::StatusOr<std::optional<std::string>> BatchProbe::TryBatch(
    int64_t total, const std::vector<const Request*>& requests, const std::vector<int64_t>& offsets,
    std::optional<Hostile> hostile, uint64_t seed) {
  SymbolSizes sizes = drawer_.base_sizes();
  sizes[options_.axis] = total;
  std::vector<Numbers> inputs;
  for (size_t i = 0; i < drawer_.size(); ++i) {
    ASSIGN_OR_RETURN(const Shape shape, drawer_.ShapeAt(i, sizes));
    Numbers numbers = hostile.has_value() ? drawer_.DrawHostile(i, shape, *hostile, seed)
                                          : drawer_.DrawFill(i, shape);
    for (size_t r = 0; r < requests.size(); ++r) {
      Paste(requests[r]->inputs[i], At(row_dims_[i], shape.size(), offsets[r]), numbers);
    }
    inputs.push_back(std::move(numbers));
  }
  const std::string mates =
      absl::StrCat("a batch of ", total, ", other rows with ",
                   hostile.has_value() ? std::string(HostileName(*hostile)) : "fill values");
  const auto outputs = Execute(inputs);
  if (!outputs.ok()) {
    return absl::StrCat("a run of ", mates, " failed: ", std::string(outputs.status().message()));
  }
  for (size_t o = 0; o < outputs->size(); ++o) {
    for (size_t r = 0; r < requests.size(); ++r) {
      const Tensor& batch = (*outputs)[o];
      const auto dims = RowDims(o, *requests[r], batch, total);
      if (!dims.ok()) return std::string(dims.status().message());
      const Tensor& expected = requests[r]->expected[o];
      const Shape at = At(*dims, batch.shape().size(), offsets[r]);
      auto words = Differ(expected, batch, at, options_.tolerance);
      if (words.has_value() && MayBeRounding(expected, batch, at)) {
        words = Differ(expected, batch, at, options_.tolerance, UsualSizeOf(o));
      }
      if (words.has_value()) {
        return absl::StrCat(OutputWords(options_, output_names_[o]), " of a request of ",
                            requests[r]->rows, requests[r]->rows == 1 ? " row" : " rows",
                            " differs in ", mates, " ", *words);
      }
    }
  }
  return std::nullopt;
}

// Each round has contents and hostile mates of its own, and one batch that is filled up with fill
// values, as a lone request is.
absl::StatusOr<std::optional<std::string>> BatchProbe::TryRound(const Round& round, uint64_t seed) {
  Drawer::Content content = {
      .patterns = round.patterns, .float_masks = round.float_masks, .seed = seed};
  const auto two = Alone(2, content);
  ++content.seed;
  const auto one = Alone(1, content);
  for (const auto* request : {&two, &one}) {
    if (!request->ok()) {
      return absl::StrCat("a run failed: ", std::string(request->status().message()));
    }
  }
  ASSIGN_OR_RETURN(std::optional<std::string> wrong,
                   seed == 0 ? TryBatch(kSmallBatch, {&*one, &*two}, {0, 1}, std::nullopt, seed)
                             : TryBatch(kLargeBatch, {&*two}, {0}, std::nullopt, seed));
  for (size_t i = 0; !wrong.has_value() && i < round.hostile.size(); ++i) {
    const std::vector<int64_t> offsets =
        i == 0 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{3, 0};
    ASSIGN_OR_RETURN(wrong,
                     TryBatch(kLargeBatch, {&*two, &*one}, offsets, round.hostile[i], seed + 700));
  }
  return wrong;
}

absl::StatusOr<std::optional<std::string>> BatchProbe::TrySweeps() {
  for (int i = 0; i < options_.sweeps; ++i) {
    constexpr uint64_t kFirstSeed = 300;
    Drawer::Content content = {.patterns = {MaskPattern::kRagged, MaskPattern::kOnes},
                               .float_shift = kSweepShifts[i % std::size(kSweepShifts)],
                               .seed = kFirstSeed + 2 * static_cast<uint64_t>(i)};
    content.quiet = i % 3 == 2;
    if (content.quiet) content.float_shift = 0;
    const auto two = Alone(2, content);
    ++content.seed;
    const auto one = Alone(1, content);
    // Contents that the model does not take show nothing.
    if (!two.ok() || !one.ok()) continue;
    const Hostile hostile =
        content.quiet ? Hostile::kQuiet : kAllHostile[i % std::size(kAllHostile)];
    const std::vector<int64_t> offsets =
        i % 2 == 0 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{3, 1};
    ASSIGN_OR_RETURN(const std::optional<std::string> wrong,
                     TryBatch(kLargeBatch, {&*two, &*one}, offsets, hostile, content.seed));
    if (wrong.has_value()) return wrong;
  }
  if (options_.sweeps == 0) return std::nullopt;
  return told_.FirstUntold(output_names_, options_);
}

std::vector<BatchProbe::Round> BatchProbe::BriefRounds() {
  return {{{MaskPattern::kRagged, MaskPattern::kOnes}, false, {Hostile::kHigh}}};
}

std::vector<BatchProbe::Round> BatchProbe::AllRounds() {
  return {{{MaskPattern::kRagged, MaskPattern::kOnes},
           false,
           {Hostile::kHigh, Hostile::kRandom, Hostile::kSmall}},
          {{MaskPattern::kHoles, MaskPattern::kLeftPadded}, true, {Hostile::kLow, Hostile::kOne}}};
}

absl::StatusOr<std::optional<std::string>> BatchProbe::TryRounds(absl::Span<const Round> rounds) {
  for (size_t i = 0; i < rounds.size(); ++i) {
    ASSIGN_OR_RETURN(const std::optional<std::string> wrong, TryRound(rounds[i], 2 * i));
    if (wrong.has_value()) return wrong;
  }
  return std::nullopt;
}

absl::StatusOr<AxisCertificate> BatchProbe::Run() {
  RETURN_IF_ERROR(Prepare());
  ASSIGN_OR_RETURN(const std::optional<std::string> wrong,
                   TryRounds(options_.brief ? BriefRounds() : AllRounds()));
  if (wrong.has_value()) {
    certificate_.reason = *wrong;
  } else if (!saw_finite_) {
    certificate_.reason = "no run gave a finite number, so nothing could be compared";
  } else {
    certificate_.certified = true;
    certificate_.reason = absl::StrCat("in batches of ", kSmallBatch, " and ", kLargeBatch,
                                       " rows no answer changed, whatever the other rows held");
  }
  return certificate_;
}

absl::StatusOr<AxisCertificate> BatchProbe::Confirm(const AxisCertificate& certificate) {
  RETURN_IF_ERROR(Prepare());
  certificate_ = certificate;
  std::optional<std::string> wrong;
  if (options_.brief) {
    ASSIGN_OR_RETURN(wrong, TryRounds(AllRounds()));
  }
  if (!wrong.has_value() && options_.sweeps > 0) {
    ASSIGN_OR_RETURN(wrong, TrySweeps());
  }
  for (size_t i = 0; !wrong.has_value() && i < options_.padded_sizes.size(); ++i) {
    const int64_t total = options_.padded_sizes[i];
    if (total < 2) continue;
    const auto one = Alone(1, {.patterns = {MaskPattern::kRagged}, .seed = 11});
    if (!one.ok()) {
      wrong = absl::StrCat("a run failed: ", std::string(one.status().message()));
    } else {
      ASSIGN_OR_RETURN(wrong, TryBatch(total, {&*one}, {total - 1}, Hostile::kHigh, 12));
    }
  }
  if (wrong.has_value()) {
    certificate_.certified = certificate_.proved = false;
    certificate_.reason = *wrong;
  }
  return certificate_;
}

}  // namespace reprise
