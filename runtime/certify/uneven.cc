#include "runtime/certify/uneven.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"

namespace reprise {
namespace {

enum class Kind { kData, kEven, kUneven };

bool IsUniform(const Tensor& tensor) {
  std::optional<double> first;
  return AllElements(tensor, [&](double value) {
    if (!first.has_value()) first = value;
    return value == *first;
  });
}

// The kind of what a node makes of sizes and constants.
Kind Made(const Node& node, const OpRow& row, const std::vector<Kind>& kinds) {
  const OpFacts& facts = FactsOf(row);
  const auto is_even = [&](ValueId id) { return id == kNone || kinds[id] == Kind::kEven; };
  bool even = node.op == ConstantOfShapeOp::kName;
  const bool counts_up = facts.growth == Growth::kCumulates;
  if (facts.HoldsFirst() || (facts.Is(kReduces) && !counts_up)) even = is_even(node.input(0));
  if (row.Has(kElementwise)) even = absl::c_all_of(node.inputs, is_even);
  return even ? Kind::kEven : Kind::kUneven;
}

uint64_t Bit(int64_t dims_behind) {
  return dims_behind >= 0 && dims_behind < 64 ? uint64_t{1} << dims_behind : 0;
}

// The form of a table, as far as it is known.
struct Form {
  UnevenDims dims;
  std::optional<int64_t> rank;
};

constexpr Form kAnyForm = {.dims = {.unknown = true}};

Form FormOf(const Tensor& tensor) {
  const auto rank = static_cast<int64_t>(tensor.shape().size());
  Form form = {.rank = rank};
  if (IsUniform(tensor)) return form;
  for (int64_t d = 0; d < rank; ++d) {
    if (tensor.shape()[d] > 1) form.dims.along |= Bit(rank - 1 - d);
  }
  return form;
}

// Follows the dims along which tables differ through the nodes that make them. A dim of a known
// number of elements, as a list of sizes has it, never becomes one that grows.
class TableForms {
 public:
  explicit TableForms(const Graph& graph) : graph_(graph), forms_(graph.num_values()) {
    for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
      const Value& value = graph.value(id);
      if (value.kind == Value::Kind::kConstant) forms_[id] = FormOf(value.constant);
      if (value.kind == Value::Kind::kParameter) forms_[id] = kAnyForm;
    }
  }

  void Visit(const Node& node, const OpRow& row) {
    for (const ValueId output : node.outputs) {
      if (output != kNone) forms_[output] = Made(node, row);
    }
  }

  const UnevenDims& Of(ValueId id) const { return forms_[id].dims; }

 private:
  // Nothing is known of an operand that is left out.
  const Form& At(ValueId id) const { return id == kNone ? kAnyForm : forms_[id]; }

  Form Made(const Node& node, const OpRow& row) const {
    const OpFacts& facts = FactsOf(row);
    if (facts.sizes == Sizes::kOfShape) {
      return {.rank = node.op == ShapeOp::kName ? std::optional<int64_t>(1) : 0};
    }
    if (node.op == ConstantOfShapeOp::kName) return {};
    if (node.op == RangeOp::kName) return {.dims = {.along = Bit(0)}, .rank = 1};
    if (row.Has(kElementwise)) return Joined(node);
    const Form& first = At(node.input(0));
    // Dims that come in front, and copies, differ as little as what they are made of.
    if (node.op == ExpandOp::kName) return {.dims = first.dims};
    if (node.op == TileOp::kName || node.op == SliceOp::kName) return first;
    if (node.op == ConcatOp::kName) return InARow(node);
    if (node.op == UnsqueezeOp::kName) return Moved(node, /*adds=*/true);
    if (node.op == SqueezeOp::kName) return Moved(node, /*adds=*/false);
    if (node.op == TransposeOp::kName) return Transposed(node);
    if (node.op == GatherOp::kName && first.rank == 1 && At(node.input(1)).rank == 0) {
      return {.rank = 0};
    }
    const bool keeps =
        facts.HoldsFirst() || (facts.Is(kReduces) && facts.growth != Growth::kCumulates);
    return keeps && first.dims.even() ? Form{} : kAnyForm;
  }

  Form Joined(const Node& node) const {
    Form joined = {.rank = 0};
    for (const ValueId input : node.inputs) {
      if (input == kNone) continue;
      const Form& one = forms_[input];
      joined.dims.along |= one.dims.along;
      joined.dims.unknown = joined.dims.unknown || one.dims.unknown;
      joined.rank =
          joined.rank && one.rank ? std::optional(std::max(*joined.rank, *one.rank)) : std::nullopt;
    }
    return joined;
  }

  Form InARow(const Node& node) const {
    Form joined = Joined(node);
    if (node.inputs.size() == 1) return joined;
    if (!joined.rank.has_value()) return kAnyForm;
    const int64_t axis = node.attributes.Int("axis", 0);
    joined.dims.along |= Bit(axis < 0 ? -1 - axis : *joined.rank - 1 - axis);
    return joined;
  }

  // Dims of 1 come to the table, or go.
  Form Moved(const Node& node, bool adds) const {
    const Form& from = At(node.input(0));
    if (from.dims.even() && !from.rank.has_value()) return from;
    const Tensor* given = graph_.ConstantOf(node.input(1));
    if (given == nullptr || !from.rank.has_value()) return from.dims.even() ? Form{} : kAnyForm;
    const std::vector<double> axes = given->ToDoubles();
    const auto count = static_cast<int64_t>(axes.size());
    const int64_t more = *from.rank + (adds ? count : 0);  // the rank that has these dims
    uint64_t ones = 0;
    for (const double axis : axes)
      ones |=
          Bit(axis < 0 ? -1 - static_cast<int64_t>(axis) : more - 1 - static_cast<int64_t>(axis));
    Form to = {.dims = {.unknown = from.dims.unknown}, .rank = adds ? more : more - count};
    int64_t fewer_behind = 0;
    for (int64_t behind = 0; behind < more; ++behind) {
      if ((ones & Bit(behind)) != 0) continue;
      const int64_t source = adds ? fewer_behind : behind;
      if (from.dims.Along(source)) to.dims.along |= Bit(adds ? behind : fewer_behind);
      ++fewer_behind;
    }
    return to;
  }

  Form Transposed(const Node& node) const {
    const Form& from = At(node.input(0));
    if (from.dims.even()) return from;
    const std::vector<int64_t> perm = node.attributes.Ints("perm", {});
    const auto rank = static_cast<int64_t>(perm.size());
    const auto is_dim = [&](int64_t dim) { return dim >= 0 && dim < rank; };
    if (perm.empty() || from.rank != rank || !absl::c_all_of(perm, is_dim)) return kAnyForm;
    Form to = {.dims = {.unknown = from.dims.unknown}, .rank = rank};
    for (int64_t d = 0; d < rank; ++d) {
      if (from.dims.Along(rank - 1 - perm[d])) to.dims.along |= Bit(rank - 1 - d);
    }
    return to;
  }

  const Graph& graph_;
  std::vector<Form> forms_;
};

}  // namespace

UnevenTables UnevenConstants(const Graph& symbolic) {
  std::vector<Kind> kinds(symbolic.num_values(), Kind::kData);
  for (ValueId id = 0; id < static_cast<ValueId>(symbolic.num_values()); ++id) {
    const Value& value = symbolic.value(id);
    if (value.kind == Value::Kind::kParameter) kinds[id] = Kind::kUneven;
    if (value.kind != Value::Kind::kConstant) continue;
    kinds[id] = IsUniform(value.constant) ? Kind::kEven : Kind::kUneven;
  }
  TableForms forms(symbolic);
  UnevenTables tables;
  for (const NodeId id : symbolic.NodeIds()) {
    const Node& node = symbolic.node(id);
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || row->Has(kNoFold)) continue;
    const bool data = !row->Has(kShapeOnly) && absl::c_any_of(node.inputs, [&](ValueId input) {
      return input != kNone && kinds[input] == Kind::kData;
    });
    if (data) continue;
    const Kind kind = Made(node, *row, kinds);
    forms.Visit(node, *row);
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      kinds[output] = kind;
      if (kind == Kind::kUneven) tables[symbolic.value(output).name] = forms.Of(output);
    }
  }
  return tables;
}

}  // namespace reprise
