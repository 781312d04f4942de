// Reasons: why a model cannot run, all of them at once.
//
// The same words appear in the status of a load (so in the repository index and the log) and, a
// line each, in `reprise check`.
//
//   Reasons reasons;
//   reasons.AddNode(status.code(), {.op = "Loop", .version = 17, .node = "'loop'", .why = "..."});
//   return reasons.ToStatus();
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace reprise {

struct NodeReason {
  std::string op;
  std::string domain;   // empty: ai.onnx
  int64_t version = 0;  // version of the domain's operator set; 0: the model imports none
  std::string node;     // the name in quotes, with its outputs where it has none
  std::string dtypes;   // its inputs', "(f32, ?)": ? is not known, _ is left out; or a step's
  std::string why;      // "is not supported"
};

class Reasons {
 public:
  void Add(absl::StatusCode code, std::string text);
  // Nodes that differ by name alone share a reason.
  void AddNode(absl::StatusCode code, NodeReason reason);

  bool empty() const { return entries_.empty(); }
  // OK when empty. The code is INVALID_ARGUMENT if any reason has it, else the first one's.
  absl::Status ToStatus() const;

 private:
  struct Entry {
    absl::StatusCode code = absl::StatusCode::kUnimplemented;
    std::string before;              // "op 'Loop' (domain 'ai.onnx', version 17, "
    std::vector<std::string> nodes;  // empty: `before` is the whole text
    std::string after;               // ", dtypes (f32)): is not supported"
  };
  static std::string Text(const Entry& entry);

  std::vector<Entry> entries_;
};

// Returns the reasons that a status holds, each alone; for one that Reasons did not make, its
// message.
std::vector<std::string> ReasonsOf(const absl::Status& status);

// "'attention'"; "'' -> 'scores'" for a node without a name that makes the value `scores`.
std::string NodeName(const std::string& name, const std::string& first_output);

}  // namespace reprise
