#include "runtime/recipe/pass_log.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// Returns how many nodes a graph has of each op.
std::map<std::string, int> OpsOf(const Graph& graph) {
  std::map<std::string, int> ops;
  for (const NodeId id : graph.NodeIds()) {
    if (!graph.node(id).removed) ++ops[std::string(graph.node(id).op)];
  }
  return ops;
}

// Returns "Add -4, MatMul -4, reprise.Linear +4"; empty where no op has more nodes or fewer.
std::string OpChanges(const std::map<std::string, int>& was,
                      const std::map<std::string, int>& now) {
  std::map<std::string, int> more = now;
  for (const auto& [op, count] : was) more[op] -= count;
  std::string text;
  for (const auto& [op, count] : more) {
    if (count == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", op, count > 0 ? " +" : " ", count);
  }
  return text;
}

}  // namespace

absl::Status RunPassesLogged(Graph& graph, PipelineOptions passes, DebugLog* debug) {
  const Phase phase(debug, LogModule::kCapture, [] { return "phase passes"; });
  size_t nodes = graph.live_nodes();
  std::map<std::string, int> ops;
  bool any = false;  // pass changed something
  const bool tells = Wants(debug, LogModule::kPass);
  if (tells) {
    ops = OpsOf(graph);
    passes.observer = [debug, &nodes, &ops, &any, before = std::move(passes.observer)](
                          absl::string_view pass, const Graph& after, int64_t ns) {
      std::map<std::string, int> now = OpsOf(after);
      const std::string changes = OpChanges(ops, now);
      debug->Say(LogModule::kPass,
                 FormatText("pass %s: %d nodes, were %d, in %.3f ms%s%s", std::string(pass),
                            after.live_nodes(), nodes, static_cast<double>(ns) * 1e-6,
                            changes.empty() ? "" : ": ", changes));
      nodes = after.live_nodes();
      ops = std::move(now);
      any = true;
      if (before) before(pass, after, ns);
    };
  }
  const absl::Status ran = RunCapturePasses(graph, passes);
  if (ran.ok() && tells && !any) {
    debug->Say(LogModule::kPass, FormatText("no pass changed any of %d nodes", nodes));
  }
  return ran;
}

}  // namespace reprise
