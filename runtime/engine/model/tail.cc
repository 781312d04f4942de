#include "runtime/engine/model/tail.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/result_types.h"

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

std::shared_ptr<const Tail::TypedSection> Tail::SectionFor(
    const GraphSection& section, const std::vector<std::pair<DType, size_t>>& types) const {
  MutexLock lock(mutex_);
  std::shared_ptr<const TypedSection>& made = sections_[{&section, types}];
  if (made != nullptr) return made;
  ModelVariant variant;
  variant.graph = section.graph;
  for (size_t i = 0; i < types.size(); ++i) {
    Value& input = variant.graph->value(variant.graph->inputs()[i]);
    input.dtype = types[i].first;
    input.shape.reset();
    input.dims.clear();
    for (size_t d = 0; d < types[i].second; ++d) {
      input.dims.push_back({.symbol = SymbolOf(input.name, d)});
    }
  }
  variant.fingerprint = FingerprintGraph(*variant.graph);
  made = std::make_shared<const TypedSection>(std::move(variant));
  return made;
}

std::vector<Tail::SectionWords> Tail::Sections() const {
  MutexLock lock(mutex_);
  std::vector<SectionWords> sections;
  for (const auto& [key, typed] : sections_) {
    std::vector<std::string> sizes = typed->padding.Words();
    if (!sizes.empty()) sections.push_back({key.first->label, std::move(sizes)});
  }
  return sections;
}

namespace {

// Returns whether a request holds one row, and no other may be batched with it, but has sizes.
bool HoldsOneRow(const std::vector<ModelIo>& inputs) {
  const auto has_size = [](const Dim& dim) { return dim.is_constant(); };
  return absl::c_all_of(
             inputs,
             [&](const ModelIo& input) { return input.dims.empty() || has_size(input.dims[0]); }) &&
         absl::c_any_of(
             inputs, [&](const ModelIo& input) { return !absl::c_all_of(input.dims, has_size); });
}

}  // namespace

std::shared_ptr<const Tail> CutModel(Graph& graph, const std::vector<ModelIo>& inputs,
                                     const std::vector<int>& shape_inputs,
                                     const std::vector<ModelIo>& outputs, const CutWishes& wishes) {
  std::set<std::string> names;
  for (const int position : shape_inputs) names.insert(inputs[position].name);
  CutWishes all = wishes;
  all.splits_front = HoldsOneRow(inputs);
  std::shared_ptr<const CutGraph> cut = CutAtData(graph, names, all);
  if (cut == nullptr) return nullptr;
  // Outputs after a cut get their dtypes here: no replay tells them before there is data.
  const std::vector<DType> types = ResultTypes(graph);
  std::vector<ModelIo> typed = outputs;
  for (size_t i = 0; i < typed.size(); ++i) {
    if (typed[i].dtype == DType::kUndefined) typed[i].dtype = types[graph.outputs()[i]];
  }
  graph = *cut->stages[0].section.graph;
  return std::make_shared<const Tail>(std::move(cut), inputs, std::move(typed));
}

absl::Status CheckOutputTypes(const Tail& tail) {
  for (const ModelIo& output : tail.outputs()) {
    if (output.dtype != DType::kUndefined) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output '", output.name,
                     "' has no declared dtype, and none follows from the nodes after the cut"));
  }
  return absl::OkStatus();
}

namespace {

// Makes the section, or null as Tail::SectionOf says.
std::unique_ptr<const GraphSection> MakeSection(const CutGraph& graph, const EagerNode& node) {
  const OpRow* row = FindOp(node.node.op);
  if (row->Has(kDataDependent) || row->Has(kNoFold) || node.then_branch != nullptr) return nullptr;
  auto section = std::make_unique<GraphSection>();
  section->label = NodeLabel(node.node);
  std::map<std::string, ValueId> made;
  bool has_data = false;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string& name = node.inputs[i];
    if (name.empty()) {
      inputs.push_back(kNone);
      continue;
    }
    auto [it, added] = made.try_emplace(name, kNone);
    const auto constant = graph.constants.find(name);
    const auto parameter = graph.parameters.find(name);
    const bool is_data = constant == graph.constants.end() && parameter == graph.parameters.end();
    if (added) {
      it->second = is_data ? section->graph->AddInput(name, DType::kUndefined, {})
                   : parameter == graph.parameters.end()
                       ? section->graph->AddConstant(name, constant->second)
                       : section->graph->AddParameter(name, parameter->second);
    }
    inputs.push_back(it->second);
    if (is_data && row->IsValueInput(i)) section->shape_inputs.insert(name);
    has_data |= !row->IsValueInput(i);
  }
  if (!has_data) return nullptr;
  const NodeId id = section->graph->AddNodeWithOutputs(
      node.node.op, std::move(inputs), node.node.attributes, node.outputs, node.node.name);
  section->graph->node(id).source_op = node.node.source_op;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    section->graph->AddOutput(section->graph->node(id).outputs[i]);
    section->outputs.push_back(node.outputs[i]);
  }
  return section;
}

}  // namespace

const GraphSection* Tail::SectionOf(const CutGraph& graph, const EagerNode& node) const {
  MutexLock lock(mutex_);
  auto [it, added] = nodes_.try_emplace(&node);
  if (added) it->second = MakeSection(graph, node);
  return it->second.get();
}

}  // namespace reprise
