// Ops of ai.onnx.ml that choose columns, join them and code categories, as steps that are ops of
// ONNX.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite OneHotEncoderInSteps, LabelEncoderInSteps, ArrayFeatureExtractorInSteps,
    FeatureVectorizerInSteps;
// Rows of probabilities instead of maps from labels to them: the same numbers in one tensor, in the
// order of the labels.
NodeRewrite ZipMapIsItsTensor, CategoryMapperInSteps;
// Rewrites a Cast to text; others stay as they are.
NodeRewrite CastToText;
// CastMap, DictVectorizer: UNIMPLEMENTED, saying why.
NodeRewrite RefuseMaps;

}  // namespace reprise
