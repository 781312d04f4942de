// ModuleHistory: which modules of a model a graph of fixed shapes would compile again, shape by
// shape.
//
// A module is at fault where an input of the model reaches it in a shape that it has not had; the
// modules after it follow.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/onnx/node_places.h"

namespace reprise {

// Why a graph of fixed shapes would be compiled.
inline constexpr char kCauseFirst[] = "first step";
inline constexpr char kCauseNewInput[] = "new input shape";
inline constexpr char kCauseData[] = "shapes that data decide inside";
inline constexpr char kCauseChild[] = "a dynamic child";
inline constexpr char kCauseEviction[] = "eviction";
inline constexpr char kCauseConstants[] = "changed constants";

// A module at fault at a step.
struct ModuleAtFault {
  std::string module;
  std::string op;       // the first of its nodes that reads an input of the model
  std::string new_in;   // the shapes that go in, "x: f32[30, 784]"
  std::string new_out;  // and those that come out, where they are new too
  NodePlace place;      // that node's
};

struct ModuleCounts {
  std::string type;            // its class; empty: not known
  int64_t recompilations = 0;  // steps at which it would be compiled again, without the first
  int64_t at_fault = 0;        // those at which it was the cause
};

class ModuleHistory {
 public:
  explicit ModuleHistory(NodePlaces places) : places_(std::move(places)) {}

  struct Step {
    bool is_new = false;    // a graph of fixed shapes would be compiled
    int64_t followers = 0;  // modules that are compiled again because of those at fault
    std::vector<ModuleAtFault> at_fault;  // empty at the first step
  };
  // `graph`: the model at the sizes of the next step.
  Step Next(const Graph& graph);
  // Counts a recompilation for sizes that data decide within the module of `node`.
  void CountInside(const std::string& node, bool is_first_step);

  const NodePlaces& places() const { return places_; }
  const std::map<std::string, ModuleCounts>& counts() const { return counts_; }

 private:
  const NodePlaces places_;
  bool begun_ = false;
  std::map<std::string, std::set<std::string>> seen_in_, seen_out_;  // keyed by module
  std::map<std::string, ModuleCounts> counts_;
};

// "x: f32[30, 784]".
std::string ValueText(const Value& value);

}  // namespace reprise
