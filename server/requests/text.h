// The stage `text`: texts become places that the engine computes with (see graph/vocabulary.h), and
// places of an answer become texts again. Models without text pass untouched.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/onnx/model_io.h"
#include "server/requests/stage.h"

namespace reprise {

// Errors: INVALID_ARGUMENT naming the input where its bytes are no texts. The answer's step:
// RESOURCE_EXHAUSTED naming the output whose texts are too large for a message.
absl::Status ReadTexts(const InferRequest& asked, RequestState& state);

// Replaces the bytes of each input of text of `request`, which was admitted, by places of `texts`,
// which owns them. Errors: INVALID_ARGUMENT.
absl::Status PlaceTexts(absl::Span<const ModelIo> inputs, const InferRequest& asked,
                        RequestTexts& texts, Request& request);

// Makes, as a stage, the parameter `classification` of an output replace the tensor by its classes
// with the largest values, as texts "VALUE:INDEX" or "VALUE:INDEX:LABEL"; of a model that batches,
// each row has its own. Labels are in `label_filename`, else in the folder. INVALID_ARGUMENT
// where an output holds texts, or fewer than one class is asked for.
absl::Status ClassifyOutputs(const InferRequest& asked, RequestState& state);

}  // namespace reprise
