// The modules of a sentence transformer: modules.json and the folders that it names.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "server/hub/text_package.h"

namespace reprise {

// Reads modules.json of `folder`, and what it names, into `package`; does nothing where there is
// none. Errors: UNIMPLEMENTED for a module or a pooling that is not supported, INVALID_ARGUMENT for
// a damaged file and for sizes that contradict each other.
absl::Status ReadSentenceModules(const std::filesystem::path& folder, TextPackage& package);

}  // namespace reprise
