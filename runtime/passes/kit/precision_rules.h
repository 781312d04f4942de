// PrecisionRules: which nodes round, by op and by name.
//
//   bf16: MatMul,Gemm; exact: Attention,/encoder/layer.11/*
//
// A rule is a precision and the nodes that it holds for: types of ops ("MatMul",
// "com.microsoft.Gelu", or without the domain) and patterns of node names, in which * stands for
// any text. An entry with a / or a * is a pattern. A pattern counts more than a type, and of two
// that match a node the later one counts. Nodes that no rule names have the precision of the model.
// "@FILE" stands for the entries of a file: one a line, # begins a comment.
//
// Only products with weights and attention can round (Rounding in ops/kit/op_rules.h): a rule for
// another op changes nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/node.h"
#include "runtime/ops/kit/precision.h"

namespace reprise {

class PrecisionRules {
 public:
  struct Rule {
    Precision precision = Precision::kExact;
    std::string what;
    bool is_pattern = false;
  };
  // The text of a file that a rule names, or why it cannot be read.
  using ReadFile = std::function<absl::StatusOr<std::string>(const std::string& name)>;

  // INVALID_ARGUMENT naming the entry that cannot be read. `read`: null where no file may be named.
  static absl::StatusOr<PrecisionRules> Parse(absl::string_view text,
                                              const ReadFile& read = nullptr);

  bool empty() const { return rules_.empty(); }
  const std::vector<Rule>& rules() const { return rules_; }
  // Files are replaced in it by their entries.
  std::string ToString() const;
  // Returns the precision; nullopt: no rule holds for a node of this op and name.
  std::optional<Precision> Of(const Node& node) const;

 private:
  std::vector<Rule> rules_;
};

// The precision of each node of a model: by its rules, and by a choice among the other nodes.
//
// A recipe's key leaves names out, so that models share recipes; `digest` stands there for the
// effect, and two models whose nodes have the same precisions go on sharing.
class NodePrecisions {
 public:
  // Gives names to the nodes of `graph` that have none: passes keep them.
  NodePrecisions(Graph& graph, PrecisionRules rules, Precision otherwise);

  // Returns the same with these precisions by name, which count instead of `otherwise`; of nodes
  // that a rule names the rule does.
  NodePrecisions With(const std::map<std::string, Precision>& chosen) const;

  Precision Of(const Node& node) const;
  // Returns whether a rule names the node.
  bool IsRuled(const Node& node) const;
  // 128 bits in hex.
  const std::string& digest() const { return digest_; }

 private:
  struct Known {
    int position = 0;  // the place in the graph
    Precision precision = Precision::kExact;
    bool ruled = false;
  };
  void SetDigest();

  PrecisionRules rules_;
  Precision otherwise_;
  std::map<std::string, Known> by_name_;
  std::map<std::string, Precision> chosen_;  // names that the graph gets from passes
  std::string digest_;
};

}  // namespace reprise
