// Gather(table, ids) and the Adds between them become one reprise.EmbeddingSum.
#include "runtime/base/status_macros.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

namespace reprise {
namespace {

// A lookup in a table that is a parameter.
bool IsLookup(const Graph& graph, ValueId value) {
  const Node* gather = graph.ProducerIf(value, "Gather");
  if (gather == nullptr || !IsFloat32(graph, value)) return false;
  if (!IsParameter(graph, gather->inputs[0])) return false;
  const int64_t axis = gather->attributes.Int("axis", 0);
  return ShapeOf(graph, gather->inputs[0])->size() == 2 && (axis == 0 || axis == -2);
}

// Appends table and ids of each term of the sum `value`; false when a term is something else, or
// an inner value is read by others too.
bool CollectTerms(const Graph& graph, ValueId value, bool outermost, int depth,
                  std::vector<ValueId>& terms) {
  if (!outermost && OnlyUser(graph, value) == kNone) return false;
  if (IsLookup(graph, value)) {
    const Node& gather = graph.node(ProducerOf(graph, value));
    terms.push_back(gather.inputs[0]);
    terms.push_back(gather.inputs[1]);
    return true;
  }
  const Node* add = graph.ProducerIf(value, "Add");
  return add != nullptr && depth > 0 &&
         CollectTerms(graph, add->inputs[0], false, depth - 1, terms) &&
         CollectTerms(graph, add->inputs[1], false, depth - 1, terms);
}

class FuseEmbeddingPass : public Pass {
 public:
  absl::string_view name() const override { return "fuse_embedding"; }

  absl::StatusOr<bool> Run(Graph& graph) const override {
    bool changed = false;
    const std::vector<NodeId> ids = graph.NodeIds();
    // From the end, so that the outermost Add of a chain is met first.
    for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
      if (graph.node(*it).removed || graph.node(*it).op != "Add") continue;
      const ValueId sum = graph.node(*it).outputs[0];
      std::vector<ValueId> terms;
      if (!CollectTerms(graph, sum, true, kMaxTerms, terms)) continue;
      const int64_t width = ShapeOf(graph, terms[0])->back();
      bool same_width = true;
      for (size_t i = 0; i < terms.size(); i += 2) {
        same_width &= ShapeOf(graph, terms[i])->back() == width;
      }
      if (!same_width) continue;
      const std::string name = graph.node(*it).name;
      ASSIGN_OR_RETURN(const ValueId fused,
                       AddInferred(graph, "reprise.EmbeddingSum", std::move(terms), {}, name));
      REPRISE_CHECK(SameShape(graph, fused, sum));
      Replace(graph, sum, fused);
      changed = true;
    }
    return changed;
  }

 private:
  static constexpr int kMaxTerms = 8;
};

}  // namespace

std::unique_ptr<Pass> FuseEmbedding() { return std::make_unique<FuseEmbeddingPass>(); }

}  // namespace reprise
