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

void MaskNeeds::Join(const MaskNeeds& other) {
  places = std::max(places, other.places);
  for (const auto& [input, left] : other.together) {
    CountingPlaces& own = together[input];
    own = std::max(own, left);
  }
  in_request.insert(other.in_request.begin(), other.in_request.end());
}

bool MaskNeeds::Within(const MaskNeeds& other) const {
  MaskNeeds joint = other;
  joint.Join(*this);
  return joint == other;
}

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

bool IsComparison(absl::string_view op) { return FactsOf(op).Is(kComparison); }

bool HoldsLargeNumbers(DType dtype) {
  return IsFloating(dtype) || (IsInteger(dtype) && DTypeSize(dtype) > sizeof(int16_t));
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

bool AxisContext::AnyPositions() const {
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!input(i).along.empty()) return true;
  }
  return false;
}

bool AxisContext::AnyGuarded() const {
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (input(i).source == Source::kGuards) return true;
    for (const Positions& positions : input(i).along) {
      if (positions.guarded) return true;
    }
  }
  return false;
}

bool AxisContext::IsFloatInput(const std::string& name) const {
  const ValueId value = graph_.FindValue(name);
  return value != kNone && IsFloating(graph_.value(value).dtype);
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

bool AxisContext::TakesFromRequest(size_t i, const Positions& positions) {
  const std::string& places = input(i).places;
  const bool in_order = positions.inner == 1 && !positions.moved && !positions.repeated &&
                        positions.extent == Extent();
  if (!options_.checks_places || places.empty() || !in_order) return false;
  if (is_batch() && !repeats_last()) return false;  // Rows before it may be other requests'.
  finding_.needs.in_request.insert(places);
  return true;
}

bool AxisContext::AnyUnknownMask() const {
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (input(i).source == Source::kGuards && input(i).along.empty()) return true;
    for (const Positions& positions : input(i).along) {
      if (positions.guarded && positions.padding.kind == PaddingValue::Kind::kUnknown) return true;
    }
  }
  return false;
}

bool AxisContext::IsSettled() const {
  const OpRow* row = FindOp(node_.op);
  const OpFacts& facts = FactsOf(*row);
  const bool product = facts.Is(kSettledByWeights);
  const bool in_place = row->Has(kElementwise) || row->Has(kView) || product || facts.Is(kSettled);
  if (!in_place) return false;
  int data = 0;
  for (size_t i = 0; i < num_inputs(); ++i) {
    const AxisFlowValue& flow = input(i);
    data += flow.source == Source::kData ? 1 : 0;
    const bool settled = absl::c_all_of(flow.along, [](const auto& one) { return one.settled; });
    if (!settled || (flow.source == Source::kData && flow.along.empty())) return false;
  }
  return !product || data <= 1;
}

bool AxisContext::Carries(size_t i) const {
  const OpRow* row = FindOp(node_.op);
  const OpFacts& facts = FactsOf(*row);
  if (!has_input(i) || row->IsValueInput(i)) return false;
  if (row->Has(kElementwise)) return true;
  const bool made_of = i == 0 || facts.elements == Elements::kJoined;
  return made_of && (row->Has(kView) || facts.Is(kCarriesMasks));
}

Structure AxisContext::JointStructure() const {
  const OpRow* row = FindOp(node_.op);
  const bool moves = !row->Has(kElementwise);
  Structure joint = Structure::kNone;
  bool fresh = true, masked = false;  // the first key's keepers are tables; a mask meets them
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!Carries(i)) continue;
    const AxisFlowValue& flow = input(i);
    joint = std::max(joint, flow.structure);
    fresh = fresh && (flow.structure != Structure::kKeepsFirst || flow.source == Source::kConstant);
    for (const Positions& positions : flow.along) masked = masked || positions.guarded;
  }
  const bool adds = node_.op == AddOp::kName;
  const bool covers =
      node_.op == WhereOp::kName && input(0).structure == Structure::kKeepsFirst && !masked;
  if (joint == Structure::kKeepsFirst && fresh && (adds || covers)) return Structure::kApart;
  if (joint == Structure::kApart && !moves && !FactsOf(*row).Is(kKeepsApart)) {
    return Structure::kKeepsFirst;  // A cap brings hidden numbers twice as high as the rest.
  }
  return joint;
}

// A condition of a choice of low numbers hides where it is true, or where it is not; so does one
// that low numbers are multiplied by.
TableLines AxisContext::JointLines() const {
  TableLines joint;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!Carries(i)) continue;
    joint.zeros |= input(i).lines.zeros;
    joint.ones |= input(i).lines.ones;
    joint.hidden |= input(i).lines.hidden;
  }
  const auto is_low = [&](size_t i) { return Uniform(i).value_or(0) <= ops::kWeakestMask; };
  const bool turns = node_.op == NotOp::kName || (node_.op == SubOp::kName && Uniform(0) == 1);
  if (turns) std::swap(joint.zeros, joint.ones);
  if (node_.op == WhereOp::kName) {
    joint.hidden |= (is_low(1) && input(0).lines.ones) || (is_low(2) && input(0).lines.zeros);
  }
  if (node_.op == MulOp::kName) {
    joint.hidden |= (is_low(0) && input(1).lines.ones) || (is_low(1) && input(0).lines.ones);
  }
  return joint;
}

void AxisContext::Set(size_t output, AxisFlowValue flow, bool is_mask) {
  if (!has_output(output)) return;
  flow.source = Source::kConstant;
  for (size_t i = 0; i < num_inputs(); ++i) flow.source = std::max(flow.source, input(i).source);
  if (is_mask) flow.source = std::min(flow.source, Source::kGuards);
  makes_mask_ = makes_mask_ || is_mask;
  // A result that follows from one place of a mask, which may be empty there: the first place where
  // it ends may be the very first one.
  const bool of_place =
      node_.op == ArgMaxOp::kName || node_.op == ArgMinOp::kName || node_.op == WhereOp::kName;
  flow.chosen = of_place && flow.source != Source::kConstant;
  for (size_t i = 0; i < num_inputs() && !makes_mask_; ++i) {
    flow.chosen = flow.chosen || input(i).chosen;
  }
  flow.nonnegative = IsNonnegative(output);
  flow.may_be_low = !flow.nonnegative && MayReach(output, /*low=*/true);
  flow.may_be_high = MayReach(output, /*low=*/false);
  flow.unbounded = MayBeUnbounded();
  flow.structure = std::max(flow.structure, JointStructure());
  flow.lines = JointLines();
  flow.hiders = JointHiders();
  flow.ids = JointIds();
  flow.places = JointPlaces();
  flow.by_data = JointByData();
  flow.hidden_by_data = MayHideByData(flow);
  const bool settled = IsSettled(), unknown_mask = AnyUnknownMask();
  const bool keeps_parts = ops::KnowsParts(FindOp(node_.op)->axis);
  for (Positions& positions : flow.along) {
    positions.settled = settled;
    if (!keeps_parts) positions.parts.clear();
    positions.compact = positions.compact && keeps_parts;
    // Where all masks are known, an unknown value that data makes is known to be no mask.
    const bool data =
        flow.source == Source::kData && positions.padding.kind == PaddingValue::Kind::kUnknown;
    if (data && !unknown_mask) positions.guarded = false;
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

void AxisContext::Mix(absl::string_view how, bool guarded, std::optional<double> weak) {
  const std::string under = weak.has_value() ? absl::StrCat("under a mask of only ", *weak)
                            : guarded        ? std::string("under what may be a mask")
                                             : std::string("without a mask");
  const bool may_do = guarded && !weak.has_value();
  Note(may_do ? AxisFinding::Verdict::kUndecided : AxisFinding::Verdict::kMixes,
       absl::StrCat(how, " ", axis(), " ", under));
}

void AxisContext::Look(absl::string_view how, const Positions& positions) {
  const bool known = !positions.guarded && !positions.moved && !positions.repeated;
  Note(known ? AxisFinding::Verdict::kMixes : AxisFinding::Verdict::kUndecided,
       absl::StrCat(how, " ", axis()));
}

void AxisContext::MustCount(CountingPlaces places) { finding_.needs.Join({.places = places}); }

void AxisContext::MustLeave(CountingPlaces places) {
  for (const std::string& hider : input(0).hiders) {
    finding_.needs.Join({.together = {{hider, places}}});
  }
}

void AxisContext::MayShow(absl::string_view how) {
  if (is_batch() || !finding_.shallow.empty()) return;
  finding_.shallow = absl::StrCat(AxisNodeName(graph_, node_), " ", how, " ", axis());
}

void AxisContext::SeeLength(absl::string_view how) {
  Note(AxisFinding::Verdict::kMixes, absl::StrCat(how, " ", axis()));
}

void AxisContext::BlameMixing(NodeId node, absl::string_view how) {
  if (finding_.verdict == AxisFinding::Verdict::kMixes) return;
  Mix(how, /*guarded=*/false);
  finding_.node = AxisNodeName(graph_, graph_.node(node));
}

void AxisContext::Doubt(absl::string_view how) {
  Note(AxisFinding::Verdict::kUndecided, absl::StrCat(how, " ", axis()));
}

}  // namespace reprise
