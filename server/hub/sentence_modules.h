// The modules of a sentence transformer: modules.json and the folders that it names, and
// config_sentence_transformers.json.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "server/hub/text_package.h"

namespace reprise {

// Reads modules.json of `folder`, and the files that it names, into `package`; without it, the
// settings of the transformer alone. Errors: UNIMPLEMENTED for a module, a pooling or a member that
// is not supported, INVALID_ARGUMENT for a damaged file and for sizes that contradict each other.
absl::Status ReadSentenceModules(const std::filesystem::path& folder, TextPackage& package);

// "torch.nn.modules.activation.Tanh". Errors: UNIMPLEMENTED naming `member` of `file`.
absl::StatusOr<Activation> ParseActivation(const std::string& name, const std::string& file,
                                           const char* member);

}  // namespace reprise
