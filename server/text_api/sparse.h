// /embed_sparse and /embed_all, as text-embeddings-inference has them: weights of words, and a
// vector for each token.
#pragma once

#include "server/text_api/text_face.h"

namespace reprise {

TextFace SparseEmbeddings();
TextFace TokenEmbeddings();

}  // namespace reprise
