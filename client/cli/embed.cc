// reprise embed, reprise rerank: texts through a server's model, by its HTTP port.

#include <cstdio>
#include <iostream>

#include "client/cli/command.h"
#include "client/cli/http_json.h"
#include "client/cli/table.h"
#include "client/cli/text_commands.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

struct TextFlags {
  ServerFlags server;
  std::string model;
  std::string query;
  std::vector<std::string> texts;
  bool truncate = false;
  bool json = false;
  int64_t dimensions = 0;

  void Add(CLI::App& command, const char* what) {
    AddOption(command, "model", model, "MODEL", "Name of the model")->required();
    AddOption(command, "text", texts, "TEXT", what);
    command.footer("Without texts each line of the input is one.");
    server.Add(command);
    command.add_flag("--truncate", truncate, "Cut texts that are longer than the model takes");
    command.add_flag("--json", json, "Print the server's answer as it is");
  }
};

std::vector<std::string> TextsOf(const TextFlags& flags) {
  std::vector<std::string> texts = flags.texts;
  for (std::string line; flags.texts.empty() && std::getline(std::cin, line);) {
    texts.push_back(line);
  }
  return texts;
}

// Embeds one text a line: prints its vector, elements apart by blanks.
absl::Status RunEmbed(const TextFlags& flags) {
  Json body = {{"model", flags.model}, {"input", TextsOf(flags)}, {"truncate", flags.truncate}};
  if (flags.dimensions > 0) body["dimensions"] = flags.dimensions;
  ASSIGN_OR_RETURN(const HttpTarget server, flags.server.Http());
  ASSIGN_OR_RETURN(const Json answer, PostJson(server, "/v1/embeddings", body));
  if (flags.json) {
    std::printf("%s\n", answer.dump().c_str());
    return absl::OkStatus();
  }
  const auto data = answer.find("data");
  if (data == answer.end() || !data->is_array()) {
    return absl::InternalError("the server's answer has no \"data\"");
  }
  for (const Json& entry : *data) {
    if (!entry.contains("embedding") || !entry["embedding"].is_array()) {
      return absl::InternalError("the server's answer has an entry without \"embedding\"");
    }
    const char* space = "";
    for (const Json& value : entry["embedding"]) {
      std::printf("%s%.9g", space, value.is_number() ? value.get<double>() : 0.0);
      space = " ";
    }
    std::printf("\n");
  }
  return absl::OkStatus();
}

absl::Status RunRerank(const TextFlags& flags) {
  const std::vector<std::string> texts = TextsOf(flags);
  const Json body = {{"model", flags.model},
                     {"query", flags.query},
                     {"documents", texts},
                     {"truncate", flags.truncate}};
  ASSIGN_OR_RETURN(const HttpTarget server, flags.server.Http());
  ASSIGN_OR_RETURN(const Json answer, PostJson(server, "/v1/rerank", body));
  if (flags.json) {
    std::printf("%s\n", answer.dump().c_str());
    return absl::OkStatus();
  }
  Table table({{"score", kRight}, {"text"}});
  const Json none = Json::array();
  for (const Json& entry : answer.value("results", none)) {
    const auto index = entry.value("index", size_t{0});
    if (index >= texts.size()) return absl::InternalError("the answer has an index out of range");
    table.AddRow({Fixed(entry.value("relevance_score", 0.0), 6), Shorten(texts[index], 100)});
  }
  std::printf("%s", table.Text().c_str());
  return absl::OkStatus();
}

}  // namespace

void AddEmbed(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TextFlags>();
  CLI::App* command = app.add_subcommand("embed", "Print the vectors of texts, one a line");
  flags->Add(*command, "Texts");
  command
      ->add_option("--dimensions", flags->dimensions,
                   "Print only this many first elements; 0: "
                   "all")
      ->check(CLI::NonNegativeNumber);
  command->callback([flags, &action] { action = [flags] { return RunEmbed(*flags); }; });
}

void AddRerank(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TextFlags>();
  CLI::App* command =
      app.add_subcommand("rerank", "Print texts by their relevance to a query, the best first");
  flags->Add(*command, "Texts to rank");
  AddOption(*command, "--query", flags->query, "TEXT", "Query that the texts are ranked by")
      ->required();
  command->callback([flags, &action] { action = [flags] { return RunRerank(*flags); }; });
}

}  // namespace reprise::cli
