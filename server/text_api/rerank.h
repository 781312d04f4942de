// Scores of pairs of texts: /rerank in the shapes of text-embeddings-inference ("texts") and of
// Cohere and Jina ("documents"), /score as vLLM has it. A model of vectors ranks by their cosine.
#pragma once

#include "server/text_api/text_face.h"

namespace reprise {

TextFace Rerank();
TextFace Scores();

}  // namespace reprise
