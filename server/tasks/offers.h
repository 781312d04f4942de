// Offers: what one loaded model is for, besides its inputs and outputs.
#pragma once

#include <cstdint>

#include "server/hub/text_models.h"
#include "server/repository/servable.h"

namespace reprise {

struct Offers {
  // "generation", "transcription", "embeddings", "rerank", "classification", ..., "object
  // detection", "image classification", "image embeddings"; "tensors" where it is none of them.
  const char* task = "tensors";
  bool texts = false;     // prompts of generation may be texts
  bool chats = false;     // conversations are taken
  bool pictures = false;  // picture files are taken
  int64_t context = 0;    // tokens at most; 0: none is known
};

Offers OffersOf(const Servable& servable, const TextModels& texts);

}  // namespace reprise
