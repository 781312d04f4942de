#include "runtime/passes/paged/row_values.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

Shape AfterOnes(const Shape& shape, size_t rank) {
  Shape result(rank - shape.size(), 1);
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

// The letter that an equation of Einsum does not use.
constexpr char kTokensLetter = 'Z';

}  // namespace

ValueId RowValues::At(ValueId value, size_t rank) {
  const std::optional<Rows> rows = Of(value);
  return rows.has_value() && rank > 0 ? Fit(*rows, rank - 1) : kNone;
}

std::optional<RowValues::Rows> RowValues::Of(ValueId value) {
  const auto [known, added] = rows_.try_emplace(value, std::nullopt);
  if (!added) return known->second;
  const std::optional<Shape> shape = values_.ShapeOf(value);
  const NodeId producer = ProducerOf(graph_, value);
  if (!shape.has_value() || producer == kNone || !values_.Depends(value)) return std::nullopt;
  Rows rows = {.shape = *shape, .has_batch = !shape->empty() && shape->front() == values_.a().rows};
  if (rows.has_batch) rows.shape.erase(rows.shape.begin());
  if (const std::optional<double> offset = values_.OffsetOf(value); offset.has_value()) {
    rows.value = FromPositions(*PastValues::ConstantAt(values_.a(), value), *offset, rows.shape);
  } else {
    const Node node = graph_.node(producer);  // A copy: adding nodes moves them.
    if (node.op == SplitOp::kName) {
      rows.value = Piece(node, value, rows);
    } else if (node.outputs.size() == 1) {
      rows.value = Compute(node, rows);
    }
  }
  if (rows.value == kNone) return std::nullopt;
  rows_[value] = rows;
  return rows;
}

ValueId RowValues::Compute(const Node& node, const Rows& result) {
  const OpRow* row = FindOp(node.op);
  if (row == nullptr) return kNone;
  if (row->Has(kElementwise)) return Elementwise(node, result);
  if (row->Has(kView)) {
    const std::optional<Rows> rows = Of(node.inputs[0]);
    if (!rows.has_value() || NumElements(rows->shape) != NumElements(result.shape)) return kNone;
    return Reshaped(rows->value, result.shape);
  }
  if (node.op == ExpandOp::kName || node.op == TileOp::kName) return Expanded(node, result);
  if (node.op == TransposeOp::kName) return Transposed(node, result);
  if (node.op == ConcatOp::kName) return Joined(node, result);
  if (node.op == SliceOp::kName) return Cut(node, result);
  if (node.op == GatherOp::kName) return LookedUp(node, result);
  if (node.op == GatherElementsOp::kName) return LookedUpEach(node, result);
  if (node.op == MatMulOp::kName || node.op == EinsumOp::kName) return Summed(node, result);
  if (node.op == RangeOp::kName) return Counted(node, result);
  return kNone;
}

ValueId RowValues::FromPositions(const Tensor& like, double offset, const Shape& shape) {
  ValueId value = positions_;
  if (offset != 0) {
    value = Add(AddOp::kName,
                {value, graph_.AddConstant("", Tensor::Int64Scalar(static_cast<int64_t>(offset)))});
  }
  if (like.dtype() != DType::kInt64) {
    value = Add(CastOp::kName, {value}, {{"to", ops::OnnxNumber(like.dtype())}});
  }
  value = Reshaped(value, Shape(shape.size(), 1));
  if (NumElements(shape) == 1) return value;
  std::vector<int64_t> wide = {1};
  wide.insert(wide.end(), shape.begin(), shape.end());
  return Add(ExpandOp::kName, {value, Ints(wide)});
}

ValueId RowValues::Elementwise(const Node& node, const Rows& result) {
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) {
    inputs.push_back(input == kNone ? kNone : Operand(input, result));
    if (input != kNone && inputs.back() == kNone) return kNone;
  }
  return Add(node.op, std::move(inputs), node.attributes);
}

ValueId RowValues::Expanded(const Node& node, const Rows& result) {
  const std::optional<Rows> rows = Of(node.inputs[0]);
  if (!rows.has_value()) return kNone;
  if (node.op == TileOp::kName && NumElements(rows->shape) != NumElements(result.shape)) {
    return kNone;
  }
  const ValueId value = Fit(*rows, result.shape.size());
  if (value == kNone || NumElements(rows->shape) == NumElements(result.shape)) return value;
  std::vector<int64_t> wide = {1};
  wide.insert(wide.end(), result.shape.begin(), result.shape.end());
  return Add(ExpandOp::kName, {value, Ints(wide)});
}

ValueId RowValues::Transposed(const Node& node, const Rows& result) {
  const std::optional<Rows> rows = Of(node.inputs[0]);
  if (!rows.has_value() || rows->has_batch != result.has_batch) return kNone;
  std::vector<int64_t> perm = node.attributes.Ints("perm");
  if (perm.empty()) return kNone;
  if (rows->has_batch) {
    if (perm[0] != 0) return kNone;
  } else {
    for (int64_t& dim : perm) ++dim;
    perm.insert(perm.begin(), 0);
  }
  return Add(TransposeOp::kName, {rows->value}, {{"perm", std::move(perm)}});
}

ValueId RowValues::Joined(const Node& node, const Rows& result) {
  const auto rank = static_cast<int64_t>(result.shape.size());
  int64_t axis = node.attributes.Int("axis", 0);
  // From the end, where a dim of tokens in front changes nothing.
  if (axis >= 0) axis -= rank + (result.has_batch ? 1 : 0);
  if (axis < -rank) return kNone;
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) {
    inputs.push_back(OwnRows(input, result));
    if (inputs.back() == kNone) return kNone;
  }
  return Add(ConcatOp::kName, std::move(inputs), {{"axis", axis}});
}

ValueId RowValues::Cut(const Node& node, const Rows& result) {
  const ValueId data = node.inputs[SliceOp::kX];
  const std::optional<Shape> first = PastValues::ShapeAt(values_.a(), data);
  if (!first.has_value()) return kNone;
  const auto rank = static_cast<int64_t>(first->size());
  const std::optional<Shape> fixed = values_.ShapeOf(data);
  const bool is_rows = fixed.has_value() && values_.Depends(data);
  const std::optional<Rows> rows = is_rows ? Of(data) : std::nullopt;
  if (is_rows && (!rows.has_value() || rows->has_batch != result.has_batch)) return kNone;
  if (!is_rows && result.has_batch) return kNone;
  Shape all = *first;
  if (is_rows && rows->has_batch) all.erase(all.begin());
  const int64_t before = rank - static_cast<int64_t>(all.size());
  std::vector<int64_t> starts, ends, axes;
  for (int64_t d = 0; d < static_cast<int64_t>(all.size()); ++d) {
    const auto begin = values_.BeginOf(node, d + before);
    if (!begin.has_value()) return kNone;
    const int64_t size = result.shape[d];
    if (!begin->from_past) {
      if (begin->place == 0 && size == all[d]) continue;
      if (!is_rows) return kNone;
      starts.push_back(begin->place), ends.push_back(begin->place + size), axes.push_back(d + 1);
      continue;
    }
    if (is_rows) return kNone;
    // Rows of a table from the one of the past on; the table is whole in all other dims.
    const ValueId table = tables_.Of(data);
    for (int64_t other = 0; other < rank; ++other) {
      const bool whole = other == d || result.shape[other] == all[other];
      if (!whole) return kNone;
    }
    if (table == kNone) return kNone;
    std::vector<int64_t> places(static_cast<size_t>(size));
    std::iota(places.begin(), places.end(), begin->place);
    const ValueId from = Reshaped(positions_, {1});
    return Gathered(table, d, Add(AddOp::kName, {from, Ints(places)}), result.shape.size());
  }
  if (!is_rows || starts.empty()) return kNone;
  return Add(SliceOp::kName, {rows->value, Ints(starts), Ints(ends), Ints(axes)});
}

ValueId RowValues::Piece(const Node& split, ValueId piece, const Rows& result) {
  const std::optional<Rows> rows = Of(split.inputs[0]);
  const std::optional<Shape> whole = values_.ShapeOf(split.inputs[0]);
  if (!rows.has_value() || !whole.has_value() || rows->has_batch != result.has_batch) return kNone;
  int64_t axis = split.attributes.Int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(whole->size());
  if (rows->has_batch && axis == 0) return kNone;
  int64_t begin = 0;
  for (const ValueId output : split.outputs) {
    const std::optional<Shape> shape = values_.ShapeOf(output);
    if (!shape.has_value()) return kNone;
    const int64_t size = (*shape)[axis];
    if (output == piece) {
      return Add(SliceOp::kName, {rows->value, Ints({begin}), Ints({begin + size}),
                                  Ints({axis + (rows->has_batch ? 0 : 1)})});
    }
    begin += size;
  }
  return kNone;
}

ValueId RowValues::LookedUp(const Node& node, const Rows& result) {
  const ValueId data = node.inputs[GatherOp::kX], places = node.inputs[GatherOp::kPlaces];
  const std::optional<Shape> shape = PastValues::ShapeAt(values_.a(), data);
  if (!shape.has_value() || shape->empty()) return kNone;
  const auto rank = static_cast<int64_t>(shape->size());
  int64_t axis = GatherOp::From(node).axis;
  if (axis < 0) axis += rank;
  if (!values_.Depends(places)) {
    const std::optional<Rows> rows = Of(data);
    if (!rows.has_value() || rows->has_batch != result.has_batch) return kNone;
    if (rows->has_batch && axis == 0) return kNone;
    return Add(GatherOp::kName, {rows->value, places},
               {{"axis", axis + (rows->has_batch ? 0 : 1)}});
  }
  const std::optional<Rows> rows = Of(places);
  const ValueId table = tables_.Of(data);
  if (!rows.has_value() || table == kNone || rows->has_batch != result.has_batch) return kNone;
  if (rows->has_batch && axis != 0) return kNone;
  return Gathered(table, axis, rows->value, result.shape.size());
}

// Elements of a table that are all looked up at the place of the token: its rows there.
ValueId RowValues::LookedUpEach(const Node& node, const Rows& result) {
  const ValueId data = node.inputs[0], places = node.inputs[1];
  const std::optional<Shape> shape = values_.ShapeOf(data), looked = values_.ShapeOf(places);
  const std::optional<double> offset = values_.OffsetOf(places);
  if (!shape.has_value() || !looked.has_value() || !offset.has_value() || result.has_batch ||
      values_.Depends(data)) {
    return kNone;
  }
  const auto rank = static_cast<int64_t>(shape->size());
  int64_t axis = GatherElementsOp::From(node).axis;
  if (axis < 0) axis += rank;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis && (*looked)[d] != (*shape)[d]) return kNone;
  }
  const auto positions = (*shape)[axis] - static_cast<int64_t>(*offset);
  positions_of_tables_ =
      positions_of_tables_ == 0 ? positions : std::min(positions_of_tables_, positions);
  const Tensor& like = *PastValues::ConstantAt(values_.a(), places);
  return Gathered(data, axis, FromPositions(like, *offset, {(*looked)[axis]}), rank);
}

ValueId RowValues::Summed(const Node& node, const Rows& result) {
  if (node.op == MatMulOp::kName) {
    if (result.shape.size() < 2) return kNone;
    return Elementwise(node, result);
  }
  const auto* written = node.attributes.Get<std::string>("equation");
  if (written == nullptr || result.has_batch) return kNone;
  const std::string equation = absl::StrReplaceAll(*written, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2 || equation.find(kTokensLetter) != std::string::npos) return kNone;
  std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != node.inputs.size()) return kNone;
  std::vector<ValueId> inputs = node.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!values_.Depends(inputs[i])) continue;
    const std::optional<Rows> rows = Of(inputs[i]);
    if (!rows.has_value() || rows->has_batch) return kNone;
    inputs[i] = rows->value;
    terms[i].insert(0, 1, kTokensLetter);
  }
  return Add(EinsumOp::kName, std::move(inputs),
             {{"equation", absl::StrCat(absl::StrJoin(terms, ","), "->",
                                        std::string(1, kTokensLetter), sides[1])}});
}

ValueId RowValues::Counted(const Node& node, const Rows& result) {
  const std::optional<Rows> first = Of(node.inputs[0]);
  const Tensor* step = PastValues::ConstantAt(values_.a(), node.inputs[2]);
  if (!first.has_value() || first->has_batch || result.has_batch || step == nullptr ||
      values_.Depends(node.inputs[2]) || step->dtype() != DType::kInt64) {
    return kNone;
  }
  std::vector<int64_t> more(static_cast<size_t>(result.shape[0]));
  for (size_t i = 0; i < more.size(); ++i) {
    more[i] = static_cast<int64_t>(i) * static_cast<int64_t>(step->ToDoubles()[0]);
  }
  return Add(AddOp::kName, {Reshaped(first->value, {1}), Ints(more)});
}

ValueId RowValues::Fit(const Rows& rows, size_t rank) {
  Shape shape = rows.shape;
  // A batch of one, which the tokens replace.
  if (!rows.has_batch && shape.size() == rank + 1 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() > rank || (rows.has_batch && shape.size() != rank)) return kNone;
  shape = AfterOnes(shape, rank);
  return shape == rows.shape ? rows.value : Reshaped(rows.value, shape);
}

ValueId RowValues::Operand(ValueId value, const Rows& result) {
  if (!values_.IsStatic(value)) return kNone;
  if (values_.Depends(value)) {
    const std::optional<Rows> rows = Of(value);
    return rows.has_value() ? Fit(*rows, result.shape.size()) : kNone;
  }
  const std::optional<Shape> shape = values_.ShapeOf(value);
  const bool fits = shape.has_value() && shape->size() <= result.shape.size() + 1;
  return fits ? value : kNone;
}

ValueId RowValues::OwnRows(ValueId value, const Rows& result) {
  const ValueId operand = Operand(value, result);
  if (operand == kNone || values_.Depends(value)) return operand;
  Shape shape = *values_.ShapeOf(value);
  if (shape.size() > result.shape.size()) return kNone;
  shape = AfterOnes(shape, result.shape.size());
  const ValueId wide =
      Add(ConcatOp::kName, {Add(ShapeOp::kName, {positions_}), Ints({shape.begin(), shape.end()})},
          {{"axis", int64_t{0}}});
  return Add(ExpandOp::kName, {operand, wide});
}

ValueId RowValues::Gathered(ValueId table, int64_t dim, ValueId places, size_t rank) {
  const ValueId found = Add(GatherOp::kName, {table, places}, {{"axis", dim}});
  if (dim == 0) return found;
  std::vector<int64_t> perm = {dim};
  for (int64_t d = 0; d <= static_cast<int64_t>(rank); ++d) {
    if (d != dim) perm.push_back(d);
  }
  return Add(TransposeOp::kName, {found}, {{"perm", std::move(perm)}});
}

ValueId RowValues::Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  const NodeId node = graph_.AddNode(op, std::move(inputs), std::move(attributes));
  return graph_.node(node).outputs[0];
}

ValueId RowValues::Ints(const std::vector<int64_t>& values) {
  return graph_.AddConstant("", Tensor::Int64s(values));
}

ValueId RowValues::Reshaped(ValueId value, const Shape& shape) {
  std::vector<int64_t> rows = {-1};
  rows.insert(rows.end(), shape.begin(), shape.end());
  return Add(ReshapeOp::kName, {value, Ints(rows)});
}

}  // namespace reprise
