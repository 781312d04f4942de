// Texts that go on: /v1/completions and /v1/chat/completions, as OpenAI has them.
#pragma once

#include <memory>
#include <string>

#include "server/text_api/text_face.h"

namespace reprise {

// Answers `exchange` once. `model`: the path's; empty: none.
void ServeCompletions(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                      const std::string& model);
void ServeChat(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
               const std::string& model);

}  // namespace reprise
