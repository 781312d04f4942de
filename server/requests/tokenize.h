// The input `text`, BYTES of shape [rows] or [rows, 1], in place of the inputs that are made of
// tokens. Tokenized texts are admitted like a request that a client sent as ids.
//
// Shorter rows are padded to the longest one and masked, so that models which are packed compute
// none of it. Tokens are made on the threads of texts: a request that comes on another one waits
// for its turn there, and walks its stages from the first one on.
#pragma once

#include "absl/status/status.h"
#include "server/hub/text_models.h"
#include "server/requests/stage.h"
#include "server/text/text_threads.h"

namespace reprise {

inline constexpr char kTextInput[] = "text";

// Returns whether the request has the input `text`, and nothing else but options.
bool SendsTexts(const InferRequest& asked);

// `threads`: null: tokens are made on the calling one. Errors as of TextModel::Encode, naming the
// row, and Admit. A model that has an input `text` itself gets it as it is.
absl::Status AdmitTexts(const Repository& repository, const TextModels& texts, TextThreads* threads,
                        const InferRequest& asked, RequestState& state);

}  // namespace reprise
