// VisionApi: pictures over HTTP. Each path is there a second time below /models/{model}.
//
//   POST /v1/vision/classify   classes of pictures, best first
//   POST /v1/vision/detect     boxes of objects in pixels of the picture, with labels and scores
//
// The body is a JPEG or PNG file (Content-Type: image/jpeg, image/png), or JSON: `image`, or a list
// `images`, of base64 or data: addresses; `model`; `top` of classify; `conf`, `iou` and `max` of
// detect. Next to a file these are parameters of the address ("?model=yolo&conf=0.4"). Errors are
// in OpenAI's form, as all below /v1.
#pragma once

#include <memory>
#include <string>

#include "runtime/engine/types/memory_budget.h"
#include "server/http/router.h"
#include "server/vision/vision_call.h"

namespace reprise {

// Adds the routes. The context and `parsing`, which memory of JSON comes from, outlive the router.
void AddVisionApi(const VisionContext& context, MemoryBudget& parsing, Router& router);

// Answers a client of a model hub, which sends one picture to the address of `model` itself, as a
// file or as {"inputs": BASE64, "parameters": {"top_k", "threshold"}}: a list of {"label",
// "score"}, with "box" where objects are detected.
void ServeHubPicture(const VisionContext& context, MemoryBudget& parsing, PictureTask task,
                     const std::shared_ptr<HttpExchange>& exchange, const std::string& model);

}  // namespace reprise
