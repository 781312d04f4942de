#include "runtime/onnx/module_shapes.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace reprise {
namespace {

// The values that go into a module and come out of it at one step.
struct ModuleShapes {
  std::set<std::string> in, out;
  std::string first_op;   // the first of its nodes that reads an input of the model
  NodePlace first_place;  // and where that was made
  std::string type;       // the class of any of its nodes
  bool reads_inputs = false;
};

std::map<std::string, ModuleShapes> ShapesOfModules(const Graph& graph, const NodePlaces& places) {
  std::map<std::string, ModuleShapes> modules;
  std::vector<std::string> module_of(graph.num_nodes());
  for (const NodeId id : graph.NodeIds()) module_of[id] = places.Of(graph.node(id).name).module;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    ModuleShapes& module = modules[module_of[id]];
    const NodePlace place = places.Of(node.name);
    if (module.type.empty()) module.type = place.type;
    for (const ValueId input : node.inputs) {
      if (input == kNone) continue;
      const Value& value = graph.value(input);
      if (value.kind == Value::Kind::kInput) {
        module.in.insert(ValueText(value));
        module.reads_inputs = true;
        if (module.first_op.empty()) {
          module.first_op = NodeLabel(node);
          module.first_place = place;
        }
      } else if (value.producer != kNone && module_of[value.producer] != module_of[id]) {
        module.in.insert(ValueText(value));
      }
    }
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      const Value& value = graph.value(output);
      const bool leaves = graph.IsOutput(output) || absl::c_any_of(value.users, [&](NodeId user) {
                            return module_of[user] != module_of[id];
                          });
      if (leaves) module.out.insert(ValueText(value));
    }
  }
  return modules;
}

}  // namespace

std::string ValueText(const Value& value) {
  return absl::StrCat(value.name, ": ", DTypeName(value.dtype),
                      value.shape.has_value() ? ShapeToString(*value.shape) : "[?]");
}

ModuleHistory::Step ModuleHistory::Next(const Graph& graph) {
  Step step;
  const bool first = !std::exchange(begun_, true);
  for (auto& [name, module] : ShapesOfModules(graph, places_)) {
    const std::string in = absl::StrJoin(module.in, ", ");
    const std::string out = absl::StrJoin(module.out, ", ");
    const bool new_in = seen_in_[name].insert(in).second;
    const bool new_out = seen_out_[name].insert(out).second;
    ModuleCounts& counts = counts_[name];
    counts.type = module.type;
    if (!new_in) continue;
    step.is_new = true;
    if (first) continue;
    ++counts.recompilations;
    if (!module.reads_inputs) {
      ++step.followers;
      continue;
    }
    ++counts.at_fault;
    step.at_fault.push_back({.module = name,
                             .op = module.first_op,
                             .new_in = in,
                             .new_out = new_out ? out : "",
                             .place = module.first_place});
  }
  return step;
}

void ModuleHistory::CountInside(const std::string& node, bool is_first_step) {
  const NodePlace place = places_.Of(node);
  ModuleCounts& counts = counts_[place.module];
  if (counts.type.empty()) counts.type = place.type;
  if (is_first_step) return;
  ++counts.recompilations;
  ++counts.at_fault;
}

}  // namespace reprise
