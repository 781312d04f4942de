// Vectors of texts: /v1/embeddings as OpenAI has it, /embed and /similarity as
// text-embeddings-inference, /v1/embed and /v2/embed as Cohere.
#pragma once

#include "server/text_api/text_face.h"

namespace reprise {

TextFace OpenAiEmbeddings();
TextFace PlainEmbeddings();
TextFace Similarities();
TextFace CohereEmbeddings();
// Returns the face of its first clients: a list of vectors, unless types are named.
TextFace FirstCohereEmbeddings();

}  // namespace reprise
