#include "server/chat/tool_forms.h"

#include "absl/strings/match.h"

namespace reprise {
namespace {

// THE table of families; the first whose mark is in a template counts.
const std::vector<ToolForm>& Forms() {
  static const auto& forms = *new std::vector<ToolForm>{
      {.name = "deepseek",
       .mark = "<｜tool▁calls▁begin｜>",
       .begins = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"},
       .around = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
                  "<｜tool▁calls▁end｜>", "```"},
       .named = true,
       .separators = {"<｜tool▁sep｜>", "```json"}},
      {.name = "mistral",
       .mark = "[TOOL_CALLS]",
       .begins = {"[TOOL_CALLS]"},
       .around = {"[TOOL_CALLS]"},
       .named = true,
       .separators = {"[ARGS]"},
       .id_mark = "[CALL_ID]",
       .short_ids = true},
      // The coders of Qwen 3, and Qwen from 3.5 on: arguments are tags of their own.
      {.name = "qwen3-coder",
       .mark = "<function=",
       .begins = {"<tool_call>", "<function="},
       .around = {"<tool_call>", "</tool_call>", "</function>"},
       .tagged = true},
      // Qwen, Hermes, SmolLM: an object, or a list of them, between two tags.
      {.name = "hermes",
       .mark = "<tool_call>",
       .begins = {"<tool_call>"},
       .around = {"<tool_call>", "</tool_call>"}},
      {.name = "llama3",
       .mark = "<|python_tag|>",
       .begins = {"<|python_tag|>"},
       .around = {"<|python_tag|>", "<|eom_id|>", "<|eot_id|>"},
       .plain = true},
      {.name = "granite",
       .mark = "<|tool_call|>",
       .begins = {"<|tool_call|>"},
       .around = {"<|tool_call|>"}},
      {.name = "plain",
       .mark = "",
       .begins = {"<tool_call>"},
       .around = {"<tool_call>", "</tool_call>"},
       .plain = true},
  };
  return forms;
}

}  // namespace

const ToolForm& ToolFormOf(absl::string_view chat_template) {
  for (const ToolForm& form : Forms()) {
    if (absl::StrContains(chat_template, form.mark)) return form;
  }
  return Forms().back();
}

const ToolForm& ToolFormOf(const TextPackage& package) {
  const auto named = package.chat_templates.find("tool_use");
  return ToolFormOf(absl::string_view(named == package.chat_templates.end() ? package.chat_template
                                                                            : named->second));
}

const ToolForm& ForcedToolForm() { return Forms().back(); }

}  // namespace reprise
