// ChatTemplate: a conversation as one text, as the template of a model says.
//
// Templates are Jinja, rendered as transformers renders them: blocks are trimmed, values print as
// in Python, and `tojson`, `strftime_now`, `raise_exception` and `generation` blocks are known.
//
// Threads: Render may run on several threads at once.
// Limits:  a rendering takes a bounded number of steps, and no more memory than its input may.
//
//   ASSIGN_OR_RETURN(auto chat, ChatTemplate::Load(package.chat_template));
//   ASSIGN_OR_RETURN(std::string prompt,
//                    chat->Render(R"({"messages": [...], "add_generation_prompt": true})", now));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct reprise_chat;

namespace reprise {

class ChatTemplate {
 public:
  // Errors: INVALID_ARGUMENT naming the line of `source`.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Load(absl::string_view source);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // `context`: a JSON object: messages, tools, documents, add_generation_prompt, special tokens and
  // other values of a template; with continue_final_message the text ends with the content of the
  // last message. `now_s`: seconds since 1970. `go_on`: see EncodeOptions. Errors: INVALID_ARGUMENT
  // naming the line, also where the template itself refuses.
  absl::StatusOr<std::string> Render(absl::string_view context, int64_t now_s,
                                     const std::function<absl::Status()>& go_on = nullptr) const;

 private:
  explicit ChatTemplate(reprise_chat* chat) : chat_(chat) {}

  reprise_chat* const chat_;
};

}  // namespace reprise
