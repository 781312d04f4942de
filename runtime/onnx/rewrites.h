// From the form that an op had in an older opset to the newest, which op_table.cc defines.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

// Returns whether a row of the table converts the op of `draft` to its newest form.
bool HasRewrite(const NodeDraft& draft);

// Converts `draft` to the newest form; may add constants and helper nodes to `graph`; the
// importer turns large constants into parameters. UNIMPLEMENTED for forms that cannot be
// converted.
absl::Status RewriteToNewest(NodeDraft& draft, Graph& graph);

}  // namespace reprise
