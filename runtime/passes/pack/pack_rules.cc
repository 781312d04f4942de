// Packing of each kind of node. A node that no rule covers is refused.
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/reduce/layer_norm_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/packer.h"

namespace reprise::pack {
absl::Status Packer::PackNode(const Site& site) {
  const OpRow* row = FindOp(site.op());
  REPRISE_CHECK(row != nullptr);
  const bool all_fixed = std::all_of(site.inputs.begin(), site.inputs.end(),
                                     [](const Operand& o) { return !o.given() || o.fixed(); });
  if (all_fixed) return PackFixed(site);
  if (row->Has(kView)) return PackView(site);
  if (row->Has(kElementwise)) {
    return site.outputs[0].form.kind == Form::kPairs ? PackPairs(site) : PackElementwise(site);
  }
  const OpFacts& facts = FactsOf(*row);
  switch (facts.packing) {
    case PackRule::kNone:
      return Refuse(site, "the op has no packing rule");
    case PackRule::kAlongAxis:
      return PackAlongAxis(site, site.attributes().Int("axis", facts.axis));
    case PackRule::kAttention:
      return PackAttention(site);
    case PackRule::kByteTable:
      return PackByteTable(site);
    case PackRule::kCumSum:
      return PackCumSum(site);
    case PackRule::kEmbedding:
      return PackEmbedding(site);
    case PackRule::kExpand:
      return PackExpand(site);
    case PackRule::kGather:
      return PackGather(site);
    case PackRule::kLastDims:
      return PackLastDims(site);
    case PackRule::kPick:
      return PackPick(site);
    case PackRule::kPlace:
      return PackPlace(site);
    case PackRule::kProduct:
      return PackProduct(site);
    case PackRule::kQuantisation:
      return PackQuantisation(site);
    case PackRule::kReduce:
      return PackReduce(site);
    case PackRule::kRelative:
      return PackRelative(site);
    case PackRule::kRequestScale:
      return PackRequestScale(site);
    case PackRule::kRotary:
      return PackRotary(site);
    case PackRule::kSlice:
      return PackSlice(site);
    case PackRule::kTranspose:
      return PackTranspose(site);
  }
  return Refuse(site, "the op has no packing rule");
}

// Packs where every token, or every row, keeps all that the op works on.
absl::Status Packer::PackLastDims(const Site& site) {
  const Operand& data = site.inputs[0];
  const Operand& result = site.outputs[0];
  const int64_t used = data.rank() - result.rank();
  if (PackedOf(data) == kNone || result.form.kind != data.form.kind ||
      result.form.rows + static_cast<size_t>(used) != data.form.rows) {
    return Refuse(site, "it works along an axis that tokens do not keep");
  }
  std::vector<ValueId> inputs = {PackedOf(data)};
  for (size_t i = 1; i < site.inputs.size(); ++i) {
    if (!site.inputs[i].fixed())
      return Refuse(site, "an operand of it is computed from the request");
    ASSIGN_OR_RETURN(inputs.emplace_back(), Whole(site, site.inputs[i]));
  }
  return Emit(site, site.op(), std::move(inputs), site.attributes());
}

// Returns whether a view, or a Gather, of a table by position takes for shorter sequences the
// same places that it takes for the longest.
bool Packer::KeepsPlaces(const Site& site) const {
  const Operand& table = site.inputs[0];
  if (!table.has_length()) return true;
  if (site.op() == GatherOp::kName) {
    const int64_t axis = site.attributes().Int("axis", 0);
    const DimKind& dim = table.dims[axis < 0 ? axis + table.rank() : axis];
    const Tensor* places = twins_.a.ConstantOf(site.inputs[1].a);
    if (dim.kind != DimKind::kLength) return true;
    if (places == nullptr) return false;
    const absl::StatusOr<std::vector<int64_t>> ints = places->ToInt64s();
    return ints.ok() && absl::c_none_of(*ints, [](int64_t place) { return place < 0; });
  }
  // The dims up to the last one of the length.
  const auto leading = [](const Operand& operand) {
    std::vector<DimKind> dims;
    absl::c_copy_if(operand.dims, std::back_inserter(dims),
                    [](const DimKind& dim) { return !dim.is_one(); });
    while (!dims.empty() && dims.back().kind != DimKind::kLength) dims.pop_back();
    return dims;
  };
  return absl::c_equal(leading(table), leading(site.outputs[0]),
                       [](const DimKind& x, const DimKind& y) { return x.size == y.size; });
}

// Packs a fixed node. A node that depends on no input is computed as it is, at the longest
// sequence. Where its result is a table by position, only ops that keep every element in its place
// are known to give shorter sequences a part of it.
absl::Status Packer::PackFixed(const Site& site) {
  const OpRow* row = FindOp(site.op());
  const Operand& result = site.outputs[0];
  if (site.outputs.size() != 1) return Refuse(site, "it depends on no input");
  if (site.op() == ExpandOp::kName &&
      std::any_of(result.dims.begin(), result.dims.end(),
                  [](auto& dim) { return dim.kind == DimKind::kRows; })) {
    alias_[result.a] = site.inputs[0];  // Every row is the same.
    return absl::OkStatus();
  }
  if (!result.fixed()) return Refuse(site, "it has rows but depends on no input");
  const bool view = row->Has(kView);
  const bool cuts = site.op() == SliceOp::kName && CutsBehindAlone(twins_.a, *site.a) &&
                    CutsBehindAlone(twins_.b, *site.b);
  const bool steps = FactsOf(*row).Is(kQuantises) && site.attributes().Int("block_size", 0) == 0 &&
                     !site.inputs[1].has_length();
  const bool in_place = row->Has(kElementwise) || cuts || steps ||
                        ((view || site.op() == GatherOp::kName) && KeepsPlaces(site)) ||
                        site.op() == TransposeOp::kName || site.op() == ExpandOp::kName;
  const bool table = result.has_length() ||
                     std::any_of(site.inputs.begin(), site.inputs.end(),
                                 [](const Operand& o) { return o.given() && o.has_length(); });
  if (table && !in_place) return Refuse(site, "it depends on no input but on the length");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < site.inputs.size(); ++i) {
    if (!site.inputs[i].given()) {
      inputs.push_back(kNone);
    } else if (cuts ? i >= 1 : i == 1 && (view || site.op() == ExpandOp::kName)) {
      // The shape, or where to cut: the longest sequence's.
      inputs.push_back(to_.AddConstant("", twins_.a.value(site.inputs[i].a).constant));
    } else {
      ASSIGN_OR_RETURN(inputs.emplace_back(), Table(site, site.inputs[i]));
    }
  }
  ASSIGN_OR_RETURN(const ValueId packed,
                   AddInferred(to_, site.op(), std::move(inputs), site.attributes(), site.a->name));
  Bind(result, packed);
  return absl::OkStatus();
}

absl::Status Packer::PackView(const Site& site) {
  const Operand& input = site.inputs[0];
  const Operand& result = site.outputs[0];
  if (input.form.kind == Form::kPairs && result.form.kind == Form::kPairs) {
    pairs_[result.a] = pairs_[input.a];
    return absl::OkStatus();
  }
  if (PackedOf(input) == kNone || result.form.kind != input.form.kind) {
    return Refuse(site, "its result does not keep tokens one after another");
  }
  ASSIGN_OR_RETURN(const ValueId packed,
                   Reshape(PackedOf(input), Tail(result.dims, result.form.rest)));
  Bind(result, packed);
  return absl::OkStatus();
}

absl::Status Packer::PackElementwise(const Site& site) {
  const Operand& result = site.outputs[0];
  if (result.form.kind != Form::kTokens && result.form.kind != Form::kSegments) {
    return Refuse(site, "its result is neither one value a token nor one a row");
  }
  std::vector<ValueId> inputs;
  for (const Operand& input : site.inputs) {
    ASSIGN_OR_RETURN(inputs.emplace_back(), Align(site, input, result.dims));
  }
  return EmitReshaped(site, site.op(), std::move(inputs), site.attributes());
}

// Rotates each token's heads by its position.
absl::Status Packer::PackRotary(const Site& site) {
  if (site.inputs[0].form.rest == 0)
    return Refuse(site, "it rotates halves along an axis that tokens do not keep");
  return PackElementwise(site);
}

absl::Status Packer::PackExpand(const Site& site) {
  const Operand& input = site.inputs[0];
  const Operand& result = site.outputs[0];
  if (result.form.kind == Form::kPairs) {
    ASSIGN_OR_RETURN(pairs_[result.a], PairsOf(site, input));
    return absl::OkStatus();
  }
  if (result.form.kind != Form::kTokens && result.form.kind != Form::kSegments) {
    return Refuse(site, "its result is neither one value a token nor one a row");
  }
  ASSIGN_OR_RETURN(const ValueId packed, Align(site, input, result.dims));
  std::vector<int64_t> shape = {1};
  for (int64_t size : Tail(result.dims, result.form.rest)) shape.push_back(size);
  ASSIGN_OR_RETURN(const ValueId target, Ints(std::move(shape)));
  return Emit(site, ExpandOp::kName, {packed, target}, {});
}

absl::Status Packer::PackTranspose(const Site& site) {
  const Operand& input = site.inputs[0];
  const Operand& result = site.outputs[0];
  const std::vector<int64_t> perm = site.attributes().Ints("perm");
  const int64_t rank = input.rank(), rest = static_cast<int64_t>(input.form.rest);
  if (result.form.kind != input.form.kind || result.form.rest != input.form.rest ||
      static_cast<int64_t>(perm.size()) != rank || PackedOf(input) == kNone) {
    return Refuse(site, "it moves the axis of tokens");
  }
  std::vector<int64_t> packed = {0};
  for (int64_t d = rank - rest; d < rank; ++d) {
    if (perm[d] < rank - rest) return Refuse(site, "it moves the axis of tokens");
    packed.push_back(perm[d] - (rank - rest) + 1);
  }
  return Emit(site, TransposeOp::kName, {PackedOf(input)}, {{"perm", packed}});
}

absl::Status Packer::PackAlongAxis(const Site& site, int64_t axis) {
  const Operand& input = site.inputs[0];
  const Operand& result = site.outputs[0];
  const int64_t from_right = FromRight(axis, input.rank());
  if (input.fixed() || !IsInside(from_right, input.form.rest) ||
      result.form.kind != input.form.kind) {
    return Refuse(site, "it works along an axis that tokens do not keep");
  }
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < site.inputs.size(); ++i) {
    const Operand& operand = site.inputs[i];
    const bool residual = site.op() == AddLayerNormOp::kName && i == 1;
    if (operand.given() && (residual || (site.op() != ConcatOp::kName && i == 0))) {
      ASSIGN_OR_RETURN(inputs.emplace_back(), Align(site, operand, input.dims));
    } else if (site.op() == ConcatOp::kName) {
      // All operands have their rows where the first has them, and the same number of dims after.
      if (operand.form.kind != input.form.kind || operand.form.rest != input.form.rest ||
          operand.form.rows != input.form.rows || PackedOf(operand) == kNone) {
        return Refuse(site, "its operands have their rows in different places");
      }
      inputs.push_back(PackedOf(operand));
    } else if (operand.given() && !operand.fixed()) {
      return Refuse(site, "a parameter of it is computed from the request");
    } else {
      ASSIGN_OR_RETURN(inputs.emplace_back(), Whole(site, operand));
    }
  }
  Attributes attributes = site.attributes();
  attributes.Set("axis", from_right);
  const NodeId packed = to_.AddNode(site.op(), std::move(inputs), std::move(attributes),
                                    site.outputs.size(), site.a->name);
  RETURN_IF_ERROR(InferNode(to_, packed));
  for (size_t i = 0; i < site.outputs.size(); ++i) {
    const Operand& output = site.outputs[i];
    if (!output.given()) continue;
    if (output.form.kind != input.form.kind) return Refuse(site, "a result has no packed form");
    ASSIGN_OR_RETURN(const ValueId value,
                     Reshape(to_.node(packed).outputs[i], Tail(output.dims, output.form.rest)));
    Bind(output, value);
  }
  return absl::OkStatus();
}

// [..., k] x [k, n] with weights on the right.
absl::Status Packer::PackProduct(const Site& site) {
  const Operand& left = site.inputs[0];
  const Operand& right = site.inputs[1];
  const Operand& result = site.outputs[0];
  if (site.op() == MatMulOp::kName && left.tokens() && right.tokens()) return PackWeightedSum(site);
  const bool flat_gemm = site.op() != GemmOp::kName || !GemmOp::From(site.attributes()).trans_a;
  if (left.fixed() || PackedOf(left) == kNone || !right.fixed() || right.rank() != 2 ||
      left.form.rest < 1 || result.form.kind != left.form.kind || !flat_gemm) {
    return Refuse(site, "it is not a product of tokens or rows with weights");
  }
  std::vector<ValueId> inputs = {PackedOf(left)};
  for (size_t i = 1; i < site.inputs.size(); ++i) {
    const Operand& operand = site.inputs[i];
    const bool residual = operand.given() && (!operand.fixed() || operand.has_length());
    if (residual) {
      ASSIGN_OR_RETURN(inputs.emplace_back(), Align(site, operand, result.dims));
    } else {
      ASSIGN_OR_RETURN(inputs.emplace_back(), Whole(site, operand));
    }
  }
  return Emit(site, site.op(), std::move(inputs), site.attributes());
}

// [rows, 1, length] x [rows, length, width]: a weight for each token, and their sum.
absl::Status Packer::PackWeightedSum(const Site& site) {
  const Operand& weights = site.inputs[0];
  const Operand& data = site.inputs[1];
  const bool fits = weights.form.rest == 0 && !weights.form.merged && data.form.rest == 1 &&
                    !data.form.merged && weights.form.rows == 3 && data.form.rows == 3 &&
                    site.outputs[0].form.kind == Form::kSegments && IsFloat32(twins_.a, data.a);
  if (!fits || PackedOf(weights) == kNone || PackedOf(data) == kNone) {
    return Refuse(site, "it relates tokens to tokens in a way without a rule");
  }
  ASSIGN_OR_RETURN(const ValueId column, Reshape(PackedOf(weights), {1}));
  ASSIGN_OR_RETURN(const ValueId weighted,
                   AddInferred(to_, MulOp::kName, {PackedOf(data), column}));
  return EmitReshaped(site, SegmentReduceOp::kName, {weighted, segments_},
                      {{"reduction", std::string("sum")}});
}

absl::Status Packer::PackEmbedding(const Site& site) {
  const Operand& result = site.outputs[0];
  std::vector<DimKind> ids_dims = result.dims;
  ids_dims.pop_back();
  if (!result.tokens() || FormOf(ids_dims).kind != Form::kTokens) {
    return Refuse(site, "its result is not one row a token");
  }
  std::vector<ValueId> inputs;
  for (size_t i = 0; i + 1 < site.inputs.size(); i += 2) {
    if (!site.inputs[i].fixed()) return Refuse(site, "a table is computed from the request");
    ASSIGN_OR_RETURN(inputs.emplace_back(), Whole(site, site.inputs[i]));
    ASSIGN_OR_RETURN(inputs.emplace_back(), Align(site, site.inputs[i + 1], ids_dims));
  }
  return Emit(site, site.op(), std::move(inputs), site.attributes());
}

std::string Packer::EndOf(std::optional<double> a, std::optional<double> b) const {
  if (a == 0.0 && b == 0.0) return "first";
  const auto is_last = [](std::optional<double> at, int64_t length) {
    return at == -1.0 || at == static_cast<double>(length - 1);
  };
  return is_last(a, twins_.at_a.length) && is_last(b, twins_.at_b.length) ? "last" : "";
}

absl::Status Packer::PackGather(const Site& site) {
  const Operand& data = site.inputs[0];
  const Operand& index = site.inputs[1];
  const Operand& result = site.outputs[0];
  const int64_t axis = FromRight(site.attributes().Int("axis", 0), data.rank());
  if (data.fixed() && !index.fixed()) {
    if (axis != -data.rank() || PackedOf(index) == kNone || result.form.kind != index.form.kind) {
      return Refuse(site, "it is not a lookup in a table of rows");
    }
    ASSIGN_OR_RETURN(const ValueId table, Whole(site, data));
    return Emit(site, GatherOp::kName, {table, PackedOf(index)}, {{"axis", int64_t{0}}});
  }
  if (!index.fixed() || data.fixed() || PackedOf(data) == kNone) {
    return Refuse(site, "it chooses tokens by data of the request");
  }
  if (IsInside(axis, data.form.rest) && result.form.kind == data.form.kind) {
    ASSIGN_OR_RETURN(const ValueId chosen, Whole(site, index));
    return EmitReshaped(site, GatherOp::kName, {PackedOf(data), chosen}, {{"axis", axis}});
  }
  // The first token of every row, or the last one.
  const bool of_tokens =
      data.tokens() && !data.form.merged && -axis == static_cast<int64_t>(data.form.rest) + 1;
  const std::string end =
      of_tokens ? EndOf(KnownScalar(twins_.a, index.a), KnownScalar(twins_.b, index.b)) : "";
  if (!end.empty() && result.form.kind == Form::kSegments) {
    return EmitReshaped(site, SegmentReduceOp::kName, {PackedOf(data), segments_},
                        {{"reduction", end}});
  }
  return Refuse(site, "it is neither a lookup in a table nor the first or last token");
}

std::optional<double> Packer::StartOfTwin(const Site& site, size_t i) const {
  const Tensor* starts = twins_.b.ConstantOf(site.inputs[1].b);
  if (starts == nullptr || static_cast<int64_t>(i) >= starts->num_elements()) return std::nullopt;
  return starts->ToDoubles()[i];
}

absl::Status Packer::PackSlice(const Site& site) {
  const Operand& data = site.inputs[0];
  const Operand& result = site.outputs[0];
  std::vector<int64_t> given[4];  // starts, ends, axes, steps
  for (size_t i = 0; i < 4; ++i) {
    if (!site.has(i + 1)) continue;
    const Tensor* values = twins_.a.ConstantOf(site.inputs[i + 1].a);
    if (values == nullptr) return Refuse(site, "its bounds are not known");
    ASSIGN_OR_RETURN(given[i], values->ToInt64s());
  }
  if (data.fixed() || PackedOf(data) == kNone)
    return Refuse(site, "it cuts an axis that tokens do not have");
  ValueId value = PackedOf(data);
  std::vector<int64_t> kept[4];
  for (size_t i = 0; i < given[0].size(); ++i) {
    const int64_t axis =
        FromRight(given[2].empty() ? static_cast<int64_t>(i) : given[2][i], data.rank());
    const int64_t step = given[3].empty() ? 1 : given[3][i];
    if (IsInside(axis, data.form.rest)) {
      const int64_t bounds[4] = {given[0][i], given[1][i], axis, step};
      for (size_t k = 0; k < 4; ++k) kept[k].push_back(bounds[k]);
      continue;
    }
    const DimKind& before = data.dims[data.rank() + axis];
    const DimKind& after = result.dims[result.rank() + axis];
    if (before.kind == after.kind && before.size == after.size && step == 1) continue;  // All.
    const bool one = data.tokens() && !data.form.merged && before.kind == DimKind::kLength &&
                     after.is_one() && step > 0;
    const std::string end =
        one ? EndOf(static_cast<double>(given[0][i]), StartOfTwin(site, i)) : "";
    if (end.empty()) return Refuse(site, "it cuts the axis of tokens");
    ASSIGN_OR_RETURN(
        value, AddInferred(to_, SegmentReduceOp::kName, {value, segments_}, {{"reduction", end}}));
  }
  if (!kept[0].empty()) {
    std::vector<ValueId> inputs = {value};
    for (std::vector<int64_t>& values : kept) {
      ASSIGN_OR_RETURN(inputs.emplace_back(), Ints(std::move(values)));
    }
    ASSIGN_OR_RETURN(value, AddInferred(to_, SliceOp::kName, std::move(inputs), {}, site.a->name));
  }
  const bool varies = result.tokens() || result.form.kind == Form::kSegments;
  if (!varies) return Refuse(site, "its result has no packed form");
  ASSIGN_OR_RETURN(value, Reshape(value, Tail(result.dims, result.form.rest)));
  Bind(result, value);
  return absl::OkStatus();
}

absl::Status Packer::PackReduce(const Site& site) {
  const Operand& data = site.inputs[0];
  const Operand& result = site.outputs[0];
  const Tensor* constant = site.has(1) ? twins_.a.ConstantOf(site.inputs[1].a) : nullptr;
  if (constant == nullptr || data.fixed() || PackedOf(data) == kNone) {
    return Refuse(site, "it reduces all rows of a batch to one value");
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, constant->ToInt64s());
  for (int64_t& axis : axes) axis = FromRight(axis, data.rank());
  const bool inside = !axes.empty() && std::all_of(axes.begin(), axes.end(), [&](int64_t axis) {
    return IsInside(axis, data.form.rest);
  });
  if (inside && result.form.kind == data.form.kind) {
    ASSIGN_OR_RETURN(const ValueId packed_axes, Ints(std::move(axes)));
    return EmitReshaped(site, site.op(), {PackedOf(data), packed_axes}, site.attributes());
  }
  const absl::string_view reduction = FactsOf(site.op()).of_segment;
  const bool over_tokens = axes.size() == 1 && data.tokens() && !data.form.merged &&
                           -axes[0] == static_cast<int64_t>(data.form.rest) + 1;
  if (!over_tokens || reduction.empty() || result.form.kind != Form::kSegments) {
    return Refuse(site, "it reduces along tokens in a way that has no packing rule");
  }
  return EmitReshaped(site, SegmentReduceOp::kName, {PackedOf(data), segments_},
                      {{"reduction", std::string(reduction)}});
}

absl::Status Packer::PackCumSum(const Site& site) {
  const Operand& data = site.inputs[0];
  const std::optional<double> axis = KnownScalar(twins_.a, site.inputs[1].a);
  if (data.fixed() || PackedOf(data) == kNone || !axis.has_value() || !data.tokens() ||
      data.form.merged ||
      -FromRight(static_cast<int64_t>(*axis), data.rank()) !=
          static_cast<int64_t>(data.form.rest) + 1) {
    return Refuse(site, "it sums along an axis other than the tokens'");
  }
  return Emit(site, SegmentCumSumOp::kName, {PackedOf(data), segments_}, site.attributes());
}

}  // namespace reprise::pack
