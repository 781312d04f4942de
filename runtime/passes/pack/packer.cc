#include "runtime/passes/pack/packer.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/weights/narrowed_weights.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/request_scales.h"

namespace reprise::pack {
namespace {

// The inputs that packing adds, which are found by their names.
constexpr absl::string_view kOwnInputs[] = {kPositionsInput, kSegmentsInput, kRequestTokensInput,
                                            kRequestRowsInput};

// Sizes that shapes are inferred with while the packed graph is built; no constant holds them.
constexpr int64_t kTokens = 48;
constexpr int64_t kSegments = 3;

Shape PackedShape(const Form& form, const std::vector<DimKind>& dims) {
  Shape shape = Tail(dims, form.rest);
  shape.insert(shape.begin(), form.kind == Form::kTokens ? kTokens : kSegments);
  return shape;
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

// Returns whether both are equal where both have elements.
bool AgreeAtCorner(const Tensor& a, const Tensor& b) {
  const size_t rank = a.shape().size(), size = DTypeSize(a.dtype());
  if (a.dtype() != b.dtype() || rank != b.shape().size()) return false;
  Shape common = a.shape();
  for (size_t d = 0; d < rank; ++d) common[d] = std::min(common[d], b.shape()[d]);
  const Shape a_strides = Strides(a.shape()), b_strides = Strides(b.shape());
  Shape index(rank, 0);
  for (int64_t i = 0, count = NumElements(common); i < count; ++i) {
    int64_t at_a = 0, at_b = 0;
    for (size_t d = 0; d < rank; ++d) {
      at_a += index[d] * a_strides[d];
      at_b += index[d] * b_strides[d];
    }
    if (std::memcmp(static_cast<const char*>(a.data()) + at_a * size,
                    static_cast<const char*>(b.data()) + at_b * size, size) != 0) {
      return false;
    }
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < common[d]) break;
      index[d] = 0;
    }
  }
  return true;
}

// `count` equal blocks of bytes.
bool AllEqual(const Tensor& tensor, int64_t count) {
  const size_t block = tensor.bytes() / static_cast<size_t>(count);
  const auto* data = static_cast<const char*>(tensor.data());
  for (int64_t i = 1; i < count; ++i) {
    if (std::memcmp(data, data + i * block, block) != 0) return false;
  }
  return true;
}

// `value` is the parameter `table` under some shape.
bool IsTable(const Value& value, const ParameterExpr& table) {
  if (value.kind != Value::Kind::kParameter) return false;
  const ParameterExpr* own = value.parameter.get();
  while (own->text() != table.text() && own->op() == ReshapeOp::kName) own = own->inputs()[0].get();
  return own->text() == table.text();
}

Tensor FirstBlock(const Tensor& tensor, const Shape& shape) {
  return Tensor::Make(tensor.dtype(), shape, [&](void* data) {
    std::memcpy(data, tensor.data(), NumElements(shape) * DTypeSize(tensor.dtype()));
  });
}

}  // namespace

bool CutsBehindAlone(const Graph& graph, const Node& slice) {
  const auto all = [&](size_t input, int64_t expected) {
    if (slice.input(input) == kNone) return true;
    const Tensor* values = KnownConstant(graph, slice.input(input));
    if (values == nullptr) return false;
    const auto ints = values->ToInt64s();
    return ints.ok() && absl::c_all_of(*ints, [&](int64_t i) { return i == expected; });
  };
  constexpr size_t kStarts = SliceOp::kStarts, kSteps = SliceOp::kSteps;
  return all(kStarts, 0) && all(kSteps, 1);
}

bool Packer::Operand::has_length() const {
  return std::any_of(dims.begin(), dims.end(),
                     [](const DimKind& dim) { return dim.kind == DimKind::kLength; });
}

Packer::Packer(const Twins& twins, const Graph& symbolic, const PackOptions& options)
    : twins_(twins), symbolic_(symbolic), options_(options) {
  const size_t values = twins.a.num_values();
  twin_.resize(values, kNone);
  packed_.resize(values, kNone);
  alias_.resize(values);
  pairs_.resize(values);
  table_of_.resize(twins.b.num_values());
}

absl::StatusOr<Graph> Packer::Run() {
  RETURN_IF_ERROR(AddInputs());
  const std::vector<NodeId> a = twins_.a.NodeIds();
  std::vector<NodeId> b;
  for (NodeId id : twins_.b.NodeIds()) {
    if (!CutsTableOfAll(id)) b.push_back(id);
  }
  if (a.size() != b.size()) {
    return absl::UnimplementedError("the nodes of the model depend on its sizes");
  }
  for (size_t i = 0; i < a.size(); ++i) {
    ASSIGN_OR_RETURN(const Site site, TakeTwin(a[i], b));
    for (size_t o = 0; o < site.outputs.size(); ++o) {
      if (site.outputs[o].given()) twin_[site.outputs[o].a] = site.outputs[o].b;
    }
    RETURN_IF_ERROR(PackNode(site));
  }
  RETURN_IF_ERROR(AddOutputs());
  MakeSymbolic();
  if (!to_.Compact()) return absl::InternalError("packing left a cycle");
  return std::move(to_);
}

absl::Status Packer::AddInputs() {
  if (twins_.a.inputs().size() != twins_.b.inputs().size()) {
    return absl::InternalError("the inputs depend on the sizes");
  }
  for (size_t i = 0; i < twins_.a.inputs().size(); ++i) {
    const ValueId a = twins_.a.inputs()[i], b = twins_.b.inputs()[i];
    twin_[a] = b;
    const Value& value = twins_.a.value(a);
    if (absl::c_linear_search(kOwnInputs, value.name)) {
      return absl::UnimplementedError(
          absl::StrCat("input '", value.name, "' has the name of one that packing adds"));
    }
    const std::vector<Dim>& declared = symbolic_.value(symbolic_.FindValue(value.name)).dims;
    const Operand operand = OperandOf(a, b);
    const bool rows_first = !declared.empty() && declared[0].symbol == options_.batch;
    const bool plain =
        (operand.tokens() && !operand.form.merged && operand.form.rest + 2 == declared.size()) ||
        (operand.form.kind == Form::kSegments && operand.form.rest + 1 == declared.size());
    if (!rows_first || !plain) {
      return absl::UnimplementedError(
          absl::StrCat("input '", value.name, "' of shape ", ShapeToString(*value.shape), " (rows ",
                       twins_.at_a.rows, ", length ", twins_.at_a.length, ") has no packed form"));
    }
    std::vector<Dim> dims;
    for (int64_t size : PackedShape(operand.form, operand.dims)) dims.push_back({.size = size});
    const ValueId packed = to_.AddInput(value.name, value.dtype, dims);
    to_.value(packed).shape = PackedShape(operand.form, operand.dims);
    // The symbol comes back in MakeSymbolic.
    to_.value(packed).dims[0].symbol = operand.tokens() ? kTokensAxis : kSegmentsAxis;
    Bind(operand, packed);
  }
  positions_ = to_.AddInput(kPositionsInput, DType::kInt64, {{.symbol = kTokensAxis}});
  to_.value(positions_).shape = Shape{kTokens};
  const auto add_bounds = [&](absl::string_view name) {
    const ValueId bounds = to_.AddInput(std::string(name), DType::kInt32,
                                        {{.symbol = absl::StrCat(kSegmentsAxis, " + 1")}});
    to_.value(bounds).shape = Shape{kSegments + 1};
    return bounds;
  };
  segments_ = add_bounds(kSegmentsInput);
  if (!HasRequestScales(symbolic_)) return absl::OkStatus();
  request_tokens_ = add_bounds(kRequestTokensInput);
  request_rows_ = add_bounds(kRequestRowsInput);
  return absl::OkStatus();
}

absl::Status Packer::AddOutputs() {
  for (size_t i = 0; i < twins_.a.outputs().size(); ++i) {
    const Operand output = OperandOf(twins_.a.outputs()[i], twins_.b.outputs()[i]);
    const size_t lead = output.tokens() ? 2 : 1;
    const bool varies = output.tokens() || output.form.kind == Form::kSegments;
    if (!varies || output.form.merged || output.dims.size() != output.form.rest + lead ||
        PackedOf(output) == kNone) {
      return absl::UnimplementedError(absl::StrCat(
          "output ", i, " of shape ", ShapeToString(*twins_.a.value(output.a).shape), " (rows ",
          twins_.at_a.rows, ", length ", twins_.at_a.length, ") has no packed form"));
    }
    ASSIGN_OR_RETURN(const ValueId packed,
                     Reshape(PackedOf(output), Tail(output.dims, output.form.rest)));
    to_.AddOutput(packed);
  }
  return absl::OkStatus();
}

void Packer::MakeSymbolic() {
  for (ValueId id = 0; id < static_cast<ValueId>(to_.num_values()); ++id) {
    Value& value = to_.value(id);
    if (value.kind == Value::Kind::kResult) {
      value.shape.reset();
      value.dtype = DType::kUndefined;
    } else if (value.kind == Value::Kind::kInput) {
      value.shape.reset();
      if (!value.dims[0].symbol.empty()) value.dims[0].size = -1;
    }
  }
}

Packer::Operand Packer::OperandOf(ValueId a, ValueId b) const {
  Operand operand = {.a = a, .b = b};
  if (a == kNone || b == kNone) return operand;
  if (alias_[a].given()) return alias_[a];
  operand.dims =
      DimKinds(*twins_.a.value(a).shape, twins_.at_a, *twins_.b.value(b).shape, twins_.at_b);
  operand.form = FormOf(operand.dims);
  const Value::Kind kind = twins_.a.value(a).kind;
  if (kind == Value::Kind::kConstant || kind == Value::Kind::kParameter) {
    operand.form = {.kind = Form::kFixed};  // Whatever its dims are.
  }
  return operand;
}

bool Packer::CutsTableOfAll(NodeId b) {
  const Node& node = twins_.b.node(b);
  const ValueId from = node.input(0);
  if (from == kNone) return false;
  const OpRow* row = FindOp(node.op);
  if (row != nullptr && row->Has(kView) && table_of_[from] != nullptr) {
    table_of_[node.outputs[0]] = table_of_[from];
    return true;
  }
  const ParameterExprPtr& table = twins_.b.value(from).parameter;
  if (node.op != SliceOp::kName || table == nullptr || !CutsBehindAlone(twins_.b, node))
    return false;
  for (NodeId a : twins_.a.NodeIds()) {
    const Node& other = twins_.a.node(a);
    if (other.op != SliceOp::kName) continue;
    const ParameterExprPtr& cut = twins_.a.value(other.inputs[0]).parameter;
    // A table that is longer than the longest segment is cut there too.
    if (cut != nullptr && cut->text() == table->text()) return false;
  }
  table_of_[node.outputs[0]] = table;
  return true;
}

absl::StatusOr<Packer::Site> Packer::TakeTwin(NodeId a, std::vector<NodeId>& b) const {
  absl::StatusOr<Site> first = SiteOf(a, b.front());
  for (size_t i = 0; i < b.size(); ++i) {
    absl::StatusOr<Site> site = i == 0 ? first : SiteOf(a, b[i]);
    if (!site.ok()) continue;
    b.erase(b.begin() + static_cast<ptrdiff_t>(i));
    return site;
  }
  return first;
}

absl::StatusOr<Packer::Site> Packer::SiteOf(NodeId a, NodeId b) const {
  Site site = {.a = &twins_.a.node(a), .b = &twins_.b.node(b)};
  const auto differs = [&] {
    return absl::UnimplementedError(
        absl::StrCat(NodeLabel(*site.a), " cannot be packed: it depends on the model's sizes"));
  };
  if (site.a->op != site.b->op || site.a->inputs.size() != site.b->inputs.size() ||
      site.a->outputs.size() != site.b->outputs.size()) {
    return differs();
  }
  for (size_t i = 0; i < site.a->inputs.size(); ++i) {
    const ValueId x = site.a->inputs[i], y = site.b->inputs[i];
    if ((x == kNone) != (y == kNone)) return differs();
    if (x != kNone) {
      const Value& in_a = twins_.a.value(x);
      const Value& in_b = twins_.b.value(y);
      if (const ParameterExprPtr& table = table_of_[y]; table != nullptr) {
        if (!IsTable(in_a, *table)) return differs();
      } else if (in_a.kind != in_b.kind || (twin_[x] != kNone && twin_[x] != y) ||
                 (in_a.kind == Value::Kind::kParameter &&
                  ops::WithoutNarrowing(in_a.parameter)->is_leaf() &&
                  in_a.parameter->text() != in_b.parameter->text())) {
        return differs();
      }
    }
    site.inputs.push_back(OperandOf(x, y));
  }
  for (size_t i = 0; i < site.a->outputs.size(); ++i) {
    site.outputs.push_back(OperandOf(site.a->outputs[i], site.b->outputs[i]));
  }
  return site;
}

absl::Status Packer::Refuse(const Site& site, absl::string_view why) const {
  return absl::UnimplementedError(
      absl::StrCat(NodeLabel(*site.a), " cannot be packed: ", std::string(why)));
}

absl::StatusOr<ValueId> Packer::Ints(std::vector<int64_t> values) {
  return to_.AddConstant("", Tensor::Int64s(values));
}

absl::StatusOr<ValueId> Packer::Whole(const Site& site, const Operand& operand) {
  if (!operand.given()) return kNone;
  const Value& value = twins_.a.value(operand.a);
  const bool one_shape = std::all_of(operand.dims.begin(), operand.dims.end(),
                                     [](const DimKind& d) { return d.kind == DimKind::kSize; });
  const bool same_constant = value.kind != Value::Kind::kConstant ||
                             SameBytes(value.constant, twins_.b.value(operand.b).constant);
  if (!one_shape || !same_constant) return Refuse(site, "a fixed operand depends on the sizes");
  return Table(site, operand);
}

absl::StatusOr<ValueId> Packer::Table(const Site& site, const Operand& operand) {
  if (PackedOf(operand) != kNone) return PackedOf(operand);
  const Value& value = twins_.a.value(operand.a);
  if (value.kind == Value::Kind::kParameter) {
    Bind(operand, to_.AddParameter(value.name, value.parameter));
  } else if (value.kind == Value::Kind::kConstant) {
    if (!AgreeAtCorner(value.constant, twins_.b.value(operand.b).constant)) {
      return Refuse(site, "a constant of shorter sequences is not part of the one of longer ones");
    }
    Bind(operand, to_.AddConstant(value.name, value.constant));
  } else {
    return Refuse(site, "a fixed operand is computed in a way that has no packing rule");
  }
  return PackedOf(operand);
}

absl::StatusOr<ValueId> Packer::SquareTable(const Site& site, const Operand& operand, int64_t heads,
                                            bool has_rows) {
  const Shape shape = {heads, twins_.at_a.length, twins_.at_a.length};
  if (!has_rows) {
    ASSIGN_OR_RETURN(const ValueId table, Table(site, operand));
    return AddReshape(to_, table, shape);
  }
  const Value& value = twins_.a.value(operand.a);
  if (value.kind != Value::Kind::kConstant || operand.dims[0].kind != DimKind::kRows ||
      !AgreeAtCorner(value.constant, twins_.b.value(operand.b).constant) ||
      !AllEqual(value.constant, twins_.at_a.rows)) {
    return Refuse(site, "a fixed operand has rows");
  }
  return to_.AddConstant("", FirstBlock(value.constant, shape));
}

absl::StatusOr<ValueId> Packer::LookUp(const Site& site, const Operand& operand, size_t rest) {
  Shape shape = Tail(operand.dims, rest);
  shape.insert(shape.begin(), twins_.at_a.length);
  const Value& value = twins_.a.value(operand.a);
  const int64_t rows = NumElements(*value.shape) / std::max<int64_t>(1, NumElements(shape));
  ValueId table = kNone;
  if (value.kind == Value::Kind::kConstant) {
    if (!AgreeAtCorner(value.constant, twins_.b.value(operand.b).constant) ||
        !AllEqual(value.constant, rows)) {
      return Refuse(site, "a constant is not a table by position");
    }
    const Tensor first = FirstBlock(value.constant, shape);
    if (AllEqual(first, shape[0])) {
      return to_.AddConstant("", FirstBlock(first, Tail(operand.dims, rest)));
    }
    if (first.dtype() == DType::kInt64 && rest == 0) {
      const auto values = first.span<int64_t>();
      bool counts = true;
      for (size_t i = 0; i < values.size(); ++i) {
        counts &= values[i] == values[0] + static_cast<int64_t>(i);
      }
      if (counts && values[0] == 0) return positions_;
      if (counts) {
        const ValueId offset = to_.AddConstant(
            "", Tensor::FromVector(DType::kInt64, Shape{}, std::vector<int64_t>{values[0]}));
        return AddInferred(to_, AddOp::kName, {positions_, offset});
      }
    }
    table = to_.AddConstant("", first);
  } else {
    if (rows != 1) return Refuse(site, "a fixed operand has rows");
    ASSIGN_OR_RETURN(table, Table(site, operand));
    ASSIGN_OR_RETURN(table, AddReshape(to_, table, shape));
  }
  return AddInferred(to_, GatherOp::kName, {table, positions_}, {{"axis", int64_t{0}}});
}

absl::StatusOr<ValueId> Packer::AlignFixed(const Site& site, const Operand& operand,
                                           const Form& form, size_t length_at) {
  const size_t rank = operand.dims.size();
  for (size_t d = 0; d < rank; ++d) {
    const size_t from_right = rank - d;
    const DimKind& dim = operand.dims[d];
    const bool inside = from_right <= form.rest;
    const bool at_length = from_right == length_at && dim.kind == DimKind::kLength;
    const bool at_rows = from_right == form.rows && dim.kind == DimKind::kRows;
    if (inside ? dim.kind == DimKind::kSize : dim.is_one() || at_length || at_rows) continue;
    return Refuse(site, "it combines tokens with a fixed operand of another layout");
  }
  if (operand.has_length()) return LookUp(site, operand, form.rest);
  const size_t keep = std::min(form.rest, rank);
  if (keep == rank) return Whole(site, operand);
  const Shape tail = Tail(operand.dims, keep);
  if (twins_.a.value(operand.a).kind == Value::Kind::kConstant) {
    const Tensor& constant = twins_.a.value(operand.a).constant;
    const Tensor& other = twins_.b.value(operand.b).constant;
    const int64_t rows = constant.num_elements() / std::max<int64_t>(1, NumElements(tail));
    if (rows == 0 || !AllEqual(constant, rows) || !AgreeAtCorner(constant, other)) {
      return Refuse(site, "a fixed operand depends on the sizes");
    }
    return to_.AddConstant("", FirstBlock(constant, tail));
  }
  ASSIGN_OR_RETURN(const ValueId whole, Whole(site, operand));
  return AddReshape(to_, whole, tail);
}

absl::StatusOr<ValueId> Packer::Align(const Site& site, const Operand& operand,
                                      const std::vector<DimKind>& dims) {
  if (!operand.given()) return kNone;
  const Form form = FormOf(dims);
  const bool to_tokens = form.kind == Form::kTokens;
  REPRISE_CHECK(to_tokens || form.kind == Form::kSegments);
  const size_t length_at = to_tokens && !form.merged ? form.rest + 1 : 0;
  if (operand.fixed()) return AlignFixed(site, operand, form, length_at);
  const Form& own = operand.form;
  if (PackedOf(operand) == kNone || (own.kind != Form::kTokens && own.kind != Form::kSegments)) {
    return Refuse(site, "an operand has no packed form");
  }
  const bool same_place = own.rows == form.rows && own.merged == form.merged;
  if (own.kind == form.kind && own.rest == form.rest && same_place) return PackedOf(operand);
  if (own.kind != Form::kSegments || !to_tokens || own.rows != form.rows || form.merged) {
    return Refuse(site, "its operands have their rows in different places");
  }
  // One value a row, for every token of it.
  for (size_t from_right = form.rest + 1; from_right < own.rows; ++from_right) {
    if (!operand.dims[operand.dims.size() - from_right].is_one()) {
      return Refuse(site, "its operands have their rows in different places");
    }
  }
  ASSIGN_OR_RETURN(const ValueId rows, Reshape(PackedOf(operand), Tail(operand.dims, form.rest)));
  return AddInferred(to_, SegmentSpreadOp::kName, {rows, segments_, positions_});
}

absl::StatusOr<ValueId> Packer::Reshape(ValueId packed, const Shape& tail) {
  const Shape& shape = *to_.value(packed).shape;
  if (absl::MakeConstSpan(shape).subspan(1) == absl::MakeConstSpan(tail)) return packed;
  std::vector<int64_t> sizes = {-1};
  sizes.insert(sizes.end(), tail.begin(), tail.end());
  ASSIGN_OR_RETURN(const ValueId target, Ints(std::move(sizes)));
  return AddInferred(to_, ReshapeOp::kName, {packed, target}, {{"allowzero", int64_t{1}}});
}

absl::Status Packer::Emit(const Site& site, absl::string_view op, std::vector<ValueId> inputs,
                          Attributes attributes) {
  ASSIGN_OR_RETURN(const ValueId packed,
                   AddInferred(to_, op, std::move(inputs), std::move(attributes), site.a->name));
  const Operand& result = site.outputs[0];
  if (*to_.value(packed).shape != PackedShape(result.form, result.dims)) {
    return Refuse(site, absl::StrCat("its packed result has shape ",
                                     ShapeToString(*to_.value(packed).shape)));
  }
  Bind(result, packed);
  return absl::OkStatus();
}

absl::Status Packer::EmitReshaped(const Site& site, absl::string_view op,
                                  std::vector<ValueId> inputs, Attributes attributes) {
  const Operand& result = site.outputs[0];
  ASSIGN_OR_RETURN(ValueId packed,
                   AddInferred(to_, op, std::move(inputs), std::move(attributes), site.a->name));
  ASSIGN_OR_RETURN(packed, Reshape(packed, Tail(result.dims, result.form.rest)));
  if (*to_.value(packed).shape != PackedShape(result.form, result.dims)) {
    return Refuse(site, absl::StrCat("its packed result has shape ",
                                     ShapeToString(*to_.value(packed).shape)));
  }
  Bind(result, packed);
  return absl::OkStatus();
}

}  // namespace reprise::pack
