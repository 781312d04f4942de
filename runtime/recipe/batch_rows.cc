#include "runtime/recipe/batch_rows.h"

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "runtime/recipe/row_rules.h"

namespace reprise {
namespace {

class Marker {
 public:
  Marker(Graph& graph, int64_t rows) : graph_(graph), rows_(rows), rules_(graph, rows) {}

  void RunOverBatch() {
    for (ValueId input : graph_.inputs()) {
      if (Divides(*graph_.value(input).shape)) graph_.value(input).batch_rows = rows_;
    }
    MarkForward();
    UnmarkBackward();
  }

  void RunOverSegments() {
    for (ValueId input : graph_.inputs()) MarkExactly(input);
    for (NodeId id : graph_.NodeIds()) {
      const Node& node = graph_.node(id);
      if (RowRules::ReadsLiveRowsAlone(node)) MarkExactly(node.output(0));
    }
    MarkForward();
    UnmarkBackward();
  }

 private:
  void MarkExactly(ValueId value) {
    const Shape& shape = *graph_.value(value).shape;
    if (!shape.empty() && shape[0] == rows_) graph_.value(value).batch_rows = rows_;
  }

  void MarkForward() {
    for (NodeId id : graph_.NodeIds()) {
      const Node& node = graph_.node(id);
      if (!rules_.KeepsRowsApart(node)) continue;
      for (ValueId output : node.outputs) {
        if (output != kNone && Divides(*graph_.value(output).shape)) {
          graph_.value(output).batch_rows = rows_;
        }
      }
    }
  }

  // Unmarks rows backward. A node that mixes rows reads all of them, dead ones too: those must have
  // been computed, and from rows that were computed.
  void UnmarkBackward() {
    const std::vector<NodeId> ids = graph_.NodeIds();
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      const Node& node = graph_.node(*id);
      if (RowRules::ReadsLiveRowsAlone(node)) continue;
      const bool apart = absl::c_all_of(node.outputs, [&](ValueId output) {
        return output == kNone || graph_.value(output).batch_rows == rows_;
      });
      if (apart) continue;
      for (ValueId input : node.inputs) {
        if (input == kNone || graph_.value(input).batch_rows != rows_) continue;
        graph_.value(input).batch_rows = 0;
      }
    }
  }

  bool Divides(const Shape& shape) const { return !shape.empty() && shape[0] % rows_ == 0; }

  Graph& graph_;
  const int64_t rows_;
  const RowRules rules_;
};

}  // namespace

void MarkBatchRows(Graph& graph, int64_t rows) {
  if (rows > 1) Marker(graph, rows).RunOverBatch();
}

void MarkSegments(Graph& graph, int64_t segments) {
  if (segments > 1) Marker(graph, segments).RunOverSegments();
}

}  // namespace reprise
