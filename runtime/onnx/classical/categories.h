// Ops of ai.onnx.ml that choose columns, join them and code categories, as steps that are ops of
// ONNX.
#pragma once

#include "absl/status/status.h"
#include "runtime/graph/node.h"
#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

absl::Status OneHotEncoderInSteps(NodeDraft& draft, Graph& graph);
absl::Status LabelEncoderInSteps(NodeDraft& draft, Graph& graph);
absl::Status ArrayFeatureExtractorInSteps(NodeDraft& draft, Graph& graph);
absl::Status FeatureVectorizerInSteps(NodeDraft& draft, Graph& graph);
// Rows of probabilities instead of maps from labels to them: the same numbers in one tensor, in the
// order of the labels.
absl::Status ZipMapIsItsTensor(NodeDraft& draft, Graph& graph);
absl::Status CategoryMapperInSteps(NodeDraft& draft, Graph& graph);
// A Cast to text; others stay as they are.
absl::Status CastToText(NodeDraft& draft, Graph& graph);
// CastMap, DictVectorizer: UNIMPLEMENTED, saying why.
absl::Status RefuseMaps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
