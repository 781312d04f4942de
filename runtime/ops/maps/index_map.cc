#include "runtime/ops/maps/index_map.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/map_rules.h"

namespace reprise {

int64_t IndexMap::DimTo(size_t i, int64_t to) const {
  const std::vector<DimLink>& dims = operands[i];
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].to == to) return static_cast<int64_t>(d);
  }
  return -1;
}

bool IndexMap::IsParallel(int64_t to) const {
  bool any = false;
  for (const std::vector<DimLink>& dims : operands) {
    for (const DimLink& dim : dims) {
      if (dim.to != to) continue;
      if (dim.link != Link::kParallel) return false;
      any = true;
    }
  }
  return any;
}

std::optional<IndexMap> IndexMapOf(const Graph& graph, const Node& node) {
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || node.output(0) == kNone) return std::nullopt;
  const OpFacts& facts = FactsOf(*row);
  MapRule rule = facts.map;
  if (rule == nullptr && row->Has(kElementwise)) rule = ops::ElementwiseMap;
  if (rule == nullptr && row->Has(kView)) rule = ops::ViewMap;
  if (rule == nullptr) return std::nullopt;
  MapContext context(graph, node);
  rule(context);
  return std::move(context).Take();
}

MapContext::MapContext(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
  map_.operands.resize(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (has_input(i)) map_.operands[i].resize(shape(i).size());
  }
}

const Shape& MapContext::shape(size_t i) const {
  static const Shape kScalar;
  return has_input(i) ? *graph_.value(node_.inputs[i]).shape : kScalar;
}

std::optional<std::vector<int64_t>> MapContext::integers(size_t i) const {
  const Tensor* tensor = graph_.ConstantOf(node_.input(i));
  if (tensor == nullptr) return std::nullopt;
  auto values = tensor->ToInt64s();
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

std::optional<std::vector<double>> MapContext::numbers(size_t i) const {
  const Tensor* tensor = graph_.ConstantOf(node_.input(i));
  if (tensor == nullptr) return std::nullopt;
  return tensor->ToDoubles();
}

int64_t MapContext::Axis(int64_t fallback) const {
  return NormalizeAxis(attributes().Int("axis", fallback), rank(0)).value_or(-1);
}

void MapContext::Set(size_t i, int64_t dim, Link link, int64_t to) {
  if (has_input(i) && to >= 0 && to < out_rank()) {
    map_.operands[i][static_cast<size_t>(dim)] = {link, static_cast<int8_t>(to)};
  }
}

void MapContext::Parallel(size_t i, int64_t begin, int64_t end, int64_t to) {
  for (int64_t d = begin; d < end; ++d, ++to) {
    if (to >= out_rank()) return Unknown();
    Set(i, d, shape(i)[d] == out()[to] ? Link::kParallel : Link::kMixed, to);
  }
}

void MapContext::Broadcast(size_t i) {
  const int64_t added = out_rank() - rank(i);
  if (added < 0) return Unknown();
  for (int64_t d = 0; d < rank(i); ++d) {
    const int64_t to = d + added;
    if (shape(i)[d] == out()[to]) {
      Parallel(i, d, to);
    } else if (shape(i)[d] != 1) {
      Set(i, d, Link::kMixed, to);
    }
  }
}

void MapContext::BroadcastAll() {
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (has_input(i)) Broadcast(i);
  }
}

void MapContext::Mixed(size_t i, int64_t begin) {
  for (int64_t d = begin; d < rank(i); ++d) Set(i, d, Link::kMixed, d);
}

std::optional<IndexMap> MapContext::Take() && {
  if (!known_) return std::nullopt;
  return std::move(map_);
}

}  // namespace reprise
