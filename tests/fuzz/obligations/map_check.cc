#include "tests/fuzz/obligations/map_check.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/maps/index_map.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "tests/fuzz/random_models/answers.h"

namespace reprise::obligations {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 26;
// Bounds of a result: sums of other elements may take another order.
constexpr double kNear = 1e-5, kNearHalf = 2e-2;

double BoundOfType(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? kNearHalf : kNear;
}

using Operands = std::vector<std::optional<Tensor>>;

// Returns these places of `dim`.
Tensor Taken(const Tensor& tensor, int64_t dim, const std::vector<int64_t>& places) {
  const Node gather = {
      .op = GatherOp::kName, .attributes = {{"axis", dim}}, .inputs = {0, 1}, .outputs = {2}};
  return (*Evaluate(gather, {tensor, Tensor::Int64s(places)}, kMostBytes))[0];
}

// Lets sizes that an operand tells follow the number of places.
void TellSize(const Node& node, int64_t dim, int64_t out_rank, int64_t places, Operands& operands) {
  const bool tells =
      node.op == ExpandOp::kName || node.op == ReshapeOp::kName || node.op == "AffineGrid";
  if (!tells) return;
  std::vector<int64_t> sizes = *operands[1]->ToInt64s();
  const int64_t at = node.op == "AffineGrid" ? dim : dim - (out_rank - std::ssize(sizes));
  if (at >= 0 && sizes[at] > 0) sizes[at] = places;
  operands[1] = Tensor::Int64s(sizes);
}

// One node with all that it computes with.
class Site {
 public:
  Site(Node node, const Operands& operands, const std::vector<bool>& constant)
      : operands_(operands) {
    for (size_t i = 0; i < operands.size(); ++i) {
      ValueId id = kNone;
      if (operands[i].has_value() && (constant[i] || FindOp(node.op)->IsValueInput(i))) {
        id = graph_.AddConstant("", *operands[i]);
      } else if (operands[i].has_value()) {
        std::vector<Dim> dims;
        for (const int64_t size : operands[i]->shape()) dims.push_back({.size = size});
        id = graph_.AddInput(absl::StrCat("x", i), operands[i]->dtype(), std::move(dims));
        graph_.value(id).shape = operands[i]->shape();
      }
      inputs_.push_back(id);
    }
    id_ = graph_.AddNode(node.op, inputs_, node.attributes, node.outputs.size(), node.name);
  }

  void Look(Chance& chance, MapFindings& findings) {
    findings.has_op = true;
    if (!InferNode(graph_, id_).ok()) return;
    const Node& node = graph_.node(id_);
    const std::optional<IndexMap> map = IndexMapOf(graph_, node);
    if (!map.has_value()) return;
    findings.has_map = true;
    const auto whole = Evaluate(node, operands_, kMostBytes);
    if (!whole.ok()) return;
    const Shape out = (*whole)[0].shape();
    for (int64_t to = 0; to < std::ssize(out) && findings.wrong.empty(); ++to) {
      if (!map->IsParallel(to) || out[to] < 2) continue;
      LookAlong(*map, to, *whole, chance, findings);
    }
  }

 private:
  void LookAlong(const IndexMap& map, int64_t to, const std::vector<Tensor>& whole, Chance& chance,
                 MapFindings& findings) {
    const Shape& out = whole[0].shape();
    std::vector<int64_t> places;
    for (int64_t i = chance.Between(1, out[to]); i > 0; --i)
      places.push_back(chance.Below(out[to]));
    Operands some = operands_;
    for (size_t i = 0; i < some.size(); ++i) {
      const int64_t dim = map.DimTo(i, to);
      if (dim < 0) continue;
      if (some[i]->shape()[dim] != out[to]) return;  // A block of places each.
      some[i] = Taken(*some[i], dim, places);
    }
    const Node& node = graph_.node(id_);
    TellSize(node, to, std::ssize(out), std::ssize(places), some);
    const auto taken = Evaluate(node, some, kMostBytes);
    const std::string where = absl::StrCat("places ", absl::StrJoin(places, ", "), " of dim ", to);
    if (!taken.ok()) {
      findings.wrong = absl::StrCat(where, ": ", taken.status().message());
      return;
    }
    ++findings.dims;
    // All results have the rows of a batch.
    for (size_t o = 0; o < (to == 0 ? whole.size() : 1); ++o) {
      if (whole[o].dtype() == DType::kUndefined || whole[o].shape().empty()) continue;
      if (whole[o].shape()[0] != out[0] && to == 0) continue;
      const double bound = BoundOfType(whole[o].dtype());
      const auto difference = fuzz::FindDifference({Taken(whole[o], to, places)}, {(*taken)[o]},
                                                   {.of_largest = bound, .absolute = bound});
      if (difference.has_value()) {
        findings.wrong = absl::StrCat(where, " of result ", o, " alone: ", difference->words);
      }
    }
  }

  Graph graph_;
  Operands operands_;
  std::vector<ValueId> inputs_;
  NodeId id_ = kNone;
};

}  // namespace

MapFindings CheckMap(const fuzz::TestCase& test, absl::string_view op, uint64_t seed) {
  MapFindings findings;
  Chance chance(seed);
  const Sizes sizes = test.requests.empty() ? Sizes() : test.requests[0];
  const Graph& graph = test.graph;
  std::map<ValueId, Tensor> known;
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    known.emplace(id, OrdinaryContents(value.name, value.dtype, value.dims, sizes, chance));
  }
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    Operands operands;
    std::vector<bool> constant;
    for (const ValueId input : node.inputs) {
      operands.emplace_back();
      const Tensor* tensor = input == kNone ? nullptr : graph.ConstantOf(input);
      constant.push_back(tensor != nullptr);
      if (tensor != nullptr) operands.back() = *tensor;
      if (tensor != nullptr || input == kNone) continue;
      const auto found = known.find(input);
      if (found == known.end()) return findings;
      operands.back() = found->second;
    }
    if (node.op == op) Site(node, operands, constant).Look(chance, findings);
    const auto results = Evaluate(node, operands, kMostBytes);
    if (!results.ok() || !findings.wrong.empty()) return findings;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) known.emplace(node.outputs[i], (*results)[i]);
    }
  }
  return findings;
}

}  // namespace reprise::obligations
