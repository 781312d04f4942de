#include "runtime/passes/read/axes.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/passes/read/axis_names.h"
#include "runtime/passes/read/read_sizes.h"
#include "runtime/passes/read/symbol_sums.h"
#include "runtime/shapes/dim_expression.h"
#include "runtime/shapes/size.h"
#include "runtime/shapes/term.h"

namespace reprise {
namespace {

// The sizes that symbols have, each another one. The first suit token models; the others have the
// factors and the room that convolutions with strides want. None is 1, which broadcasts.
constexpr int kSizeSets = 3;
int64_t SizeIn(int set, size_t i) {
  constexpr int64_t kPrimes[] = {7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67};
  const auto number = static_cast<int64_t>(i);
  if (set == 1) return 64 + 32 * number;
  if (set == 2) return 224 + 32 * number;
  constexpr int64_t kCount = std::size(kPrimes);
  return kPrimes[number % kCount] + 60 * (number / kCount);
}
// How the sizes of a set go to symbols: the later ones get the larger sizes or the smaller ones, or
// the larger ones with other distances.
enum class Order { kRising, kFalling, kRisingApart };

// Symbols that may have to be a number.
constexpr int kMostFixed = 4;
// Readings beside one for each symbol.
constexpr size_t kMostReadings = 64;

// Returns whether it is derived. An expression whose symbols are all known is computed from them;
// one that has a symbol which nothing else gives is an axis of its own.
bool IsDerived(const std::string& symbol, const std::set<std::string>& plain) {
  const std::vector<std::string> symbols = ExpressionSymbols(symbol);
  return !symbols.empty() &&
         absl::c_all_of(symbols, [&](const std::string& one) { return plain.count(one) != 0; });
}

// The symbols of a model's inputs that are not derived, in order, and the dim where each is seen
// first.
struct Symbols {
  std::vector<std::string> names;
  std::vector<size_t> positions;
};
Symbols SymbolsOf(absl::Span<const std::vector<Dim>> inputs) {
  std::set<std::string> plain, seen;
  for (const std::vector<Dim>& dims : inputs) {
    for (const Dim& dim : dims) {
      if (ExpressionSymbols(dim.symbol).empty()) plain.insert(dim.symbol);
    }
  }
  Symbols symbols;
  for (const std::vector<Dim>& dims : inputs) {
    for (size_t i = 0; i < dims.size(); ++i) {
      const std::string& symbol = dims[i].symbol;
      if (dims[i].is_constant() || IsDerived(symbol, plain) || !seen.insert(symbol).second)
        continue;
      symbols.names.push_back(symbol);
      symbols.positions.push_back(i);
    }
  }
  return symbols;
}

// A way in which sizes that a rule refused are equal.
struct Choice {
  size_t symbol = 0;
  SymbolSum sum;        // that it has to be
  bool or_one = false;  // it may be 1 as well
  // Returns whether the symbol has to be a number.
  bool fixes() const { return sum.factors.empty(); }
};

// Returns a smaller number for the likelier meaning: another symbol, a sum, a number, 1.
int RankOf(const SymbolSum& sum) {
  if (sum.IsSymbol().has_value()) return 0;
  if (!sum.factors.empty()) return 1;
  return sum.constant > 1 ? 2 : 3;
}

class Merger {
 public:
  Merger(const Graph& graph, absl::Span<const std::vector<Dim>> inputs,
         const std::function<bool()>& may_go_on)
      : graph_(graph), inputs_(inputs), may_go_on_(may_go_on), symbols_(SymbolsOf(inputs)) {
    most_readings_ = kMostReadings + 2 * num_symbols();
  }

  MergedSymbols Run() {
    MergedSymbols result;
    std::vector<std::vector<std::string>> classes;
    const bool found = num_symbols() == 0 || Search();
    if (found) {
      classes = Classes(result);
    } else {
      result.note = absl::StrCat("no sizes were found that the model accepts for all of ",
                                 absl::StrJoin(symbols_.names, ", "), "; none were merged");
      result.error = first_error_;
      for (const std::string& symbol : symbols_.names) classes.push_back({symbol});
    }
    MakeAxes(inputs_, symbols_.names, std::move(classes), result);
    if (found) FindOneRow(result);
    return result;
  }

 private:
  size_t num_symbols() const { return symbols_.names.size(); }

  // Returns the symbols that depend on no other.
  std::vector<size_t> Free() const {
    std::vector<size_t> free;
    for (size_t i = 0; i < num_symbols(); ++i) {
      if (!sums_[i].has_value()) free.push_back(i);
    }
    return free;
  }

  // Looks for sizes that the model takes, with as few symbols fixed as it takes.
  bool Search() {
    would_fix_ = true;
    for (int most_fixed = 0; would_fix_ && most_fixed <= kMostFixed; ++most_fixed) {
      would_fix_ = false;
      for (set_ = 0; set_ < kSizeSets; ++set_) {
        sums_.assign(num_symbols(), std::nullopt);
        or_one_.clear();
        if (Solve(most_fixed)) return true;
        if (!MayRead()) return false;
      }
    }
    return false;
  }

  // Makes symbols follow from others until the model takes their sizes; leaves them as they were
  // where there is no way to.
  bool Solve(int most_fixed) {
    SizeReading reading;
    const auto taken = [&](Order order) {
      reading = {.table = std::make_unique<SizeTable>()};
      return Read(order, std::nullopt, reading);
    };
    // In another order as well: sizes that happen to be equal, or as far apart as must be, are not
    // then. Where it is the order alone that counts, they may be other distances apart.
    if (taken(Order::kRising)) {
      if (taken(Order::kFalling)) return true;
      SizeReading falling = std::move(reading);
      if (taken(Order::kRisingApart)) return true;
      reading = std::move(falling);
    }
    for (const Choice& choice : ChoicesOf(*reading.table)) {
      if (choice.fixes() && most_fixed == 0) {
        would_fix_ = true;
        continue;
      }
      const std::vector<std::optional<SymbolSum>> before = sums_;
      SetSum(choice);
      if (choice.or_one) or_one_.insert(choice.symbol);
      if (Solve(most_fixed - (choice.fixes() ? 1 : 0))) return true;
      or_one_.erase(choice.symbol);
      sums_ = before;
    }
    return false;
  }

  void SetSum(const Choice& choice) {
    for (std::optional<SymbolSum>& sum : sums_) {
      if (sum.has_value()) sum->Replace(choice.symbol, choice.sum);
    }
    sums_[choice.symbol] = choice.sum;
  }

  bool MayRead() const { return num_readings_ < most_readings_ && may_go_on_(); }

  // Reads the model where each free symbol has its size of the set, in `order`, and symbol `one`
  // the size 1 while those that are equal to it stay as they are.
  bool Read(Order order, std::optional<size_t> one, SizeReading& reading) {
    if (!MayRead()) return false;
    ++num_readings_;
    std::vector<Size> sizes(num_symbols());
    const std::vector<size_t> free = Free();
    for (size_t i = 0; i < free.size(); ++i) {
      const int64_t size = SizeIn(set_, order == Order::kRising    ? i
                                        : order == Order::kFalling ? free.size() - i
                                                                   : 2 * i + 1);
      sizes[free[i]] = reading.table->Symbol(symbols_.names[free[i]], size);
    }
    for (size_t i = 0; i < num_symbols(); ++i) {
      if (sums_[i].has_value()) sizes[i] = sums_[i]->At(sizes);
    }
    if (one.has_value()) sizes[*one] = 1;
    std::map<std::string, Size> axes;
    for (size_t i = 0; i < num_symbols(); ++i) {
      if (sizes[i] < 0) return false;
      axes.emplace(symbols_.names[i], sizes[i]);
    }
    const absl::Status status = ReadSizes(graph_, axes, {}, reading);
    // One that other sizes do not mend says most.
    const auto is_final = [](const absl::Status& error) {
      return absl::IsFailedPrecondition(error) || absl::IsUnimplemented(error);
    };
    if (first_error_.ok() || (is_final(status) && !is_final(first_error_))) first_error_ = status;
    return status.ok();
  }

  // Returns the ways in which sizes that the last rule compared are equal, the best one first.
  std::vector<Choice> ChoicesOf(const SizeTable& table) const {
    struct Ranked {
      int rank;
      Choice choice;
    };
    std::vector<Ranked> ranked;
    const auto& unlike = table.unlike();
    for (auto pair = unlike.rbegin(); pair != unlike.rend(); ++pair) {
      const auto [a, b] = *pair;
      std::optional<Choice> choice = Solved(a, b);
      if (!choice.has_value()) continue;
      const size_t symbol = choice->symbol;
      // A size that broadcasts has to be equal to the other one, not to 1.
      const bool broadcasts = (IsOne(a) || IsOne(b)) && absl::c_any_of(unlike, [&](auto& other) {
                                return !IsOne(other.first) && !IsOne(other.second) &&
                                       Decides(symbol, other.first, other.second);
                              });
      if (broadcasts && choice->fixes()) continue;
      const int rank = RankOf(choice->sum);
      choice->or_one =
          choice->fixes() && choice->sum.constant > 1 && absl::c_any_of(unlike, [&](auto& other) {
            return IsOne(other.second) && IsSymbol(other.first, symbol);
          });
      ranked.push_back({rank, *std::move(choice)});
    }
    absl::c_stable_sort(ranked, [](const auto& x, const auto& y) { return x.rank < y.rank; });
    std::vector<Choice> choices;
    choices.reserve(ranked.size());
    for (Ranked& one : ranked) choices.push_back(std::move(one.choice));
    return choices;
  }

  static bool IsOne(Size size) { return size.is_constant() && size.hint() == 1; }

  bool IsSymbol(Size size, size_t symbol) const {
    return !size.is_constant() && size.term()->kind == TermKind::kSymbol &&
           size.term()->table->symbols()[static_cast<size_t>(size.term()->number)] ==
               symbols_.names[symbol];
  }

  std::optional<SymbolSum> SumOf(Size size) const {
    return LinearSum(size, [&](const std::string& name) {
      return static_cast<size_t>(absl::c_find(symbols_.names, name) - symbols_.names.begin());
    });
  }

  // Returns whether `symbol` decides whether `a` and `b` are equal: any may where that is no sum.
  bool Decides(size_t symbol, Size a, Size b) const {
    const std::optional<SymbolSum> difference = SumOf(a - b);
    return !difference.has_value() || difference->factors.contains(symbol);
  }

  // Returns the last symbol that has to be a sum of others, or a number, for `a` and `b` to be
  // equal.
  std::optional<Choice> Solved(Size a, Size b) const {
    const std::optional<SymbolSum> difference = SumOf(a - b);
    if (!difference.has_value()) return std::nullopt;
    std::optional<Choice> best;
    bool best_adds = false;
    for (const auto& [symbol, factor] : difference->factors) {
      if (std::abs(factor) != 1) continue;
      SymbolSum sum = *difference;
      sum.factors.erase(symbol);
      sum.Scale(-factor);
      const bool adds = absl::c_all_of(sum.factors, [](const auto& one) { return one.second > 0; });
      if (sum.factors.empty() && sum.constant < 1) continue;
      if (best.has_value() && best_adds && !adds) continue;
      best = Choice{.symbol = symbol, .sum = std::move(sum)};
      best_adds = adds;
    }
    return best;
  }

  // Returns whether a dim 0 broadcasts with a constant: neither of its sizes can be padded to the
  // other.
  bool IsApart(size_t symbol) const {
    return or_one_.contains(symbol) && symbols_.positions[symbol] == 0;
  }

  // Returns the classes of symbols that are one; fills in those that are fixed or derived.
  std::vector<std::vector<std::string>> Classes(MergedSymbols& result) const {
    std::map<size_t, std::vector<std::string>> members;
    for (const size_t symbol : Free()) members[symbol].push_back(symbols_.names[symbol]);
    std::vector<std::vector<std::string>> classes;
    for (size_t i = 0; i < num_symbols(); ++i) {
      const std::string& name = symbols_.names[i];
      if (!sums_[i].has_value()) continue;
      const SymbolSum& sum = *sums_[i];
      if (IsApart(i)) {
        classes.push_back({name});
      } else if (sum.factors.empty()) {
        result.fixed[name] = sum.constant;
        if (or_one_.contains(i)) result.one_row.insert(name);
      } else if (const auto one = sum.IsSymbol(); one.has_value()) {
        members[*one].push_back(name);
      } else {
        result.derived[name] = sum.ToString(symbols_.names);
      }
    }
    for (auto& [symbol, names] : members) classes.push_back(std::move(names));
    return classes;
  }

  void FindOneRow(MergedSymbols& result) {
    for (const size_t symbol : or_one_) {
      if (IsApart(symbol)) return;
    }
    if (result.axes.empty()) return;
    const Axis& batch = result.axes[0];
    if (!batch.is_batch || batch.symbols.size() < 2) return;
    for (size_t i = 0; i < num_symbols(); ++i) {
      if (!absl::c_linear_search(batch.symbols, symbols_.names[i])) continue;
      SizeReading reading{.table = std::make_unique<SizeTable>()};
      if (Read(Order::kRising, i, reading)) result.one_row.insert(symbols_.names[i]);
    }
  }

  const Graph& graph_;
  const absl::Span<const std::vector<Dim>> inputs_;
  const std::function<bool()>& may_go_on_;
  const Symbols symbols_;
  size_t most_readings_ = 0;
  size_t num_readings_ = 0;
  int set_ = 0;                                 // the number of the set of sizes
  bool would_fix_ = false;                      // more symbols than may be
  std::vector<std::optional<SymbolSum>> sums_;  // sums of free symbols, where one is not free
  std::set<size_t> or_one_;                     // symbols of `sums_` that may be 1 as well
  absl::Status first_error_;
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

MergedSymbols MergeSymbols(const Graph& graph, absl::Span<const std::vector<Dim>> inputs,
                           const std::function<bool()>& may_go_on) {
  return Merger(graph, inputs, may_go_on).Run();
}

MergedSymbols UnmergedSymbols(absl::Span<const std::vector<Dim>> inputs) {
  Symbols symbols = SymbolsOf(inputs);
  std::vector<std::vector<std::string>> classes;
  for (const std::string& symbol : symbols.names) classes.push_back({symbol});
  MergedSymbols result;
  MakeAxes(inputs, symbols.names, std::move(classes), result);
  return result;
}

}  // namespace reprise
