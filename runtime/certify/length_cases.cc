#include "runtime/certify/length_cases.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "runtime/graph/extent.h"

namespace reprise {
namespace {

using Patterns = std::vector<MaskPattern>;

// Two rows a case (where there is a batch), over the cases every pattern with a position that
// counts.
const Patterns kPatterns[] = {
    {MaskPattern::kHoles, MaskPattern::kLeftPadded},   {MaskPattern::kOnes, MaskPattern::kOnes},
    {MaskPattern::kRagged, MaskPattern::kAlternating}, {MaskPattern::kOnes, MaskPattern::kRagged},
    {MaskPattern::kLeftPadded, MaskPattern::kHoles},
};
// The same where the first position must count.
const Patterns kPatternsFromFirst[] = {
    {MaskPattern::kHoles, MaskPattern::kFirst},        {MaskPattern::kOnes, MaskPattern::kOnes},
    {MaskPattern::kRagged, MaskPattern::kAlternating}, {MaskPattern::kOnes, MaskPattern::kRagged},
    {MaskPattern::kFirst, MaskPattern::kHoles},
};
const Patterns kWholeRows = {MaskPattern::kOnes};

const Patterns& PatternsOf(size_t number, CountingPlaces level) {
  if (level == CountingPlaces::kAll) return kWholeRows;
  // A span, not the arrays: GCC 12's bounds sanitizer takes the index of a conditional array for 0.
  const absl::Span<const Patterns> patterns =
      level == CountingPlaces::kFirst ? absl::MakeConstSpan(kPatternsFromFirst) : kPatterns;
  return patterns[number % patterns.size()];
}

constexpr double kFloatShifts[] = {-5, 0, 5};

// Which of the padded sizes, in ascending order; or one of a second look.
enum class Place { kBrief, kFirst, kMiddle, kLast, kSecondLook };

// Lengths to try in a padded size: many in the smallest one, which is cheap, first the most telling
// one, so that what does not hold fails at once. Short ones are counted from the smallest length
// that the model takes. A second look pads half of a long size, and all but the first few
// positions: each of these is padding once, so that what adds them up from some place on is seen.
// All sizes are numbers of steps.
std::vector<int64_t> Lengths(int64_t padded, int64_t smallest, Place place) {
  const int64_t less = smallest - 1;
  std::vector<int64_t> lengths;
  switch (place) {
    case Place::kBrief:
      lengths = {less + 5, less + 1};
      break;
    case Place::kFirst:
      lengths = {less + 5, less + 1, less + 2, less + 13, padded - 1};
      break;
    case Place::kMiddle:
      lengths = {padded - 1};
      break;
    case Place::kLast:
      lengths = {padded / 2};
      break;
    case Place::kSecondLook:
      lengths = {padded / 2, less + 5};
      break;
  }
  std::vector<int64_t> usable;
  for (int64_t length : lengths) {
    if (length >= smallest && length < padded && !absl::c_linear_search(usable, length)) {
      usable.push_back(length);
    }
  }
  return usable;
}

}  // namespace

std::vector<LengthCase> FloatMaskCases(const LengthCase& like, CountingPlaces level) {
  std::vector<LengthCase> cases;
  if (level == CountingPlaces::kAll) return cases;  // Floats of all kinds were drawn before.
  for (const size_t number : {0, 4}) {
    LengthCase& c = cases.emplace_back(like);
    c.content = {.patterns = PatternsOf(number, level),
                 .float_masks = true,
                 .counted_ids = level > CountingPlaces::kOne,
                 .seed = 100 + number};
    c.hostile = Hostile::kRandom;
  }
  return cases;
}

std::vector<LengthCase> LengthCases(const ProbeOptions& options, CountingPlaces level,
                                    bool confirming) {
  std::vector<LengthCase> cases;
  // Nothing is padded to the smallest length that the model takes, or less.
  const int64_t smallest = std::max<int64_t>(1, options.smallest);
  std::vector<int64_t> sizes;
  absl::c_copy_if(options.padded_sizes, std::back_inserter(sizes),
                  [&](int64_t size) { return size > smallest; });
  const int64_t step = options.step;
  for (size_t s = 0; s < sizes.size(); ++s) {
    const Place place = confirming             ? Place::kSecondLook
                        : s == 0               ? options.brief ? Place::kBrief : Place::kFirst
                        : s + 1 < sizes.size() ? Place::kMiddle
                                               : Place::kLast;
    const std::vector<int64_t> lengths =
        Lengths(sizes[s] / step, std::max<int64_t>(1, smallest / step), place);
    for (int64_t length : lengths) {
      LengthCase c;
      c.length = length * step;
      c.padded = sizes[s];
      const size_t number = cases.size();
      c.content = {.patterns = PatternsOf(number, level),
                   .float_masks = number % 4 == 3,
                   .fill_ids = number % 2 == 1,
                   .counted_ids = level > CountingPlaces::kOne,
                   .float_shift = kFloatShifts[number % std::size(kFloatShifts)],
                   .seed = number};
      c.hostile = kAllHostile[number % std::size(kAllHostile)];
      cases.push_back(std::move(c));
    }
  }
  for (int i = 0; confirming && !sizes.empty() && i < options.sweeps; ++i) {
    LengthCase c;
    c.padded = sizes.front();
    // Sums over many positions saturate what follows them: the shortest rows show most.
    c.length = i % 4 >= 2 ? smallest : std::max(RoundUpTo(c.padded / 2, step), smallest);
    // Rows of one token alone are quiet: little is enough to be heard beside them.
    c.content = {.patterns = PatternsOf(i, level),
                 .one_id = i % 2 == 0,
                 .counted_ids = level > CountingPlaces::kOne,
                 .seed = static_cast<uint64_t>(300 + i)};
    c.hostile = Hostile::kSweep;
    if (i % 3 == 2) {
      c.content.quiet = true;
      c.hostile = Hostile::kQuiet;
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace reprise
