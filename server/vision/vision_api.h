// VisionApi: pictures over HTTP. Each path is there a second time below /models/{model}.
//
//   POST /v1/vision/classify   classes of pictures, best first
//   POST /v1/vision/detect     boxes of objects in pixels of the picture, with labels and scores
//
// The body is a JPEG or PNG file (Content-Type: image/jpeg, image/png), or JSON: `image`, or a list
// `images`, of base64 or data: addresses; `model`; `top` of classify; `conf`, `iou` and `max` of
// detect. Errors are in OpenAI's form, as all below /v1.
#pragma once

#include "runtime/engine/types/memory_budget.h"
#include "server/http/router.h"
#include "server/vision/vision_call.h"

namespace reprise {

// All in the context, and `parsing`, which the memory of JSON is taken from, outlive the router.
void AddVisionApi(const VisionContext& context, MemoryBudget& parsing, Router& router);

}  // namespace reprise
