#include "runtime/shapes/term.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using Atoms = std::vector<const Term*>;

int64_t WrappedSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t WrappedProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t FlooredOrZero(int64_t a, int64_t b) {
  return b == 0 ? 0 : b < 0 ? FloorDivide(WrappedProduct(a, -1), -b) : FloorDivide(a, b);
}

// Products with more atoms first, then by the atoms: the order in which a division takes them out.
int CompareAtoms(const Atoms& a, const Atoms& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return a[i]->id < b[i]->id ? -1 : 1;
  }
  return 0;
}

Atoms Joined(const Atoms& a, const Atoms& b) {
  Atoms joined(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), joined.begin(),
             [](const Term* x, const Term* y) { return x->id < y->id; });
  return joined;
}

// `atoms` without `taken`; nullopt where it does not hold them all.
std::optional<Atoms> Without(const Atoms& atoms, const Atoms& taken) {
  Atoms rest;
  size_t next = 0;
  for (const Term* atom : atoms) {
    if (next < taken.size() && taken[next] == atom) {
      ++next;
    } else {
      rest.push_back(atom);
    }
  }
  if (next != taken.size()) return std::nullopt;
  return rest;
}

void Sort(std::vector<TermPart>& parts) {
  std::sort(parts.begin(), parts.end(), [](const TermPart& a, const TermPart& b) {
    return CompareAtoms(a.atoms, b.atoms) < 0;
  });
  size_t kept = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (kept > 0 && parts[kept - 1].atoms == parts[i].atoms) {
      parts[kept - 1].factor = WrappedSum(parts[kept - 1].factor, parts[i].factor);
    } else {
      if (kept > 0 && parts[kept - 1].factor == 0) --kept;
      if (kept != i) parts[kept] = std::move(parts[i]);
      ++kept;
    }
  }
  if (kept > 0 && parts[kept - 1].factor == 0) --kept;
  parts.resize(kept);
}

template <typename Number>
void AppendBytes(std::string& key, Number number) {
  // A pointer is a key by its own bytes. NOLINTNEXTLINE(bugprone-sizeof-expression)
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::string KeyOf(const Term& term) {
  std::string key;
  AppendBytes(key, term.kind);
  AppendBytes(key, term.number);
  AppendBytes(key, term.function);
  for (const TermPart& part : term.parts) {
    AppendBytes(key, part.factor);
    AppendBytes(key, part.atoms.size());
    for (const Term* atom : part.atoms) AppendBytes(key, atom);
  }
  for (const Size operand : term.operands) {
    AppendBytes(key, operand.term() == nullptr ? operand.hint() : 0);
    AppendBytes(key, operand.term());
  }
  return key;
}

int64_t HintOf(const Polynomial& polynomial) {
  int64_t sum = polynomial.constant;
  for (const TermPart& part : polynomial.parts) {
    int64_t product = part.factor;
    for (const Term* atom : part.atoms) product = WrappedProduct(product, atom->hint);
    sum = WrappedSum(sum, product);
  }
  return sum;
}

}  // namespace

Polynomial Polynomial::Of(Size size) {
  if (size.is_constant()) return {.constant = size.hint()};
  const Term& term = *size.term();
  if (term.kind == TermKind::kPolynomial) return {.constant = term.number, .parts = term.parts};
  return {.parts = {{.factor = 1, .atoms = {&term}}}};
}

void Polynomial::Add(const Polynomial& other, int64_t factor) {
  constant = WrappedSum(constant, WrappedProduct(other.constant, factor));
  for (const TermPart& part : other.parts) {
    parts.push_back({WrappedProduct(part.factor, factor), part.atoms});
  }
  Sort(parts);
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  Polynomial product{.constant = WrappedProduct(a.constant, b.constant)};
  for (const TermPart& x : a.parts) {
    product.parts.push_back({WrappedProduct(x.factor, b.constant), x.atoms});
    for (const TermPart& y : b.parts) {
      product.parts.push_back({WrappedProduct(x.factor, y.factor), Joined(x.atoms, y.atoms)});
    }
  }
  for (const TermPart& y : b.parts) {
    product.parts.push_back({WrappedProduct(y.factor, a.constant), y.atoms});
  }
  Sort(product.parts);
  return product;
}

std::optional<Polynomial> Polynomial::DividedBy(const Polynomial& by) const {
  constexpr int kMostSteps = 64;
  if (by.parts.empty()) return std::nullopt;
  const TermPart& lead = by.parts[0];
  Polynomial quotient, rest = *this;
  for (int step = 0; step < kMostSteps && !rest.parts.empty(); ++step) {
    const TermPart& first = rest.parts[0];
    const std::optional<Atoms> atoms = Without(first.atoms, lead.atoms);
    if (!atoms.has_value()) return std::nullopt;
    const int64_t factor =
        lead.factor == -1 ? WrappedProduct(first.factor, -1) : first.factor / lead.factor;
    if (WrappedProduct(factor, lead.factor) != first.factor) return std::nullopt;
    Polynomial taken;
    if (atoms->empty()) {
      taken.constant = factor;
    } else {
      taken.parts.push_back({factor, *atoms});
    }
    quotient.Add(taken, 1);
    rest.Add(taken * by, -1);
  }
  if (!rest.parts.empty() || rest.constant != 0) return std::nullopt;
  return quotient;
}

int64_t Polynomial::Content() const {
  int64_t content = 0;
  for (const TermPart& part : parts) content = std::gcd(content, part.factor);
  return content;
}

const Term* SizeTable::Find(const Term& like) const {
  const auto it = by_key_.find(KeyOf(like));
  return it == by_key_.end() ? nullptr : it->second;
}

Size SizeTable::Intern(Term term) {
  std::string key = KeyOf(term);
  if (auto it = by_key_.find(key); it != by_key_.end()) return Size(it->second->hint, it->second);
  term.id = static_cast<uint32_t>(terms_.size());
  term.table = this;
  terms_.push_back(std::make_unique<const Term>(std::move(term)));
  const Term* made = terms_.back().get();
  by_key_.emplace(std::move(key), made);
  return Size(made->hint, made);
}

Size SizeTable::Symbol(const std::string& name, int64_t hint, int64_t least, int64_t most) {
  if (auto it = symbol_numbers_.find(name); it != symbol_numbers_.end()) return sizes_[it->second];
  const Size size = Intern(
      {.kind = TermKind::kSymbol, .hint = hint, .number = static_cast<int64_t>(symbols_.size())});
  symbol_numbers_.emplace(name, symbols_.size());
  symbols_.push_back(name);
  ranges_.push_back({.low = least, .high = most});
  sizes_.push_back(size);
  known_[size.term()] = ranges_.back();
  return size;
}

Size SizeTable::Index(int64_t dim) {
  return Intern({.kind = TermKind::kIndex, .indexed = true, .number = dim});
}

Size SizeTable::Make(const Polynomial& polynomial) {
  if (polynomial.parts.empty()) return polynomial.constant;
  const TermPart& first = polynomial.parts[0];
  if (polynomial.constant == 0 && polynomial.parts.size() == 1 && first.factor == 1 &&
      first.atoms.size() == 1) {
    return Size(first.atoms[0]->hint, first.atoms[0]);
  }
  bool indexed = false;
  for (const TermPart& part : polynomial.parts) {
    for (const Term* atom : part.atoms) indexed |= atom->indexed;
  }
  return Intern({.kind = TermKind::kPolynomial,
                 .indexed = indexed,
                 .hint = HintOf(polynomial),
                 .number = polynomial.constant,
                 .parts = polynomial.parts});
}

namespace {

bool AnyIndexed(absl::Span<const Size> sizes) {
  return absl::c_any_of(sizes,
                        [](Size size) { return size.term() != nullptr && size.term()->indexed; });
}

// Takes what `by` divides out of `a`, so that its constant and factors are in [0, by).
Polynomial TakeMultiples(Polynomial& a, int64_t by) {
  Polynomial quotient{.constant = FloorDivide(a.constant, by)};
  a.constant -= quotient.constant * by;
  std::vector<TermPart> rest;
  for (TermPart& part : a.parts) {
    const int64_t whole = FloorDivide(part.factor, by);
    if (whole != 0) quotient.parts.push_back({whole, part.atoms});
    part.factor -= whole * by;
    if (part.factor != 0) rest.push_back(std::move(part));
  }
  a.parts = std::move(rest);
  return quotient;
}

// Returns the atoms that divide every part of both; none where one has a constant.
Atoms CommonAtoms(const Polynomial& a, const Polynomial& b) {
  if (a.constant != 0 || b.constant != 0 || a.parts.empty() || b.parts.empty()) return {};
  Atoms common;
  for (const Term* atom : b.parts[0].atoms) {
    Atoms longer = Joined(common, {atom});
    const auto divides = [&](const TermPart& part) {
      return Without(part.atoms, longer).has_value();
    };
    if (absl::c_all_of(a.parts, divides) && absl::c_all_of(b.parts, divides)) common = longer;
  }
  return common;
}

}  // namespace

Size SizeTable::Quotient(Size a, Size b) {
  if (b.is_constant() && b.hint() == 0) return 0;
  if (a.is_constant() && b.is_constant()) return FloorDivide(a.hint(), b.hint());
  Polynomial rest = Polynomial::Of(a), by = Polynomial::Of(b);
  if (!by.parts.empty()) {
    // A divisor of 0 is an own region: the quotient is 0 there.
    if (IsZero(b).value_or(true)) {
      if (!AnyIndexed({b})) return 0;
    } else {
      if (const auto whole = rest.DividedBy(by)) return Make(*whole);
      if (const Atoms common = CommonAtoms(rest, by); !common.empty()) {
        const Polynomial atoms{.parts = {{1, common}}};
        return Quotient(Make(*rest.DividedBy(atoms)), Make(*by.DividedBy(atoms)));
      }
      // floor((x * by + rest) / by) = x + floor(rest / by).
      Polynomial whole, left{.constant = rest.constant};
      for (const TermPart& part : rest.parts) {
        if (const auto times = Polynomial{.parts = {part}}.DividedBy(by)) {
          whole.Add(*times, 1);
        } else {
          left.parts.push_back(part);
        }
      }
      if (left.parts.size() < rest.parts.size()) return Make(whole) + Quotient(Make(left), b);
    }
    return Intern({.kind = TermKind::kQuotient,
                   .indexed = AnyIndexed({a, b}),
                   .hint = FlooredOrZero(a.hint(), b.hint()),
                   .operands = {a, b}});
  }
  int64_t divisor = b.hint();
  if (divisor < 0) return Quotient(-a, -b);
  Polynomial whole = TakeMultiples(rest, divisor);
  if (rest.parts.empty()) return Make(whole);
  const int64_t content = std::gcd(rest.Content(), divisor);
  if (content > 1) {
    for (TermPart& part : rest.parts) part.factor /= content;
    rest.constant = FloorDivide(rest.constant, content);
    divisor /= content;
  }
  const TermPart& first = rest.parts[0];
  if (rest.parts.size() == 1 && first.factor == 1 && first.atoms.size() == 1 &&
      first.atoms[0]->kind == TermKind::kQuotient && first.atoms[0]->operands[1].is_constant()) {
    // floor((floor(x / m) + c) / k) = floor((x + c m) / (m k)).
    const Term& inner = *first.atoms[0];
    const int64_t m = inner.operands[1].hint();
    int64_t both;
    if (!__builtin_mul_overflow(m, divisor, &both)) {
      return Make(whole) + Quotient(inner.operands[0] + rest.constant * m, both);
    }
  }
  const Size numerator = Make(rest);
  const Size quotient = Intern({.kind = TermKind::kQuotient,
                                .indexed = AnyIndexed({numerator}),
                                .hint = FloorDivide(numerator.hint(), divisor),
                                .operands = {numerator, divisor}});
  return Make(whole) + quotient;
}

Size SizeTable::Extreme(TermKind kind, Size a, Size b) {
  const bool least = kind == TermKind::kLeast;
  const Interval apart = Bounds(a - b);
  if (apart.low >= 0) return least ? b : a;
  if (apart.high <= 0) return least ? a : b;
  // One order, so that the same two are one term: constants last.
  const auto rank = [](Size size) { return size.term() == nullptr ? UINT32_MAX : size.term()->id; };
  if (rank(b) < rank(a)) std::swap(a, b);
  return Intern({.kind = kind,
                 .indexed = AnyIndexed({a, b}),
                 .hint = least ? std::min(a.hint(), b.hint()) : std::max(a.hint(), b.hint()),
                 .operands = {a, b}});
}

Size SizeTable::Choice(Size condition, Size yes, Size no) {
  if (condition.is_constant()) return condition.hint() != 0 ? yes : no;
  if (yes.Same(no)) return yes;
  return Intern({.kind = TermKind::kChoice,
                 .indexed = AnyIndexed({condition, yes, no}),
                 .hint = condition.hint() != 0 ? yes.hint() : no.hint(),
                 .operands = {condition, yes, no}});
}

Size SizeTable::Call(std::shared_ptr<const SizeFunction> function, std::vector<Size> operands) {
  const SizeFunction* held = functions_.emplace(function->key(), function).first->second.get();
  std::vector<int64_t> hints;
  hints.reserve(operands.size());
  for (const Size operand : operands) hints.push_back(operand.hint());
  const bool constant = absl::c_all_of(operands, [](Size size) { return size.is_constant(); });
  const bool indexed = AnyIndexed(operands);
  const int64_t hint = indexed ? 0 : held->At(hints).value_or(0);
  if (constant) return hint;
  return Intern({.kind = TermKind::kCall,
                 .indexed = indexed,
                 .hint = hint,
                 .operands = std::move(operands),
                 .function = held});
}

Size SizeTable::Substitute(Size size, absl::Span<const Size> indices) {
  if (size.term() == nullptr || !size.term()->indexed) return size;
  const Term& term = *size.term();
  std::vector<Size> operands;
  for (const Size operand : term.operands) operands.push_back(Substitute(operand, indices));
  switch (term.kind) {
    case TermKind::kIndex:
      return indices[static_cast<size_t>(term.number)];
    case TermKind::kPolynomial: {
      Size sum = term.number;
      for (const TermPart& part : term.parts) {
        Size product = part.factor;
        for (const Term* atom : part.atoms) {
          product *= Substitute(Size(atom->hint, atom), indices);
        }
        sum += product;
      }
      return sum;
    }
    case TermKind::kQuotient:
      return Quotient(operands[0], operands[1]);
    case TermKind::kLeast:
    case TermKind::kLargest:
      return Extreme(term.kind, operands[0], operands[1]);
    case TermKind::kChoice:
      return Choice(operands[0], operands[1], operands[2]);
    case TermKind::kCall:
      return Call(functions_.at(term.function->key()), std::move(operands));
    case TermKind::kSymbol:
      return size;
  }
  return size;
}

}  // namespace reprise
