// Loops that repeat each piece of a tensor as often, as torch's exporter writes repeat_interleave
// where it does not know a size: the tensor and a list of counts are split into sequences, a Loop
// takes both at its number, repeats the piece, and adds it to a list that is joined after it.
//
// Such a Loop becomes what it computes: an Unsqueeze, an Expand and a Reshape. It is rewritten
// where the file says that all counts are one number; others stay as they are.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Rewrites such loops in all graphs and functions of `model`. `raw_data`: the bytes of its graph's
// initializers, in their order, where the messages have them no more (file/slim_model.h).
void RepeatPiecesAtOnce(onnx::ModelProto& model, absl::Span<const absl::string_view> raw_data);

}  // namespace reprise
