// The routes of tokens over HTTP, POST /v2/models/{model}[/versions/{version}]/...
//
// .../generate answers with all tokens at once:
//
//   {"input_ids": [1, 2, 3], "id": "mine", "parameters": {"max_tokens": 16, "temperature": 0}}
//   {"model_name": "m", "model_version": "1", "token_ids": [4, 5], "finish_reason": "stop", ...}
//
// In the place of "input_ids" a text may be sent as "text_input"; the answer has "text_output"
// then, and an event of a stream the part of it that its token completes.
//
// With `n` answers `token_ids` and `logprobs` are lists of lists, and `finish_reason` is a list.
//
// .../generate_stream tells each token as an event of the server (text/event-stream), `index` being
// the answer; an error after the first token is the last event:
//
//   data: {"model_name": "m", "model_version": "1", "index": 0, "token_ids": [4]}
//   data: {"error": "the model is unloaded"}
#pragma once

#include <memory>
#include <string>

#include "runtime/engine/types/memory_budget.h"
#include "server/generate/token_calls.h"
#include "server/http/http_message.h"
#include "server/requests/inference.h"

namespace reprise {

void StreamGenerateOverHttp(const TokenCalls& calls, Inference& inference, MemoryBudget& parsing,
                            const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                            const std::string& version);
void StartGenerateOverHttp(const TokenCalls& calls, Inference& inference, MemoryBudget& parsing,
                           const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                           const std::string& version);

}  // namespace reprise
