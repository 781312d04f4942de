// The input `image`, BYTES of shape [rows] or [rows, 1], a JPEG or PNG file each, in place of the
// model's input of pixels. Decoded pictures are admitted like a request that a client sent as
// tensors.
//
// Pictures are decoded on the threads of texts, as texts become tokens there, within their memory.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/requests/stage.h"
#include "server/text/text_threads.h"

namespace reprise {

inline constexpr char kImageInput[] = "image";

// Returns whether the request has the input `image` as BYTES, and nothing else but options.
bool SendsPictures(const InferRequest& asked);

// `threads`: null: pictures are decoded on the calling one. Errors as of PictureModel::Read,
// naming the row; INVALID_ARGUMENT where pictures of one request become tensors of several shapes;
// and as of Admit. A model that has an input `image` of BYTES itself gets it as it is.
absl::Status AdmitPictures(const Repository& repository, TextThreads* threads,
                           const InferRequest& asked, RequestState& state);

}  // namespace reprise
