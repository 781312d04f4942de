#include "runtime/certify/probe_length.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/probe_run.h"

namespace reprise {
namespace {

// A model that takes fewer of the lengths than this was not measured.
constexpr int64_t kLeastCases = 3;

absl::string_view LevelWords(CountingPlaces level) {
  switch (level) {
    case CountingPlaces::kFirst:
      return ", for rows that do not begin with it";
    case CountingPlaces::kAll:
      return ", for rows that hold it nowhere";
    default:
      return "";
  }
}

}  // namespace

LengthProbe::LengthProbe(const Drawer& drawer, absl::Span<const std::string> output_names,
                         const ProbeRunner& runner, const ProbeOptions& options)
    : drawer_(drawer), output_names_(output_names), runner_(runner), options_(options) {
  certificate_.axis = options.axis;
}

absl::Status LengthProbe::Prepare() {
  for (size_t i = 0; i < drawer_.size(); ++i) {
    if (!drawer_.MovingDims(i, options_.axis).empty()) moving_.push_back(i);
  }
  if (moving_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no input has a dim that moves with axis '", options_.axis, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> LengthProbe::Execute(const std::vector<Numbers>& inputs) {
  ++certificate_.runs;
  return RunOnce(runner_, inputs, output_names_.size());
}

absl::Status LengthProbe::Expect(Case& c) {
  if (c.drawn) return absl::OkStatus();
  c.drawn = true;
  SymbolSizes sizes = drawer_.base_sizes();
  sizes[options_.axis] = c.length;
  for (size_t i = 0; i < drawer_.size(); ++i) {
    ASSIGN_OR_RETURN(const Shape shape, drawer_.ShapeAt(i, sizes));
    c.inputs.push_back(drawer_.Draw(i, shape, c.content));
  }
  auto expected = Execute(c.inputs);
  if (!expected.ok()) {
    c.dropped = true;
    if (refusal_.empty()) {
      refusal_ = absl::StrCat("a run at length ", c.length,
                              " failed: ", std::string(expected.status().message()));
    }
    return absl::OkStatus();
  }
  c.expected = *std::move(expected);
  for (const Tensor& output : c.expected) saw_finite_ = saw_finite_ || HasFinite(output);
  told_.Note(c.expected, options_.tolerance);
  return absl::OkStatus();
}

absl::StatusOr<bool> LengthProbe::TakesSize(int64_t padded) {
  if (const auto it = takes_size_.find(padded); it != takes_size_.end()) return it->second;
  SymbolSizes sizes = drawer_.base_sizes();
  sizes[options_.axis] = padded;
  std::vector<Numbers> inputs;
  for (size_t i = 0; i < drawer_.size(); ++i) {
    ASSIGN_OR_RETURN(const Shape shape, drawer_.ShapeAt(i, sizes));
    inputs.push_back(drawer_.Draw(i, shape, {}));
  }
  const auto outputs = Execute(inputs);
  if (!outputs.ok() && refusal_.empty()) {
    refusal_ = absl::StrCat("a run at length ", padded,
                            " failed: ", std::string(outputs.status().message()));
  }
  return takes_size_[padded] = outputs.ok();
}

std::string LengthProbe::Describe(const Case& c, const Free& free, Hostile hostile) const {
  std::vector<std::string> fills;
  for (size_t i : moving_) {
    fills.push_back(free.count(i) ? absl::StrCat(drawer_.name(i), " with ", HostileName(hostile))
                                  : absl::StrCat(drawer_.name(i), " with ", drawer_.Fill(i)));
  }
  return absl::StrCat("length ", c.length, " padded to ", c.padded, ", ",
                      absl::StrJoin(fills, ", "));
}

absl::StatusOr<std::optional<std::string>> LengthProbe::TryCase(Case& c, const Free& free,
                                                                Hostile hostile) {
  RETURN_IF_ERROR(Expect(c));
  if (c.dropped) return std::nullopt;
  SymbolSizes sizes = drawer_.base_sizes();
  sizes[options_.axis] = c.padded;
  std::vector<Numbers> padded;
  for (size_t i = 0; i < drawer_.size(); ++i) {
    ASSIGN_OR_RETURN(const Shape shape, drawer_.ShapeAt(i, sizes));
    Numbers numbers = free.count(i) ? drawer_.DrawHostile(i, shape, hostile, c.content.seed + 500)
                                    : drawer_.DrawFill(i, shape);
    Paste(c.inputs[i], Shape(shape.size(), 0), numbers);
    padded.push_back(std::move(numbers));
  }
  const auto outputs = Execute(padded);
  if (!outputs.ok()) {
    ASSIGN_OR_RETURN(const bool takes_size, TakesSize(c.padded));
    if (takes_size) {
      return absl::StrCat("a padded run failed: ", std::string(outputs.status().message()), " (",
                          Describe(c, free, hostile), ")");
    }
    for (Case& other : cases_) other.dropped = other.dropped || other.padded == c.padded;
    return std::nullopt;
  }
  for (size_t o = 0; o < outputs->size(); ++o) {
    const Tensor& expected = c.expected[o];
    const Tensor& actual = (*outputs)[o];
    const std::string output = absl::StrCat(OutputWords(options_, output_names_[o]), " (",
                                            Describe(c, free, hostile), ")");
    bool fits = expected.shape().size() == actual.shape().size();
    for (size_t d = 0; fits && d < actual.shape().size(); ++d) {
      fits = expected.shape()[d] <= actual.shape()[d];
    }
    if (!fits) {
      return absl::StrCat(output, " has shape ", ShapeToString(actual.shape()),
                          ", which does not hold the unpadded ", ShapeToString(expected.shape()));
    }
    const Shape origin(actual.shape().size(), 0);
    auto words = Differ(expected, actual, origin, options_.tolerance);
    if (words.has_value() && MayBeRounding(expected, actual, origin)) {
      ASSIGN_OR_RETURN(const double usual, UsualSizeOf(o));
      words = Differ(expected, actual, origin, options_.tolerance, usual);
    }
    if (words.has_value()) return absl::StrCat(output, " differs ", *words);
  }
  return std::nullopt;
}

absl::StatusOr<double> LengthProbe::UsualSizeOf(size_t o) {
  constexpr size_t kEnough = 5;
  std::vector<double> sizes;
  for (Case& c : cases_) {
    if (sizes.size() == kEnough) break;
    RETURN_IF_ERROR(Expect(c));
    if (!c.dropped) sizes.push_back(LargestOf(c.expected[o]));
  }
  return UsualSize(std::move(sizes));
}

absl::StatusOr<std::optional<std::string>> LengthProbe::Try(const Free& free) {
  for (size_t i = 0; i < cases_.size(); ++i) {
    if (cases_[i].dropped) continue;
    ASSIGN_OR_RETURN(const std::optional<std::string> wrong,
                     TryCase(cases_[i], free, cases_[i].hostile));
    if (wrong.has_value()) return wrong;
  }
  return std::nullopt;
}

absl::StatusOr<bool> LengthProbe::Holds(const Free& free) {
  const bool hopeless = absl::c_any_of(failed_, [&](const Free& failed) {
    return std::includes(free.begin(), free.end(), failed.begin(), failed.end());
  });
  if (hopeless) return false;
  ASSIGN_OR_RETURN(const std::optional<std::string> wrong, Try(free));
  if (!wrong.has_value()) return true;
  failed_.push_back(free);
  failure_ = *wrong;
  return false;
}

bool LengthProbe::MayBeFloatMask(size_t i) const {
  const std::vector<size_t> dims = drawer_.MovingDims(i, options_.axis);
  const absl::StatusOr<Shape> shape = drawer_.ShapeAt(i, drawer_.base_sizes());
  if (!drawer_.IsFloat(i) || dims.empty() || !shape.ok()) return false;
  return std::all_of(shape->begin() + static_cast<ptrdiff_t>(dims.back()) + 1, shape->end(),
                     [](int64_t size) { return size == 1; });
}

bool LengthProbe::IsBound(size_t i) const {
  return options_.guards.contains(drawer_.name(i)) ||
         (level_ > CountingPlaces::kOne && (!drawer_.IsFloat(i) || MayBeFloatMask(i)));
}

absl::StatusOr<std::optional<LengthProbe::Free>> LengthProbe::FindFree() {
  // Token-wise models need no guard; most others need their masks alone.
  Free all, ids;
  for (size_t i : moving_) {
    if (IsBound(i)) continue;
    all.insert(i);
    if (!drawer_.MaskLike(i)) ids.insert(i);
  }
  std::optional<Free> found;
  for (const Free& guess : {all, ids, Free()}) {
    ASSIGN_OR_RETURN(const bool holds, Holds(guess));
    if (!holds) continue;
    found = guess;
    break;
  }
  if (!found.has_value()) return std::nullopt;
  std::vector<size_t> order = moving_;
  absl::c_stable_sort(order, [&](size_t a, size_t b) { return ids.count(a) > ids.count(b); });
  for (size_t i : order) {
    Free more = *found;
    if (IsBound(i) || !more.insert(i).second) continue;
    ASSIGN_OR_RETURN(const bool holds, Holds(more));
    if (holds) found = std::move(more);
  }
  return found;
}

absl::StatusOr<bool> LengthProbe::ShowsWith(size_t input, const std::vector<MaskPattern>& patterns,
                                            const LengthCase& like, const Free& free) {
  Case c;
  c.length = like.length;
  c.padded = like.padded;
  // The seed is odd: with such a one the numbers that the model compares with are drawn.
  c.content = {.counted_ids = level_ > CountingPlaces::kOne, .seed = 901};
  Drawer::Content own = c.content;
  own.fill_ids = own.float_masks = true;
  own.patterns = patterns;
  SymbolSizes sizes = drawer_.base_sizes();
  sizes[options_.axis] = c.length;
  for (size_t i = 0; i < drawer_.size(); ++i) {
    ASSIGN_OR_RETURN(const Shape shape, drawer_.ShapeAt(i, sizes));
    c.inputs.push_back(drawer_.Draw(i, shape, i == input ? own : c.content));
  }
  c.drawn = true;
  auto expected = Execute(c.inputs);
  if (!expected.ok()) return true;
  c.expected = *std::move(expected);
  ASSIGN_OR_RETURN(const std::optional<std::string> wrong, TryCase(c, free, Hostile::kRandom));
  if (wrong.has_value() || free.empty()) return wrong.has_value();
  // The fill of a request's padding may have a meaning that random values seldom have.
  ASSIGN_OR_RETURN(const std::optional<std::string> filled, TryCase(c, {}, Hostile::kRandom));
  return filled.has_value();
}

absl::StatusOr<CountingPlaces> LengthProbe::NeedOf(size_t input, const Free& free) {
  using enum MaskPattern;
  const Case *first = nullptr, *longer = nullptr, *shortest = nullptr;
  for (const Case& c : cases_) {
    if (c.dropped) continue;
    if (first == nullptr) first = &c;
    if (longer == nullptr && c.length >= 2) longer = &c;
    if (shortest == nullptr || c.length < shortest->length) shortest = &c;
  }
  if (first == nullptr) return CountingPlaces::kNone;
  std::vector<MaskPattern> patterns;
  if (level_ == CountingPlaces::kFirst) patterns = {kLeftPadded};
  if (level_ == CountingPlaces::kAll)
    patterns = {kRagged, kHoles, kLeftPadded, MaskPattern::kFirst};
  for (const MaskPattern pattern : patterns) {
    if (longer == nullptr) break;
    ASSIGN_OR_RETURN(const bool shows, ShowsWith(input, {pattern}, *longer, free));
    if (shows) return level_;
  }
  // A row in which nothing counts, also behind one in which all does. What the ops prove needs no
  // second look.
  struct Look {
    const Case* like;
    std::vector<MaskPattern> rows;
  };
  std::vector<Look> looks = {{first, {kNone}}};
  if (!options_.brief) looks.push_back({shortest, {kOnes, kNone}});
  if (!options_.brief && shortest != first) looks.push_back({shortest, {kNone}});
  for (const Look& look : looks) {
    ASSIGN_OR_RETURN(const bool shows, ShowsWith(input, look.rows, *look.like, free));
    if (shows) return CountingPlaces::kOne;
  }
  return CountingPlaces::kNone;
}

void LengthProbe::Succeed(const Free& free) {
  std::vector<std::string> guards, frees;
  for (size_t i : moving_) {
    (free.count(i) ? frees : guards).push_back(drawer_.name(i));
  }
  std::set<int64_t> sizes;
  for (const Case& c : cases_) {
    if (!c.dropped) sizes.insert(c.padded);
  }
  certificate_.certified = true;
  certificate_.guards = guards;
  certificate_.reason = absl::StrCat(
      "padded to ", absl::StrJoin(sizes, ", "), " no answer changed",
      guards.empty() ? ""
                     : absl::StrCat(", with the fill value in ", absl::StrJoin(guards, ", "),
                                    LevelWords(level_)),
      frees.empty() ? "" : absl::StrCat(", with anything in ", absl::StrJoin(frees, ", ")));
}

void LengthProbe::SetLevel(CountingPlaces level, bool confirming) {
  level_ = level;
  cases_.clear();
  for (LengthCase& plan : LengthCases(options_, level, confirming)) {
    Case& c = cases_.emplace_back();
    static_cast<LengthCase&>(c) = std::move(plan);
  }
  const bool any_float = absl::c_any_of(moving_, [&](size_t i) { return MayBeFloatMask(i); });
  if (any_float && !confirming && !cases_.empty()) {
    for (LengthCase& plan : FloatMaskCases(cases_.front(), level)) {
      static_cast<LengthCase&>(cases_.emplace_back()) = std::move(plan);
    }
  }
  failed_.clear();
}

absl::StatusOr<AxisCertificate> LengthProbe::Run() {
  RETURN_IF_ERROR(Prepare());
  // Requirements on a request's masks are tried only where padding shows without them.
  std::optional<Free> free;
  std::string failure;
  for (const CountingPlaces level :
       {CountingPlaces::kOne, CountingPlaces::kFirst, CountingPlaces::kAll}) {
    SetLevel(level, /*confirming=*/false);
    ASSIGN_OR_RETURN(free, FindFree());
    if (failure.empty()) failure = failure_;
    if (free.has_value()) break;
  }
  const auto ran = absl::c_count_if(cases_, [](const Case& c) { return !c.dropped; });
  if (!free.has_value()) {
    certificate_.reason = failure;
  } else if (ran < std::min<int64_t>(kLeastCases, cases_.size()) || ran == 0) {
    certificate_.reason = refusal_.empty() ? "no length to try" : refusal_;
  } else if (!saw_finite_) {
    certificate_.reason = "no run gave a finite number, so nothing could be compared";
  } else {
    Succeed(*free);
    for (size_t i : moving_) {
      if (free->count(i)) continue;
      ASSIGN_OR_RETURN(const CountingPlaces need, NeedOf(i, *free));
      if (need != CountingPlaces::kNone) certificate_.must_count[drawer_.name(i)] = need;
    }
    const bool found = level_ == CountingPlaces::kOne ||
                       absl::c_any_of(certificate_.must_count,
                                      [&](const auto& one) { return one.second == level_; });
    // It takes several of them to show.
    for (const std::string& guard : certificate_.guards) {
      if (!found) certificate_.must_count[guard] = level_;
    }
  }
  return certificate_;
}

absl::StatusOr<AxisCertificate> LengthProbe::Confirm(const AxisCertificate& certificate) {
  RETURN_IF_ERROR(Prepare());
  certificate_ = certificate;
  CountingPlaces level = CountingPlaces::kOne;
  for (const auto& [input, places] : certificate.must_count) level = std::max(level, places);
  SetLevel(level, /*confirming=*/true);
  Free free;
  for (size_t i : moving_) {
    if (!absl::c_linear_search(certificate.guards, drawer_.name(i))) free.insert(i);
  }
  ASSIGN_OR_RETURN(bool holds, Holds(free));
  if (holds && options_.sweeps > 0) {
    const std::optional<std::string> untold = told_.FirstUntold(output_names_, options_);
    holds = !untold.has_value();
    failure_ = untold.value_or("");
  }
  if (!holds) {
    certificate_.certified = certificate_.proved = false;
    certificate_.guards.clear();
    certificate_.must_count.clear();
    certificate_.together.clear();
    certificate_.reason = failure_;
  } else {
    absl::StrAppend(&certificate_.reason, "; the same at ",
                    absl::StrJoin(options_.padded_sizes, ", "));
  }
  return certificate_;
}

}  // namespace reprise
