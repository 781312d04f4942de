#include "server/hub/chat_templates.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/hub/json_file.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kConfigFile[] = "tokenizer_config.json";
constexpr char kDefaultName[] = "default";

absl::Status AddTemplate(const std::string& file, const std::string& name, std::string text,
                         TextPackage& package) {
  const auto bytes = static_cast<int64_t>(text.size());
  if (bytes > kMostTemplateBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(file, ": a chat template has ", bytes,
                                                     " bytes, the limit is ", kMostTemplateBytes));
  }
  if (name == kDefaultName) {
    package.chat_template = std::move(text);
  } else {
    package.chat_templates[name] = std::move(text);
  }
  return absl::OkStatus();
}

// `value`: a text, or a list of {"name", "template"}.
absl::Status TakeTemplates(const std::string& file, const Json& value, TextPackage& package) {
  if (value.is_null()) return absl::OkStatus();
  if (value.is_string()) {
    return AddTemplate(file, kDefaultName, value.get<std::string>(), package);
  }
  if (!value.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": chat_template is neither a text nor a list of templates"));
  }
  for (const Json& one : value) {
    const auto text = one.is_object() ? one.find("template") : one.end();
    const std::string name = TextMember(one, "name", "");
    if (name.empty() || text == one.end() || !text->is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": chat_template has an entry without a name or a template"));
    }
    RETURN_IF_ERROR(AddTemplate(file, name, text->get<std::string>(), package));
  }
  return absl::OkStatus();
}

// Takes the files `NAME.jinja` of a folder, by name.
absl::Status TakeNamedFiles(const fs::path& folder, TextPackage& package) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    ASSIGN_OR_RETURN(std::optional<std::string> text, ReadFileIfThere(file, kMostTemplateBytes));
    if (!text.has_value()) continue;
    RETURN_IF_ERROR(
        AddTemplate(file.filename().string(), file.stem().string(), *std::move(text), package));
  }
  return absl::OkStatus();
}

// Returns the text of a special token: it is a text, or an object with its text as "content".
std::string TokenText(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  if (found == json.end()) return "";
  return found->is_string() ? found->get<std::string>() : TextMember(*found, "content", "");
}

}  // namespace

absl::Status ReadChatTemplates(const fs::path& folder, TextPackage& package) {
  ASSIGN_OR_RETURN(const Json config, ReadJsonIfThere(folder / kConfigFile));
  ASSIGN_OR_RETURN(const Json map, ReadJsonIfThere(folder / "special_tokens_map.json"));
  for (const auto& [name, token] :
       {std::pair("bos_token", &package.bos_token), std::pair("eos_token", &package.eos_token),
        std::pair("pad_token", &package.pad_token), std::pair("unk_token", &package.unk_token)}) {
    *token = TokenText(config, name);
    if (token->empty()) *token = TokenText(map, name);
  }
  const fs::path file = folder / "chat_template.jinja";
  ASSIGN_OR_RETURN(std::optional<std::string> text, ReadFileIfThere(file, kMostTemplateBytes));
  if (text.has_value()) {
    RETURN_IF_ERROR(AddTemplate(file.filename().string(), kDefaultName, *std::move(text), package));
    return TakeNamedFiles(folder / "additional_chat_templates", package);
  }
  ASSIGN_OR_RETURN(const Json alone, ReadJsonIfThere(folder / "chat_template.json"));
  if (alone.is_object() && alone.contains("chat_template")) {
    return TakeTemplates("chat_template.json", alone["chat_template"], package);
  }
  if (!config.is_object() || !config.contains("chat_template")) return absl::OkStatus();
  return TakeTemplates(kConfigFile, config["chat_template"], package);
}

}  // namespace reprise
