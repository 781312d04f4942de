// A GGUF file in the place of the files of a model's folder: its tokenizer, chat template, pooling
// and the ids that end an answer.
//
// Errors name the file and the member.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "server/hub/generation_files.h"
#include "server/hub/text_package.h"

namespace reprise {

// Reads the package; a file without a tokenizer is a package without one.
absl::StatusOr<TextPackage> ReadGgufPackage(const std::filesystem::path& file);

// Reads the facts; a file that cannot be read says nothing.
GenerationFacts ReadGgufGeneration(const std::filesystem::path& file);

}  // namespace reprise
