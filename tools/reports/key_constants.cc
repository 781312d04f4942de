#include "tools/reports/key_constants.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise::cli {
namespace {

constexpr int64_t kMostShown = 4;

}  // namespace

std::string KeyConstant::ValueText() const {
  const int64_t elements = value.num_elements();
  return elements <= kMostShown ? ElementsText(value) : absl::StrCat(elements, " elements");
}

std::vector<KeyConstant> KeyConstants(const Model& model) {
  const Graph& graph = model.program().graph;
  std::vector<KeyConstant> constants;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != Value::Kind::kConstant || value.users.empty()) continue;
    const std::set<NodeId> readers(value.users.begin(), value.users.end());
    std::string reader = NodeLabel(graph.node(*readers.begin()));
    if (readers.size() > 1) absl::StrAppend(&reader, " and ", readers.size() - 1, " more");
    constants.push_back({.name = value.name, .value = value.constant, .reader = std::move(reader)});
  }
  return constants;
}

}  // namespace reprise::cli
