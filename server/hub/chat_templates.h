// ReadChatTemplates: how a folder writes a conversation as one text.
//
// Looked for in this order, the first that is there counts: `chat_template.jinja` with the named
// ones of `additional_chat_templates/NAME.jinja`, `chat_template.json`, and the member
// `chat_template` of tokenizer_config.json, a text or a list of {name, template}.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "server/hub/text_package.h"

namespace reprise {

// Sets the templates and special tokens of `package`. Errors: INVALID_ARGUMENT naming the file and
// the member that is no template, RESOURCE_EXHAUSTED for a template of more than
// kMostTemplateBytes.
absl::Status ReadChatTemplates(const std::filesystem::path& folder, TextPackage& package);

inline constexpr int64_t kMostTemplateBytes = int64_t{1} << 20;

}  // namespace reprise
