// Which models there are, as clients of texts ask: /v1/models of OpenAI, /info of
// text-embeddings-inference.
#pragma once

#include <string>

#include "server/text_api/text_face.h"

namespace reprise {

// Returns every model that is ready.
HttpReply ModelsPage(const TextApiContext& context);
HttpReply ModelPage(const TextApiContext& context, const std::string& model);
// `model`: empty stands for the only one that takes texts.
HttpReply InfoPage(const TextApiContext& context, const std::string& model);

}  // namespace reprise
