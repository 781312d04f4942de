// reprise demo: sentences through a text model, twice, to see captures become replays.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/metrics_page.h"
#include "client/cli/sentences.h"
#include "client/cli/table.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

struct DemoFlags {
  ServerFlags server;
  std::string metrics = "localhost:8002";
  std::string model = "minilm";
  std::string sentences;
  bool as_texts = false;
};

using Embeddings = std::vector<std::vector<float>>;

// Sends all sentences one after another, shortest first (a short one after a long one would be
// served by the long one's recipe), and prints how each was served. Embeddings are in the order of
// `sentences`. INTERNAL if the second pass is not all replays: then the claim of this command
// would be false.
absl::StatusOr<Embeddings> RunPass(client::Client& client, const DemoFlags& flags, int pass,
                                   const std::vector<Sentence>& sentences) {
  const std::string& model = flags.model;
  ASSIGN_OR_RETURN(const auto metadata, client.ModelMetadata(model));
  std::vector<size_t> order(sentences.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sentences[a].ids.size() < sentences[b].ids.size();
  });
  Embeddings embeddings(sentences.size());
  Table table(
      {{"sentence"}, {"length", kRight}, {"bucket"}, {"served"}, {"latency ms", kRight}, {"text"}});
  std::string not_replayed;
  for (const size_t position : order) {
    const Sentence& sentence = sentences[position];
    std::vector<OwnedTensor> tensors = {TextTensor({sentence.text})};
    if (!flags.as_texts) {
      ASSIGN_OR_RETURN(tensors, SentenceInputs(metadata, sentence));
    }
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const auto result, client.Infer({.model = model, .inputs = Views(tensors)}));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    ASSIGN_OR_RETURN(embeddings[position], MeanPooled(result));
    const std::string served = result.Parameter("reprise.capture");
    // On a daemon that has served others a larger recipe may be ready: a replay too.
    if (served != "replayed" && served != "larger") not_replayed = sentence.label;
    const int64_t tokens = result.IntParameter("reprise.tokens", std::ssize(sentence.ids));
    table.AddRow({sentence.label, absl::StrCat(tokens), result.Parameter("reprise.bucket"), served,
                  Fixed(took.count(), 2), Shorten(sentence.text, 44)});
  }
  std::printf("%s", table.Text().c_str());
  if (pass > 1 && !not_replayed.empty()) {
    return absl::InternalError(
        absl::StrCat("sentence '", not_replayed, "' was not replayed in pass ", pass));
  }
  return embeddings;
}

void PrintSimilarities(const std::vector<Sentence>& sentences, const Embeddings& embeddings) {
  std::vector<Table::Column> columns = {{"", Table::Align::kLeft}};
  for (const Sentence& sentence : sentences) columns.push_back({sentence.label, kRight});
  Table table(columns);
  for (size_t i = 0; i < sentences.size(); ++i) {
    std::vector<std::string> row = {sentences[i].label};
    for (size_t j = 0; j < sentences.size(); ++j) {
      row.push_back(Fixed(Cosine(embeddings[i], embeddings[j]), 2));
    }
    table.AddRow(std::move(row));
  }
  std::printf("%s", table.Text().c_str());
}

// Prints the model's compile and replay counters that are not zero, as the metrics page names them.
absl::Status PrintCounters(const std::string& address, const std::string& model) {
  ASSIGN_OR_RETURN(const auto samples, ScrapeMetrics(address));
  const std::set<std::string> wanted = {"reprise_compiles_total", "reprise_replays_total"};
  Table table({{"counter"}, {"value", kRight}});
  for (const MetricSample& sample : samples) {
    const auto label = sample.labels.find("model");
    if (wanted.count(sample.name) == 0 || sample.value == 0) continue;
    if (label == sample.labels.end() || label->second != model) continue;
    std::string labels;
    for (const auto& [name, value] : sample.labels) {
      absl::StrAppend(&labels, labels.empty() ? "" : ",", name, "=\"", value, "\"");
    }
    table.AddRow({absl::StrCat(sample.name, "{", labels, "}"), Fixed(sample.value, 0)});
  }
  if (table.empty()) {
    return absl::NotFoundError(absl::StrCat("http://", address,
                                            "/metrics counts no compile and no "
                                            "replay of model '",
                                            model, "'"));
  }
  std::printf("%s", table.Text().c_str());
  return absl::OkStatus();
}

absl::Status RunDemo(const DemoFlags& flags) {
  std::ifstream file(flags.sentences);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read '", flags.sentences, "'"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSIGN_OR_RETURN(const auto sentences, ParseSentences(text));
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());

  std::printf("First pass, shortest first: a shape is captured when its first sentence comes.\n\n");
  ASSIGN_OR_RETURN(const Embeddings embeddings, RunPass(*client, flags, 1, sentences));
  std::printf("\nSecond pass: everything is a replay.\n\n");
  RETURN_IF_ERROR(RunPass(*client, flags, 2, sentences).status());
  std::printf("\nCosine similarity of the mean-pooled embeddings:\n\n");
  PrintSimilarities(sentences, embeddings);
  std::printf("\nFrom http://%s/metrics:\n\n", flags.metrics.c_str());
  return PrintCounters(flags.metrics, flags.model);
}

}  // namespace

void AddDemo(CLI::App& app, Action& action) {
  auto flags = std::make_shared<DemoFlags>();
  CLI::App* command =
      app.add_subcommand("demo", "Send sentences twice and show captures, replays, similarities");
  flags->server.Add(*command);
  AddOption(*command, "--sentences", flags->sentences, "FILE",
            "JSON with sentences and their token ids")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_flag("--texts", flags->as_texts,
                    "Send the sentences as texts, which the server tokenizes");
  AddOption(*command, "--model", flags->model, "NAME", "Name of the model")->capture_default_str();
  AddOption(*command, "--metrics", flags->metrics, "HOST:PORT", "Address of the metrics port")
      ->capture_default_str();
  command->callback([flags, &action] { action = [flags] { return RunDemo(*flags); }; });
}

}  // namespace reprise::cli
