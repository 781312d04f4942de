#include "runtime/certify/axis_flow.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "runtime/certify/axis_numbers.h"
#include "runtime/certify/axis_parts.h"
#include "runtime/certify/numbers.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/movement/slice_op.h"

namespace reprise {
namespace {

using Source = AxisFlowValue::Source;
using Verdict = AxisFinding::Verdict;

// Returns the value that a constant holds at each position behind the end along dim `dim`, wherever
// the end is. `query`: another dim of positions, of which only those before the end count: keys
// behind the end lie behind the diagonal of a causal mask then.
PaddingValue ValueBehind(const Shape& shape, const std::vector<double>& values, int64_t dim,
                         std::optional<int64_t> query) {
  PaddingValue first;
  const Shape strides = Strides(shape);
  for (size_t e = 0; e < values.size(); ++e) {
    const auto at = [&](int64_t d) { return static_cast<int64_t>(e) / strides[d] % shape[d]; };
    if (query.has_value() && at(dim) <= at(*query)) continue;
    if (!first.has_value()) first = values[e];
    if (values[e] != *first) return std::nullopt;  // None equals NaN.
  }
  return first;
}

// Returns whether all places along `dim` hold the same.
bool SameAlong(const Shape& shape, const std::vector<double>& values, int64_t dim) {
  const Shape strides = Strides(shape);
  for (size_t e = 0; e < values.size(); ++e) {
    const size_t first = e - e / strides[dim] % shape[dim] * strides[dim];
    if (!SameNumber(values[e], values[first])) return false;
  }
  return true;
}

// Returns the number of places that `dim` has for each position, where it is the same at both sizes
// and all of these places hold the same; else 0. Batch and heads merged into one dim are so.
int64_t SameForAll(const Tensor& small, const Tensor& large, int64_t dim,
                   const AxisFlowOptions& options) {
  const int64_t inner = small.shape()[dim] / options.small_size;
  const bool multiples = inner > 0 && inner * options.small_size == small.shape()[dim] &&
                         inner * options.large_size == large.shape()[dim];
  const bool same = multiples && SameAlong(small.shape(), small.ToDoubles(), dim) &&
                    SameAlong(large.shape(), large.ToDoubles(), dim);
  return same ? inner : 0;
}

// Returns whether every element is its place along `dim`.
bool IsOwnPlace(const Tensor& tensor, int64_t dim) {
  const std::vector<double> values = tensor.ToDoubles();
  const Shape strides = Strides(tensor.shape());
  for (size_t e = 0; e < values.size(); ++e) {
    const int64_t place = static_cast<int64_t>(e) / strides[dim] % tensor.shape()[dim];
    if (values[e] != static_cast<double>(place)) return false;
  }
  return IsInteger(tensor.dtype());
}

// Returns whether rows of places have one that is their own, beside others that all rows share.
bool HasOwnPlace(const Tensor& tensor, int64_t dim) {
  if (dim + 1 >= static_cast<int64_t>(tensor.shape().size())) return false;
  bool any = false;
  for (int64_t column = 0; column < tensor.shape().back(); ++column) {
    const ColumnPlaces places = PlacesOfColumn(tensor, dim, column);
    if (places == ColumnPlaces::kOther) return false;
    any = any || places == ColumnPlaces::kOwn;
  }
  return any;
}

// Returns whether every line along `dim` begins in `larger` as in `small` but for one number that
// is added.
bool IsShift(const Shape& shape, const std::vector<double>& small, const Shape& larger_shape,
             const std::vector<double>& larger, int64_t dim) {
  constexpr double kNear = 1e-4;
  const Shape strides = Strides(shape), larger_strides = Strides(larger_shape);
  for (size_t e = 0; e < small.size(); ++e) {
    size_t first = e - e / strides[dim] % shape[dim] * strides[dim];
    size_t there = 0, first_there = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      there += e / strides[d] % shape[d] * larger_strides[d];
      first_there += first / strides[d] % shape[d] * larger_strides[d];
    }
    const double by = larger[there] - small[e], by_first = larger[first_there] - small[first];
    if (!(std::abs(by - by_first) <= kNear)) return false;
  }
  return true;
}

// The positions that a dim of these two sizes has, where it is known.
using FindExtent = absl::FunctionRef<std::optional<Extent>(int64_t, int64_t)>;

void ReadNumbers(const Tensor& small, const Tensor& large, const std::string& name,
                 const AxisFlowOptions& options, AxisFlowValue& flow);

// Returns whether a table that holds the same along `dim` at these sizes may differ along it at
// others.
bool MayDifferAlong(const Tensor& tensor, const std::string& name, int64_t dim,
                    const AxisFlowOptions& options) {
  const auto uneven = options.uneven.find(name);
  if (uneven == options.uneven.end()) return false;
  const auto rank = static_cast<int64_t>(tensor.shape().size());
  if (uneven->second.Along(rank - 1 - dim)) return true;
  // Where it differs along another dim, that is what it is uneven by.
  std::optional<double> first;
  return uneven->second.unknown && AllElements(tensor, [&](double value) {
           if (!first.has_value()) first = value;
           return SameNumber(value, *first);
         });
}

// Returns whether a constant that is the same at both sizes may be another one at others: no
// reading of the model tells how it is made of them.
bool MayBeAnother(const std::string& name, const AxisFlowOptions& options) {
  const auto uneven = options.uneven.find(name);
  return uneven != options.uneven.end() && uneven->second.unread;
}

// Returns the flow of a constant that both sizes have: with positions where one is the beginning of
// the other.
AxisFlowValue FlowOfConstant(const Tensor& small, const Tensor& large, const std::string& name,
                             const AxisFlowOptions& options, FindExtent find_extent) {
  AxisFlowValue flow;
  const Shape& a = small.shape();
  const Shape& b = large.shape();
  const bool own = a == b && small.data() == large.data();  // the model's
  if (own || a.size() != b.size()) {
    flow.nonnegative = AllElements(large, [](double value) { return value >= 0; });
    flow.follows_size = !own;
    return flow;
  }
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] == b[d]) continue;
    if (const std::optional<Extent> extent = find_extent(a[d], b[d]); extent.has_value()) {
      flow.along.push_back({.dim = static_cast<int64_t>(d), .extent = *extent});
    } else if (const int64_t inner = SameForAll(small, large, static_cast<int64_t>(d), options);
               inner > 0) {
      flow.along.push_back({.dim = static_cast<int64_t>(d), .inner = inner});
    } else {
      flow.along.push_back({.dim = static_cast<int64_t>(d), .moved = true});
      flow.follows_size = true;
    }
  }
  // A table of all rows and heads is read once. With positions along two dims, the second of them
  // is kept, which is read beside the first.
  if (a == b && MayBeAnother(name, options)) flow.follows_size = true;
  size_t dims = flow.along.size() < 2 ? a.size() : flow.along.back().dim;
  dims = std::min(DimsOfCopies(small, dims), DimsOfCopies(large, dims));
  ReadNumbers(FirstOfCopies(small, dims), FirstOfCopies(large, dims), name, options, flow);
  return flow;
}

// Reads the part of it that the elements tell, once the positions are known.
void ReadNumbers(const Tensor& small, const Tensor& large, const std::string& name,
                 const AxisFlowOptions& options, AxisFlowValue& flow) {
  const Shape& a = small.shape();
  const Shape& b = large.shape();
  flow.nonnegative = AllElements(large, [](double value) { return value >= 0; });
  if (flow.follows_size) return;
  const std::vector<double> values = small.ToDoubles();
  const std::vector<double> larger = large.ToDoubles();
  const Shape strides = Strides(a);
  const Shape larger_strides = Strides(b);
  for (size_t e = 0; e < values.size() && !flow.follows_size; ++e) {
    size_t other = 0;
    for (size_t d = 0; d < a.size(); ++d) other += e / strides[d] % a[d] * larger_strides[d];
    flow.follows_size = !SameNumber(values[e], larger[other]);
  }
  if (flow.follows_size) {
    for (const Positions& positions : flow.along) {
      if (options.is_batch || !IsShift(a, values, b, larger, positions.dim)) continue;
      flow.shifted = positions.dim;
      flow.follows_size = false;
      break;
    }
  }
  for (size_t i = 0; i < flow.along.size() && flow.along.size() <= 2; ++i) {
    Positions& positions = flow.along[i];
    positions.padding = ValueBehind(b, larger, positions.dim, std::nullopt);
    // Requests of a batch lie anywhere: what differs by the place differs for them.
    if (options.is_batch && !SameAlong(b, larger, positions.dim)) {
      flow.own_place = flow.along.size() == 1 && !options.repeats_last &&
                       (IsOwnPlace(large, positions.dim) || HasOwnPlace(large, positions.dim));
      flow.follows_size = flow.follows_size || !flow.own_place;
    } else if (options.is_batch && MayDifferAlong(large, name, positions.dim, options)) {
      // A request may have more rows than any bucket, and is answered in parts then.
      flow.follows_size = true;
    }
    if (!positions.padding.has_value() && flow.along.size() == 2 && i == 1) {
      positions.padding = ValueBehind(b, larger, positions.dim, flow.along[0].dim);
    }
  }
}

const ParameterExpr* InputOf(const ParameterExpr& expr, size_t i) {
  return i < expr.inputs().size() ? expr.inputs()[i].get() : nullptr;
}

bool SameExpr(const ParameterExpr* a, const ParameterExpr* b) {
  return a != nullptr && b != nullptr && a->text() == b->text();
}

// Weights: what is cut from them by a length begins alike.
AxisFlowValue FlowOfParameter(const ParameterExpr& small, const ParameterExpr& large,
                              const AxisFlowOptions& options, FindExtent find_extent) {
  AxisFlowValue flow;
  if (small.text() == large.text()) return flow;
  const bool cut = small.op() == SliceOp::kName && large.op() == SliceOp::kName &&
                   SameExpr(InputOf(small, 0), InputOf(large, 0)) &&
                   SameExpr(InputOf(small, 1), InputOf(large, 1));
  const Shape& a = small.shape();
  const Shape& b = large.shape();
  flow.follows_size = !cut || a.size() != b.size() || options.is_batch;
  for (size_t d = 0; d < a.size() && d < b.size(); ++d) {
    if (a[d] == b[d]) continue;
    const std::optional<Extent> extent = find_extent(a[d], b[d]);
    flow.follows_size = flow.follows_size || !extent.has_value();
    flow.along.push_back({.dim = static_cast<int64_t>(d),
                          .moved = !extent.has_value(),
                          .extent = extent.value_or(Extent())});
  }
  return flow;
}

AxisFlowValue FlowOfInput(const Graph& graph, ValueId id, const Value& large,
                          const AxisFlowOptions& options) {
  const Value& small = graph.value(id);
  const auto fill = options.fills.find(small.name);
  const bool live = options.live.contains(small.name);
  AxisFlowValue flow = {.source = live ? Source::kLive : Source::kData};
  flow.nonnegative = IsNeverNegative(small.dtype) || live;
  flow.chosen = !live;
  for (size_t d = 0; d < small.shape->size(); ++d) {
    const int64_t a = (*small.shape)[d], b = (*large.shape)[d];
    if (a == b) continue;
    // A dim that is computed from the axis (twice the length, the length and one).
    const bool itself = a == options.small_size && b == options.large_size;
    flow.along.push_back({.dim = static_cast<int64_t>(d), .moved = !itself});
    if (fill != options.fills.end()) flow.along.back().padding = fill->second;
  }
  // A value without positions is not padded.
  if (flow.along.empty()) flow.source = Source::kLive;
  if (small.dtype == DType::kInt32 || small.dtype == DType::kInt64) flow.places = small.name;
  return flow;
}

class Walk {
 public:
  Walk(const Graph& small, const Graph& large, const AxisFlowOptions& options)
      : small_(small),
        large_(large),
        options_(options),
        flows_(small.num_values()),
        entered_(small.num_values(), false) {}

  AxisFinding Run() {
    const std::vector<NodeId> nodes = small_.NodeIds();
    const std::vector<NodeId> larger = large_.NodeIds();
    const bool alike = small_.is_specialized() && large_.is_specialized() &&
                       nodes.size() == larger.size() &&
                       small_.inputs().size() == large_.inputs().size() &&
                       small_.outputs().size() == large_.outputs().size();
    if (!alike) return OtherAtOtherSize("the model");
    for (size_t i = 0; i < small_.inputs().size(); ++i) {
      const Value& value = small_.value(small_.inputs()[i]);
      const Value& other = large_.value(large_.inputs()[i]);
      if (value.shape->size() != other.shape->size()) return OtherAtOtherSize("an input");
      flows_[small_.inputs()[i]] = FlowOfInput(small_, small_.inputs()[i], other, options_);
    }
    AxisFinding doubt;
    std::set<std::string> in_request;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = small_.node(nodes[i]);
      const Node& other = large_.node(larger[i]);
      if (!Alike(node, other)) return OtherAtOtherSize(AxisNodeName(small_, node));
      AxisContext context(small_, large_, node, other, options_, flows_);
      Visit(node, other, context);
      if (context.finding().verdict == Verdict::kMixes) return context.finding();
      in_request.insert(context.finding().in_request.begin(), context.finding().in_request.end());
      if (doubt.verdict == Verdict::kProved) doubt = context.finding();
    }
    EnterOutputs();
    const AxisFinding outputs = CheckOutputs();
    if (outputs.verdict > doubt.verdict) doubt = outputs;
    doubt.in_request = std::move(in_request);
    return doubt;
  }

 private:
  static AxisFinding OtherAtOtherSize(std::string what) {
    return {Verdict::kUndecided, std::move(what), "is another one at another size"};
  }

  // Meets the outputs that no node makes: their sizes alone tell where their positions lie.
  void EnterOutputs() {
    const auto find_extent = [&](int64_t a, int64_t b) -> std::optional<Extent> {
      if (a != options_.small_size || b != options_.large_size) return std::nullopt;
      return Extent();
    };
    for (size_t i = 0; i < small_.outputs().size(); ++i) {
      const ValueId id = small_.outputs()[i];
      const Value &value = small_.value(id), &other = large_.value(large_.outputs()[i]);
      if (entered_[id] || value.kind != other.kind) continue;
      entered_[id] = true;
      if (value.kind == Value::Kind::kConstant) {
        flows_[id] =
            FlowOfConstant(value.constant, other.constant, value.name, options_, find_extent);
      } else if (value.kind == Value::Kind::kParameter) {
        flows_[id] = FlowOfParameter(*value.parameter, *other.parameter, options_, find_extent);
      }
    }
  }

  // Checks that the first elements of an answer are the request's.
  AxisFinding CheckOutputs() const {
    for (size_t i = 0; i < small_.outputs().size(); ++i) {
      const ValueId id = small_.outputs()[i];
      const bool alike = small_.value(id).kind == large_.value(large_.outputs()[i]).kind;
      const bool made = small_.value(id).kind == Value::Kind::kResult;
      if (!alike || flows_[id].shifted.has_value() || (!made && flows_[id].follows_size)) {
        return {Verdict::kMixes, absl::StrCat("output '", small_.value(id).name, "'"),
                absl::StrCat("holds numbers that follow the size of ", options_.axis)};
      }
      if (flows_[id].own_place) {
        return {Verdict::kMixes, absl::StrCat("output '", small_.value(id).name, "'"),
                absl::StrCat("holds places in ", options_.axis)};
      }
      for (const Positions& positions : flows_[id].along) {
        if (positions.compact || (!positions.moved && !positions.repeated)) continue;
        // A second line, or part, begins where the first one ends: behind the padding.
        if (positions.repeated && (!positions.moved || !positions.parts.empty())) {
          return {Verdict::kMixes, absl::StrCat("output '", small_.value(id).name, "'"),
                  absl::StrCat("holds several lines, one behind the other, of ", options_.axis)};
        }
        return {Verdict::kUndecided, absl::StrCat("output '", small_.value(id).name, "'"),
                absl::StrCat("need not begin with the positions of ", options_.axis)};
      }
    }
    return {};
  }

  static bool Alike(const Node& a, const Node& b) {
    return a.op == b.op && a.inputs.size() == b.inputs.size() &&
           a.outputs.size() == b.outputs.size() && a.attributes == b.attributes;
  }

  // Constants and parameters are met where they are used.
  void Enter(ValueId id, ValueId larger, AxisContext& context) {
    if ((id == kNone) != (larger == kNone)) context.Doubt("has other operands at another size of");
    if (id == kNone || larger == kNone || entered_[id]) return;
    entered_[id] = true;
    const Value& value = small_.value(id);
    const Value& other = large_.value(larger);
    const auto find_extent = [&](int64_t a, int64_t b) { return context.ExtentOf(a, b); };
    if (value.kind != other.kind) {
      context.Doubt("has other operands at another size of");
    } else if (value.kind == Value::Kind::kConstant) {
      flows_[id] =
          FlowOfConstant(value.constant, other.constant, value.name, options_, find_extent);
      if (!flows_[id].follows_size) return;
      auto in_parts = FlowInParts(value.constant, other.constant, context);
      if (in_parts.has_value()) flows_[id] = *std::move(in_parts);
    } else if (value.kind == Value::Kind::kParameter) {
      flows_[id] = FlowOfParameter(*value.parameter, *other.parameter, options_, find_extent);
    }
  }

  void Visit(const Node& node, const Node& larger, AxisContext& context) {
    const OpRow* row = FindOp(node.op);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Enter(node.inputs[i], larger.inputs[i], context);
    }
    if (row == nullptr) return context.Doubt("does what is not known to");
    row->axis(context);
    for (size_t i = 0; i < node.inputs.size() && !ops::KnowsParts(row->axis); ++i) {
      const bool joined = absl::c_any_of(context.input(i).along,
                                         [](const Positions& one) { return one.IsJoined(); });
      if (joined) context.Doubt("looks at the joined positions of");
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      // An operand that decides shapes may know the length: that is how shapes follow it.
      if (node.inputs[i] == kNone || row->IsValueInput(i)) continue;
      if (!flows_[node.inputs[i]].follows_size) continue;
      if (row->axis == ops::AttentionAxis) {
        context.Doubt("takes numbers that follow the size of");  // How long its masks are.
      } else {
        context.Mix("takes numbers that follow the size of");
      }
    }
    FollowNumbers(small_, context, flows_);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) CheckSizes(node, i, larger.outputs[i], context);
    }
  }

  // Holds the dims that follow the axis to those that the rule says; else takes them as they are.
  void CheckSizes(const Node& node, size_t output, ValueId larger, AxisContext& context) {
    const ValueId id = node.outputs[output];
    if (larger == kNone || !small_.value(id).shape || !large_.value(larger).shape) return;
    const Shape& a = *small_.value(id).shape;
    const Shape& b = *large_.value(larger).shape;
    if (a.size() != b.size())
      return context.Doubt("has a result of another rank at another size of");
    AxisFlowValue flow = flows_[id];
    bool agrees = true;
    for (size_t d = 0; d < a.size(); ++d) {
      const int64_t dim = static_cast<int64_t>(d);
      const Positions* known = flow.At(dim);
      // The number of some of the positions may be the same at every size.
      if ((a[d] != b[d]) == (known != nullptr) || (known != nullptr && known->moved)) continue;
      agrees = false;
      if (known != nullptr) {
        std::erase_if(flow.along, [&](const Positions& one) { return one.dim == dim; });
      } else {
        flow.along.push_back({.dim = dim, .moved = true});
      }
    }
    if (agrees) return;
    context.Doubt("moves elements in a way that is not known, by the positions of");
    context.Set(output, std::move(flow));
  }

  const Graph& small_;
  const Graph& large_;
  const AxisFlowOptions& options_;
  std::vector<AxisFlowValue> flows_;  // indexed by value of the small graph
  std::vector<bool> entered_;         // constants and parameters that were met
};

}  // namespace

AxisFinding FindMixing(const Graph& small, const Graph& large, const AxisFlowOptions& options) {
  return Walk(small, large, options).Run();
}

std::string MixingWords(const AxisFinding& finding) {
  return absl::StrCat(finding.node, " ", finding.how);
}

}  // namespace reprise
