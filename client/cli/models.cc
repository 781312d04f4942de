// reprise models, load, unload, freeze, thaw, sleep, wake, metadata, config, ps: the models of a
// server, and their descriptions.

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/table.h"
#include "client/cli/timestamp.h"
#include "command_line/similar_names.h"
#include "command_line/text_width.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

struct ModelFlags {
  ServerFlags server;
  std::string model;
  std::string version;
  std::string config_file;
  bool all = false;
  bool json = false;
};

using Run = absl::Status (*)(const ModelFlags& flags);

CLI::App* AddModelCommand(CLI::App& app, Action& action, const char* name, const char* summary,
                          Run run, const std::shared_ptr<ModelFlags>& flags) {
  CLI::App* command = app.add_subcommand(name, summary);
  flags->server.Add(*command);
  AddJson(*command, flags->json);
  command->callback([flags, run, &action] { action = [flags, run] { return run(*flags); }; });
  return command;
}

void AddName(CLI::App& command, ModelFlags& flags) {
  command.add_option("model", flags.model, "Name of the model")->required();
}

void AddVersion(CLI::App& command, ModelFlags& flags) {
  command.add_option("--version", flags.version, "Version; the newest if not given");
}

absl::Status RunModels(const ModelFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const auto index, client->RepositoryIndex());
  if (flags.json) return PrintJson(index);
  Table table({{"model"}, {"version"}, {"state"}, {"reason"}});
  for (const auto& model : index.models()) {
    table.AddRow({model.name(), model.version(), model.state(), model.reason()});
  }
  std::printf("%s", table.empty() ? "no model\n" : table.Text().c_str());
  return absl::OkStatus();
}

// Prints the state of the model, after a change of it.
absl::Status PrintState(client::Client& client, const ModelFlags& flags, const char* what) {
  if (flags.json) {
    ASSIGN_OR_RETURN(auto index, client.RepositoryIndex());
    inference::RepositoryIndexResponse only;
    for (const auto& model : index.models()) {
      if (model.name() == flags.model) *only.add_models() = model;
    }
    return PrintJson(only);
  }
  std::printf("model '%s' is %s\n", flags.model.c_str(), what);
  return absl::OkStatus();
}

absl::Status RunLoad(const ModelFlags& flags) {
  std::string config;
  if (!flags.config_file.empty()) {
    std::ifstream file(flags.config_file);
    config.assign((std::istreambuf_iterator<char>(file)), {});
    if (config.empty()) {
      return absl::NotFoundError(
          absl::StrCat("'", flags.config_file, "' cannot be read, or is empty"));
    }
  }
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  RETURN_IF_ERROR(client->LoadModel(flags.model, config));
  return PrintState(*client, flags, "loaded");
}

absl::Status RunUnload(const ModelFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  RETURN_IF_ERROR(client->UnloadModel(flags.model));
  return PrintState(*client, flags, "unloaded");
}

absl::Status RunChange(const ModelFlags& flags, v1::ModelChange change) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const auto changed, client->ChangeModel(flags.model, flags.version, change));
  if (flags.json) return PrintJson(changed);
  for (const auto& model : changed.models()) {
    const bool sleeps = change == v1::MODEL_CHANGE_SLEEP || change == v1::MODEL_CHANGE_WAKE;
    std::printf("model '%s' version %s is %s%s\n", model.model().c_str(), model.version().c_str(),
                (sleeps ? model.asleep() : model.frozen()) ? "" : "not ",
                sleeps ? "asleep" : "frozen");
  }
  if (changed.models().empty()) std::printf("no model\n");
  return absl::OkStatus();
}

absl::Status RunFreeze(const ModelFlags& flags) {
  return RunChange(flags, v1::MODEL_CHANGE_FREEZE);
}

absl::Status RunThaw(const ModelFlags& flags) { return RunChange(flags, v1::MODEL_CHANGE_THAW); }

absl::Status RunSleep(const ModelFlags& flags) { return RunChange(flags, v1::MODEL_CHANGE_SLEEP); }

absl::Status RunWake(const ModelFlags& flags) { return RunChange(flags, v1::MODEL_CHANGE_WAKE); }

// Adds a command that changes one model, or all.
void AddChange(CLI::App& app, Action& action, const char* name, const char* summary, Run run) {
  auto flags = std::make_shared<ModelFlags>();
  CLI::App* command = AddModelCommand(app, action, name, summary, run, flags);
  CLI::Option* model = command->add_option("model", flags->model, "Name of the model");
  AddVersion(*command, *flags);
  command->add_flag("--all", flags->all, "All models that are ready")
      ->excludes(model)
      ->excludes("--version");
  command->callback([flags, run, &action] {
    if (flags->model.empty() && !flags->all) throw CLI::RequiredError("model or --all");
    action = [flags, run] { return run(*flags); };
  });
}

template <typename Tensors>
void AddTensors(const char* kind, const Tensors& tensors, Table& table) {
  std::vector<std::string> shapes, keys;
  for (const auto& tensor : tensors) {
    std::vector<std::string> dims;
    for (const int64_t dim : tensor.shape()) dims.push_back(dim < 0 ? "?" : absl::StrCat(dim));
    shapes.push_back(absl::StrJoin(dims, "x"));
    keys.push_back(absl::StrCat(command_line::PatternOf(tensor.name()), " ", tensor.datatype(), " ",
                                shapes.back()));
  }
  for (const command_line::SimilarGroup& group : command_line::GroupEqual(keys)) {
    const auto& first = tensors[static_cast<int>(group.first)];
    const std::string more =
        group.count > 1 ? absl::StrCat("and ", group.count - 1, " more of this kind") : "";
    table.AddRow({kind, first.name(), first.datatype(), shapes[group.first], more});
  }
}

absl::Status RunMetadata(const ModelFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  if (flags.model.empty()) {
    ASSIGN_OR_RETURN(const auto server, client->ServerMetadata());
    if (flags.json) return PrintJson(server);
    std::printf("%s %s\nextensions: %s\n", server.name().c_str(), server.version().c_str(),
                absl::StrJoin(server.extensions(), ", ").c_str());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto model, client->ModelMetadata(flags.model, flags.version));
  if (flags.json) return PrintJson(model);
  command_line::Print(absl::StrCat(model.name(), ", versions ",
                                   absl::StrJoin(model.versions(), ", "), ", platform ",
                                   model.platform(), "\n\n"));
  Table table({{"tensor"}, {"name"}, {"datatype"}, {"shape"}, {""}});
  AddTensors("input", model.inputs(), table);
  AddTensors("output", model.outputs(), table);
  std::printf("%s", table.Text().c_str());
  return absl::OkStatus();
}

absl::Status RunConfig(const ModelFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const auto config, client->ModelConfig(flags.model, flags.version));
  if (flags.json) return PrintJson(config.config());
  std::string text;
  google::protobuf::TextFormat::PrintToString(config.config(), &text);
  std::printf("%s", text.c_str());
  return absl::OkStatus();
}

absl::Status RunPs(const ModelFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(const auto stats, client->GetStats());
  if (flags.json) return PrintJson(stats);
  command_line::Print(
      absl::StrCat("reprised ", stats.server_version(), " on ", stats.device(), ", ",
                   stats.has_started() ? absl::StrCat("started ", Ago(stats.started()), ", ") : "",
                   Bytes(stats.resident_bytes()), " resident, ", stats.streams(), " streams\n\n"));
  Table table({{"model"},
               {"version"},
               {"state"},
               {"requests", kRight},
               {"queued", kRight},
               {"mean", kRight},
               {"recipes", kRight},
               {"parameters", kRight}});
  for (const auto& model : stats.models()) {
    const double mean =
        model.requests() == 0 ? 0 : model.request_seconds() / static_cast<double>(model.requests());
    table.AddRow({model.model(), model.version(), model.state(), Count(model.requests()),
                  Count(model.queue_depth()), model.requests() == 0 ? "-" : Seconds(mean),
                  Count(model.cache().recipes()), Bytes(model.parameter_bytes())});
  }
  std::printf("%s", table.empty() ? "no model\n" : table.Text().c_str());
  return absl::OkStatus();
}

}  // namespace

void AddModels(CLI::App& app, Action& action) {
  AddModelCommand(app, action, "models", "List the models of a server, with their states",
                  RunModels, std::make_shared<ModelFlags>());
}

void AddLoad(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ModelFlags>();
  CLI::App* command = AddModelCommand(
      app, action, "load", "Load a model, or load it again (--model-control-mode explicit)",
      RunLoad, flags);
  AddName(*command, *flags);
  AddOption(*command, "--config", flags->config_file, "FILE",
            "config.pbtxt to use in place of the model's own")
      ->check(CLI::ExistingFile);
}

void AddUnload(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ModelFlags>();
  AddName(*AddModelCommand(app, action, "unload", "Unload a model (--model-control-mode explicit)",
                           RunUnload, flags),
          *flags);
}

void AddFreeze(CLI::App& app, Action& action) {
  AddChange(app, action, "freeze",
            "Have nothing captured for requests of a model from now on, like reprised --frozen",
            RunFreeze);
}

void AddThaw(CLI::App& app, Action& action) {
  AddChange(app, action, "thaw", "Let recipes be captured for requests of a model again", RunThaw);
}

void AddSleep(CLI::App& app, Action& action) {
  AddChange(app, action, "sleep",
            "Take the weights of a model from memory until a request wants them", RunSleep);
}

void AddWake(CLI::App& app, Action& action) {
  AddChange(app, action, "wake", "Prepare the weights of a sleeping model again", RunWake);
}

void AddMetadata(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ModelFlags>();
  CLI::App* command = AddModelCommand(
      app, action, "metadata", "Show the inputs and outputs of a model, or describe the server",
      RunMetadata, flags);
  command->add_option("model", flags->model, "Name of the model; the server without one");
  AddVersion(*command, *flags);
}

void AddConfig(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ModelFlags>();
  CLI::App* command =
      AddModelCommand(app, action, "config", "Print the configuration that a model is served with",
                      RunConfig, flags);
  AddName(*command, *flags);
  AddVersion(*command, *flags);
}

void AddPs(CLI::App& app, Action& action) {
  AddModelCommand(app, action, "ps",
                  "Show the load of a server: its models, requests, queues, memory", RunPs,
                  std::make_shared<ModelFlags>());
}

}  // namespace reprise::cli
