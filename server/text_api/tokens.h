// Texts as tokens and back: the prompts of completions and of chats as /render, which routers ask
// for, has them ("token_ids"), /tokenize and /detokenize as vLLM has them ("prompt", "tokens"), and
// /tokenize and /decode as text-embeddings-inference ("inputs", "ids"). Nothing is computed by the
// model.
#pragma once

#include <memory>
#include <string>

#include "server/text_api/text_face.h"

namespace reprise {

// Answers `exchange` once, from a thread of texts. `model`: from the path; empty: none.
void ServeTokenize(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                   const std::string& model);
void ServeRender(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                 const std::string& model);
void ServeChatRender(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                     const std::string& model);
void ServeDetokenize(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                     const std::string& model);

}  // namespace reprise
