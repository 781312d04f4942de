#include "server/config/flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "command_line/completion.h"
#include "command_line/manual.h"
#include "command_line/parse.h"
#include "command_line/program.h"
#include "command_line/settings.h"
#include "runtime/base/status_macros.h"
#include "server/config/flag_table.h"

namespace reprise {
namespace {

// Variables of flags begin with it.
constexpr char kVariables[] = "REPRISED_";

void AddFlags(CLI::App& app, FlagTarget& target) {
  const char* group = "";
  for (const Flag& flag : FlagRows()) {
    if (const char* begun = GroupFrom(flag.name); begun != nullptr) group = begun;
    CLI::Option* option = flag.add(app, flag, target);
    option->group(group);
    if (*flag.value != '\0') option->type_name(flag.value)->default_str(flag.default_value);
  }
}

// Returns the text that --man or --completion asks for; "" without either.
std::string AskedText(const CLI::App& app, const FlagTarget& target, absl::string_view version) {
  if (!target.manual && target.completion.empty()) return "";
  const command_line::Program program = command_line::Describe(app, std::string(version));
  return target.manual ? command_line::ManualPage(program)
                       : command_line::CompletionScript(program, target.completion);
}

absl::Status CheckPortsDiffer(const Options& options) {
  const std::pair<const char*, int> ports[] = {{"--grpc-port", options.grpc.port},
                                               {"--http-port", options.http.port},
                                               {"--metrics-port", options.metrics.port},
                                               {"--admin-port", options.admin.port},
                                               {"--admin-grpc-port", options.admin_grpc.port},
                                               {"--prefix-events", options.prefix_events.port}};
  for (const auto& [name, port] : ports) {
    for (const auto& [other_name, other_port] : ports) {
      if (name != other_name && port > 0 && port == other_port) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, " and ", other_name, " are both ", port));
      }
    }
  }
  return absl::OkStatus();
}

// Checks that all that TLS needs is there, and that nothing unused is asked for.
absl::Status CheckTls(const char* face, const TlsOptions& tls) {
  const auto flag = [face](const char* name) { return absl::StrCat("--", face, "-", name); };
  if (!tls.use) {
    for (const auto& [name, given] :
         {std::pair("use-ssl-mutual", tls.mutual),
          std::pair("server-cert", !tls.certificate.empty()),
          std::pair("server-key", !tls.key.empty()), std::pair("root-cert", !tls.root.empty())}) {
      if (given) {
        return absl::InvalidArgumentError(
            absl::StrCat(flag(name), " needs ", flag("use-ssl"), ": nothing is encrypted else"));
      }
    }
    return absl::OkStatus();
  }
  if (tls.certificate.empty() || tls.key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag("use-ssl"), " needs ", flag("server-cert"), " and ", flag("server-key")));
  }
  if (tls.mutual == tls.root.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag("use-ssl-mutual"), " and ", flag("root-cert"), " need each other"));
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const Options& options) {
  if (options.ranks == 1) {
    const bool is_pipeline = options.rank_parallelism == Parallelism::kPipeline;
    if (options.rank == 0 && options.rank_address.empty() && !is_pipeline) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(options.rank > 0 ? "--rank"
                                                   : is_pipeline    ? "--rank-parallelism"
                                                                    : "--rank-address",
                                                   " needs --ranks 2 or more"));
  }
  if (options.rank >= options.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("--rank ", options.rank, " is out of range [0, ",
                                                   options.ranks - 1, "] of --ranks ",
                                                   options.ranks));
  }
  if (options.rank_address.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ranks ", options.ranks, " needs --rank-address"));
  }
  if (options.device == DeviceKind::kReference || options.eager) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--ranks ", options.ranks, " and ", options.eager ? "--eager" : "--device reference",
        " exclude each other: the steps of ranks are recipes of CPUs"));
  }
  return absl::OkStatus();
}

absl::Status CheckMetricsFile(Options& options) {
  MetricsTriggers& triggers = options.metrics_triggers;
  const bool any = triggers.at_exit || triggers.at_capture || triggers.interval.count() > 0;
  if (any && options.metrics_file.empty()) {
    return absl::InvalidArgumentError("--metrics-file-on needs --metrics-file FILE");
  }
  if (!any) triggers.at_exit = true;
  if (options.metrics_file.empty()) return absl::OkStatus();
  const std::filesystem::path path = std::filesystem::absolute(options.metrics_file);
  const std::string folder = path.parent_path().string();
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--metrics-file ", options.metrics_file, ": '",
                                                   folder,
                                                   "' cannot be written: ", std::strerror(errno)));
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--metrics-file ", options.metrics_file, " is a folder"));
}

absl::Status CheckControl(const Options& options) {
  if (options.model_repositories.empty()) {
    return absl::InvalidArgumentError("--model-repository or --model is required");
  }
  if (options.load_models.empty() || options.model_control == ModelControl::kExplicit) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--load-model ", options.load_models[0],
                   " needs --model-control-mode explicit: other modes load every model"));
}

// Joins `--grpc-use-ssl true`, as other servers' users write it, to `--grpc-use-ssl=true`.
std::vector<std::string> JoinBooleans(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const CLI::Option* const option =
        absl::StartsWith(words[i], "--") ? app.get_option_no_throw(words[i]) : nullptr;
    if (option == nullptr || option->get_items_expected_max() != 0) continue;
    if (words[i + 1] != "true" && words[i + 1] != "false") continue;
    absl::StrAppend(&words[i], "=", words[i + 1]);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return words;
}

}  // namespace

std::vector<FlagInfo> FlagTable() {
  std::vector<FlagInfo> table;
  for (const Flag& flag : FlagRows()) {
    table.push_back({flag.name, flag.value, flag.default_value, flag.meaning});
  }
  return table;
}

absl::StatusOr<ParsedFlags> ParseFlags(int argc, const char* const* argv,
                                       absl::string_view version) {
  ParsedFlags parsed;
  FlagTarget target;
  CLI::App app("Serves ONNX models on CPUs from captured recipes", "reprised");
  AddFlags(app, target);
  const std::vector<std::string> words = JoinBooleans(app, argc, argv);
  std::vector<const char*> joined;
  joined.reserve(words.size());
  for (const std::string& word : words) joined.push_back(word.c_str());
  ASSIGN_OR_RETURN(const command_line::Settings settings,
                   command_line::Settings::Read(app, kVariables, static_cast<int>(joined.size()),
                                                joined.data()));
  ASSIGN_OR_RETURN(command_line::Parsed line, settings.Parse(app, std::string(version)));
  parsed.unknown_variables = settings.unknown();
  parsed.answer = std::move(line.answer);
  if (parsed.answer.empty()) parsed.answer = AskedText(app, target, version);
  if (target.print_config) parsed.answer = settings.Text(app);
  if (!parsed.answer.empty()) return parsed;
  parsed.options = target;
  for (std::string& model : target.models) {
    parsed.options.model_repositories.push_back(std::move(model));
  }
  if (absl::Status status = CheckPortsDiffer(parsed.options); !status.ok()) return status;
  if (absl::Status status = CheckControl(parsed.options); !status.ok()) return status;
  if (absl::Status status = CheckRanks(parsed.options); !status.ok()) return status;
  for (const auto& [face, tls] :
       {std::pair("grpc", &parsed.options.grpc_tls), std::pair("http", &parsed.options.http_tls),
        std::pair("metrics", &parsed.options.metrics_tls)}) {
    if (absl::Status status = CheckTls(face, *tls); !status.ok()) return status;
  }
  if (absl::Status status = CheckMetricsFile(parsed.options); !status.ok()) return status;
  return parsed;
}

}  // namespace reprise
