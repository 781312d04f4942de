#include "runtime/certify/axes.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/certify/axis_names.h"
#include "runtime/certify/draw.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// Pairs of sizes to tell symbols apart by. The first suits token models; the others have the
// factors and the room that convolutions with strides want. None is 1, which broadcasts.
constexpr struct { int64_t base, other; } kSizePairs[] = {{7, 11}, {64, 96}, {224, 256}};

// The sizes at which an unnamed dim may be fixed: 1, or 3 for the channels of a picture.
constexpr int64_t kFixedSizes[] = {1, 3};
constexpr size_t kMaxFixed = 2;

// Calls of `accepts` after which a class is taken as it is.
constexpr int kMaxTries = 200;
// And after which no more is tried to find what a symbol follows from.
constexpr int kMaxDerivedTries = 300;

// Multiples of a symbol in what follows from it.
constexpr int64_t kMostSlope = 4;

// A size of the others up to which every size of what may follow from them is tried.
constexpr int64_t kSmallBase = 16;

// The next subset of {0, ..., n-1} of the same size in lexical order; false after the last.
bool NextSubset(std::vector<size_t>& subset, size_t n) {
  const size_t k = subset.size();
  for (size_t i = k; i-- > 0;) {
    if (subset[i] == n - k + i) continue;
    ++subset[i];
    for (size_t j = i + 1; j < k; ++j) subset[j] = subset[j - 1] + 1;
    return true;
  }
  return false;
}

std::vector<size_t> FirstSubset(size_t k) {
  std::vector<size_t> subset(k);
  for (size_t i = 0; i < k; ++i) subset[i] = i;
  return subset;
}

// An expression whose symbols are all known is computed from them; one that has a symbol which
// nothing else gives is an axis of its own.
bool IsDerived(const std::string& symbol, const std::set<std::string>& plain) {
  const std::vector<std::string> symbols = ExpressionSymbols(symbol);
  return !symbols.empty() &&
         absl::c_all_of(symbols, [&](const std::string& one) { return plain.count(one) != 0; });
}

class Merger {
 public:
  Merger(absl::Span<const std::vector<Dim>> inputs,
         const std::function<bool(const SymbolSizes&)>& accepts,
         absl::Span<const int64_t> constant_sizes)
      : inputs_(inputs), accepts_(accepts), constant_sizes_(constant_sizes) {
    std::set<std::string> plain;
    for (const std::vector<Dim>& dims : inputs) {
      for (const Dim& dim : dims) {
        if (ExpressionSymbols(dim.symbol).empty()) plain.insert(dim.symbol);
      }
    }
    for (const std::vector<Dim>& dims : inputs) {
      for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i].is_constant() || IsDerived(dims[i].symbol, plain)) continue;
        if (position_.emplace(dims[i].symbol, i).second) symbols_.push_back(dims[i].symbol);
      }
    }
  }

  MergedSymbols Run() {
    std::vector<std::vector<std::string>> classes;
    if (!symbols_.empty()) {
      if (FindSizes()) {
        tries_ = 0;
        LookBehindOnes();
        classes = FindClasses();
        for (const std::string& symbol : apart_) {
          result_.fixed.erase(symbol);
          classes.push_back({symbol});
        }
      } else {
        result_.note = absl::StrCat("no sizes were found that the model accepts for all of ",
                                    absl::StrJoin(symbols_, ", "), "; none were merged");
        for (const std::string& symbol : symbols_) classes.push_back({symbol});
      }
    }
    MakeAxes(inputs_, symbols_, std::move(classes), result_);
    FindOneRow();
    return std::move(result_);
  }

 private:
  bool Accepts(const std::set<std::string>& at_other) {
    SymbolSizes sizes;
    for (const std::string& symbol : symbols_) {
      sizes[symbol] = at_other.count(symbol) ? other_ : base_;
    }
    return AcceptsSizes(sizes);
  }

  // `sizes`: of symbols_.
  bool AcceptsSizes(SymbolSizes sizes) {
    ++tries_;
    for (const auto& [symbol, size] : result_.fixed) sizes[symbol] = size;
    for (const auto& [symbol, expression] : result_.derived) {
      const absl::StatusOr<int64_t> size = DimSize({.symbol = expression}, sizes);
      if (!size.ok()) return false;
      sizes[symbol] = *size;
    }
    return accepts_(sizes);
  }

  bool AcceptsAllEqual() {
    return Accepts({}) && Accepts(std::set<std::string>(symbols_.begin(), symbols_.end()));
  }

  // Sizes of all symbols that are accepted, those that are fixed or derived left out.
  bool FindSizes() {
    if (AcceptsSomeEqual()) return true;
    const std::vector<std::string> all = symbols_;
    if (FindFixed()) {
      if (!SomeFollow()) return true;
      result_.fixed.clear();
      symbols_ = all;
    }
    return FindDerived();
  }

  // Sizes at which all-equal is accepted.
  bool AcceptsSomeEqual() {
    for (const auto& pair : kSizePairs) {
      base_ = pair.base;
      other_ = pair.other;
      if (AcceptsAllEqual()) return true;
    }
    return false;
  }

  // Sizes of symbols, all of `group` at `size` and the others at the base.
  SymbolSizes SizesWith(const std::vector<std::string>& group, int64_t size) const {
    SymbolSizes sizes;
    for (const std::string& symbol : symbols_) sizes[symbol] = base_;
    for (const std::string& symbol : group) sizes[symbol] = size;
    return sizes;
  }

  // One symbol, or two that are the same, which follow from the others: they leave symbols_.
  bool FindDerived() {
    const int most = tries_ + kMaxDerivedTries;
    for (const auto& pair : kSizePairs) {
      base_ = pair.base;
      other_ = pair.other;
      for (size_t count = 1; count <= std::min<size_t>(2, symbols_.size() - 1); ++count) {
        std::vector<size_t> subset = FirstSubset(count);
        do {
          std::vector<std::string> group;
          // The last first: what comes first in the inputs is more likely what others follow from.
          for (const size_t i : subset) group.push_back(symbols_[symbols_.size() - 1 - i]);
          for (const int64_t size : SizesThatFollow()) {
            if (tries_ >= most) return false;
            if (!AcceptsSizes(SizesWith(group, size))) continue;
            if (IsTheOnly(group, size) && DeriveFrom(group, size)) return true;
          }
        } while (NextSubset(subset, symbols_.size()));
      }
    }
    return false;
  }

  // Where all others have the base's size: one that was accepted, a little more or less, sums,
  // multiples.
  std::vector<int64_t> SizesThatFollow() const {
    std::vector<int64_t> sizes;
    if (seen_to_follow_ > 0) sizes.push_back(seen_to_follow_);
    for (const int64_t added : {1, -1, 2, -2}) sizes.push_back(base_ + added);
    for (const int64_t added : {0, 1, -1}) sizes.push_back(2 * base_ + added);
    for (int64_t slope = 3; slope <= kMostSlope; ++slope) sizes.push_back(slope * base_);
    return sizes;
  }

  // Two sizes of a length that is halved are accepted: it does not follow from its half.
  bool IsTheOnly(const std::vector<std::string>& group, int64_t size) {
    return !AcceptsSizes(SizesWith(group, size - 1)) && !AcceptsSizes(SizesWith(group, size + 1));
  }

  // `group` is accepted at `size` where the others have the base's: as which sum of multiples? Each
  // other symbol, or all that are at its place in the inputs, moves by itself.
  bool DeriveFrom(const std::vector<std::string>& group, int64_t size) {
    std::vector<std::string> others;
    for (const std::string& symbol : symbols_) {
      if (!absl::c_linear_search(group, symbol)) others.push_back(symbol);
    }
    std::map<std::string, int64_t> slopes;
    std::set<std::string> moved;
    int64_t added = size;
    for (const std::string& symbol : others) {
      if (moved.contains(symbol)) continue;
      std::vector<std::string> alone = {symbol}, together;
      for (const std::string& other : others) {
        if (position_[other] == position_[symbol] && !moved.contains(other)) {
          together.push_back(other);
        }
      }
      std::optional<int64_t> slope = SlopeOf(alone, group, size);
      if (!slope.has_value() && together.size() > 1) {
        slope = SlopeOf(together, group, size);
        alone = together;
      }
      if (!slope.has_value()) return false;
      moved.insert(alone.begin(), alone.end());
      if (*slope == 0) continue;
      slopes[symbol] = *slope;
      added -= *slope * base_;
    }
    if (slopes.empty()) return false;
    std::string expression;
    for (const auto& [symbol, slope] : slopes) {
      absl::StrAppend(&expression, expression.empty() ? "" : " + ",
                      slope == 1 ? "" : absl::StrCat(slope, " * "), symbol);
    }
    if (added != 0) absl::StrAppend(&expression, added > 0 ? " + " : " - ", std::abs(added));
    // Names that look like sums, or hold what sums do not, cannot be in one.
    std::vector<std::string> symbols;
    for (const auto& [symbol, slope] : slopes) symbols.push_back(symbol);
    if (ExpressionSymbols(expression) != symbols) return false;
    const std::vector<std::string> before = symbols_;
    for (const std::string& symbol : group) result_.derived[symbol] = expression;
    symbols_ = others;
    if (AcceptsAllEqual()) return true;
    result_.derived.clear();
    symbols_ = before;
    return false;
  }

  // By how much `group` grows with `moving`, both of which have one size each.
  std::optional<int64_t> SlopeOf(const std::vector<std::string>& moving,
                                 const std::vector<std::string>& group, int64_t size) {
    for (int64_t slope = 0; slope <= kMostSlope; ++slope) {
      SymbolSizes sizes = SizesWith(group, size + slope * (other_ - base_));
      for (const std::string& symbol : moving) sizes[symbol] = other_;
      if (AcceptsSizes(std::move(sizes))) return slope;
    }
    return std::nullopt;
  }

  // Whether what was fixed takes another size at others of the rest: then it follows from them, in
  // a way that is not known.
  bool SomeFollow() {
    std::set<int64_t> sizes;
    for (const int64_t size : SizesThatFollow()) sizes.insert(size);
    for (int64_t divisor = 2; divisor <= 32; divisor *= 2) {
      for (const int64_t size : {base_, other_}) {
        sizes.insert({size / divisor, (size + divisor - 1) / divisor, size / divisor + 1});
      }
    }
    const SymbolSizes fixed = result_.fixed;
    const auto accepts = [&](const std::string& symbol, int64_t size, bool all_other) {
      result_.fixed[symbol] = size;
      const bool accepted =
          Accepts(all_other ? std::set<std::string>(symbols_.begin(), symbols_.end())
                            : std::set<std::string>());
      result_.fixed = fixed;
      return accepted;
    };
    for (const auto& [symbol, as_fixed] : fixed) {
      for (const int64_t size : sizes) {
        if (size <= 1 || size == as_fixed || absl::c_linear_search(constant_sizes_, size)) continue;
        if (!accepts(symbol, size, /*all_other=*/false)) continue;
        seen_to_follow_ = size;
        return true;
      }
      // Beside small others any number may be added; a size that they may all change beside is a
      // constant's.
      for (int64_t size = 2; base_ <= kSmallBase && size <= kMostSlope * base_; ++size) {
        if (size == as_fixed || sizes.contains(size) || !accepts(symbol, size, false)) continue;
        if (accepts(symbol, size, /*all_other=*/true)) continue;
        seen_to_follow_ = size;
        return true;
      }
    }
    return false;
  }

  // Sizes at which all-equal is accepted, with as few symbols fixed as it takes.
  bool FindFixed() {
    for (size_t count = 1; count <= std::min(kMaxFixed, symbols_.size()); ++count) {
      for (const auto& pair : kSizePairs) {
        base_ = pair.base;
        other_ = pair.other;
        std::vector<size_t> subset = FirstSubset(count);
        do {
          for (int64_t size : kFixedSizes) {
            result_.fixed.clear();
            for (size_t i : subset) result_.fixed[symbols_[i]] = size;
            if (AcceptsAllEqual()) {
              std::erase_if(symbols_, [&](const std::string& s) { return result_.fixed.count(s); });
              return true;
            }
          }
        } while (NextSubset(subset, symbols_.size()) && tries_ < kMaxTries);
      }
    }
    result_.fixed.clear();
    return false;
  }

  // A symbol may be accepted at 1 because that broadcasts.
  void LookBehindOnes() {
    SymbolSizes ones = result_.fixed;
    std::erase_if(ones, [](const auto& fixed) { return fixed.second != 1; });
    for (const auto& fixed : ones) {
      const std::string& symbol = fixed.first;
      const auto wider = absl::c_find_if(constant_sizes_, [&](int64_t size) {
        result_.fixed[symbol] = size;
        return size > 1 && tries_ < kMaxTries && Accepts({});
      });
      if (wider != constant_sizes_.end() && position_[symbol] > 0) continue;  // It has that size.
      result_.fixed[symbol] = fixed.second;
      if (wider != constant_sizes_.end()) apart_.push_back(symbol);
    }
  }

  // Sizes that deviate together are accepted exactly for unions of classes.
  std::vector<std::vector<std::string>> FindClasses() {
    std::vector<std::vector<std::string>> classes;
    // Most likely the first dims of all inputs are one axis, and so the second ones.
    std::map<size_t, std::vector<std::string>> by_position;
    for (const std::string& symbol : symbols_) by_position[position_[symbol]].push_back(symbol);
    std::vector<std::string> rest;
    for (auto& [position, group] : by_position) {
      if (Accepts({group.begin(), group.end()})) {
        Split(std::move(group), classes);
      } else {
        rest.insert(rest.end(), group.begin(), group.end());
      }
    }
    Split(std::move(rest), classes);
    return classes;
  }

  // Splits a union of classes. Smaller sets are tried first, so one that is accepted is a class.
  void Split(std::vector<std::string> group, std::vector<std::vector<std::string>>& classes) {
    for (size_t count = 1; 2 * count <= group.size();) {
      std::vector<size_t> subset = FirstSubset(count);
      bool found = false;
      do {
        std::set<std::string> part;
        for (size_t i : subset) part.insert(group[i]);
        if (tries_ >= kMaxTries) {
          result_.note = absl::StrCat("whether ", absl::StrJoin(group, ", "),
                                      " are one axis was not tried out to the end");
          classes.push_back(std::move(group));
          return;
        }
        if (!Accepts(part)) continue;
        classes.emplace_back(part.begin(), part.end());
        std::erase_if(group, [&](const std::string& s) { return part.count(s) != 0; });
        found = true;
      } while (!found && NextSubset(subset, group.size()));
      if (!found) ++count;
    }
    if (!group.empty()) classes.push_back(std::move(group));
  }

  void FindOneRow() {
    if (!apart_.empty() || !result_.note.empty() || result_.axes.empty()) return;
    const Axis& batch = result_.axes[0];
    if (!batch.is_batch || batch.symbols.size() < 2) return;
    for (const std::string& symbol : batch.symbols) {
      if (AcceptsSizes(SizesWith({symbol}, 1))) result_.one_row.insert(symbol);
    }
  }

  absl::Span<const std::vector<Dim>> inputs_;
  const std::function<bool(const SymbolSizes&)>& accepts_;
  const absl::Span<const int64_t> constant_sizes_;
  std::vector<std::string> apart_;          // those that are 1 or a constant's size
  std::vector<std::string> symbols_;        // those not derived, in order of the inputs
  std::map<std::string, size_t> position_;  // the dim where a symbol is seen first
  int64_t base_ = 0;
  int64_t other_ = 0;
  int64_t seen_to_follow_ = 0;  // a size of what was fixed first, beside others at the base
  int tries_ = 0;
  MergedSymbols result_;
};

}  // namespace

std::vector<Dim> MergedSymbols::Apply(absl::Span<const Dim> dims) const {
  const auto replace = [&](const std::string& symbol) {
    const auto it = representative.find(symbol);
    return it == representative.end() ? symbol : it->second;
  };
  std::vector<Dim> result(dims.begin(), dims.end());
  for (Dim& dim : result) {
    if (dim.is_constant()) continue;
    if (const auto it = derived.find(dim.symbol); it != derived.end()) dim.symbol = it->second;
    if (const auto it = fixed.find(dim.symbol); it != fixed.end()) {
      dim = {.size = it->second};
    } else if (representative.count(dim.symbol) == 0 && !ExpressionSymbols(dim.symbol).empty()) {
      dim.symbol = ReplaceSymbols(dim.symbol, [&](const std::string& symbol) {
        const auto value = fixed.find(symbol);
        return value == fixed.end() ? replace(symbol) : absl::StrCat(value->second);
      });
      if (const auto size = DimSize(dim, {}); size.ok()) dim = {.size = *size};
    } else {
      dim.symbol = replace(dim.symbol);
    }
  }
  return result;
}

MergedSymbols MergeSymbols(
    absl::Span<const std::vector<Dim>> inputs,
    const std::function<bool(const std::map<std::string, int64_t>&)>& accepts,
    absl::Span<const int64_t> constant_sizes) {
  return Merger(inputs, accepts, constant_sizes).Run();
}

}  // namespace reprise
