#include "server/chat/conversation.h"

#include <simdjson.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/json/json_writer.h"

namespace reprise {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

std::string JsonOf(const element& value) { return std::string(simdjson::minify(value)); }

absl::Status Refuse(size_t place, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("messages[", place, "]", why));
}

// Returns the parts of a content as one text.
absl::StatusOr<std::string> JoinParts(const array& parts, size_t place) {
  std::string text;
  bool any = false;
  for (const element part : parts) {
    std::string_view type, more;
    if (part["type"].get(type) != simdjson::SUCCESS) {
      return Refuse(place, ".content has a part without a type");
    }
    const char* member = type == "refusal" ? "refusal" : "text";
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal") {
      return Refuse(place, absl::StrCat(".content has a part of type \"", std::string(type),
                                        "\", and the model reads text"));
    }
    if (part[member].get(more) != simdjson::SUCCESS) {
      return Refuse(place, absl::StrCat(".content has a part without a ", member));
    }
    if (std::exchange(any, true)) text += '\n';
    text += more;
  }
  return text;
}

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

void Write(const element& value, JsonWriter& json) {
  json.Raw([&](std::string& text) { text += JsonOf(value); });
}

// Writes a call with its arguments as the JSON that they are.
void WriteCall(const element& call, JsonWriter& json) {
  object members;
  if (call.get(members) != simdjson::SUCCESS) return Write(call, json);
  json.Object([&] {
    for (const auto& [key, value] : members) {
      json.Key(View(key));
      object function;
      std::string_view written;
      simdjson::dom::parser parser;
      element parsed = value;
      if (key == "function" && value.get(function) == simdjson::SUCCESS) {
        WriteCall(value, json);
        continue;
      }
      if (key == "arguments" && value.get(written) == simdjson::SUCCESS) {
        const simdjson::padded_string padded(written.empty() ? std::string_view("{}") : written);
        if (parser.parse(padded).get(parsed) != simdjson::SUCCESS || !parsed.is_object()) {
          parsed = value;
        }
      }
      Write(parsed, json);
    }
  });
}

absl::Status WriteMember(std::string_view key, const element& value, size_t place,
                         JsonWriter& json) {
  array list;
  const bool is_list = value.get(list) == simdjson::SUCCESS;
  if (key == "content" && is_list) {
    ASSIGN_OR_RETURN(const std::string joined, JoinParts(list, place));
    json.Member(View(key), joined);
  } else if (key == "content" && !value.is_string() && !value.is_null()) {
    return Refuse(place, ".content is neither a text nor a list of parts");
  } else if (key == "tool_calls" && is_list) {
    if (list.size() == 0) return absl::OkStatus();
    json.Array(View(key), [&] {
      for (const element call : list) WriteCall(call, json);
    });
  } else if (!value.is_null() || key == "content") {
    // Clients write members that they do not set as null.
    json.Key(View(key));
    Write(value, json);
  }
  return absl::OkStatus();
}

absl::Status WriteMessage(const element& message, size_t place, JsonWriter& json) {
  object members;
  std::string_view role;
  if (message.get(members) != simdjson::SUCCESS) return Refuse(place, " must be an object");
  if (members["role"].get(role) != simdjson::SUCCESS) return Refuse(place, " has no role");
  return json.Object([&]() -> absl::Status {
    for (const auto& [key, value] : members) RETURN_IF_ERROR(WriteMember(key, value, place, json));
    return absl::OkStatus();
  });
}

// `has_nulls`: set where a content is null, or absent next to calls.
absl::Status WriteMessages(const object& body, bool& has_nulls, JsonWriter& json) {
  array messages;
  if (body["messages"].get(messages) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"messages\" is missing, or no list");
  }
  if (messages.size() == 0) return absl::InvalidArgumentError("\"messages\" is an empty list");
  return json.Array("messages", [&]() -> absl::Status {
    size_t place = 0;
    for (const element message : messages) {
      RETURN_IF_ERROR(WriteMessage(message, place++, json));
      element content, calls;
      const bool has_content = message["content"].get(content) == simdjson::SUCCESS;
      const bool has_calls = message["tool_calls"].get(calls) == simdjson::SUCCESS;
      has_nulls = has_nulls || (has_content ? content.is_null() : has_calls);
    }
    return absl::OkStatus();
  });
}

// Returns the member `name` as JSON where it is a list with elements; "null" where it is absent.
absl::StatusOr<std::string> ListJson(const object& body, const char* name) {
  element value;
  array list;
  if (body[name].get(value) != simdjson::SUCCESS || value.is_null()) return "null";
  if (value.get(list) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a list"));
  }
  return list.size() == 0 ? "null" : JsonOf(value);
}

absl::StatusOr<bool> FlagOf(const object& body, const char* name, bool fallback) {
  element value;
  if (body[name].get(value) != simdjson::SUCCESS || value.is_null()) return fallback;
  bool flag = false;
  if (value.get(flag) == simdjson::SUCCESS) return flag;
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is neither true nor false"));
}

}  // namespace

absl::StatusOr<Conversation> ReadConversation(const object& body, bool with_tools) {
  Conversation made;
  JsonWriter json;
  RETURN_IF_ERROR(json.Object([&]() -> absl::Status {
    RETURN_IF_ERROR(WriteMessages(body, made.has_nulls, json));
    ASSIGN_OR_RETURN(const std::string tools, ListJson(body, "tools"));
    ASSIGN_OR_RETURN(const std::string documents, ListJson(body, "documents"));
    ASSIGN_OR_RETURN(const bool go_on, FlagOf(body, "continue_final_message", false));
    ASSIGN_OR_RETURN(const bool prompt, FlagOf(body, "add_generation_prompt", !go_on));
    if (prompt && go_on) {
      return absl::InvalidArgumentError(
          "\"add_generation_prompt\" and \"continue_final_message\" exclude each other");
    }
    made.has_tools = with_tools && tools != "null";
    json.Member("tools", RawJson{made.has_tools ? absl::string_view(tools) : "null"});
    json.Member("documents", RawJson{documents});
    json.Member("add_generation_prompt", prompt);
    json.Member("continue_final_message", go_on);
    element more;
    if (body["chat_template_kwargs"].get(more) != simdjson::SUCCESS || more.is_null()) {
      return absl::OkStatus();
    }
    object members;
    if (more.get(members) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError("\"chat_template_kwargs\" must be an object");
    }
    for (const auto& [key, value] : members) {
      json.Key(View(key));
      Write(value, json);
    }
    return absl::OkStatus();
  }));
  made.context = json.Take();
  return made;
}

absl::StatusOr<Conversation> ReadConversation(const std::string& body, bool with_tools) {
  simdjson::dom::parser parser;
  object members;
  const simdjson::padded_string padded(body);
  if (parser.parse(padded).get(members) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("the conversation must be a JSON object");
  }
  return ReadConversation(members, with_tools);
}

std::string WithSpecialTokens(const Conversation& conversation, const TextPackage& package) {
  std::string context = "{";
  for (const auto& [name, token] :
       {std::pair("bos_token", &package.bos_token), std::pair("eos_token", &package.eos_token),
        std::pair("pad_token", &package.pad_token), std::pair("unk_token", &package.unk_token)}) {
    if (token->empty()) continue;
    absl::StrAppend(&context, "\"", name, "\":", JsonText(*token), ",");
  }
  return context + conversation.context.substr(1);
}

absl::StatusOr<std::string> RenderConversation(const Conversation& conversation,
                                               const TextModel& model,
                                               const std::function<absl::Status()>& go_on) {
  ASSIGN_OR_RETURN(const ChatTemplate* chat, model.Chat(conversation.has_tools));
  const std::string context = WithSpecialTokens(conversation, model.package());
  const int64_t now_s = std::time(nullptr);
  absl::StatusOr<std::string> text = chat->Render(context, now_s, go_on);
  if (!absl::IsInvalidArgument(text.status()) || !conversation.has_nulls) return text;
  auto json = nlohmann::ordered_json::parse(context, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return text;
  for (auto& message : json["messages"]) {
    const auto content = message.find("content");
    const bool is_null =
        content != message.end() ? content->is_null() : message.contains("tool_calls");
    if (is_null) message["content"] = "";
  }
  absl::StatusOr<std::string> without = chat->Render(json.dump(), now_s, go_on);
  // The first error is of the conversation as the client wrote it.
  return without.ok() ? without : text;
}

}  // namespace reprise
