#include "runtime/passes/live/live_outputs.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/windows/live.h"
#include "runtime/ops/windows/live_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/live/live_form.h"

namespace reprise {
namespace {

// Returns how many elements a step along each dim is.
SizeList StridesOf(const SizeList& sizes) {
  SizeList strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

}  // namespace

void LiveOutputs::Run() {
  if (axes_.empty()) return;
  for (size_t output = 0; output < graph_.outputs().size(); ++output) {
    const ValueId value = graph_.outputs()[output];
    if (!axes_.front().extents.HasAllRows(value)) continue;
    const int64_t rank = static_cast<int64_t>(SizesOf(value)->size());
    for (int64_t dim = 1; dim < rank; ++dim) {
      const auto parts = PartsOf(value, dim);
      if (!parts.has_value() || !IsScattered(*parts)) continue;
      Compact(output, dim, *parts);
      break;  // An answer has one such dim.
    }
  }
}

std::optional<std::vector<LiveOutputs::Part>> LiveOutputs::PartsOf(ValueId value, int64_t dim) {
  if (value == kNone) return std::nullopt;
  const auto [known, is_new] = known_.emplace(std::pair(value, dim), std::nullopt);
  if (is_new) known->second = FindParts(value, dim);
  return known->second;
}

std::optional<std::vector<LiveOutputs::Part>> LiveOutputs::FindParts(ValueId value, int64_t dim) {
  const NodeId producer = graph_.value(value).producer;
  if (producer == kNone || SizesOf(value) == nullptr) return std::nullopt;
  const Node& node = graph_.node(producer);
  const OpRow* row = FindOp(node.op);
  if (row != nullptr && row->Has(kView)) return ThroughView(node, dim);
  if (node.op == ConcatOp::kName) {
    const int64_t axis = ConcatOp::From(node.attributes).axis;
    const int64_t rank = static_cast<int64_t>(SizesOf(value)->size());
    if ((axis < 0 ? axis + rank : axis) == dim) return ThroughConcat(node, dim);
  }
  if (node.op == TransposeOp::kName) {
    const std::vector<int64_t> order = node.attributes.Ints("perm");
    if (dim >= static_cast<int64_t>(order.size())) return std::nullopt;
    return PartsOf(node.inputs[0], order[dim]);
  }
  return ThroughOperands(node, value, dim);
}

// Dims with the elements of dim `dim` of the result.
std::optional<std::vector<LiveOutputs::Part>> LiveOutputs::ThroughView(const Node& node,
                                                                       int64_t dim) {
  const SizeList *from = SizesOf(node.inputs[0]), *to = SizesOf(node.outputs[0]);
  if (from == nullptr || to == nullptr) return std::nullopt;
  const SizeList from_strides = StridesOf(*from), to_strides = StridesOf(*to);
  const auto at = static_cast<size_t>(dim);
  const Size elements = to_strides[at] * (*to)[at];
  Part part = {.value = node.inputs[0], .first = -1, .last = -1};
  for (int64_t d = 0; d < static_cast<int64_t>(from->size()); ++d) {
    const Size size = (*from)[static_cast<size_t>(d)];
    const Size stride = from_strides[static_cast<size_t>(d)];
    if (size.Same(1)) continue;
    if (part.first < 0 && (stride * size).Same(elements)) part.first = d;
    if (part.first >= 0 && part.last < 0 && stride.Same(to_strides[at])) part.last = d;
  }
  if (part.first < 0 || part.last < part.first) return std::nullopt;
  if (part.first == part.last) return PartsOf(part.value, part.first);
  return std::vector<Part>{part};
}

std::optional<std::vector<LiveOutputs::Part>> LiveOutputs::ThroughConcat(const Node& node,
                                                                         int64_t dim) {
  std::vector<Part> parts;
  for (const ValueId input : node.inputs) {
    const auto own = PartsOf(input, dim);
    if (!own.has_value()) return std::nullopt;
    parts.insert(parts.end(), own->begin(), own->end());
  }
  return parts;
}

// Returns the dim of an operand that is as large, counted from the last as elementwise ops do.
std::optional<std::vector<LiveOutputs::Part>> LiveOutputs::ThroughOperands(const Node& node,
                                                                           ValueId value,
                                                                           int64_t dim) {
  const LiveExtents& extents = axes_.front().extents;
  const int64_t rank = extents.RankOf(value);
  for (const ValueId input : node.inputs) {
    const int64_t own_rank = input == kNone ? 0 : extents.RankOf(input);
    const int64_t at = dim - (rank - own_rank);
    if (own_rank == 0 || own_rank > rank || at < 0) continue;
    if (!extents.HaveSameSizes(value, dim, input, at)) continue;
    auto parts = PartsOf(input, at);
    if (parts.has_value()) return parts;
  }
  return std::nullopt;
}

std::optional<std::pair<size_t, Extent>> LiveOutputs::AlongAxis(ValueId value, int64_t dim) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    const auto live = axes_[i].extents.At(value, dim);
    if (live.has_value() && live->repeats == 1) return std::pair(i, live->extent);
  }
  return std::nullopt;
}

bool LiveOutputs::IsScattered(const std::vector<Part>& parts) const {
  bool any = false, only_first = parts.size() == 1;
  for (const Part& part : parts) {
    bool leads = true;  // All dims in front of it are 1.
    for (int64_t d = part.first; d <= part.last; ++d) {
      const bool live = AlongAxis(part.value, d).has_value();
      any = any || live;
      only_first = only_first && (!live || leads);
      leads = leads && (*SizesOf(part.value))[static_cast<size_t>(d)].Same(1);
    }
  }
  return any && !only_first;
}

ValueId LiveOutputs::Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  const NodeId id = graph_.AddNode(op, std::move(inputs), std::move(attributes));
  graph_.SetSource(id, source_op_, source_name_);
  return graph_.node(id).outputs[0];
}

ValueId LiveOutputs::SizesOf(const Part& part) {
  std::vector<int64_t> dims;
  for (int64_t d = part.first; d <= part.last; ++d) dims.push_back(d);
  return Add(GatherOp::kName,
             {Add(ShapeOp::kName, {part.value}), graph_.AddConstant("", Tensor::Int64s(dims))});
}

void LiveOutputs::Compact(size_t output, int64_t dim, const std::vector<Part>& parts) {
  const ValueId value = graph_.outputs()[output];
  const Node& source = graph_.node(graph_.value(value).producer);
  source_op_ = SourceOp(source);
  source_name_ = source.name;
  std::vector<ValueId> sizes, counts;
  std::vector<int64_t> ranks, extents;
  for (const Part& part : parts) {
    ranks.push_back(part.last - part.first + 1);
    sizes.push_back(SizesOf(part));
    for (int64_t d = part.first; d <= part.last; ++d) {
      const auto along = AlongAxis(part.value, d);
      extents.push_back(along.has_value() ? static_cast<int64_t>(counts.size()) : -1);
      if (!along.has_value()) continue;
      const ValueId live = graph_.FindValue(absl::StrCat(kLiveInput, axes_[along->first].symbol));
      const ValueId all = Add(GatherOp::kName, {Add(ShapeOp::kName, {part.value}),
                                                graph_.AddConstant("", Tensor::Int64s({d}))});
      counts.push_back(Add(LiveExtentOp::kName, {live, all},
                           {{"offset", along->second.offset}, {"stride", along->second.stride}}));
    }
  }
  if (parts.size() > ops::MergedDims::kMostParts || extents.size() > ops::MergedDims::kMostDims) {
    return;
  }
  std::vector<ValueId> inputs = {
      value, sizes.size() == 1 ? sizes[0] : Add(ConcatOp::kName, sizes, {{"axis", int64_t{0}}})};
  inputs.insert(inputs.end(), counts.begin(), counts.end());
  graph_.SetOutput(output, Add(LiveCompactOp::kName, std::move(inputs),
                               {{"axis", dim}, {"ranks", ranks}, {"extents", extents}}));
}

}  // namespace reprise
