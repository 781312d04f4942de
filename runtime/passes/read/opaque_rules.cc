#include "runtime/passes/read/opaque_rules.h"

#include <cstdint>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/passes/read/kernel_call.h"

namespace reprise {
namespace {

using SymbolNumbers = std::set<int64_t>;

// Adds the symbols that `size` is made of.
void AddNumbersOfSymbols(Size size, std::set<const Term*>& seen, SymbolNumbers& symbols) {
  const Term* const term = size.term();
  if (term == nullptr || !seen.insert(term).second) return;
  if (term->kind == TermKind::kSymbol) symbols.insert(term->number);
  for (const TermPart& part : term->parts) {
    for (const Term* atom : part.atoms) AddNumbersOfSymbols(Size(atom->hint, atom), seen, symbols);
  }
  for (const Size operand : term->operands) AddNumbersOfSymbols(operand, seen, symbols);
}

SymbolNumbers NumbersOfSymbols(absl::Span<const Size> sizes) {
  SymbolNumbers symbols;
  std::set<const Term*> seen;
  for (const Size size : sizes) AddNumbersOfSymbols(size, seen, symbols);
  return symbols;
}

std::vector<size_t> DimsThatFollow(int64_t symbol, absl::Span<const Size> shape) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (NumbersOfSymbols({shape[d]}).contains(symbol)) dims.push_back(d);
  }
  return dims;
}

// Returns whether elements stay the same while operands grow along `symbol`.
bool KeepsElements(const ElementContext& context, int64_t symbol) {
  const SizeList &in = context.shape(0), &out = context.outputs[context.result].shape;
  const std::vector<size_t> from = DimsThatFollow(symbol, in), to = DimsThatFollow(symbol, out);
  switch (FactsOf(context.node.op).growth) {
    case Growth::kUnknown:
      return false;
    case Growth::kKeepsPlaces:
      return true;
    case Growth::kReduces:
      return from.size() == to.size();
    case Growth::kProduct:
      return !absl::c_linear_search(from, in.size() - 1);
    case Growth::kContraction: {
      size_t following = 0;
      for (size_t i = 0; i < context.inputs.size(); ++i) {
        if (context.has(i)) following += DimsThatFollow(symbol, context.shape(i)).size();
      }
      return following == to.size();
    }
    case Growth::kResizes: {
      const auto stays = [&](size_t d) {
        return d < in.size() && d < out.size() && out[d].Same(in[d]);
      };
      return absl::c_all_of(from, stays) && absl::c_all_of(to, stays);
    }
    case Growth::kCumulates:
      return !CumSumOp::From(context.node.attributes).reverse;
    case Growth::kFindsOnes:
      return false;
  }
  return false;
}

// Returns whether operand `i` of a resizing node is the shape of its result, and no more.
bool IsShapeOfResult(const ElementContext& context, size_t i) {
  const KnownValue* const value = context.operands[i].value;
  if (i == 0 || FactsOf(context.node.op).growth != Growth::kResizes || value == nullptr ||
      value->is_table() || !IsInteger(value->dtype)) {
    return false;
  }
  return absl::c_equal(value->elements, context.outputs[context.result].shape,
                       [](Size element, Size dim) { return element.Same(dim); });
}

}  // namespace

KnownValue OpaqueResult(const ElementContext& context) {
  SymbolNumbers follows, grows;
  std::vector<CallOperand> operands;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    operands.push_back({.dtype = context.inputs[i].dtype});
    if (!context.has(i)) continue;
    grows.merge(NumbersOfSymbols(context.shape(i)));
    if (IsShapeOfResult(context, i)) continue;
    if (const KnownValue* value = context.operands[i].value; value != nullptr) {
      follows.merge(value->is_table() ? NumbersOfSymbols({*value->element})
                                      : NumbersOfSymbols(value->elements));
    }
  }
  const InferContext::Output& output = context.outputs[context.result];
  grows.merge(NumbersOfSymbols(output.shape));
  for (const int64_t symbol : grows) {
    if (!KeepsElements(context, symbol)) follows.insert(symbol);
  }
  std::vector<Size> made_of;
  for (size_t d = 0; d < output.shape.size(); ++d) {
    made_of.push_back(context.table.Index(static_cast<int64_t>(d)));
  }
  for (const int64_t symbol : follows) {
    made_of.push_back(context.table.symbol_sizes()[static_cast<size_t>(symbol)]);
  }
  auto call = OpaqueCall(context.node, std::move(operands), context.result, output.dtype);
  return {.dtype = output.dtype,
          .shape = output.shape,
          .element = context.table.Call(std::move(call), std::move(made_of)),
          .opaque = true};
}

}  // namespace reprise
