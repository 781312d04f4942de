// Fields and parameters in configs of Triton that change no answer here: hints for another server's
// memory, threads or devices. They are refused by default, and taken with a line each by
// --config-strictness warn.
//
// Threads: pure.
#pragma once

#include "absl/strings/string_view.h"

namespace reprise {

// Returns what Reprise does in place of a field; "" where the field is no hint. `path`:
// "optimization.cuda", "instance_group.gpus".
absl::string_view FieldHint(absl::string_view path);
// Returns the same for the name of a parameter: "intra_op_thread_count".
absl::string_view ParameterHint(absl::string_view name);

}  // namespace reprise
