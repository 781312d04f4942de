// ReadConversation: a chat as OpenAI's clients write it, as the context that a chat template reads.
//
// Contents that are lists of parts become one text, arguments of calls that are texts become the
// JSON that they hold.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/hub/text_model.h"

namespace simdjson::dom {
class object;
}

namespace reprise {

struct Conversation {
  // A JSON object: messages, tools, documents, add_generation_prompt, continue_final_message, and
  // the members of chat_template_kwargs; special tokens are the model's.
  std::string context;
  bool has_tools = false;
  bool has_nulls = false;  // a content is null, or absent next to calls
};

// `with_tools`: the members "tools" are told to the template. Errors: INVALID_ARGUMENT naming the
// member, and the message's place.
absl::StatusOr<Conversation> ReadConversation(const simdjson::dom::object& body, bool with_tools);

// Returns the same of `body` as text. Errors: INVALID_ARGUMENT also if it is no JSON object.
absl::StatusOr<Conversation> ReadConversation(const std::string& body, bool with_tools);

// Returns the context with the special tokens of `package`.
std::string WithSpecialTokens(const Conversation& conversation, const TextPackage& package);

// Returns the text that the template of `model` renders of it now. Clients write a content that
// is null next to calls of tools; where the template cannot take it, it is the empty text. Errors
// as of TextModel::Chat and ChatTemplate::Render.
absl::StatusOr<std::string> RenderConversation(const Conversation& conversation,
                                               const TextModel& model,
                                               const std::function<absl::Status()>& go_on);

}  // namespace reprise
