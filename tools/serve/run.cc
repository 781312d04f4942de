// reprise run: serves one model with a daemon of its own, and says how to ask it.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/http_json.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/model_url.h"
#include "tools/serve/commands.h"
#include "tools/serve/fetching.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kReadyLook(100);
constexpr int kUsualGrpcPort = 8001;

struct RunFlags {
  FetchingFlags fetching;
  std::string name;
  int http_port = 8000;
  int grpc_port = kUsualGrpcPort;
  std::vector<std::string> daemon_flags;
  bool json = false;
};

std::atomic<pid_t> child_pid{0};

void PassOn(int number) {
  if (const pid_t child = child_pid; child > 0) kill(child, number);
}

// Returns the daemon next to this program, else the one on $PATH.
std::string DaemonPath() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = self.parent_path() / "reprised";
  return !error && fs::exists(beside, error) ? beside.string() : "reprised";
}

std::string NameFor(const RunFlags& flags) {
  if (!flags.name.empty()) return flags.name;
  if (ModelUrl::IsUrl(flags.fetching.model)) {
    if (const auto url = ModelUrl::Parse(flags.fetching.model); url.ok()) return url->DefaultName();
  }
  std::error_code error;
  const fs::path path = fs::weakly_canonical(flags.fetching.model, error);
  return path.extension() == ".onnx" && path.stem() == "model" ? path.parent_path().filename()
                                                               : path.stem();
}

// How a task is asked, by its name in the server's list of models; NAME is the model's.
struct TaskCall {
  const char* task;
  const char* path;
  const char* arguments;
};
constexpr const char* kJpeg = "-H 'Content-Type: image/jpeg' --data-binary @picture.jpg";
constexpr TaskCall kChat = {
    "", "/v1/chat/completions",
    R"(-d '{"model": "NAME", "messages": [{"role": "user", "content": "Hello"}]}')"};
constexpr TaskCall kIds = {"", "/v2/models/NAME/generate",
                           R"(-d '{"input_ids": [1, 2, 3], "parameters": {"max_tokens": 16}}')"};
constexpr TaskCall kCalls[] = {
    {"generation", "/v1/completions",
     R"(-d '{"model": "NAME", "prompt": "Once upon a time", "max_tokens": 32}')"},
    {"transcription", "/v1/audio/transcriptions", "-F model=NAME -F file=@recording.wav"},
    {"embeddings", "/v1/embeddings", R"(-d '{"model": "NAME", "input": "a text"}')"},
    {"rerank", "/v1/rerank",
     R"(-d '{"model": "NAME", "query": "a question", "documents": ["a text", "another"]}')"},
    {"classification", "/v1/classify", R"(-d '{"model": "NAME", "input": "a text"}')"},
    {"token classification", "/models/NAME/predict", R"(-d '{"inputs": "a text"}')"},
    {"sparse embeddings", "/models/NAME/embed_sparse", R"(-d '{"inputs": "a text"}')"},
    {"token embeddings", "/models/NAME/embed_all", R"(-d '{"inputs": "a text"}')"},
    {"image classification", "/models/NAME/v1/vision/classify", kJpeg},
    {"object detection", "/models/NAME/v1/vision/detect", kJpeg},
    {"image embeddings", "/v1/embeddings",
     R"(-d '{"model": "NAME", "input": "'$(base64 -w0 picture.jpg)'"}')"},
};

// How a served model is asked.
struct AskedHow {
  std::string task;  // its name in the server's list of models; empty: tensors
  std::string call;  // a line of shell
};

// Returns a request that suits what the server says the model is for.
AskedHow CallFor(const std::string& name, const RunFlags& flags) {
  const absl::StatusOr<nlohmann::json> model = GetJson(
      {.address = absl::StrCat("localhost:", flags.http_port)}, absl::StrCat("/v1/models/", name));
  const std::string task = model.ok() ? model->value("task", "") : "";
  const TaskCall* call = std::find_if(std::begin(kCalls), std::end(kCalls),
                                      [&](const TaskCall& one) { return one.task == task; });
  if (call == std::end(kCalls)) {
    const std::string server = flags.grpc_port == kUsualGrpcPort
                                   ? ""
                                   : absl::StrCat(" --server localhost:", flags.grpc_port);
    return {.task = task, .call = absl::StrCat("reprise infer ", name, server)};
  }
  if (task == "generation" && model->value("chats", false)) call = &kChat;
  if (task == "generation" && !model->value("texts", false)) call = &kIds;
  return {.task = task,
          .call = absl::StrReplaceAll(
              absl::StrCat("curl localhost:", flags.http_port, call->path, " ", call->arguments),
              {{"NAME", name}})};
}

absl::Status TellServed(const std::string& name, const std::string& path, const RunFlags& flags) {
  const AskedHow how = CallFor(name, flags);
  const std::string url = absl::StrCat("http://localhost:", flags.http_port);
  const std::string grpc = absl::StrCat("localhost:", flags.grpc_port);
  if (flags.json) {
    return PrintJsonLine({{"model", name},
                          {"path", path},
                          {"url", url},
                          {"grpc", grpc},
                          {"task", how.task},
                          {"call", how.call}});
  }
  std::printf("%s is served at %s (gRPC %s). Ask it:\n  %s\n", name.c_str(), url.c_str(),
              grpc.c_str(), how.call.c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::StatusOr<pid_t> StartDaemon(const RunFlags& flags, const std::string& model) {
  std::vector<std::string> words = {DaemonPath(),
                                    "--model",
                                    model,
                                    "--http-port",
                                    absl::StrCat(flags.http_port),
                                    "--grpc-port",
                                    absl::StrCat(flags.grpc_port)};
  // Nothing else is served: without the model there is nothing to wait for.
  if (std::none_of(flags.daemon_flags.begin(), flags.daemon_flags.end(),
                   [](const auto& flag) { return absl::StartsWith(flag, "--exit-on-error"); })) {
    words.insert(words.end(), {"--exit-on-error", "true"});
  }
  words.insert(words.end(), flags.daemon_flags.begin(), flags.daemon_flags.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return absl::ResourceExhaustedError("the system has no process for reprised");
  if (child == 0) {
    execvp(arguments[0], arguments.data());
    std::fprintf(stderr, "reprise run: %s cannot be started\n", arguments[0]);
    _exit(127);
  }
  return child;
}

// Waits until the daemon answers that it is ready, or has ended. True: it is ready.
bool WaitUntilReady(const RunFlags& flags, pid_t child) {
  const HttpTarget target = {.address = absl::StrCat("localhost:", flags.http_port)};
  while (true) {
    siginfo_t ended = {};
    if (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == child) {
      return false;
    }
    if (GetJson(target, "/v2/health/ready").ok()) return true;
    std::this_thread::sleep_for(kReadyLook);
  }
}

absl::Status RunModel(const RunFlags& flags) {
  std::string path = flags.fetching.model;
  if (ModelUrl::IsUrl(path)) {
    ASSIGN_OR_RETURN(const FetchedModel model, flags.fetching.Fetch());
    path = model.path;
  }
  const std::string name = NameFor(flags);
  ASSIGN_OR_RETURN(const pid_t child, StartDaemon(flags, absl::StrCat(name, "=", path)));
  child_pid = child;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) signal(number, PassOn);
  if (WaitUntilReady(flags, child)) RETURN_IF_ERROR(TellServed(name, path, flags));
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("reprised ended with ",
                                         WIFEXITED(state) ? "exit code " : "signal ",
                                         WIFEXITED(state) ? WEXITSTATUS(state) : WTERMSIG(state)));
}

}  // namespace

void AddRun(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      app.add_subcommand("run", "Serve one model with a daemon of its own, and say how to ask it");
  flags->fetching.Add(*command, "A name as of pull, or a folder or file of this machine");
  AddOption(*command, "flags", flags->daemon_flags, "FLAG", "Flags of reprised, after --");
  AddOption(*command, "--name", flags->name, "NAME",
            "Name of the model; made from its place if not given");
  AddOption(*command, "--http-port", flags->http_port, "PORT", "The daemon's HTTP port")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  AddOption(*command, "--grpc-port", flags->grpc_port, "PORT", "The daemon's gRPC port")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunModel(*flags); }; });
}

}  // namespace reprise::cli
