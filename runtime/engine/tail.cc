#include "runtime/engine/tail.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace reprise {

Tail::Tail(std::shared_ptr<const CutGraph> graph, std::vector<ModelIo> inputs,
           std::vector<ModelIo> outputs)
    : graph_(std::move(graph)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  for (const std::string& name : graph_->stages[0].section.outputs) {
    front_outputs_.push_back({.name = name});
  }
}

std::string Tail::SymbolOf(const std::string& input, size_t dim) {
  return absl::StrCat(input, ".d", dim);
}

std::shared_ptr<const ModelVariant> Tail::SectionFor(
    const GraphSection& section, const std::vector<std::pair<DType, size_t>>& types) const {
  MutexLock lock(mutex_);
  std::shared_ptr<const ModelVariant>& made = sections_[{&section, types}];
  if (made != nullptr) return made;
  auto variant = std::make_shared<ModelVariant>();
  variant->graph = section.graph;
  for (size_t i = 0; i < types.size(); ++i) {
    Value& input = variant->graph.value(variant->graph.inputs()[i]);
    input.dtype = types[i].first;
    input.dims.clear();
    for (size_t d = 0; d < types[i].second; ++d) {
      input.dims.push_back({.symbol = SymbolOf(input.name, d)});
    }
  }
  variant->fingerprint = FingerprintGraph(variant->graph);
  made = std::move(variant);
  return made;
}

std::shared_ptr<const Tail> CutModel(Graph& graph, const std::vector<ModelIo>& inputs,
                                     const std::vector<int>& shape_inputs,
                                     const std::vector<ModelIo>& outputs) {
  std::set<std::string> names;
  for (const int position : shape_inputs) names.insert(inputs[position].name);
  std::shared_ptr<const CutGraph> cut = CutAtData(graph, names);
  if (cut == nullptr) return nullptr;
  graph = cut->stages[0].section.graph;
  return std::make_shared<const Tail>(std::move(cut), inputs, outputs);
}

absl::Status CheckOutputTypes(const Tail& tail) {
  for (const ModelIo& output : tail.outputs()) {
    if (output.dtype != DType::kUndefined) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output '", output.name,
                     "' has no declared dtype, and the model is cut where shapes depend on data"));
  }
  return absl::OkStatus();
}

}  // namespace reprise
