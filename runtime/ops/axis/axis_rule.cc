#include "runtime/ops/axis/axis_rule.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/comparison_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/index_map.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/reduce/arg_op.h"

namespace reprise {

bool ops::KnowsParts(AxisRule rule) {
  constexpr AxisRule kRules[] = {ElementwiseAxis, ViewAxis,       TransposeAxis, ConcatAxis,
                                 SplitAxis,       SliceAxis,      GatherAxis,    SoftmaxAxis,
                                 ConvAxis,        LiveCompactAxis};
  return absl::c_linear_search(kRules, rule);
}

namespace {

using Source = AxisFlowValue::Source;

std::optional<std::vector<int64_t>> Integers(const Tensor* tensor) {
  if (tensor == nullptr) return std::nullopt;
  auto values = tensor->ToInt64s();
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

}  // namespace

std::vector<PositionPart> Positions::KnownParts() const {
  if (!parts.empty() || moved || repeated || compact) return parts;
  return {{.extent = extent, .inner = inner}};
}

const Positions* AxisFlowValue::At(int64_t dim) const {
  for (const Positions& positions : along) {
    if (positions.dim == dim) return &positions;
  }
  return nullptr;
}

bool IsNeverNegative(DType dtype) { return dtype != DType::kUndefined && !IsSigned(dtype); }

std::string AxisNodeName(const Graph& graph, const Node& node) {
  std::string name = node.name;
  for (size_t i = 0; i < node.outputs.size() && name.empty(); ++i) {
    if (node.outputs[i] != kNone) name = graph.value(node.outputs[i]).name;
  }
  return absl::StrCat("node '", name, "' (",
                      node.source_op.empty() ? "" : absl::StrCat(node.source_op, ", step "),
                      node.op, ")");
}

AxisContext::AxisContext(const Graph& graph, const Graph& larger, const Node& node,
                         const Node& larger_node, const AxisFlowOptions& options,
                         std::vector<AxisFlowValue>& flows)
    : graph_(graph),
      larger_(larger),
      node_(node),
      larger_node_(larger_node),
      options_(options),
      flows_(flows) {}

NodeId AxisContext::id() const { return graph_.value(node_.outputs[0]).producer; }

bool AxisContext::casts_to_float() const {
  return IsFloating(graph_.value(node_.outputs[0]).dtype);
}

bool AxisContext::IsRead(size_t i) const {
  return has_output(i) &&
         (!graph_.value(node_.outputs[i]).users.empty() || graph_.IsOutput(node_.outputs[i]));
}

const AxisFlowValue& AxisContext::input(size_t i) const {
  static const AxisFlowValue kNothing;
  return has_input(i) ? flows_[node_.inputs[i]] : kNothing;
}

const Shape& AxisContext::shape(size_t i) const {
  static const Shape kScalar;
  return has_input(i) ? *graph_.value(node_.inputs[i]).shape : kScalar;
}

const Shape& AxisContext::larger_shape(size_t i) const {
  static const Shape kScalar;
  return has_input(i) ? *larger_.value(larger_node_.inputs[i]).shape : kScalar;
}

const Shape& AxisContext::output_shape(size_t i) const {
  static const Shape kScalar;
  return has_output(i) ? *graph_.value(node_.outputs[i]).shape : kScalar;
}

const Shape& AxisContext::larger_output_shape(size_t i) const {
  return *larger_.value(larger_node_.outputs[i]).shape;
}

DType AxisContext::dtype(size_t i) const {
  return has_input(i) ? graph_.value(node_.inputs[i]).dtype : DType::kUndefined;
}

bool AxisContext::OutputGrows(int64_t dim, size_t output) const {
  const Shape& larger = *larger_.value(larger_node_.outputs[output]).shape;
  return output_shape(output)[dim] == options_.small_size &&
         dim < static_cast<int64_t>(larger.size()) && larger[dim] == options_.large_size;
}

bool AxisContext::OutputHas(const Extent& extent, int64_t dim, size_t output) const {
  const Shape& larger = *larger_.value(larger_node_.outputs[output]).shape;
  return output_shape(output)[dim] == extent.At(options_.small_size) &&
         dim < static_cast<int64_t>(larger.size()) && larger[dim] == extent.At(options_.large_size);
}

std::optional<Extent> AxisContext::ExtentOf(int64_t size, int64_t larger_size) const {
  const auto fits = [&](const Extent& extent) {
    return extent.At(options_.small_size) == size && extent.At(options_.large_size) == larger_size;
  };
  if (fits(Extent())) return Extent();
  std::optional<Extent> found;
  for (const AxisFlowValue& flow : flows_) {
    for (const Positions& positions : flow.along) {
      if (positions.moved || !fits(positions.extent)) continue;
      if (found.has_value() && *found != positions.extent) return std::nullopt;
      found = positions.extent;
    }
  }
  return found;
}

std::vector<std::vector<PositionPart>> AxisContext::PartsOf(int64_t size,
                                                            int64_t larger_size) const {
  const auto all = [](const std::vector<PositionPart>& parts, int64_t of_axis) {
    int64_t places = 0;
    for (const PositionPart& part : parts) places += part.At(of_axis);
    return places;
  };
  std::vector<std::vector<PositionPart>> found;
  for (const AxisFlowValue& flow : flows_) {
    for (const Positions& positions : flow.along) {
      std::vector<PositionPart> parts = positions.KnownParts();
      const bool fits = !parts.empty() && all(parts, options_.small_size) == size &&
                        all(parts, options_.large_size) == larger_size;
      if (fits && !absl::c_linear_search(found, parts)) found.push_back(std::move(parts));
    }
  }
  return found;
}

std::optional<Extent> AxisContext::OutputExtent(int64_t dim, size_t output) const {
  const Shape& larger = *larger_.value(larger_node_.outputs[output]).shape;
  if (dim >= static_cast<int64_t>(larger.size())) return std::nullopt;
  return ExtentOf(output_shape(output)[dim], larger[dim]);
}

const Tensor* AxisContext::constant(size_t i) const { return graph_.ConstantOf(node_.input(i)); }

const Tensor* AxisContext::larger_constant(size_t i) const {
  return larger_.ConstantOf(larger_node_.input(i));
}

std::optional<std::vector<int64_t>> AxisContext::integers(size_t i) const {
  return Integers(constant(i));
}

std::optional<std::vector<int64_t>> AxisContext::larger_integers(size_t i) const {
  return Integers(larger_constant(i));
}

std::optional<double> AxisContext::Uniform(size_t i) const {
  const Tensor* tensor = constant(i);
  if (tensor == nullptr || tensor->num_elements() == 0) return std::nullopt;
  const bool uneven = options_.uneven.contains(graph_.value(node_.input(i)).name);
  if (uneven && tensor->num_elements() > 1) return std::nullopt;
  std::optional<double> first;
  const bool uniform = AllElements(*tensor, [&](double value) {
    if (!first.has_value()) first = value;
    return value == *first;
  });
  return uniform ? first : std::nullopt;
}

std::optional<IndexMap> AxisContext::map() const {
  std::optional<IndexMap> map = IndexMapOf(graph_, node_);
  return map == IndexMapOf(larger_, larger_node_) ? map : std::nullopt;
}

bool AxisContext::AnyPositions() const {
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!input(i).along.empty()) return true;
  }
  return false;
}

bool AxisContext::MayCountFromEnd(size_t i, std::optional<int64_t> column) const {
  ValueId places = node_.input(i);
  if (places == kNone) return false;
  const Node* concat = graph_.ProducerIf(places, ConcatOp::kName);
  if (column.has_value() && concat != nullptr) {
    const int64_t dim = ConcatOp::From(concat->attributes).axis;
    const bool columns = (dim == -1 || dim == rank(i) - 1) &&
                         static_cast<int64_t>(concat->inputs.size()) == shape(i).back();
    if (columns) places = concat->inputs[*column];
  }
  if (const auto known = Integers(graph_.ConstantOf(places))) {
    return absl::c_any_of(*known, [](int64_t place) { return place < 0; });
  }
  return flows_[places].chosen && !flows_[places].nonnegative;
}

bool AxisContext::KeepsPlaces() const {
  const auto is_wide = [](DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; };
  const bool widens = node_.op == CastOp::kName && is_wide(graph_.value(node_.outputs[0]).dtype);
  return FactsOf(node_.op).HoldsFirst() || widens;
}

bool AxisContext::TakesFromRequest(size_t i, const Positions& positions) {
  const std::string& places = input(i).places;
  const bool in_order = positions.inner == 1 && !positions.moved && !positions.repeated;
  if (in_order && !is_batch() && input(i).below == positions.extent) return true;
  const bool is_whole = in_order && positions.extent == Extent();
  if (!options_.checks_places || places.empty() || !is_whole) return false;
  if (is_batch() && !repeats_last()) return false;  // Rows before it may be other requests'.
  finding_.in_request.insert(places);
  return true;
}

void AxisContext::SetBelow(size_t output, const Positions& positions) {
  const bool in_order = positions.inner == 1 && !positions.moved && !positions.repeated;
  if (has_output(output) && in_order) flows_[node_.outputs[output]].below = positions.extent;
}

void AxisContext::Set(size_t output, AxisFlowValue flow) {
  if (!has_output(output)) return;
  flow.source = Source::kConstant;
  for (size_t i = 0; i < num_inputs(); ++i) flow.source = std::max(flow.source, input(i).source);
  // A result that follows from one place of a mask, which may be empty there: the first place where
  // it ends may be the very first one.
  const bool of_place =
      node_.op == ArgMaxOp::kName || node_.op == ArgMinOp::kName || node_.op == WhereOp::kName;
  flow.chosen = of_place && flow.source != Source::kConstant;
  for (size_t i = 0; i < num_inputs(); ++i) flow.chosen = flow.chosen || input(i).chosen;
  flow.nonnegative = IsNonnegative(output);
  flow.unbounded = MayBeUnbounded(output, flow);
  flow.places = KeepsPlaces() ? input(0).places : "";
  flow.below = KeepsPlaces() ? input(0).below : std::nullopt;
  const bool keeps_parts = ops::KnowsParts(FindOp(node_.op)->axis);
  for (Positions& positions : flow.along) {
    if (!keeps_parts) positions.parts.clear();
    positions.compact = positions.compact && keeps_parts;
  }
  absl::c_sort(flow.along, [](const Positions& a, const Positions& b) { return a.dim < b.dim; });
  flows_[node_.outputs[output]] = std::move(flow);
}

void AxisContext::SetUnbounded(size_t output, bool unbounded) {
  if (has_output(output)) flows_[node_.outputs[output]].unbounded = unbounded;
}

void AxisContext::Note(AxisFinding::Verdict verdict, std::string how) {
  if (verdict <= finding_.verdict) return;
  finding_.verdict = verdict;
  finding_.node = AxisNodeName(graph_, node_);
  finding_.how = std::move(how);
}

void AxisContext::Mix(absl::string_view how) {
  Note(AxisFinding::Verdict::kMixes, absl::StrCat(how, " ", axis()));
}

void AxisContext::Look(absl::string_view how, const Positions& positions) {
  positions.moved || positions.repeated ? Doubt(how) : Mix(how);
}

void AxisContext::Doubt(absl::string_view how) {
  Note(AxisFinding::Verdict::kUndecided, absl::StrCat(how, " ", axis()));
}

}  // namespace reprise
