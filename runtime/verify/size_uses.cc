#include "runtime/verify/size_uses.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/read/kernel_call.h"
#include "runtime/passes/read/known_value.h"

namespace reprise {
namespace {

bool IsAtMost(const SizeTable& table, Size size, Size most) {
  return table.KnownNotNegative(most - size).value_or(false);
}

}  // namespace

SizeUse SizeUses::OfAny(absl::Span<const Size> sizes) {
  SizeUse most = SizeUse::kFixed;
  for (const Size size : sizes) most = std::max(most, Of(size));
  return most;
}

SizeUse SizeUses::Of(const KnownValue& value) {
  if (!value.is_table()) return OfAny(value.elements);
  dims_ = value.shape;
  in_table_.clear();
  const SizeUse count = OfAny(value.shape);
  return std::max(Of(*value.element), count >= SizeUse::kSteps ? count : SizeUse::kFixed);
}

SizeUse SizeUses::Of(Size size) {
  if (size.is_constant()) return SizeUse::kFixed;
  auto& known = size.term()->indexed ? in_table_ : known_;
  if (const auto it = known.find(size.term()); it != known.end()) return it->second;
  SizeUse use = OfTerm(*size.term());
  if (use >= SizeUse::kSteps && !size.term()->indexed) {
    const Interval bounds = size.term()->table->Bounds(size);
    if (bounds.low == bounds.high) use = SizeUse::kFixed;
  }
  known[size.term()] = use;
  return use;
}

SizeUse SizeUses::OfTerm(const Term& term) {
  switch (term.kind) {
    case TermKind::kSymbol:
      return term.number == symbol_ ? SizeUse::kEven : SizeUse::kFixed;
    case TermKind::kIndex:
      return SizeUse::kFixed;
    case TermKind::kPolynomial: {
      SizeUse most = SizeUse::kFixed;
      for (const TermPart& part : term.parts) {
        for (const Term* atom : part.atoms) most = std::max(most, Of(Size(atom->hint, atom)));
      }
      // The remainder of a division comes back again and again.
      (term.indexed ? in_table_ : known_)[&term] = most;
      const bool returns =
          most == SizeUse::kSteps && std::abs(SlopeOf(Size(term.hint, &term))) < 1e-9;
      return returns ? SizeUse::kChosen : most;
    }
    case TermKind::kQuotient: {
      const SizeUse most = OfAny(term.operands);
      return most == SizeUse::kEven && !CountsThrough(term) ? SizeUse::kSteps : most;
    }
    case TermKind::kLeast:
    case TermKind::kLargest:
      return OfAny(term.operands) == SizeUse::kFixed ? SizeUse::kFixed : SizeUse::kChosen;
    case TermKind::kChoice:
      return OfChoice(term);
    case TermKind::kCall:
      return OfCall(term);
  }
  return SizeUse::kChosen;
}

SizeUse SizeUses::OfChoice(const Term& term) {
  const Size condition = term.operands[0];
  SizeUse by = Of(condition);
  if (by != SizeUse::kFixed) {
    // Which part of a join a place lies in follows the sizes of the parts before it.
    if (!IsInPart(*condition.term())) return SizeUse::kChosen;
    const Size left = condition.term()->operands[0];
    if (!HasItsEnd(left)) return SizeUse::kChosen;
    by = Of(left);
  }
  return std::max({by, Of(term.operands[1]), Of(term.operands[2])});
}

bool SizeUses::CountsThrough(const Term& term, Size times) const {
  if (term.kind != TermKind::kQuotient || term.operands[0].is_constant()) return false;
  const Term& place = *term.operands[0].term();
  const Size length = term.operands[1];
  if (length.term() != nullptr && length.term()->indexed) return false;
  if (place.kind != TermKind::kIndex) return CountsThrough(place, length * times);
  const auto dim = static_cast<size_t>(place.number);
  return dim < dims_.size() && IsAtMost(*term.table, length * times, dims_[dim]);
}

bool SizeUses::HasItsEnd(Size left) const {
  Polynomial rest = Polynomial::Of(left);
  const auto is_indexed = [](const TermPart& part) {
    return absl::c_any_of(part.atoms, [](const Term* atom) { return atom->indexed; });
  };
  const auto place = absl::c_find_if(rest.parts, is_indexed);
  if (place == rest.parts.end() || place->atoms.size() != 1 ||
      place->atoms[0]->kind != TermKind::kIndex || std::abs(place->factor) != 1) {
    return false;
  }
  const auto dim = static_cast<size_t>(place->atoms[0]->number);
  const bool up = place->factor < 0;
  rest.parts.erase(place);
  if (absl::c_any_of(rest.parts, is_indexed) || dim >= dims_.size()) return false;
  SizeTable& table = *left.term()->table;
  const Size last = table.Make(rest);
  const Size end = up ? last + 1 : -last;
  return IsAtMost(table, 0, end) && IsAtMost(table, end, dims_[dim]);
}

double SizeUses::SlopeOf(Size size) {
  if (Of(size) == SizeUse::kFixed) return 0;
  const Term& term = *size.term();
  if (term.kind == TermKind::kQuotient && term.operands[1].is_constant()) {
    return SlopeOf(term.operands[0]) / static_cast<double>(term.operands[1].hint());
  }
  if (term.kind != TermKind::kPolynomial) return 1;
  double slope = 0;
  for (const TermPart& part : term.parts) {
    if (part.atoms.size() > 1) return 1;
    slope += static_cast<double>(part.factor) * SlopeOf(Size(part.atoms[0]->hint, part.atoms[0]));
  }
  return slope;
}

SizeUse SizeUses::OfCall(const Term& term) {
  const SizeUse most = OfAny(term.operands);
  if (most == SizeUse::kFixed || most == SizeUse::kChosen) return most;
  const CalledKernel kernel = KernelOf(*term.function);
  if (kernel.node == nullptr) {
    // The place in a list, or the compared number.
    return Of(term.operands[0]) == SizeUse::kFixed ? most : SizeUse::kChosen;
  }
  if (kernel.opaque) return SizeUse::kChosen;
  const bool of_floats = IsFloating(kernel.operands[0].dtype);
  switch (FactsOf(kernel.node->op).sizes) {
    case Sizes::kSum:
    case Sizes::kProduct:
    case Sizes::kReduceSum:
    case Sizes::kReduceProduct:
      return most;
    case Sizes::kConversion:
      if (kernel.dtype == DType::kBool) return SizeUse::kChosen;
      return of_floats && IsInteger(kernel.dtype) ? SizeUse::kSteps : most;
    case Sizes::kQuotient:
      return of_floats ? most : SizeUse::kSteps;
    case Sizes::kRounding:
      return SizeUse::kSteps;
    case Sizes::kSmooth:
      return most == SizeUse::kEven ? SizeUse::kEven : SizeUse::kChosen;
    default:
      return SizeUse::kChosen;
  }
}

}  // namespace reprise
