// FileValues: the values that an import has defined so far, by the names of the file.
//
// Large numeric tensors become parameters, all others constants.
//
// Ownership: owns the imported model until it is taken. Threads: one caller.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/hash_map.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/importer.h"
#include "runtime/onnx/kit/reasons.h"

namespace reprise {

struct FileValues {
  ImportedModel model;
  HashMap<std::string, ValueId> by_name;
  // Why the model cannot run, except for reasons of nodes.
  Reasons reasons;

  // INVALID_ARGUMENT for a name that is empty or defined already.
  absl::Status Define(const std::string& name, ValueId value);
  // Defines `name` as something that cannot be read, so that the walk can go on and collect
  // reasons.
  absl::Status DefineUnread(const std::string& name);

  // Returns a parameter's ParameterExpr leaf.
  int KeepParameter(Tensor tensor);
  ValueId AddTensor(const std::string& name, Tensor tensor);
  // Makes large constants among the values from `first` on, which a rewrite added, parameters.
  void MakeParameters(ValueId first);

  // Returns whether the walk can go on after `status`, so that all reasons can be told at once.
  static bool IsReason(const absl::Status& status);
  // Keeps a reason; returns any other error.
  absl::Status NoteOrReturn(const absl::Status& status);
};

// "input 'x'".
std::string Quoted(absl::string_view kind, absl::string_view name);

}  // namespace reprise
