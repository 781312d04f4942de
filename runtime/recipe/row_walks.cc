#include "runtime/recipe/row_walks.h"

#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/windows/pool_op.h"

namespace reprise {
namespace {

// A node whose operands and results, of all rows, are larger than this finds little of them in its
// core's cache.
constexpr int64_t kFarBytes = int64_t{3} << 20;
// Fewer bytes a row are too little work for a launch of their own.
constexpr int64_t kRowBytes = int64_t{256} << 10;
// Between two nodes that move much there may be at most this many others, with at most this many
// bytes of weights: those are read once a row.
constexpr int kFewNodes = 6;
constexpr int64_t kFewWeightBytes = int64_t{512} << 10;
// Blocks of memory begin at such an address, and so must rows.
constexpr int64_t kRowAlignment = 64;

int64_t BytesOf(const Value& value) {
  return NumElements(*value.shape) * static_cast<int64_t>(DTypeSize(value.dtype));
}

struct Traffic {
  int64_t rows = 0, weights = 0;  // bytes
};

class Finder {
 public:
  Finder(const Graph& graph, int64_t rows) : graph_(graph), rows_(rows) {}

  std::vector<RowWalk> Run() const {
    std::vector<RowWalk> walks;
    std::optional<RowWalk> walk;
    int far = 0, between = 0;  // nodes of the walk that move much, and others after the last one
    const auto end = [&] {
      if (walk.has_value() && far > 1) walks.push_back(*walk);
      walk.reset();
    };
    for (const NodeId id : graph_.NodeIds()) {
      const std::optional<Traffic> traffic = TrafficOf(graph_.node(id));
      const bool moves_much = traffic.has_value() && traffic->rows >= kFarBytes &&
                              traffic->rows >= kRowBytes * rows_ &&
                              traffic->rows >= traffic->weights * rows_;
      if (moves_much) {
        if (!walk.has_value()) {
          walk = RowWalk{.first = id};
          far = 0;
        }
        walk->last = id;
        ++far;
        between = 0;
      } else if (!traffic.has_value() || traffic->weights > kFewWeightBytes ||
                 ++between > kFewNodes) {
        end();
      }
    }
    end();
    return walks;
  }

 private:
  // Returns the traffic of a node that can be run for one row after the other.
  std::optional<Traffic> TrafficOf(const Node& node) const {
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || row->Has(kView) || FactsOf(*row).Is(kKnowsRows)) {
      return std::nullopt;
    }
    // Its second result counts from the first row.
    if (node.op == MaxPoolOp::kName && node.output(1) != kNone) return std::nullopt;
    Traffic traffic;
    const auto add_rows = [&](const Value& value) {
      if (value.batch_rows != rows_ || value.shape->empty() || (*value.shape)[0] != rows_ ||
          BytesOf(value) / rows_ % kRowAlignment != 0) {
        return false;
      }
      traffic.rows += BytesOf(value);
      return true;
    };
    for (const ValueId output : node.outputs) {
      if (output != kNone && !add_rows(graph_.value(output))) return std::nullopt;
    }
    for (const ValueId input : node.inputs) {
      if (input == kNone) continue;
      const Value& value = graph_.value(input);
      if (value.kind == Value::Kind::kParameter || value.kind == Value::Kind::kConstant) {
        traffic.weights += BytesOf(value);
      } else if (!add_rows(value)) {
        return std::nullopt;
      }
    }
    return traffic.rows > 0 ? std::optional(traffic) : std::nullopt;
  }

  const Graph& graph_;
  const int64_t rows_;
};

}  // namespace

RowWalks::RowWalks(const Graph& graph, int64_t rows) : graph_(&graph), rows_(rows) {
  if (rows > 1) walks_ = Finder(graph, rows).Run();
  if (walks_.empty()) return;
  of_node_.assign(graph.num_nodes(), -1);
  for (size_t i = 0; i < walks_.size(); ++i) {
    for (NodeId id = walks_[i].first; id <= walks_[i].last; ++id)
      of_node_[id] = static_cast<int>(i);
  }
  one_row_ = graph;
  for (ValueId value = 0; value < static_cast<ValueId>(graph.num_values()); ++value) {
    if (!HasRows(value)) continue;
    (*one_row_->value(value).shape)[0] = 1;
    one_row_->value(value).batch_rows = 0;
  }
}

bool RowWalks::HasRows(ValueId value) const {
  const Value& of = graph_->value(value);
  return of.kind != Value::Kind::kRemoved && of.batch_rows == rows_ && of.shape.has_value() &&
         !of.shape->empty() && (*of.shape)[0] == rows_;
}

}  // namespace reprise
