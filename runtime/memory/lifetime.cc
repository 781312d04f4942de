#include "runtime/memory/lifetime.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// Values that share bytes, by the smallest id among them.
class ValueClasses {
 public:
  explicit ValueClasses(size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  ValueId Find(ValueId value) {
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }
  void Join(ValueId into, ValueId value) { parent_[Find(value)] = Find(into); }

 private:
  std::vector<ValueId> parent_;
};

size_t ValueBytes(const Value& value) {
  return static_cast<size_t>(NumElements(*value.shape)) * DTypeSize(value.dtype);
}

class Analysis {
 public:
  Analysis(const Graph& graph, absl::Span<const NodeMemory> nodes)
      : graph_(graph),
        nodes_(nodes),
        classes_(graph.num_values()),
        buffer_of_class_(graph.num_values(), -1) {}

  absl::StatusOr<Lifetimes> Run() {
    RETURN_IF_ERROR(CheckGraph());
    RETURN_IF_ERROR(JoinViews());
    MakeBuffers();
    RETURN_IF_ERROR(PlaceOutputs());
    MeasureLives();
    TakeInPlaceOffers();
    return Finish();
  }

 private:
  absl::Status CheckGraph() const {
    if (nodes_.size() != graph_.num_nodes()) {
      return absl::InternalError(absl::StrCat("lifetimes: ", nodes_.size(), " entries for ",
                                              graph_.num_nodes(), " nodes"));
    }
    if (graph_.live_nodes() != graph_.num_nodes() || !graph_.is_specialized()) {
      return absl::InternalError("lifetimes: the graph is not compacted and specialised");
    }
    return absl::OkStatus();
  }

  // Joins a view's output to the class of its input, whose root (a result that a kernel writes, or
  // an input, constant or parameter) stays the representative.
  absl::Status JoinViews() {
    for (NodeId id : graph_.NodeIds()) {
      if (!nodes_[id].view) continue;
      const Node& node = graph_.node(id);
      const ValueId input = node.input(0);
      const ValueId output = node.output(0);
      if (input == kNone || output == kNone ||
          ValueBytes(graph_.value(input)) != ValueBytes(graph_.value(output))) {
        return absl::InternalError(
            absl::StrCat("lifetimes: node ", id, " (", node.op, ") cannot be a view"));
      }
      classes_.Join(input, output);
    }
    return absl::OkStatus();
  }

  void MakeBuffers() {
    const int end = std::max<int>(0, static_cast<int>(graph_.num_nodes()) - 1);
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      const Value& value = graph_.value(id);
      if (value.kind == Value::Kind::kRemoved || classes_.Find(id) != id) continue;
      Buffer buffer;
      buffer.bytes = ValueBytes(value);
      buffer.index = id;
      buffer.last = end;
      switch (value.kind) {
        case Value::Kind::kInput:
          buffer.home = Buffer::Home::kInput;
          buffer.index =
              static_cast<int>(absl::c_find(graph_.inputs(), id) - graph_.inputs().begin());
          break;
        case Value::Kind::kConstant:
          buffer.home = Buffer::Home::kConstant;
          break;
        case Value::Kind::kParameter:
          buffer.home = Buffer::Home::kParameter;
          break;
        default:
          buffer.home = Buffer::Home::kArena;
          buffer.index = -1;
          buffer.first = buffer.last = value.producer;
      }
      buffer_of_class_[id] = static_cast<int>(result_.buffers.size());
      result_.buffers.push_back(buffer);
    }
  }

  absl::Status PlaceOutputs() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      Buffer& buffer = BufferOf(id);
      if (buffer.home != Buffer::Home::kArena) {
        const bool taken = buffer.home == Buffer::Home::kOutput;
        return absl::InternalError(
            absl::StrCat("lifetimes: output ", i, " ('", graph_.value(id).name, "') ",
                         taken ? absl::StrCat("shares its bytes with output ", buffer.index)
                               : "is an input, constant or parameter, or a view of one",
                         "; it needs an Identity"));
      }
      buffer.home = Buffer::Home::kOutput;
      buffer.index = static_cast<int>(i);
    }
    return absl::OkStatus();
  }

  void MeasureLives() {
    for (NodeId id : graph_.NodeIds()) {
      for (ValueId input : graph_.node(id).inputs) {
        if (input == kNone) continue;
        Buffer& buffer = BufferOf(input);
        buffer.last = std::max(buffer.last, id);
      }
    }
    // Outputs live to the end, where the scatter reads them.
    for (ValueId output : graph_.outputs()) {
      BufferOf(output).last = std::max<int>(0, static_cast<int>(graph_.num_nodes()) - 1);
    }
  }

  void TakeInPlaceOffers() {
    for (NodeId id : graph_.NodeIds()) {
      const int index = nodes_[id].in_place;
      if (index < 0 || nodes_[id].view) continue;
      const Node& node = graph_.node(id);
      const ValueId input = node.input(index);
      const ValueId output = node.output(0);
      if (input == kNone || output == kNone) continue;
      const int from = buffer_of_class_[classes_.Find(input)];
      const int to = buffer_of_class_[classes_.Find(output)];
      Buffer& kept = result_.buffers[from];
      Buffer& gone = result_.buffers[to];
      const auto uses = absl::c_count_if(node.inputs, [&](ValueId value) {
        return value != kNone && buffer_of_class_[classes_.Find(value)] == from;
      });
      if (kept.home != Buffer::Home::kArena || gone.home != Buffer::Home::kArena ||
          kept.last != id || uses != 1 || kept.bytes < gone.bytes) {
        continue;
      }
      kept.last = std::max(kept.last, gone.last);
      classes_.Join(input, output);
      gone_.push_back(to);
    }
  }

  // Drops the buffers that in-place results gave up, renumbers, adds workspaces.
  Lifetimes Finish() {
    std::vector<int> renumbered(result_.buffers.size(), 0);
    for (int buffer : gone_) renumbered[buffer] = -1;
    std::vector<Buffer> kept;
    for (size_t i = 0; i < result_.buffers.size(); ++i) {
      if (renumbered[i] == -1) continue;
      renumbered[i] = static_cast<int>(kept.size());
      kept.push_back(result_.buffers[i]);
    }
    result_.buffers = std::move(kept);

    result_.buffer_of_value.assign(graph_.num_values(), -1);
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      if (graph_.value(id).kind == Value::Kind::kRemoved) continue;
      result_.buffer_of_value[id] = renumbered[buffer_of_class_[classes_.Find(id)]];
    }
    result_.workspace_of_node.assign(graph_.num_nodes(), -1);
    for (NodeId id : graph_.NodeIds()) {
      if (nodes_[id].workspace_bytes == 0) continue;
      result_.workspace_of_node[id] = static_cast<int>(result_.buffers.size());
      result_.buffers.push_back({.bytes = nodes_[id].workspace_bytes, .first = id, .last = id});
    }
    return std::move(result_);
  }

  Buffer& BufferOf(ValueId id) { return result_.buffers[buffer_of_class_[classes_.Find(id)]]; }

  const Graph& graph_;
  absl::Span<const NodeMemory> nodes_;
  ValueClasses classes_;
  std::vector<int> buffer_of_class_;  // keyed by the representative of a class
  std::vector<int> gone_;             // buffers of results that took the place of an input
  Lifetimes result_;
};

}  // namespace

absl::StatusOr<Lifetimes> AnalyzeLifetimes(const Graph& graph, absl::Span<const NodeMemory> nodes) {
  return Analysis(graph, nodes).Run();
}

}  // namespace reprise
