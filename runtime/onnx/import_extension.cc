#include "runtime/onnx/import_extension.h"

#include <utility>

namespace reprise {
namespace {

thread_local const ImportExtension::Step* extension = nullptr;

}  // namespace

ImportExtension::ImportExtension(Step step) : step_(std::move(step)) { extension = &step_; }

ImportExtension::~ImportExtension() { extension = nullptr; }

absl::Status ImportExtension::Apply(ImportedModel& model) {
  return extension == nullptr ? absl::OkStatus() : (*extension)(model);
}

}  // namespace reprise
