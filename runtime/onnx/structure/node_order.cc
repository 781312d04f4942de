#include "runtime/onnx/structure/node_order.h"

#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/hash_map.h"
#include "runtime/onnx/kit/reasons.h"

namespace reprise {

std::string Label(const onnx::NodeProto& node) {
  return absl::StrCat(node.op_type(), " ",
                      NodeName(node.name(), node.output_size() == 0 ? "" : node.output(0)));
}

// Kahn's algorithm.
absl::Status SortNodes(const onnx::GraphProto& graph, std::vector<FlatNode>& nodes) {
  HashSet<std::string> given;
  HashMap<std::string, size_t> producer;
  for (const auto& input : graph.input()) given.insert(input.name());
  for (const auto& tensor : graph.initializer()) given.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) given.insert(tensor.values().name());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].proto->output()) {
      if (name.empty()) continue;
      if (given.contains(name) || !producer.emplace(name, i).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("value '", name, "' is defined twice, by node ", Label(*nodes[i].proto)));
      }
    }
  }
  std::vector<int> missing(nodes.size(), 0);
  std::vector<std::vector<size_t>> users(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].proto->input()) {
      if (name.empty() || given.contains(name)) continue;
      const auto it = producer.find(name);
      if (it == producer.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "node ", Label(*nodes[i].proto), " uses value '", name, "', which nothing defines"));
      }
      users[it->second].push_back(i);
      ++missing[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<FlatNode> sorted;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    sorted.push_back(nodes[i]);
    for (size_t user : users[i]) {
      if (--missing[user] == 0) ready.push(user);
    }
  }
  if (sorted.size() != nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (missing[i] > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the graph is cyclic: node ", Label(*nodes[i].proto),
                         " depends on itself, directly or through others"));
      }
    }
  }
  nodes = std::move(sorted);
  return absl::OkStatus();
}

}  // namespace reprise
