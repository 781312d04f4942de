// The products of a decoder's steps, divided among ranks.
//
// A product with weights whose rows come from other products, element by element or through
// attention, takes a share of them: these products keep the columns of this rank, attention its
// heads, and the product the rows of its weights that belong to them; the sum over the ranks
// follows. The last product, of the scores, keeps a share of its columns, which are joined.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/index_map.h"
#include "runtime/ops/movement/ranks_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/products/linear_op.h"
#include "runtime/ops/weights/sliced_weights.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/paged/paged_passes.h"

namespace reprise {
namespace {

// Columns that are divided evenly stay together by this number: the vectors of a kernel.
constexpr int64_t kTogether = 32;

// Equal groups of neighbours along a dim, a number of them for each rank.
struct Division {
  int64_t groups = 1;
  std::vector<int64_t> counts;  // groups of each rank

  // Returns the elements of `rank` in a dim of `size`, and the first of them.
  int64_t Count(int64_t size, int rank) const { return size / groups * counts[rank]; }
  int64_t Begin(int64_t size, int rank) const {
    return size / groups * std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});
  }
};

class Sharder {
 public:
  Sharder(Graph& graph, const Shard& shard) : graph_(graph), shard_(shard) {}

  absl::StatusOr<bool> Run() {
    ValueId last = kNone;
    for (const NodeId id : graph_.NodeIds()) {
      const Node& node = graph_.node(id);
      if (node.removed || node.op != LinearOp::kName || !IsParameter(graph_, node.inputs[1])) {
        continue;
      }
      ASSIGN_OR_RETURN(const bool divided, DivideRows(id));
      last = divided ? kNone : graph_.node(id).outputs[0];
    }
    for (const NodeId id : graph_.NodeIds()) {
      if (graph_.node(id).op == PagedCrossAttentionOp::kName) {
        return Refuse(graph_.node(id), "reads the result of an encoder");
      }
      if (graph_.node(id).op != PagedAttentionOp::kName || divided_.contains(id)) continue;
      ASSIGN_OR_RETURN(const Division heads, DivideHeads(graph_.node(id)));
      RETURN_IF_ERROR(JoinColumns(graph_.node(id).outputs[0], heads));
    }
    const bool has_scores =
        last != kNone && graph_.value(last).kind == Value::Kind::kResult &&
        !graph_.outputs().empty() &&
        ShapeOf(graph_, last)->back() == ShapeOf(graph_, graph_.outputs()[0])->back();
    if (has_scores) {
      const int64_t columns = ShapeOf(graph_, last)->back();
      const int64_t groups = columns % kTogether == 0 ? columns / kTogether : columns;
      if (groups >= shard_.ranks) RETURN_IF_ERROR(JoinColumns(last, Evenly(groups)));
    }
    return true;
  }

 private:
  // The products and the attention that rows come from.
  struct Sources {
    NodeId attention = kNone;
    bool has_products = false;
    HashSet<NodeId> seen;
  };

  absl::Status Refuse(const Node& node, absl::string_view why) const {
    return absl::UnimplementedError(absl::StrCat("it cannot be divided among ", shard_.ranks,
                                                 " ranks: ", NodeLabel(node), " ", why));
  }

  // Divides as evenly as can be: each sum over the ranks waits for the slowest of them.
  Division Evenly(int64_t groups) const {
    Division even = {.groups = groups};
    for (int rank = 0; rank < shard_.ranks; ++rank) {
      even.counts.push_back(groups / shard_.ranks + (rank < groups % shard_.ranks ? 1 : 0));
    }
    return even;
  }

  absl::StatusOr<Division> DivideHeads(const Node& attention) const {
    const int64_t heads = attention.attributes.Int("kv_heads", 1);
    if (heads >= shard_.ranks) return Evenly(heads);
    return Refuse(attention, absl::StrCat("has ", heads, " heads of keys and values"));
  }

  // An operand of a node, and the dim of it along which ranks have their parts.
  struct Divisible {
    size_t input = 0;
    int64_t dim = 0;
  };

  // Returns the operands of `node` that are to be divided for a part of its results, of `shape`,
  // along `dim`; none where that takes more than parts of them.
  std::vector<Divisible> OperandsOf(const Node& node, const Shape& shape, int64_t dim) const {
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || (!row->Has(kView) && FactsOf(*row).Is(kTakesSizes))) return {};
    if (row->Has(kView)) return OperandOfView(node, shape, dim);
    const std::optional<IndexMap> map = IndexMapOf(graph_, node);
    if (!map.has_value() || !map->IsParallel(dim)) return {};
    std::vector<Divisible> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int64_t at = map->DimTo(i, dim);
      if (at < 0 || (*ShapeOf(graph_, node.inputs[i]))[static_cast<size_t>(at)] == 1) continue;
      operands.push_back({i, at});
    }
    return operands;
  }

  std::vector<Divisible> OperandOfView(const Node& node, const Shape& shape, int64_t dim) const {
    const auto product = [](const Shape& of, int64_t end) {
      return std::accumulate(of.begin(), of.begin() + end, int64_t{1}, std::multiplies<>());
    };
    const Shape& from = *ShapeOf(graph_, node.inputs[0]);
    for (int64_t at = 0; at < static_cast<int64_t>(from.size()); ++at) {
      const bool begins = product(from, at) == product(shape, dim);
      if (begins && from[static_cast<size_t>(at)] != 1) return {{0, at}};
    }
    return {};
  }

  void FindSources(ValueId value, int64_t dim, Sources& found) const {
    const NodeId id = ProducerOf(graph_, value);
    if (id == kNone || !found.seen.insert(id).second) return;
    const Node& node = graph_.node(id);
    if (node.op == LinearOp::kName) {
      found.has_products = true;
      return;
    }
    if (node.op == PagedAttentionOp::kName) {
      found.attention = id;
      for (size_t i = 0; i <= PagedAttentionOp::kValues; ++i) {
        FindSources(node.inputs[i], Rank(node.inputs[i]) - 1, found);
      }
      return;
    }
    for (const Divisible& one : OperandsOf(node, *ShapeOf(graph_, value), dim)) {
      FindSources(node.inputs[one.input], one.dim, found);
    }
  }

  // Divides the rows of the weights of a product; false where its operand cannot be divided.
  absl::StatusOr<bool> DivideRows(NodeId id) {
    const Node node = graph_.node(id);  // A copy: adding nodes moves them.
    if (LinearOp::From(node.attributes).activation != "none") return false;
    const Shape shape = *ShapeOf(graph_, node.inputs[1]);
    Sources sources;
    FindSources(node.inputs[0], Rank(node.inputs[0]) - 1, sources);
    if (!sources.has_products) return false;
    Division division;
    if (sources.attention != kNone) {
      ASSIGN_OR_RETURN(division, DivideHeads(graph_.node(sources.attention)));
    } else {
      int64_t together = ops::StoredTogether(graph_.value(node.inputs[1]).parameter, 0);
      if (together < kTogether && shape[0] % kTogether == 0) together = kTogether;
      const int64_t groups = shape[0] / together;
      if (groups < shard_.ranks) return false;
      division = Evenly(groups);
    }
    const ValueId x = node.inputs[0];
    Begin(division);
    const absl::StatusOr<ValueId> share = Divided(x, Rank(x) - 1);
    if (absl::IsUnimplemented(share.status())) return false;
    RETURN_IF_ERROR(share.status());
    Attend();
    ASSIGN_OR_RETURN(const ValueId matrix, Cut(node.inputs[1], 0));
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = *share;
    inputs[1] = matrix;
    // One share alone has the bias and the residual.
    if (shard_.rank < shard_.ranks - 1) inputs.resize(2);
    ASSIGN_OR_RETURN(ValueId sum, AddInferred(graph_, LinearOp::kName, std::move(inputs),
                                              node.attributes, node.name));
    ASSIGN_OR_RETURN(sum, AddInferred(graph_, AllReduceOp::kName, {sum}, {}, node.name));
    Replace(graph_, node.outputs[0], sum);
    return true;
  }

  // Divides the columns of a value, and joins them again.
  absl::Status JoinColumns(ValueId value, const Division& division) {
    const int64_t columns = ShapeOf(graph_, value)->back();
    const std::string name = graph_.node(ProducerOf(graph_, value)).name;
    Begin(division);
    ASSIGN_OR_RETURN(const ValueId share, Divided(value, Rank(value) - 1));
    Attend();
    std::vector<int64_t> widths;
    widths.reserve(shard_.ranks);
    for (int rank = 0; rank < shard_.ranks; ++rank) {
      widths.push_back(division.Count(columns, rank));
    }
    ASSIGN_OR_RETURN(const ValueId all,
                     AddInferred(graph_, AllGatherOp::kName, {share},
                                 {{"rank", int64_t{shard_.rank}}, {"widths", widths}}, name));
    Replace(graph_, value, all);
    return absl::OkStatus();
  }

  void Begin(const Division& division) {
    division_ = division;
    made_.clear();
    attentions_.clear();
  }
  // The attentions that were made have their share of heads.
  void Attend() { divided_.insert(attentions_.begin(), attentions_.end()); }

  int64_t Rank(ValueId value) const { return static_cast<int64_t>(ShapeOf(graph_, value)->size()); }

  // Returns this rank's part of a weight along `axis`.
  absl::StatusOr<ValueId> Cut(ValueId weight, int64_t axis) {
    Shape shape = *ShapeOf(graph_, weight);
    int64_t& size = shape[static_cast<size_t>(axis)];
    const int64_t begin = division_.Begin(size, shard_.rank);
    size = division_.Count(size, shard_.rank);
    if (IsParameter(graph_, weight)) {
      return AddExpression(graph_,
                           ops::SlicedWeights(graph_.value(weight).parameter, axis, begin, size));
    }
    const auto number = [&](int64_t one) { return graph_.AddConstant("", Tensor::Int64s({one})); };
    const std::vector<ValueId> inputs = {weight, number(begin), number(begin + size), number(axis)};
    return AddWeight(graph_, SliceOp::kName, {}, inputs, graph_.value(weight).dtype, shape);
  }

  // Returns this rank's part of `value` along `dim`. UNIMPLEMENTED, naming the node that does not
  // keep the parts of ranks apart.
  absl::StatusOr<ValueId> Divided(ValueId value, int64_t dim) {
    if (IsWeight(graph_, value)) return Cut(value, dim);
    const auto known = made_.find(value);
    if (known != made_.end() && known->second.second == dim) return known->second.first;
    const NodeId id = ProducerOf(graph_, value);
    if (id == kNone) {
      return absl::UnimplementedError(absl::StrCat(graph_.value(value).name, " is an input"));
    }
    const Node node = graph_.node(id);  // A copy: adding nodes moves them.
    const Shape shape = *ShapeOf(graph_, value);
    const bool fits = shape[static_cast<size_t>(dim)] % division_.groups == 0;
    if (!fits) return Refuse(node, "mixes their parts");
    ASSIGN_OR_RETURN(const NodeId part, PartOf(node, shape, dim));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) made_[node.outputs[i]] = {graph_.node(part).outputs[i], dim};
    }
    return made_[value].first;
  }

  // Returns the node that makes this rank's part of the results of `node`.
  absl::StatusOr<NodeId> PartOf(const Node& node, const Shape& shape, int64_t dim) {
    if (node.op == LinearOp::kName) {
      return Columns(node, static_cast<int64_t>(shape.size()) - 1 - dim);
    }
    if (node.op == PagedAttentionOp::kName) return Heads(node);
    const std::vector<Divisible> operands = OperandsOf(node, shape, dim);
    if (operands.empty()) return Refuse(node, "mixes their parts");
    std::vector<ValueId> inputs = node.inputs;
    for (const Divisible& one : operands) {
      ASSIGN_OR_RETURN(inputs[one.input], Divided(inputs[one.input], one.dim));
    }
    if (!FindOp(node.op)->Has(kView)) return Add(node, std::move(inputs), node.attributes);
    Shape part = shape;
    int64_t& size = part[static_cast<size_t>(dim)];
    size = division_.Count(size, shard_.rank);
    const ValueId sizes =
        graph_.AddConstant("", Tensor::Int64s(std::vector<int64_t>(part.begin(), part.end())));
    Node view = node;
    view.op = ReshapeOp::kName;
    return Add(view, {inputs[0], sizes}, {{"allowzero", int64_t{1}}});
  }

  // Adds a node like `node`.
  absl::StatusOr<NodeId> Add(const Node& node, std::vector<ValueId> inputs, Attributes attributes) {
    const NodeId id = graph_.AddNode(node.op, std::move(inputs), std::move(attributes),
                                     node.outputs.size(), node.name);
    RETURN_IF_ERROR(InferNode(graph_, id));
    return id;
  }

  absl::StatusOr<NodeId> Columns(const Node& node, int64_t before_last) {
    const ValueId bias = node.input(LinearOp::kBias);
    if (before_last != 0 || !IsParameter(graph_, node.inputs[1]) ||
        node.input(LinearOp::kResidual) != kNone || (bias != kNone && !IsWeight(graph_, bias))) {
      return Refuse(node, "has columns that cannot be divided");
    }
    std::vector<ValueId> inputs = {node.inputs[0]};
    ASSIGN_OR_RETURN(inputs.emplace_back(), Cut(node.inputs[1], 1));
    if (bias != kNone) {
      ASSIGN_OR_RETURN(inputs.emplace_back(), Cut(bias, Rank(bias) - 1));
    }
    return Add(node, std::move(inputs), node.attributes);
  }

  absl::StatusOr<NodeId> Heads(const Node& node) {
    const int64_t heads = node.attributes.Int("num_heads", 1);
    if (node.attributes.Int("kv_heads", 1) != division_.groups) {
      return Refuse(node, "has another number of heads");
    }
    std::vector<ValueId> inputs = node.inputs;
    for (const size_t i : {PagedAttentionOp::kQueries, PagedAttentionOp::kKeys,
                           PagedAttentionOp::kValues, PagedAttentionOp::kSinks}) {
      if (node.input(i) == kNone) continue;
      ASSIGN_OR_RETURN(inputs[i], Divided(inputs[i], Rank(inputs[i]) - 1));
    }
    Attributes attributes = node.attributes;
    attributes.Set("num_heads", division_.Count(heads, shard_.rank));
    attributes.Set("kv_heads", division_.counts[static_cast<size_t>(shard_.rank)]);
    for (const char* name : {"slopes", "biases"}) {
      const auto* all = node.attributes.Get<std::vector<float>>(name);
      if (all == nullptr) continue;
      const auto size = static_cast<int64_t>(all->size());
      const auto begin = all->begin() + division_.Begin(size, shard_.rank);
      attributes.Set(name, std::vector<float>(begin, begin + division_.Count(size, shard_.rank)));
    }
    ASSIGN_OR_RETURN(const NodeId part, Add(node, std::move(inputs), std::move(attributes)));
    attentions_.push_back(part);
    return part;
  }

  Graph& graph_;
  const Shard shard_;
  HashSet<NodeId> divided_;  // attentions over this rank's heads
  // State of the value that is being divided: its parts so far, with the dim along which each is
  // one.
  Division division_;
  HashMap<ValueId, std::pair<ValueId, int64_t>> made_;
  std::vector<NodeId> attentions_;
};

}  // namespace

std::unique_ptr<Pass> ShardProducts() { return ShardProductsAmong({}); }

std::unique_ptr<Pass> ShardProductsAmong(const Shard& shard) {
  return PassOf("shard_products", [shard](Graph& graph) -> absl::StatusOr<bool> {
    if (shard.ranks <= 1) return false;
    return Sharder(graph, shard).Run();
  });
}

}  // namespace reprise
