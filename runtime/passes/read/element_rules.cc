#include "runtime/passes/read/element_rules.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/element_bits.h"
#include "runtime/ops/kit/infer.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/shape_ops.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/slice_pad.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/passes/read/kernel_call.h"
#include "runtime/passes/read/scalar_rules.h"

namespace reprise {
namespace {

using Index = std::vector<Size>;
using Indices = absl::Span<const Size>;
using ElementRule = absl::StatusOr<Size> (*)(const ElementContext&, Indices);

// Returns the error of a node, or an element of one, that no rule covers.
absl::Status NoRule(const ElementContext& context) {
  return absl::UnimplementedError(absl::StrCat("no rule says what ", context.node.op, " makes"));
}

Size At(const ElementContext& context, size_t operand, Indices index) {
  return context.operands[operand].At(context.table, index);
}

absl::StatusOr<size_t> AxisOf(const ElementContext& context, int64_t axis, int64_t rank) {
  ASSIGN_OR_RETURN(const int64_t normal, NormalizeAxis(axis, rank));
  return static_cast<size_t>(normal);
}

// Returns the place of a result's element in an operand of `shape` that is repeated to it.
Index Repeated(const ElementContext& context, absl::Span<const Size> shape, Indices index) {
  Index place(shape.size());
  const size_t skipped = index.size() - shape.size();
  const SizeList& out = context.outputs[context.result].shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    // Its dim is that of the result, or it is 1.
    place[d] = shape[d].Same(out[skipped + d]) || shape[d] != 1 ? index[skipped + d] : Size(0);
  }
  return place;
}

absl::StatusOr<Size> ShapeElement(const ElementContext& context, Indices index) {
  const SizeList& shape = context.shape(0);
  if (context.node.op == SizeOp::kName) return NumElements(shape);
  const auto range = ops::ShapeRange(context.node, static_cast<int64_t>(shape.size()));
  return shape[static_cast<size_t>(range.first + index[0].hint())];
}

// Dims that are the same at either end keep their index; the dims between are counted through.
absl::StatusOr<Size> ViewElement(const ElementContext& context, Indices index) {
  const SizeList& in = context.shape(0);
  const SizeList& out = context.outputs[0].shape;
  const auto is_one = [](Size size) { return size.is_constant() && size.hint() == 1; };
  Index place(in.size(), 0);
  size_t a = 0, b = 0, a_end = in.size(), b_end = out.size();
  while (true) {
    if (a < a_end && is_one(in[a])) {
      ++a;
    } else if (b < b_end && is_one(out[b])) {
      ++b;
    } else if (a < a_end && b < b_end && in[a].Same(out[b])) {
      place[a++] = index[b++];
    } else {
      break;
    }
  }
  while (true) {
    if (a < a_end && is_one(in[a_end - 1])) {
      --a_end;
    } else if (b < b_end && is_one(out[b_end - 1])) {
      --b_end;
    } else if (a < a_end && b < b_end && in[a_end - 1].Same(out[b_end - 1])) {
      place[--a_end] = index[--b_end];
    } else {
      break;
    }
  }
  Size linear = 0;
  for (; b < b_end; ++b) linear = linear * out[b] + index[b];
  for (size_t d = a_end; d-- > a;) {
    if (d == a) {
      place[d] = linear;
      break;
    }
    const Size above = FloorDivide(linear, in[d]);
    place[d] = linear - above * in[d];
    linear = above;
  }
  return At(context, 0, place);
}

absl::StatusOr<Size> TransposeElement(const ElementContext& context, Indices index) {
  std::vector<int64_t> perm = TransposeOp::From(context.node).perm;
  Index place(index.size());
  for (size_t d = 0; d < index.size(); ++d) {
    place[perm.empty() ? index.size() - 1 - d : static_cast<size_t>(perm[d])] = index[d];
  }
  return At(context, 0, place);
}

absl::StatusOr<Size> ExpandElement(const ElementContext& context, Indices index) {
  return At(context, 0, Repeated(context, context.shape(0), index));
}

absl::StatusOr<Size> TileElement(const ElementContext& context, Indices index) {
  Index place(index.begin(), index.end());
  for (size_t d = 0; d < place.size(); ++d) {
    const Size size = context.shape(0)[d];
    if (size.Same(context.outputs[0].shape[d])) continue;
    place[d] = size == 0 ? Size(0) : place[d] - size * FloorDivide(place[d], size);
  }
  return At(context, 0, place);
}

absl::StatusOr<Size> ConcatElement(const ElementContext& context, Indices index) {
  ASSIGN_OR_RETURN(const size_t axis,
                   AxisOf(context, ConcatOp::From(context.node).axis, std::ssize(index)));
  Index place(index.begin(), index.end());
  // The operand that holds it, or one of those that may.
  struct Part {
    Size within, element;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < context.operands.size(); ++i) {
    const Size size = context.shape(i)[axis];
    const bool last = i + 1 == context.operands.size();
    const Size within = last ? Size(1) : LiesInPart(context.table, size - 1 - place[axis]);
    if (!within.is_constant() || within.hint() != 0) {
      parts.push_back({within, At(context, i, place)});
      if (within.is_constant()) break;
    }
    place[axis] -= size;
  }
  Size element = parts.back().element;
  for (size_t i = parts.size() - 1; i-- > 0;) {
    element = Choose(context.table, parts[i].within, parts[i].element, element);
  }
  return element;
}

absl::StatusOr<Size> SplitElement(const ElementContext& context, Indices index) {
  ASSIGN_OR_RETURN(const size_t axis,
                   AxisOf(context, SplitOp::From(context.node).axis, std::ssize(index)));
  Index place(index.begin(), index.end());
  for (size_t i = 0; i < context.result; ++i) place[axis] += context.outputs[i].shape[axis];
  return At(context, 0, place);
}

absl::StatusOr<Size> SliceElement(const ElementContext& context, Indices index) {
  ASSIGN_OR_RETURN(const ops::SliceSpec<Size> slice,
                   ops::ResolvedSlice(InferContext(context.node, context.inputs)));
  Index place(index.size());
  for (size_t d = 0; d < index.size(); ++d) {
    place[d] = slice.starts[d] + index[d] * slice.steps[d];
  }
  return At(context, 0, place);
}

// `given` counted from the end where it is negative. INVALID_ARGUMENT beyond `size`.
absl::StatusOr<Size> Place(const ElementContext& context, Size given, Size size) {
  const Size positive = NotNegative(context.table, given);
  const Size place = Choose(context.table, positive, given, given + size);
  const bool indexed = place.term() != nullptr && place.term()->indexed;
  if (!indexed && (place < 0 || place >= size)) {
    return absl::InvalidArgumentError(absl::StrCat(NodeLabel(context.node), ": place ", given,
                                                   " is outside [", -size, ", ", size - 1, "]"));
  }
  return place;
}

absl::StatusOr<Size> GatherElement(const ElementContext& context, Indices index) {
  const SizeList& data = context.shape(GatherOp::kX);
  const size_t places = context.shape(GatherOp::kPlaces).size();
  ASSIGN_OR_RETURN(const size_t axis,
                   AxisOf(context, GatherOp::From(context.node).axis, std::ssize(data)));
  ASSIGN_OR_RETURN(
      const Size taken,
      Place(context, At(context, GatherOp::kPlaces, index.subspan(axis, places)), data[axis]));
  Index place(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(axis));
  place.push_back(taken);
  place.insert(place.end(), index.begin() + static_cast<std::ptrdiff_t>(axis + places),
               index.end());
  return At(context, GatherOp::kX, place);
}

absl::StatusOr<Size> RangeElement(const ElementContext& context, Indices index) {
  if (!IsInteger(context.inputs[0].dtype)) return NoRule(context);
  const auto first = [&](size_t operand) {
    return At(context, operand, Index(context.shape(operand).size(), 0));
  };
  return first(RangeOp::kStart) + index[0] * first(RangeOp::kDelta);
}

absl::StatusOr<Size> FilledElement(const ElementContext& context, Indices) {
  const auto* value = context.node.attributes.Get<Tensor>("value");
  return value == nullptr ? Size(0) : Size(ElementBits(value->dtype(), value->data(), 0));
}

absl::StatusOr<Size> TriluElement(const ElementContext& context, Indices index) {
  const bool upper = context.node.attributes.Int("upper", 1) != 0;
  const Size k = context.has(1) ? At(context, 1, Index(context.shape(1).size(), 0)) : Size(0);
  const Size above = index[index.size() - 1] - index[index.size() - 2] - k;
  const Size kept = NotNegative(context.table, upper ? above : -above);
  return Choose(context.table, kept, At(context, 0, index), 0);
}

absl::StatusOr<Size> OneHotElement(const ElementContext& context, Indices index) {
  ASSIGN_OR_RETURN(const size_t axis,
                   AxisOf(context, context.node.attributes.Int("axis", -1), std::ssize(index)));
  if (!IsInteger(context.inputs[OneHotOp::kPlaces].dtype)) return NoRule(context);
  Index place(index.begin(), index.end());
  place.erase(place.begin() + static_cast<std::ptrdiff_t>(axis));
  Size hot = At(context, OneHotOp::kPlaces, place);
  hot = Choose(context.table, NotNegative(context.table, hot), hot,
               hot + context.outputs[0].shape[axis]);
  const Size is_hot = IsZero(context.table, hot - index[axis]);
  const auto value = [&](int64_t i) { return At(context, OneHotOp::kValues, Index{i}); };
  return Choose(context.table, is_hot, value(1), value(0));
}

// Sums and the like over dims of constants.
absl::StatusOr<Size> ReducedElement(const ElementContext& context, Indices index) {
  const DType dtype = context.outputs[0].dtype;
  if (dtype != DType::kInt64 || context.operands[0].value == nullptr) return NoRule(context);
  const SizeList& shape = context.shape(0);
  const int64_t count = NumElements(HintsOf(shape));
  if (context.operands[0].value->is_table() || count > KnownValue::kMostElements) {
    return NoRule(context);
  }
  std::vector<int64_t> given;
  if (context.has(1)) {
    ASSIGN_OR_RETURN(given, InferContext(context.node, context.inputs).RequireInt64s(1));
  }
  const bool all = given.empty() && context.node.attributes.Int("noop_with_empty_axes", 0) == 0;
  if (given.empty() && !all) return At(context, 0, index);
  std::vector<bool> reduced(shape.size(), all);
  for (const int64_t axis : given) {
    ASSIGN_OR_RETURN(const size_t d, AxisOf(context, axis, std::ssize(shape)));
    reduced[d] = true;
  }
  const bool keep = ReduceSumOp::From(context.node.attributes).keepdims;
  const std::string& op = context.node.op;
  std::optional<Size> folded;
  for (int64_t i = 0; i < count; ++i) {
    Index place(shape.size());
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d].hint()) {
      place[d] = rest % shape[d].hint();
    }
    bool here = true;
    for (size_t d = 0, at = 0; d < shape.size(); ++d) {
      if (!reduced[d]) here = here && place[d].hint() == index[at].hint();
      if (!reduced[d] || keep) ++at;
    }
    if (!here) continue;
    const Size element = At(context, 0, place);
    folded = !folded.has_value()         ? element
             : op == ReduceSumOp::kName  ? *folded + element
             : op == ReduceProdOp::kName ? *folded * element
             : op == ReduceMaxOp::kName  ? Largest(*folded, element)
                                         : Least(*folded, element);
  }
  if (!folded.has_value()) return NoRule(context);
  return *folded;
}

const absl::flat_hash_map<absl::string_view, ElementRule>& Rules() {
  static const auto* const rules = new absl::flat_hash_map<absl::string_view, ElementRule>{
      {ShapeOp::kName, ShapeElement},
      {SizeOp::kName, ShapeElement},
      {ReshapeOp::kName, ViewElement},
      {SqueezeOp::kName, ViewElement},
      {UnsqueezeOp::kName, ViewElement},
      {FlattenOp::kName, ViewElement},
      {TransposeOp::kName, TransposeElement},
      {ExpandOp::kName, ExpandElement},
      {TileOp::kName, TileElement},
      {ConcatOp::kName, ConcatElement},
      {SplitOp::kName, SplitElement},
      {SliceOp::kName, SliceElement},
      {GatherOp::kName, GatherElement},
      {RangeOp::kName, RangeElement},
      {ConstantOfShapeOp::kName, FilledElement},
      {"Trilu", TriluElement},
      {OneHotOp::kName, OneHotElement},
      {ReduceSumOp::kName, ReducedElement},
      {ReduceProdOp::kName, ReducedElement},
      {ReduceMaxOp::kName, ReducedElement},
      {ReduceMinOp::kName, ReducedElement},
  };
  return *rules;
}

absl::StatusOr<Size> Called(const ElementContext& context, std::vector<CallOperand> operands,
                            std::vector<Size> numbers, int64_t element) {
  auto call = KernelCall(context.node, std::move(operands), context.result, element,
                         context.outputs[context.result].dtype);
  const bool indexed = std::any_of(numbers.begin(), numbers.end(), [](Size size) {
    return size.term() != nullptr && size.term()->indexed;
  });
  if (!indexed) {
    std::vector<int64_t> hints;
    hints.reserve(numbers.size());
    for (const Size number : numbers) hints.push_back(number.hint());
    if (!call->At(hints).has_value()) return NoRule(context);
  }
  return context.table.Call(std::move(call), std::move(numbers));
}

// Returns whether arithmetic with these would overflow, so that kernels alone say what it makes.
// They are constants then, but in an open table, where comparing them is no arithmetic.
bool PinHuge(const ElementContext& context, std::vector<Size>& numbers) {
  constexpr int64_t kHuge = int64_t{1} << 48;
  const bool huge = std::any_of(numbers.begin(), numbers.end(), [](Size size) {
    return size.hint() <= -kHuge || size.hint() >= kHuge;
  });
  if (!huge) return false;
  if (context.table.open()) {
    const Sizes sizes = FactsOf(context.node.op).sizes;
    return sizes != Sizes::kComparison && sizes != Sizes::kExtreme && sizes != Sizes::kBounded &&
           sizes != Sizes::kChoice;
  }
  for (Size& number : numbers) {
    if (number.term() == nullptr || !number.term()->indexed) number = number.Pinned();
  }
  return true;
}

absl::StatusOr<Size> ElementwiseElement(const ElementContext& context, Indices index) {
  std::vector<Size> arguments, numbers;
  std::vector<CallOperand> operands;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    operands.push_back({.dtype = context.inputs[i].dtype});
    arguments.push_back(0);
    if (!context.has(i)) continue;
    arguments.back() = At(context, i, Repeated(context, context.shape(i), index));
    numbers.push_back(arguments.back());
  }
  if (IsInteger(context.inputs[0].dtype) && PinHuge(context, numbers)) {
    // At the ends of their range integers wrap as kernels have it.
  } else if (context.result == 0) {
    if (const auto result = ScalarResult(context, arguments)) return *result;
  }
  return Called(context, std::move(operands), std::move(numbers), 0);
}

// Computes an element: all elements of all operands decide about each of a small result.
absl::StatusOr<Size> WholeElement(const ElementContext& context, Indices index) {
  std::vector<Size> numbers;
  std::vector<CallOperand> operands;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    operands.push_back(
        {.dtype = context.inputs[i].dtype, .shape = HintsOf(context.inputs[i].shape)});
    if (!context.has(i)) continue;
    const KnownOperand& operand = context.operands[i];
    if (operand.value != nullptr && operand.value->is_table()) return NoRule(context);
    const int64_t count = NumElements(operands.back().shape);
    if (count > KnownValue::kMostElements) return NoRule(context);
    for (int64_t k = 0; k < count; ++k) {
      numbers.push_back(operand.value != nullptr
                            ? operand.value->elements[static_cast<size_t>(k)]
                            : Size(ElementBits(operand.dtype(), operand.constant->data(), k)));
    }
  }
  int64_t linear = 0;
  const SizeList& shape = context.outputs[context.result].shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!index[d].is_constant()) return NoRule(context);
    linear = linear * shape[d].hint() + index[d].hint();
  }
  return Called(context, std::move(operands), std::move(numbers), linear);
}

}  // namespace

bool MayKnow(const ElementContext& context) {
  const OpRow* row = FindOp(context.node.op);
  if (row == nullptr || row->Has(kNoFold) ||
      context.outputs[context.result].dtype == DType::kUndefined) {
    return false;
  }
  const std::string& op = context.node.op;
  if (op == ShapeOp::kName || op == SizeOp::kName || op == ConstantOfShapeOp::kName) return true;
  if (context.inputs.empty()) return false;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    if (context.has(i) && !context.operands[i].known()) return false;
  }
  return true;
}

absl::StatusOr<Size> ElementAt(const ElementContext& context, absl::Span<const Size> index) {
  const auto rule = Rules().find(context.node.op);
  if (rule != Rules().end()) {
    absl::StatusOr<Size> element = rule->second(context, index);
    if (element.ok() || element.status().code() != absl::StatusCode::kUnimplemented) return element;
  } else if (FindOp(context.node.op)->Has(kElementwise)) {
    auto element = ElementwiseElement(context, index);
    if (element.ok() || element.status().code() != absl::StatusCode::kUnimplemented) return element;
  }
  return WholeElement(context, index);
}

absl::StatusOr<KnownValue> KnownResult(const ElementContext& context) {
  const InferContext::Output& output = context.outputs[context.result];
  KnownValue value{.dtype = output.dtype, .shape = output.shape};
  const bool fixed = std::all_of(value.shape.begin(), value.shape.end(),
                                 [](Size size) { return size.is_constant(); });
  const int64_t count = NumElements(HintsOf(value.shape));
  if (!fixed || count > KnownValue::kMostElements) {
    Index index;
    for (size_t d = 0; d < value.shape.size(); ++d) {
      index.push_back(context.table.Index(static_cast<int64_t>(d)));
    }
    ASSIGN_OR_RETURN(value.element, ElementAt(context, index));
    return value;
  }
  for (int64_t i = 0; i < count; ++i) {
    Index index(value.shape.size());
    int64_t rest = i;
    for (size_t d = index.size(); d-- > 0; rest /= value.shape[d].hint()) {
      index[d] = rest % value.shape[d].hint();
    }
    ASSIGN_OR_RETURN(const Size element, ElementAt(context, index));
    value.elements.push_back(element);
  }
  return value;
}

}  // namespace reprise
