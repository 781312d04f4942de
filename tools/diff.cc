// reprise diff: why two graphs, and so two recipes, are not the same.

#include "tools/diff.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/table.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/graph_diff.h"
#include "runtime/graph/node_text.h"
#include "tools/command.h"

namespace reprise::cli {
namespace {

constexpr int64_t kMostElements = 8;  // that a row shows of a constant

// Returns the fact `name` of `facts`; empty where there is none.
std::string FactOf(const std::vector<std::pair<std::string, std::string>>& facts,
                   const std::string& name) {
  for (const auto& [key, value] : facts) {
    if (key == name) return value;
  }
  return "";
}

std::vector<std::string> FactCauses(const DiffSide& was, const DiffSide& now) {
  std::vector<std::string> causes, names;
  for (const DiffSide* side : {&was, &now}) {
    for (const auto& [name, value] : side->facts) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    const std::string before = FactOf(was.facts, name), after = FactOf(now.facts, name);
    // Not every side says everything of itself.
    if (before.empty() || after.empty() || before == after) continue;
    causes.push_back(absl::StrCat(name, " ", after, ", was ", before));
  }
  return causes;
}

std::vector<std::string> KernelCauses(const DiffSide& was, const DiffSide& now) {
  std::vector<std::string> causes;
  std::map<std::string, std::string> before(was.kernels.begin(), was.kernels.end());
  for (const auto& [node, kernel] : now.kernels) {
    const auto it = before.find(node);
    if (it == before.end() || it->second == kernel) continue;
    causes.push_back(absl::StrCat("kernel of ", node, ": ", kernel, ", was ", it->second));
  }
  return causes;
}

// A row of both graphs as one line each; empty where a side has none.
struct Row {
  std::string was, now;
  bool differs = false;
};

std::string OneLine(std::string text) { return absl::StrReplaceAll(text, {{"\n", " "}}); }

// Returns the node with the values of its operands in place of names, which tells two nodes apart.
std::string NodeLine(const Graph& graph, NodeId id) {
  if (id == kNone) return "";
  std::string line = OneLine(PrintNode(graph, id, kMostElements));
  for (const ValueId input : graph.node(id).inputs) {
    if (input == kNone || graph.value(input).kind != Value::Kind::kConstant) continue;
    absl::StrAppend(&line, "; ", OneLine(PrintValue(graph, input, kMostElements)));
  }
  for (const ValueId input : graph.node(id).inputs) {
    if (input == kNone || graph.value(input).kind != Value::Kind::kParameter) continue;
    absl::StrAppend(&line, "; ", OneLine(PrintValue(graph, input, kMostElements)));
  }
  return line;
}

std::vector<Row> RowsOf(const DiffSide& was, const DiffSide& now, const GraphDiff& diff) {
  std::vector<Row> rows;
  const size_t inputs = std::max(was.graph.inputs().size(), now.graph.inputs().size());
  const auto input = [](const Graph& graph, size_t i) {
    return i < graph.inputs().size() ? PrintValue(graph, graph.inputs()[i]) : "";
  };
  for (size_t i = 0; i < inputs; ++i) {
    Row row = {.was = input(was.graph, i), .now = input(now.graph, i)};
    // The name of an input tells no graphs apart.
    const auto type = [](const std::string& text) { return text.substr(text.rfind(": ") + 1); };
    row.differs = row.was.empty() || row.now.empty() || type(row.was) != type(row.now);
    rows.push_back(std::move(row));
  }
  for (size_t i = 0; i < diff.nodes.size(); ++i) {
    rows.push_back({.was = NodeLine(was.graph, diff.nodes[i].was),
                    .now = NodeLine(now.graph, diff.nodes[i].now),
                    .differs = diff.differs[i]});
  }
  return rows;
}

// `text` in pieces of at most `width` characters.
std::vector<std::string> Wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size(); at += width) lines.push_back(text.substr(at, width));
  return lines;
}

char MarkOf(const Row& row) {
  if (!row.differs) return ' ';
  return row.was.empty() ? '>' : row.now.empty() ? '<' : '|';
}

std::string SideBySide(const std::vector<Row>& rows, const DiffOptions& options) {
  const size_t width = std::max<size_t>(20, (static_cast<size_t>(options.width) - 3) / 2);
  std::vector<bool> shown(rows.size(), options.all);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].differs) continue;
    const size_t context = static_cast<size_t>(options.context);
    const size_t first = i < context ? 0 : i - context;
    for (size_t k = first; k <= std::min(rows.size() - 1, i + context); ++k) shown[k] = true;
  }
  std::string text;
  size_t left_out = 0;
  const auto tell = [&] {
    if (left_out > 0) absl::StrAppend(&text, "... ", left_out, " rows are the same\n");
    left_out = 0;
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!shown[i]) {
      ++left_out;
      continue;
    }
    tell();
    const std::vector<std::string> was = Wrapped(rows[i].was, width);
    const std::vector<std::string> now = Wrapped(rows[i].now, width);
    for (size_t k = 0; k < std::max<size_t>(1, std::max(was.size(), now.size())); ++k) {
      const std::string left = k < was.size() ? was[k] : "";
      const std::string right = k < now.size() ? now[k] : "";
      std::string line = absl::StrCat(left, std::string(width - left.size(), ' '), " ",
                                      std::string(1, MarkOf(rows[i])), " ", right);
      line.erase(line.find_last_not_of(' ') + 1);
      absl::StrAppend(&text, line, "\n");
    }
  }
  tell();
  return text;
}

std::string AsJson(const DiffSide& was, const DiffSide& now, const std::vector<std::string>& causes,
                   const std::vector<Row>& rows) {
  nlohmann::ordered_json json = {
      {"was", was.what}, {"now", now.what}, {"same", causes.empty()}, {"causes", causes}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    if (row.differs) json["rows"].push_back({{"was", row.was}, {"now", row.now}});
  }
  return JsonText(json);
}

}  // namespace

std::string DiffReport(const DiffSide& was, const DiffSide& now, const DiffOptions& options) {
  const GraphDiff diff = DiffGraphs(was.graph, now.graph);
  // The sizes of a recipe come before their effects on its graph.
  const auto is_of_key = [](const std::string& cause) {
    return absl::StartsWith(cause, "binding ") || absl::StartsWith(cause, "packing ");
  };
  std::vector<std::string> causes = FactCauses(was, now);
  const auto others = std::stable_partition(causes.begin(), causes.end(), is_of_key);
  causes.insert(others, diff.causes.begin(), diff.causes.end());
  const std::vector<std::string> kernels = KernelCauses(was, now);
  causes.insert(causes.end(), kernels.begin(), kernels.end());
  const std::vector<Row> rows = RowsOf(was, now, diff);
  if (options.json) return AsJson(was, now, causes, rows);
  std::string text;
  if (causes.empty()) {
    text = "the same: no recipe differs\n";
  } else {
    absl::StrAppend(&text, causes[0], "\n");
    for (size_t i = 1; i < causes.size(); ++i) absl::StrAppend(&text, "  ", causes[i], "\n");
  }
  absl::StrAppend(&text, "\nwas  ", was.what, "\nnow  ", now.what, "\n\n");
  const bool any =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.differs; });
  if (any || options.all) {
    text += SideBySide(rows, options);
  } else {
    absl::StrAppend(&text, "all ", rows.size(), " rows of their graphs are the same\n");
  }
  return text;
}

void AddDiff(CLI::App& app, Action& action) {
  struct Flags {
    ServerFlags server;
    std::string was, now, store;
    DiffOptions options;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "diff", "Show why two models or recipes differ: the first cause, and both graphs");
  command->footer(
      "A side is a model file (.onnx), a record of a recipe store (.rps), a text that `graph`,\n"
      "`dump --graph` or --dump-graphs wrote, BUNDLE#KEY, or the key of a recipe in a "
      "server,\n"
      "or with --store in a folder. WAS comes first: \"0.5, was 0.7\" has the values of NOW "
      "and\n"
      "WAS. Rows are marked | where both sides differ, < and > where only one has them.");
  flags->server.Add(*command);
  AddOption(*command, "was", flags->was, "WAS", "One side")->required();
  AddOption(*command, "now", flags->now, "NOW", "The other side")->required();
  AddOption(*command, "--store", flags->store, "DIR",
            "Look for keys in this folder of --recipe-cache");
  command->add_option("--width", flags->options.width, "Characters of a line")
      ->check(CLI::Range(43, 10'000))
      ->capture_default_str();
  command
      ->add_option("--context", flags->options.context,
                   "Equal rows to print around rows that differ")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_flag("--all", flags->options.all, "Print every row, equal ones included");
  AddJson(*command, flags->options.json);
  command->callback([flags, &action] {
    action = [flags]() -> absl::Status {
      ASSIGN_OR_RETURN(const DiffSide was, ReadDiffSide(flags->was, flags->store, flags->server));
      ASSIGN_OR_RETURN(const DiffSide now, ReadDiffSide(flags->now, flags->store, flags->server));
      std::printf("%s", DiffReport(was, now, flags->options).c_str());
      return absl::OkStatus();
    };
  });
}

}  // namespace reprise::cli
