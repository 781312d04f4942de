#include "tests/fuzz/random_models/shrink.h"

#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/evaluation.h"
#include "tests/fuzz/random_models/signature.h"

namespace reprise::fuzz {
namespace {

class Shrinker {
 public:
  Shrinker(TestCase test, const std::function<bool(const TestCase&)>& fails, int tries)
      : best_(std::move(test)), fails_(fails), tries_(tries) {}

  TestCase Run() {
    for (bool smaller = true; smaller && tries_ > 0;) {
      smaller = FewerRequests();
      smaller |= FewerOutputs();
      smaller |= FewerNodes();
      smaller |= FewerInputs();
      smaller |= FewerAxes();
      smaller |= SmallerSizes();
      smaller |= SimplerOptions();
    }
    return best_;
  }

 private:
  // Keeps the case if it still fails.
  bool Keep(TestCase test) {
    if (tries_ <= 0) return false;
    if (!test.graph.Compact()) return false;
    --tries_;
    if (!fails_(test)) return false;
    best_ = std::move(test);
    return true;
  }

  bool FewerRequests() {
    bool any = false;
    for (size_t i = best_.requests.size(); i-- > 0 && best_.requests.size() > 1;) {
      TestCase test = best_;
      test.requests.erase(test.requests.begin() + static_cast<std::ptrdiff_t>(i));
      any |= Keep(std::move(test));
    }
    return any;
  }

  bool FewerOutputs() {
    bool any = false;
    for (size_t i = best_.graph.outputs().size(); i-- > 0 && best_.graph.outputs().size() > 1;) {
      TestCase test = best_;
      std::vector<ValueId> outputs = test.graph.outputs();
      outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i));
      test.graph.ClearOutputs();
      for (const ValueId id : outputs) test.graph.AddOutput(id);
      any |= Keep(std::move(test));
    }
    return any;
  }

  // A node gives way to one of its operands, or to a value further up, of the same dtype.
  bool FewerNodes() {
    bool any = false;
    for (size_t i = best_.graph.num_nodes(); i-- > 0 && tries_ > 0;) {
      if (i >= best_.graph.num_nodes()) continue;  // It has become smaller.
      for (const ValueId instead : InsteadOf(static_cast<NodeId>(i))) {
        TestCase test = best_;
        const ValueId result = test.graph.node(static_cast<NodeId>(i)).outputs[0];
        test.graph.ReplaceAllUses(result, instead);
        if (!HasSomeNode(test.graph) || !Keep(std::move(test))) continue;
        any = true;
        break;
      }
    }
    return any;
  }

  std::vector<ValueId> InsteadOf(NodeId id) const {
    const Graph& graph = best_.graph;
    const Node& node = graph.node(id);
    if (node.removed || node.outputs.empty() || node.outputs[0] == kNone) return {};
    const Value& result = graph.value(node.outputs[0]);
    if (result.users.empty() && !graph.IsOutput(node.outputs[0])) return {};
    std::vector<ValueId> all;
    const auto add = [&](ValueId value) {
      if (value == kNone || graph.value(value).dtype != result.dtype) return;
      if (graph.IsOutput(node.outputs[0]) && graph.value(value).kind != Value::Kind::kResult)
        return;
      if (!absl::c_linear_search(all, value)) all.push_back(value);
    };
    for (const ValueId input : graph.inputs()) add(input);
    for (const ValueId input : node.inputs) {
      if (input == kNone || graph.value(input).producer == kNone) continue;
      for (const ValueId further : graph.node(graph.value(input).producer).inputs) add(further);
    }
    for (const ValueId input : node.inputs) add(input);
    return all;
  }

  static bool HasSomeNode(const Graph& graph) {
    return absl::c_all_of(graph.outputs(),
                          [&](ValueId id) { return graph.value(id).kind == Value::Kind::kResult; });
  }

  // Inputs that nothing uses go, and their symbols where no other has them.
  bool FewerInputs() {
    std::set<std::string> unused;
    for (const ValueId id : best_.graph.inputs()) {
      const Value& value = best_.graph.value(id);
      if (value.users.empty() && !best_.graph.IsOutput(id)) unused.insert(value.name);
    }
    if (unused.empty()) return false;
    TestCase test = best_;
    test.graph = Rebuilt(best_.graph, unused, {});
    return Keep(std::move(test));
  }

  // A symbol becomes the size that it has in most requests, or 2.
  bool FewerAxes() {
    bool any = false;
    std::set<std::string> symbols;
    for (const ValueId id : best_.graph.inputs()) {
      for (const Dim& dim : best_.graph.value(id).dims) {
        if (!dim.is_constant()) symbols.insert(dim.symbol);
      }
    }
    for (const std::string& symbol : symbols) {
      for (const int64_t size : {int64_t{1}, int64_t{2}, best_.requests[0].at(symbol)}) {
        TestCase test = best_;
        test.graph = Rebuilt(best_.graph, {}, {{symbol, size}});
        for (Sizes& request : test.requests) request.erase(symbol);
        if (!Keep(std::move(test))) continue;
        any = true;
        break;
      }
    }
    return any;
  }

  bool SmallerSizes() {
    bool any = false;
    for (size_t i = 0; i < best_.requests.size(); ++i) {
      for (const auto& [symbol, size] : Sizes(best_.requests[i])) {
        for (const int64_t smaller : {int64_t{1}, int64_t{2}, size / 2, size - 1}) {
          if (smaller < 1 || smaller >= best_.requests[i].at(symbol)) continue;
          TestCase test = best_;
          test.requests[i][symbol] = smaller;
          if (!Keep(std::move(test))) continue;
          any = true;
          break;
        }
      }
    }
    return any;
  }

  bool SimplerOptions() {
    bool any = false;
    for (bool TestCase::*option : {&TestCase::packed, &TestCase::wild}) {
      if (!(best_.*option)) continue;
      TestCase test = best_;
      test.*option = false;
      any |= Keep(std::move(test));
    }
    if (!best_.declared.empty()) {
      TestCase test = best_;
      test.declared.clear();
      any |= Keep(std::move(test));
    }
    return any;
  }

  // Returns a copy without some inputs, and with sizes for some symbols.
  static Graph Rebuilt(const Graph& from, const std::set<std::string>& without,
                       const Sizes& constant) {
    Graph graph;
    std::vector<ValueId> moved(from.num_values(), kNone);
    for (const ValueId id : from.inputs()) {
      const Value& value = from.value(id);
      if (without.contains(value.name)) continue;
      std::vector<Dim> dims = value.dims;
      for (Dim& dim : dims) {
        const auto size = constant.find(dim.symbol);
        if (!dim.is_constant() && size != constant.end()) dim = {.size = size->second};
      }
      moved[id] = graph.AddInput(value.name, value.dtype, std::move(dims));
    }
    for (ValueId id = 0; id < static_cast<ValueId>(from.num_values()); ++id) {
      const Value& value = from.value(id);
      if (value.kind == Value::Kind::kConstant) {
        moved[id] = graph.AddConstant(value.name, value.constant);
      }
    }
    for (const NodeId id : from.NodeIds()) {
      const Node& node = from.node(id);
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs)
        inputs.push_back(input == kNone ? kNone : moved[input]);
      std::vector<std::string> names;
      for (const ValueId output : node.outputs) {
        names.push_back(output == kNone ? "" : from.value(output).name);
      }
      const NodeId made =
          graph.AddNodeWithOutputs(node.op, std::move(inputs), node.attributes, names, node.name);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == kNone) continue;
        moved[node.outputs[i]] = graph.node(made).outputs[i];
        graph.value(moved[node.outputs[i]]).dtype = from.value(node.outputs[i]).dtype;
      }
    }
    for (const ValueId id : from.outputs()) graph.AddOutput(moved[id]);
    return graph;
  }

  TestCase best_;
  const std::function<bool(const TestCase&)>& fails_;
  int tries_;
};

}  // namespace

TestCase Shrink(TestCase test, const std::function<bool(const TestCase&)>& fails, int tries) {
  return Shrinker(std::move(test), fails, tries).Run();
}

}  // namespace reprise::fuzz
