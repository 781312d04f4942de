// ImportExtension: steps that are added to a model between its file and all that looks at it, for
// what the folder of the model says beside the file. They are part of every recipe.
//
//   ImportExtension extension([&](ImportedModel& model) { return AppendHead(model); });
//   engine.Load(...);   // on this thread, while `extension` lives
//
// Threads: acts on loads of its own thread alone. One at a time.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "runtime/onnx/importer.h"

namespace reprise {

class ImportExtension {
 public:
  using Step = std::function<absl::Status(ImportedModel&)>;

  explicit ImportExtension(Step step);
  ~ImportExtension();
  ImportExtension(const ImportExtension&) = delete;
  ImportExtension& operator=(const ImportExtension&) = delete;

  // Called by whoever loads: does the step of this thread, or nothing.
  static absl::Status Apply(ImportedModel& model);

 private:
  const Step step_;
};

}  // namespace reprise
