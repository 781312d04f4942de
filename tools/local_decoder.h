// A decoder and its texts in the process of a command.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/generate/generator.h"
#include "server/hub/text_model.h"
#include "tools/local_engine.h"

namespace reprise::cli {

// Loads the decoder at `path`, a file or a folder; where that is an encoder, the decoder next to
// it, and `generator` gets the encoder and the settings in the files next to it.
absl::StatusOr<std::shared_ptr<const Model>> LoadLocalDecoder(
    LocalEngine& local, const std::string& path, GeneratorOptions& generator,
    Precision precision = Precision::kExact);

// Returns the tokenizer and the chat templates of its folder. Errors: NOT_FOUND where it has no
// tokenizer.
absl::StatusOr<std::shared_ptr<const TextModel>> LoadLocalTexts(const std::string& path,
                                                                const Model& model);

}  // namespace reprise::cli
