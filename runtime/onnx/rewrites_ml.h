// Ops of ai.onnx.ml but trees and support vectors, as steps that are ops of ONNX.
#pragma once

#include "runtime/onnx/rewrites.h"

namespace reprise {

// rewrites_ml.cc: linear models and what makes their features.
absl::Status LinearRegressorInSteps(NodeDraft& draft, Graph& graph);
absl::Status LinearClassifierInSteps(NodeDraft& draft, Graph& graph);
absl::Status ScalerInSteps(NodeDraft& draft, Graph& graph);
absl::Status NormalizerInSteps(NodeDraft& draft, Graph& graph);
absl::Status ImputerInSteps(NodeDraft& draft, Graph& graph);
absl::Status BinarizerInSteps(NodeDraft& draft, Graph& graph);

// rewrites_categories.cc: columns chosen, joined, coded.
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

// rewrites_svm.cc: support vectors.
absl::Status SvmRegressorInSteps(NodeDraft& draft, Graph& graph);
absl::Status SvmClassifierInSteps(NodeDraft& draft, Graph& graph);

}  // namespace reprise
