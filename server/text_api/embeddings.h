// Vectors of texts: /v1/embeddings as OpenAI has it, /embed and /similarity as
// text-embeddings-inference, /v2/embed as Cohere.
#pragma once

#include "server/text_api/text_face.h"

namespace reprise {

TextFace OpenAiEmbeddings();
TextFace PlainEmbeddings();
TextFace Similarities();
TextFace CohereEmbeddings();

}  // namespace reprise
