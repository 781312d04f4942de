// Labels and outputs of texts as vLLM has them: /classify and /pooling.
#pragma once

#include "server/text_api/text_face.h"

namespace reprise {

TextFace Classifications();
TextFace Poolings();

}  // namespace reprise
