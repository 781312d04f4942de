#include "runtime/passes/specialize/between.h"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/verifier.h"
#include "runtime/ops/kit/op.h"

namespace reprise {
namespace {

absl::Status Differ(absl::string_view what) {
  return absl::NotFoundError(absl::StrCat("the graphs differ in ", what));
}

// How numbers move with the axes.
class Lines {
 public:
  Lines(const Binding& low, const Binding& high, const Binding& wanted) {
    for (const auto& [symbol, size] : low.axes) {
      const auto there = high.axes.find(symbol), here = wanted.axes.find(symbol);
      if (there == high.axes.end() || here == wanted.axes.end()) continue;
      axes_.push_back(
          {.low = size, .to_high = there->second - size, .to_wanted = here->second - size});
    }
  }

  // Returns the number that is `low` and `high` in the two graphs; none where it is on no line,
  // or on several that lead to different numbers. A number that grows faster than a size, such as
  // its square, is told by its line: that is below 0 at size 0.
  std::optional<int64_t> NumberAt(int64_t low, int64_t high) const {
    if (low == high) return low;
    std::optional<int64_t> found;
    for (const Axis& axis : axes_) {
      if (axis.to_high == 0 || (high - low) % axis.to_high != 0) continue;
      const int64_t slope = (high - low) / axis.to_high;
      if (low - slope * axis.low < 0) continue;
      const int64_t number = low + slope * axis.to_wanted;
      if (found.has_value() && *found != number) return std::nullopt;
      found = number;
    }
    return found;
  }

  std::optional<std::vector<int64_t>> NumbersAt(absl::Span<const int64_t> low,
                                                absl::Span<const int64_t> high) const {
    if (low.size() != high.size()) return std::nullopt;
    std::vector<int64_t> numbers;
    numbers.reserve(low.size());
    for (size_t i = 0; i < low.size(); ++i) {
      const std::optional<int64_t> number = NumberAt(low[i], high[i]);
      if (!number.has_value()) return std::nullopt;
      numbers.push_back(*number);
    }
    return numbers;
  }

  std::optional<Tensor> TensorAt(const Tensor& low, const Tensor& high) const {
    if (low.dtype() != high.dtype()) return std::nullopt;
    if (low == high) return low;
    if (low.dtype() != DType::kInt64 || low.shape() != high.shape()) return std::nullopt;
    const auto of = [](const Tensor& tensor) {
      return absl::MakeConstSpan(static_cast<const int64_t*>(tensor.data()),
                                 static_cast<size_t>(tensor.num_elements()));
    };
    const std::optional<std::vector<int64_t>> numbers = NumbersAt(of(low), of(high));
    if (!numbers.has_value()) return std::nullopt;
    return Tensor::FromVector(DType::kInt64, low.shape(), *numbers);
  }

  std::optional<Attribute> AttributeAt(const Attribute& low, const Attribute& high) const {
    if (low == high) return low;
    if (low.index() != high.index()) return std::nullopt;
    if (const auto* from = std::get_if<int64_t>(&low)) {
      return NumberAt(*from, std::get<int64_t>(high));
    }
    if (const auto* from = std::get_if<std::vector<int64_t>>(&low)) {
      return NumbersAt(*from, std::get<std::vector<int64_t>>(high));
    }
    const auto* from = std::get_if<Tensor>(&low);
    if (from == nullptr) return std::nullopt;
    return TensorAt(*from, std::get<Tensor>(high));
  }

 private:
  struct Axis {
    int64_t low = 0;                     // its size in the low graph
    int64_t to_high = 0, to_wanted = 0;  // the ways to the other sizes
  };
  std::vector<Axis> axes_;
};

absl::Status MoveAttributes(const Lines& lines, const Node& high, Node& node) {
  const Attributes low = node.attributes;
  auto other = high.attributes.begin();
  for (const auto& [name, value] : low) {
    if (other == high.attributes.end() || other->first != name) return Differ("attributes");
    if (!(value == other->second)) {
      std::optional<Attribute> moved = lines.AttributeAt(value, other->second);
      if (!moved.has_value()) return Differ(absl::StrCat("attribute ", name, " of ", node.op));
      node.attributes.Set(name, *std::move(moved));
    }
    ++other;
  }
  return other == high.attributes.end() ? absl::OkStatus() : Differ("attributes");
}

absl::Status MoveValue(const Lines& lines, const Value& high, Value& value) {
  if (value.kind != high.kind || value.dtype != high.dtype || value.producer != high.producer ||
      value.users != high.users || value.shape.has_value() != high.shape.has_value()) {
    return Differ(absl::StrCat("value ", value.name));
  }
  if (value.kind == Value::Kind::kInput && value.name != high.name) return Differ("inputs");
  if (value.kind == Value::Kind::kParameter && value.parameter->text() != high.parameter->text()) {
    return Differ("parameters");
  }
  if (value.kind == Value::Kind::kConstant) {
    std::optional<Tensor> moved = lines.TensorAt(value.constant, high.constant);
    if (!moved.has_value()) return Differ(absl::StrCat("constant ", value.name));
    value.constant = *std::move(moved);
  }
  if (value.dims.size() != high.dims.size()) return Differ("declared dims");
  for (size_t i = 0; i < value.dims.size(); ++i) {
    const std::optional<int64_t> size = lines.NumberAt(value.dims[i].size, high.dims[i].size);
    if (!size.has_value() || value.dims[i].symbol != high.dims[i].symbol) {
      return Differ("declared dims");
    }
    value.dims[i].size = *size;
  }
  if (!value.shape.has_value()) return absl::OkStatus();
  std::optional<std::vector<int64_t>> shape = lines.NumbersAt(*value.shape, *high.shape);
  if (!shape.has_value()) return Differ(absl::StrCat("the shape of ", value.name));
  value.shape.emplace(shape->begin(), shape->end());
  return absl::OkStatus();
}

// Checks that the shapes of results follow from the operands, and are the ones on the lines.
absl::Status CheckShapes(Graph& graph) {
  for (const NodeId id : graph.NodeIds()) {
    std::vector<std::optional<Shape>> said;
    for (const ValueId output : graph.node(id).outputs) {
      said.push_back(output == kNone ? std::nullopt : graph.value(output).shape);
    }
    if (!InferNode(graph, id).ok()) return Differ("operands");
    for (size_t i = 0; i < said.size(); ++i) {
      const ValueId output = graph.node(id).outputs[i];
      if (output != kNone && graph.value(output).shape != said[i]) return Differ("shapes");
    }
  }
  return Verify(graph, /*specialized=*/true).ok() ? absl::OkStatus() : Differ("remaining nodes");
}

}  // namespace

absl::StatusOr<Graph> GraphBetween(const RewrittenAt& low, const RewrittenAt& high,
                                   const Binding& wanted) {
  if (low.graph.num_nodes() != high.graph.num_nodes() ||
      low.graph.num_values() != high.graph.num_values() ||
      low.graph.inputs() != high.graph.inputs() || low.graph.outputs() != high.graph.outputs()) {
    return Differ("size");
  }
  const Lines lines(low.binding, high.binding, wanted);
  Graph graph = low.graph;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.num_nodes()); ++id) {
    Node& node = graph.node(id);
    const Node& other = high.graph.node(id);
    if (node.removed != other.removed || node.op != other.op || node.inputs != other.inputs ||
        node.outputs != other.outputs) {
      return Differ(absl::StrCat("node ", id));
    }
    RETURN_IF_ERROR(MoveAttributes(lines, other, node));
  }
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    RETURN_IF_ERROR(MoveValue(lines, high.graph.value(id), graph.value(id)));
  }
  RETURN_IF_ERROR(CheckShapes(graph));
  return graph;
}

}  // namespace reprise
