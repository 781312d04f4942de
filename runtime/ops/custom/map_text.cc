#include "runtime/ops/custom/map_text.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace reprise {

absl::StatusOr<MapText::Term> MapText::ParseTerm(absl::string_view text) {
  Term term;
  absl::string_view letters = absl::StripAsciiWhitespace(text);
  term.leads = absl::ConsumePrefix(&letters, "...");
  term.letters = std::string(letters);
  for (const char letter : letters) {
    if (!absl::ascii_isalpha(static_cast<unsigned char>(letter))) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is no list of letters, maybe with '...' in front"));
    }
    if (absl::c_count(letters, letter) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' has the letter '", std::string(1, letter), "' twice"));
    }
  }
  return term;
}

absl::StatusOr<MapText> MapText::Parse(absl::string_view text) {
  const std::vector<absl::string_view> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' has no single '->'"));
  }
  const std::vector<absl::string_view> right = absl::StrSplit(sides[1], '|');
  MapText map;
  for (const absl::string_view term : absl::StrSplit(sides[0], ',')) {
    ASSIGN_OR_RETURN(map.inputs_.emplace_back(), ParseTerm(term));
  }
  ASSIGN_OR_RETURN(map.output_, ParseTerm(right[0]));
  if (right.size() > 2) return absl::InvalidArgumentError(absl::StrCat("'", text, "' has two '|'"));
  if (right.size() == 2) {
    ASSIGN_OR_RETURN(Term mixed, ParseTerm(right[1]));
    if (mixed.leads) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' has '...' after the bar"));
    }
    map.mixed_ = std::move(mixed.letters);
  }
  for (const char letter : map.mixed_) {
    if (!absl::StrContains(map.output_.letters, letter)) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' has the letter '",
                                                     std::string(1, letter),
                                                     "' after the bar, and not before"));
    }
  }
  const auto leads = [](const Term& term) { return term.leads; };
  if (map.output_.leads && !absl::c_any_of(map.inputs_, leads)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has '...' for the output, and for no input"));
  }
  return map;
}

int64_t MapText::DimOfOutput(size_t i, int64_t dim, int64_t rank, int64_t out_rank) const {
  const char letter = inputs_[i].At(dim, rank);
  for (int64_t to = 0; to < out_rank; ++to) {
    const bool leads = letter == '.' && out_rank - std::ssize(output_.letters) - to ==
                                            rank - std::ssize(inputs_[i].letters) - dim;
    if (output_.At(to, out_rank) == letter && (letter != '.' || leads)) return to;
  }
  return -1;
}

void MapText::Apply(MapContext& context) const {
  context.Says("computes by an operator of its own over");
  if (!output_.Fits(context.out_rank())) return context.Unknown();
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    const int64_t rank = context.rank(i);
    if (!Fits(i, rank)) return context.Unknown();
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t to = DimOfOutput(i, d, rank, context.out_rank());
      if (to < 0 || (context.shape(i)[d] == 1 && context.out()[to] != 1)) continue;
      const bool meets = absl::StrContains(mixed_, inputs_[i].At(d, rank));
      const bool parallel = !meets && context.shape(i)[d] == context.out()[to];
      context.Set(i, d, parallel ? Link::kParallel : Link::kMixed, to);
    }
  }
}

absl::Status MapText::SetSizes(InferContext& context) const {
  const InferContext::Output& found = context.outputs()[0];
  if (found.dtype == DType::kUndefined) return absl::OkStatus();
  SizeList shape = found.shape;
  const auto out_rank = static_cast<int64_t>(shape.size());
  if (!output_.Fits(out_rank)) return absl::OkStatus();
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has_input(i) || !Fits(i, context.rank(i))) continue;
    for (int64_t d = 0; d < context.rank(i); ++d) {
      const int64_t to = DimOfOutput(i, d, context.rank(i), out_rank);
      if (to < 0) continue;
      const Size own = context.shape(i)[d];
      if (own.hint() == 1 && shape[to].hint() != 1) continue;  // It broadcasts.
      if (own.hint() != shape[to].hint()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "its map says that dim ", to, " of its output is dim ", d, " of its input ", i,
            ", and they have ", shape[to].hint(), " and ", own.hint(), " places"));
      }
      shape[to] = own;
    }
  }
  context.SetOutput(0, found.dtype, std::move(shape));
  return absl::OkStatus();
}

}  // namespace reprise
