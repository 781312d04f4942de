// Pictures where a path of vectors takes texts: the inputs of OpenAI's, Jina's, vLLM's and Cohere's
// clients for models that make vectors of pictures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text_api/text_face.h"

namespace reprise {

// The pictures of a request, each as the bytes of its file, and the model that they are for.
struct PictureInputs {
  std::string model;
  std::vector<std::string> files;
};

// Reads `members` of the request, and "messages": a picture is {"image": ...}, {"image_url":
// {"url":
// ...}}, or, for a model of pictures, a text in base64 or of a data: address. nullopt: the request
// has none. Errors: INVALID_ARGUMENT naming the member, also for texts next to pictures;
// FAILED_PRECONDITION for a model that makes no vectors of pictures.
absl::StatusOr<std::optional<PictureInputs>> ReadPictures(const Fields& fields,
                                                          const TextApiContext& context,
                                                          const std::string& model,
                                                          absl::Span<const char* const> members);

}  // namespace reprise
