#include "runtime/passes/kit/precision_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/digest128.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/kit/node_choice.h"

namespace reprise {
namespace {

// The longest list of a file, and the most rules of a model: both are configuration.
constexpr size_t kMostRules = 4096;

bool IsPattern(absl::string_view what) {
  return absl::StrContains(what, '*') || absl::StrContains(what, '/');
}

absl::Status Add(Precision precision, absl::string_view entry,
                 std::vector<PrecisionRules::Rule>& rules) {
  if (rules.size() >= kMostRules) {
    return absl::InvalidArgumentError(absl::StrCat("there are more than ", kMostRules, " entries"));
  }
  rules.push_back({precision, std::string(entry), IsPattern(entry)});
  return absl::OkStatus();
}

absl::Status AddFile(Precision precision, const std::string& name,
                     const PrecisionRules::ReadFile& read,
                     std::vector<PrecisionRules::Rule>& rules) {
  if (read == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("a file, '@", name, "', cannot be named here"));
  }
  ASSIGN_OR_RETURN(const std::string text, read(name));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (!line.empty()) RETURN_IF_ERROR(Add(precision, line, rules));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrecisionRules> PrecisionRules::Parse(absl::string_view text, const ReadFile& read) {
  PrecisionRules parsed;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    const size_t colon = part.find(':');
    const absl::string_view name =
        absl::StripAsciiWhitespace(part.substr(0, std::min(colon, part.size())));
    const std::optional<Precision> precision = ParsePrecision(name);
    if (colon == absl::string_view::npos || !precision.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", part, "' is not PRECISION: OP,...; precisions are exact, bf16 and int8"));
    }
    bool any = false;
    for (absl::string_view entry : absl::StrSplit(part.substr(colon + 1), ',')) {
      entry = absl::StripAsciiWhitespace(entry);
      if (entry.empty()) continue;
      any = true;
      RETURN_IF_ERROR(entry[0] == '@'
                          ? AddFile(*precision, std::string(entry.substr(1)), read, parsed.rules_)
                          : Add(*precision, entry, parsed.rules_));
    }
    if (!any) {
      return absl::InvalidArgumentError(absl::StrCat("'", part, "' names no op and no node"));
    }
  }
  return parsed;
}

std::string PrecisionRules::ToString() const {
  std::string text;
  for (const Rule& rule : rules_) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", PrecisionName(rule.precision), ": ",
                    rule.what);
  }
  return text;
}

std::optional<Precision> PrecisionRules::Of(const Node& node) const {
  std::optional<Precision> by_type, by_name;
  for (const Rule& rule : rules_) {
    if (rule.is_pattern) {
      if (MatchesPattern(rule.what, node.name)) by_name = rule.precision;
    } else if (IsOpType(rule.what, node.op) || IsOpType(rule.what, SourceOp(node))) {
      by_type = rule.precision;
    }
  }
  return by_name.has_value() ? by_name : by_type;
}

NodePrecisions::NodePrecisions(Graph& graph, PrecisionRules rules, Precision otherwise)
    : rules_(std::move(rules)), otherwise_(otherwise) {
  int position = 0;
  for (const NodeId id : graph.NodeIds()) {
    Node& node = graph.node(id);
    ++position;
    const std::optional<Precision> said = rules_.Of(node);
    const OpFacts& facts = FactsOf(node.op);
    if (!said.has_value() && !facts.Is(kMultipliesWeights)) continue;
    if (node.name.empty()) node.name = absl::StrCat(node.op, "_", position);
    by_name_.emplace(node.name, Known{position, said.value_or(otherwise), said.has_value()});
  }
  SetDigest();
}

NodePrecisions NodePrecisions::With(const std::map<std::string, Precision>& chosen) const {
  NodePrecisions nodes = *this;
  for (const auto& [name, precision] : chosen) {
    const auto known = nodes.by_name_.find(name);
    if (known == nodes.by_name_.end()) {
      nodes.chosen_[name] = precision;
    } else if (!known->second.ruled) {
      known->second.precision = precision;
    }
  }
  nodes.SetDigest();
  return nodes;
}

void NodePrecisions::SetDigest() {
  std::map<int, Precision> by_position;
  for (const auto& [name, known] : by_name_) by_position[known.position] = known.precision;
  std::string text = absl::StrCat(rules_.ToString(), "\n");
  for (const auto& [position, precision] : by_position) {
    absl::StrAppend(&text, position, " ", PrecisionName(precision), "\n");
  }
  for (const auto& [name, precision] : chosen_) {
    absl::StrAppend(&text, name, " ", PrecisionName(precision), "\n");
  }
  digest_ = HexDigest128(text);
}

Precision NodePrecisions::Of(const Node& node) const {
  if (const auto known = by_name_.find(node.name); known != by_name_.end()) {
    return known->second.precision;
  }
  if (const std::optional<Precision> said = rules_.Of(node)) return *said;
  const auto chosen = chosen_.find(node.name);
  return chosen == chosen_.end() ? otherwise_ : chosen->second;
}

bool NodePrecisions::IsRuled(const Node& node) const {
  const auto known = by_name_.find(node.name);
  return known != by_name_.end() ? known->second.ruled : rules_.Of(node).has_value();
}

}  // namespace reprise
