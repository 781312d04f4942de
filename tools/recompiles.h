// The report of `reprise recompiles`: which modules of a model a static graph would recompile at
// which step, why, and how Reprise handles that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/admin.pb.h"
#include "runtime/bucket/policy.h"

namespace reprise::cli {

// A module at fault at a step. A module that is recompiled because another one is at fault has no
// row.
struct RecompileRow {
  int64_t step = 0;    // the first one is 1
  std::string module;  // scope of names, "(model)" outside of all
  std::string op;      // "NonZero 'find'"
  std::string new_in;  // the shapes that were new, "x: f32[30, 784]"; empty: none were
  std::string new_out;
  std::string cause;     // see kCause* of module_shapes.h
  std::string type;      // the module's class; empty: the file does not say
  std::string location;  // "model.py:25"; empty: the file does not say
  std::string request;   // the id that the client gave; empty: none
  std::string comment;   // how Reprise handles it, what would help
};

struct ModuleRow {
  std::string module;          // or a class, or a source file
  std::string type;            // the module's class
  int64_t recompilations = 0;  // steps at which it would be recompiled, without the first
  int64_t at_fault = 0;        // those with a row of their own
};

struct Recompilations {
  int64_t steps = 0;
  int64_t recompiled = 0;  // steps at which a static graph would be recompiled
  int64_t captured = 0;    // recipes that Reprise captured
  std::vector<RecompileRow> rows;
  std::vector<ModuleRow> modules;  // the most recompiled first
};

// Runs the model at `path` once a step, at the step's sizes, on made-up inputs.
absl::StatusOr<Recompilations> TraceRecompilations(const std::string& path,
                                                   const std::vector<AxisSizes>& steps);

// Returns the same of the requests that a server answered, one a step. Modules of several models
// are named after these too.
Recompilations RecompilationsOf(const v1::GetRecompilationsResponse& record);

// Returns the modules' counts by class, and the rows at fault by source file; without those that
// the file says nothing of.
std::vector<ModuleRow> ByClass(const Recompilations& table);
std::vector<ModuleRow> BySource(const Recompilations& table);

std::string RecompilationsText(const Recompilations& table, size_t most_rows);
std::string StepsCsv(const Recompilations& table);
// `kind`: the name of the first column.
std::string ModulesCsv(const std::vector<ModuleRow>& modules, const std::string& kind);
std::string RecompilationsJson(const Recompilations& table);

// "20,20,30,30" along the only axis of a model (or along `axis`, the others at 1), or
// "batch=1,sequence=20; batch=1,sequence=30". INVALID_ARGUMENT names the text that is no size.
absl::StatusOr<std::vector<AxisSizes>> ParseSteps(const std::string& text,
                                                  const std::vector<std::string>& axes,
                                                  const std::string& axis);

}  // namespace reprise::cli
