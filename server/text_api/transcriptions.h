// Sound to text: /v1/audio/transcriptions and /v1/audio/translations, as OpenAI has them.
#pragma once

#include <memory>
#include <string>

#include "server/text_api/text_face.h"

namespace reprise {

// Answers `exchange` once. `model`: the path's; empty: none.
void ServeTranscriptions(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                         const std::string& model);
void ServeTranslations(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                       const std::string& model);

// Answers a client of a model hub, which sends a sound to the address of `model` itself, as a file
// or as {"inputs": BASE64}, with {"text": ...}.
void ServeHubSound(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                   const std::string& model);

}  // namespace reprise
