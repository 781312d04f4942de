#include "runtime/onnx/kit/reasons.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace reprise {
namespace {

constexpr char kPayload[] = "reprise.reasons";
// Names that one reason lists: enough to find the place in any exporter's output.
constexpr size_t kMaxNodesListed = 16;

}  // namespace

void Reasons::Add(absl::StatusCode code, std::string text) {
  // A line break would end the reason.
  std::replace(text.begin(), text.end(), '\n', ' ');
  entries_.push_back({.code = code, .before = std::move(text)});
}

void Reasons::AddNode(absl::StatusCode code, NodeReason reason) {
  std::replace(reason.why.begin(), reason.why.end(), '\n', ' ');
  const std::string before =
      absl::StrCat("op '", reason.op, "' (domain '",
                   reason.domain.empty() ? std::string("ai.onnx") : reason.domain, "', version ",
                   reason.version == 0 ? std::string("?") : absl::StrCat(reason.version), ", ");
  const std::string after = absl::StrCat(", dtypes ", reason.dtypes, "): ", reason.why);
  for (Entry& entry : entries_) {
    if (entry.nodes.empty() || entry.before != before || entry.after != after) continue;
    entry.nodes.push_back(std::move(reason.node));
    return;
  }
  entries_.push_back({code, before, {std::move(reason.node)}, after});
}

std::string Reasons::Text(const Entry& entry) {
  if (entry.nodes.empty()) return entry.before;
  const size_t listed = std::min(entry.nodes.size(), kMaxNodesListed);
  std::string nodes =
      absl::StrCat(entry.nodes.size() == 1 ? "node " : "nodes ",
                   absl::StrJoin(entry.nodes.begin(), entry.nodes.begin() + listed, ", "));
  if (entry.nodes.size() > listed) {
    absl::StrAppend(&nodes, " and ", entry.nodes.size() - listed, " more");
  }
  return absl::StrCat(entry.before, nodes, entry.after);
}

absl::Status Reasons::ToStatus() const {
  if (entries_.empty()) return absl::OkStatus();
  absl::StatusCode code = entries_.front().code;
  std::vector<std::string> texts;
  for (const Entry& entry : entries_) {
    if (entry.code == absl::StatusCode::kInvalidArgument) code = entry.code;
    texts.push_back(Text(entry));
  }
  absl::Status status(code, absl::StrJoin(texts, "; "));
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(texts, "\n")));
  return status;
}

std::vector<std::string> ReasonsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return {std::string(status.message())};
  return absl::StrSplit(std::string(*payload), '\n');
}

std::string NodeName(const std::string& name, const std::string& first_output) {
  return name.empty() ? absl::StrCat("'' -> '", first_output, "'") : absl::StrCat("'", name, "'");
}

}  // namespace reprise
