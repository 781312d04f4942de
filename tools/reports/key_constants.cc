#include "tools/reports/key_constants.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/engine/engine.h"

namespace reprise::cli {
namespace {

constexpr int64_t kMostShown = 4;

}  // namespace

std::string KeyConstant::ValueText() const {
  const int64_t elements = value.num_elements();
  if (elements > kMostShown) return absl::StrCat(elements, " elements");
  const auto integers = value.ToInt64s();
  if (integers.ok()) return absl::StrJoin(*integers, ",");
  // As people write them: six digits.
  return absl::StrJoin(value.ToDoubles(), ",");
}

std::vector<KeyConstant> KeyConstants(const Model& model) {
  const Graph& graph = Engine::SymbolicGraph(model, /*packed=*/false);
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
