// reprise: the command line. Exit codes: 0 success, 1 failure, 2 usage.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/text_commands.h"
#include "command_line/parse.h"
#include "runtime/base/memory_net.h"
#include "tools/command.h"
#include "tools/serve/commands.h"
#include "tools/tokenize.h"

namespace reprise::cli {
namespace {

struct CommandRow {
  void (*add)(CLI::App& app, Action& action);
  const char* examples;  // one a line
};

struct CommandGroup {
  const char* title;
  std::vector<CommandRow> rows;
};

void AddBenchWithProfile(CLI::App& app, Action& action) { AddBench(app, action, AddProfile); }

void AddOurCompletion(CLI::App& app, Action& action) {
  AddCompletion(app, action, REPRISE_VERSION);
}

void AddOurManual(CLI::App& app, Action& action) { AddMan(app, action, REPRISE_VERSION); }

// THE table of commands, as --help shows them.
std::vector<CommandGroup> CommandGroups() {
  return {
      {"Get and serve a model",
       {{AddPull,
         "reprise pull hf://sentence-transformers/all-MiniLM-L6-v2\n"
         "reprise pull s3://bucket/models/ranker --json"},
        {AddRun,
         "reprise run hf://sentence-transformers/all-MiniLM-L6-v2\n"
         "reprise run model.onnx --name mine -- --log-level debug"}}},
      {"Ask a model",
       {{AddInfer,
         "reprise infer minilm --length 40 --batch 2\n"
         "reprise infer minilm --inputs '{\"text\": [\"a text\"]}' --json"},
        {AddEmbed,
         "reprise embed minilm \"a text\" \"another\"\n"
         "reprise embed minilm < texts.txt"},
        {AddChat,
         "reprise chat models/smol/1/model.onnx\n"
         "reprise chat smol --server localhost:8001 --json-schema answer.json"},
        {AddRerank, "reprise rerank ranker --query \"which one\" < texts.txt"},
        {AddFeed,
         "reprise feed resnet photos --batch 16 --transforms \"Resize(256), CenterCrop(224), "
         "ToTensor\""},
        {AddBenchWithProfile,
         "reprise bench minilm --concurrency 8 --duration 5 --lengths lognormal:30,0.6,4,256\n"
         "reprise bench --profile model.onnx --bucket b1_s128"},
        {AddDemo, ""}}},
      {"Look at a server",
       {{AddPs, "reprise ps --server http://localhost:8000"},
        {AddHealth,
         "reprise health --wait-secs 60\n"
         "reprise health minilm"},
        {AddModels, "reprise models --json"},
        {AddMetadata, "reprise metadata minilm"},
        {AddConfig, "reprise config minilm > config.pbtxt"},
        {AddLoad, "reprise load minilm --config config.pbtxt"},
        {AddUnload, "reprise unload minilm"},
        {AddFreeze,
         "reprise freeze minilm\n"
         "reprise freeze --all"},
        {AddThaw, "reprise thaw --all"},
        {AddSleep, "reprise sleep minilm"},
        {AddWake, "reprise wake minilm"},
        {AddStats, "reprise stats minilm"},
        {AddExplain,
         "reprise explain minilm\n"
         "reprise explain --follow"},
        {AddReport, "reprise report minilm --out report.html"},
        {AddRecipes, "reprise recipes minilm"},
        {AddDump, "reprise dump --recipe 0123456789abcdef --graph"},
        {AddRecord, "reprise record minilm --seconds 60 --sample 0.1 --out requests.jsonl"},
        {AddWarmup,
         "reprise warmup minilm --all\n"
         "reprise warmup minilm --requests requests.jsonl\n"
         "reprise warmup detector --sizes batch=1,height=300,width=300"}}},
      {"Shapes and buckets",
       {{AddPlan,
         "reprise plan lengths.txt --svg plan.svg\n"
         "reprise plan --from localhost:8001 --model minilm"},
        {AddDynamicity,
         "reprise dynamicity\n"
         "reprise dynamicity --file shapes.csv"},
        {AddRecompiles,
         "reprise recompiles minilm\n"
         "reprise recompiles detector.onnx --sizes 20,20,30,30"},
        {AddCompile,
         "reprise compile models/minilm --buckets all --out recipes\n"
         "reprise compile model.onnx --out recipes --isa avx2"},
        {AddMerge, "reprise merge encoder.onnx head.onnx --map features:x --out both.onnx"},
        {AddRewrite, "reprise rewrite detector.onnx static.onnx --static"},
        {AddDiff,
         "reprise diff v1/model.onnx v2/model.onnx\n"
         "reprise diff 0123456789abcdef fedcba9876543210"}}},
      {"Look at files, without a server",
       {{AddCheck,
         "reprise check model.onnx\n"
         "reprise check --ops"},
        {AddGenerate, ""},
        {AddTokenize, "reprise tokenize models/minilm/1 \"a text\" --json"},
        {AddGraph,
         "reprise graph model.onnx --bucket b1_s128\n"
         "reprise graph model.onnx --bucket b1_s128 --without fuse_qkv"},
        {AddAudit, "reprise audit model.onnx --requests recorded"},
        {AddBisect, "reprise bisect model.onnx --inputs inputs.json"},
        {AddReplay, "reprise replay model.onnx --bucket b1_s128 --launch 3 --values"},
        {AddStore, ""}}},
      {"The command line itself",
       {{AddOurCompletion,
         "reprise completion bash > ~/.local/share/bash-completion/completions/reprise\n"
         "reprise completion zsh > \"${fpath[1]}/_reprise\"\n"
         "reprise completion fish > ~/.config/fish/completions/reprise.fish"},
        {AddOurManual, "reprise man > reprise.1\nreprise man infer | man -l -"}}},
  };
}

void AddCommands(CLI::App& app, Action& action) {
  for (const CommandGroup& group : CommandGroups()) {
    for (const CommandRow& row : group.rows) {
      row.add(app, action);
      CLI::App* command = app.get_subcommands([](const CLI::App*) { return true; }).back();
      command->group(group.title);
      if (*row.examples == '\0') continue;
      const std::string notes = command->get_footer();
      command->footer(absl::StrCat(notes, notes.empty() ? "" : "\n", "Examples:\n", row.examples));
    }
  }
}

int Main(int argc, char** argv) {
  // As reprised does: else Debian's Abseil looks for cycles among gRPC's locks at each of them.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app("Asks a Reprise inference server, or looks at models, files and lengths without one",
               "reprise");
  app.require_subcommand(1);
  Action action;
  AddCommands(app, action);
  const auto parsed = command_line::Parse(app, REPRISE_VERSION, argc, argv);
  const std::string called = command_line::CalledCommand(app);
  const std::string name = absl::StrCat("reprise", called.empty() ? "" : " ", called);
  if (!parsed.ok()) {
    std::fprintf(stderr, "%s: %s (see %s --help)\n", name.c_str(),
                 std::string(parsed.status().message()).c_str(), name.c_str());
    return 2;
  }
  if (!parsed->answer.empty()) {
    std::fputs(parsed->answer.c_str(), stdout);
    return 0;
  }
  const absl::Status status = WithinMemory([] { return "the command"; }, action);
  if (status.ok()) return 0;
  std::fflush(stdout);
  std::fprintf(
      stderr, "%s: %s: %s%s\n", name.c_str(), absl::StatusCodeToString(status.code()).c_str(),
      std::string(status.message()).c_str(),
      absl::IsUnauthenticated(status) ? "; $REPRISE_API_KEY is the key of this command" : "");
  return 1;
}

}  // namespace
}  // namespace reprise::cli

int main(int argc, char** argv) {
  int code = 1;
  const absl::Status ran = reprise::WithinMemory([] { return "reprise"; },
                                                 [&] {
                                                   code = reprise::cli::Main(argc, argv);
                                                   return absl::OkStatus();
                                                 });
  if (ran.ok()) return code;
  std::fprintf(stderr, "%s\n", std::string(ran.message()).c_str());
  return 1;
}
