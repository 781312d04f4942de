// reprise generate: tokens of a decoder, made in this process.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/generate/generator.h"
#include "server/chat/answer_text.h"
#include "tools/command.h"
#include "tools/files/array_file.h"
#include "tools/local_decoder.h"
#include "tools/local_engine.h"

namespace reprise::cli {
namespace {

struct GenerateOptions {
  std::string path;
  std::vector<std::string> prompts;   // ids, separated by commas
  std::vector<std::string> texts;     // prompts that are texts
  std::vector<std::string> features;  // files of numbers for an encoder that takes no ids
  std::vector<int64_t> decoder_ids;   // those before the first new one; empty: the model's own
  SamplingOptions sampling;
  BeamOptions beams;
  std::vector<int64_t> eos_ids;
  std::string cache_dtype = "f32";
  std::string precision = "exact";
  int64_t context = 0;
  int64_t memory_mb = 1024;
  int64_t step_tokens = 512;
  int threads = 1;
  bool speculate = true;
  bool speed = false;
  bool json = false;
};

struct Answer {
  std::vector<int64_t> ids;
  std::vector<float> logprobs;
  std::string finish;
  absl::Status status;
  std::optional<AnswerText> text;  // where the prompt was one
};

absl::StatusOr<std::vector<int64_t>> IdsOf(const std::string& text) {
  std::vector<int64_t> ids;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t id = 0;
    if (!absl::SimpleAtoi(part, &id)) {
      return absl::InvalidArgumentError(absl::StrCat("'", std::string(part), "' is not an id"));
    }
    ids.push_back(id);
  }
  return ids;
}

void PrintAnswers(std::vector<std::vector<Answer>>& answers) {
  for (size_t prompt = 0; prompt < answers.size(); ++prompt) {
    for (Answer& answer : answers[prompt]) {
      const std::string told = answer.text.has_value() ? answer.text->Take(/*ended=*/true)
                                                       : absl::StrJoin(answer.ids, ",");
      std::printf("%zu %s %s\n", prompt, answer.finish.c_str(),
                  answer.status.ok() ? told.c_str() : std::string(answer.status.message()).c_str());
      if (answer.logprobs.empty()) continue;
      std::string texts;
      for (const float logprob : answer.logprobs) {
        absl::StrAppend(&texts, texts.empty() ? "" : ",", FormatText("%.9g", logprob));
      }
      std::printf("  %s\n", texts.c_str());
    }
  }
}

nlohmann::ordered_json JsonOfAnswers(std::vector<std::vector<Answer>>& answers) {
  auto list = nlohmann::ordered_json::array();
  for (size_t prompt = 0; prompt < answers.size(); ++prompt) {
    for (Answer& answer : answers[prompt]) {
      nlohmann::ordered_json& one = list.emplace_back();
      one = {{"prompt", prompt}, {"finish", answer.finish}, {"ids", answer.ids}};
      if (answer.text.has_value()) one["text"] = answer.text->Take(/*ended=*/true);
      if (!answer.logprobs.empty()) one["logprobs"] = answer.logprobs;
      if (!answer.status.ok()) one["error"] = std::string(answer.status.message());
    }
  }
  return list;
}

double MedianMs(std::vector<int64_t> ns) {
  if (ns.empty()) return 0.0;
  std::nth_element(ns.begin(), ns.begin() + ns.size() / 2, ns.end());
  return static_cast<double>(ns[ns.size() / 2]) * 1e-6;
}

nlohmann::ordered_json JsonOfSpeed(const GeneratorStats& stats, const std::vector<int64_t>& first,
                                   const std::vector<int64_t>& next, int64_t ns) {
  return {{"prompt_tokens", stats.prompt_tokens},
          {"new_tokens", stats.generated_tokens},
          {"seconds", static_cast<double>(ns) * 1e-9},
          {"first_token_ms", MedianMs(first)},
          {"next_token_ms", MedianMs(next)},
          {"steps", stats.steps},
          {"preempted", stats.set_backs},
          {"drafts_right", stats.drafts_right},
          {"drafts_wrong", stats.drafts_wrong}};
}

void PrintSpeed(const GeneratorStats& stats, const std::vector<int64_t>& first,
                const std::vector<int64_t>& next, int64_t ns) {
  std::printf(
      "%lld prompt tokens, %lld new ones in %.1f ms: %.1f new tokens a second; first token "
      "%.2f ms, each after it %.3f ms (medians); %lld steps, %lld preempted, "
      "%lld of %lld drafted tokens right\n",
      static_cast<long long>(stats.prompt_tokens), static_cast<long long>(stats.generated_tokens),
      static_cast<double>(ns) * 1e-6,
      static_cast<double>(stats.generated_tokens) * 1e9 / static_cast<double>(ns), MedianMs(first),
      MedianMs(next), static_cast<long long>(stats.steps), static_cast<long long>(stats.set_backs),
      static_cast<long long>(stats.drafts_right),
      static_cast<long long>(stats.drafts_right) + static_cast<long long>(stats.drafts_wrong));
}

// Returns the prompts as requests, first the ones given as ids.
absl::StatusOr<std::vector<GenerationRequest>> PromptsOf(const GenerateOptions& options,
                                                         const TextModel* texts) {
  std::vector<GenerationRequest> prompts;
  for (const std::string& text : options.prompts) {
    ASSIGN_OR_RETURN(prompts.emplace_back().ids, IdsOf(text));
  }
  for (const std::string& text : options.texts) {
    ASSIGN_OR_RETURN(const TextTokens tokens,
                     texts->tokenizer().Encode(text, std::nullopt, {.max_bytes = 0}));
    prompts.emplace_back().ids.assign(tokens.ids.begin(), tokens.ids.end());
  }
  for (const std::string& path : options.features) {
    ASSIGN_OR_RETURN(std::vector<ArrayFile> arrays, ReadArrays(path));
    if (arrays.size() != 1 || arrays[0].floats.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' is not one array of float32, row by row"));
    }
    GenerationRequest& prompt = prompts.emplace_back();
    prompt.numbers_shape = std::move(arrays[0].shape);
    prompt.numbers = std::move(arrays[0].floats);
  }
  if (prompts.empty()) {
    return absl::InvalidArgumentError("there is no prompt: --ids, --text or --features gives one");
  }
  for (GenerationRequest& prompt : prompts) prompt.decoder_ids = options.decoder_ids;
  return prompts;
}

absl::Status Generate(const GenerateOptions& options) {
  LocalEngine local(kEveryIsa, options.threads);
  std::vector<int64_t> first, next, beside;
  GeneratorOptions wanted = {.page_bytes = options.memory_mb << 20,
                             .cache_dtype = *ops::ParseCacheDType(options.cache_dtype),
                             .context = options.context,
                             .step_tokens = options.step_tokens,
                             .eos_ids = options.eos_ids,
                             .speculate = options.speculate,
                             .max_threads = options.threads,
                             .events = {.on_first_token = [&](int64_t ns) { first.push_back(ns); },
                                        .on_token = [&](int64_t ns) { next.push_back(ns); }}};
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const Model> model,
      LoadLocalDecoder(local, options.path, wanted, *ParsePrecision(options.precision)));
  std::shared_ptr<const TextModel> texts;
  if (!options.texts.empty()) {
    ASSIGN_OR_RETURN(texts, LoadLocalTexts(options.path, *model));
  }
  ASSIGN_OR_RETURN(std::vector<GenerationRequest> prompts, PromptsOf(options, texts.get()));
  if (!options.decoder_ids.empty()) wanted.rules.start = options.decoder_ids;
  const int64_t begin = local.clock.NowNs();
  ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                   Generator::Create(local.engine, model, std::move(wanted)));
  if (options.speed && !options.json) {
    std::printf("%s, made in %.1f ms\n", generator->Describe().c_str(),
                static_cast<double>(local.clock.NowNs() - begin) * 1e-6);
  }
  std::vector<std::vector<Answer>> answers(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    answers[i].resize(static_cast<size_t>(std::max<int64_t>(options.sampling.n, 1)));
    // The texts come after the prompts of ids.
    const bool is_text =
        i >= options.prompts.size() && i < options.prompts.size() + options.texts.size();
    for (Answer& answer : answers[i]) {
      if (is_text) answer.text.emplace(texts, TextWishes(), 0);
    }
    const auto on_event = [&answers, i](const GenerationEvent& event) {
      Answer& answer = answers[i][static_cast<size_t>(event.answer)];
      const size_t stop = event.finish == Ending::kStop ? 1 : 0;
      for (size_t k = 0; answer.text.has_value() && k + stop < event.tokens.size(); ++k) {
        answer.text->Push(event.tokens[k].id);
      }
      for (const SampledToken& token : event.tokens) {
        answer.ids.push_back(token.id);
        if (token.logprob != 0) answer.logprobs.push_back(token.logprob);
      }
      answer.status = event.status;
      answer.finish = std::string(EndingName(event.finish));
    };
    prompts[i].sampling = options.sampling;
    prompts[i].beams = options.beams;
    prompts[i].on_event = on_event;
    RETURN_IF_ERROR(generator->Submit(std::move(prompts[i])).status());
  }
  const int64_t start = local.clock.NowNs();
  // Steps that compute prompts as well say nothing about the others.
  size_t told = 0;
  for (int64_t prompt_tokens = 0; generator->Step();) {
    const int64_t before = std::exchange(prompt_tokens, generator->Stats().prompt_tokens);
    if (prompt_tokens != before) {
      beside.insert(beside.end(), next.begin() + static_cast<int64_t>(told), next.end());
      next.resize(told);
    }
    told = next.size();
  }
  if (next.empty()) next = std::move(beside);
  const int64_t ns = local.clock.NowNs() - start;
  if (options.json) {
    nlohmann::ordered_json json = {{"model", options.path}, {"answers", JsonOfAnswers(answers)}};
    if (options.speed) json["speed"] = JsonOfSpeed(generator->Stats(), first, next, ns);
    return PrintJson(json);
  }
  PrintAnswers(answers);
  if (options.speed) PrintSpeed(generator->Stats(), first, next, ns);
  return absl::OkStatus();
}

}  // namespace

void AddGenerate(CLI::App& app, Action& action) {
  const auto options = std::make_shared<GenerateOptions>();
  options->sampling.temperature = 0;
  CLI::App* command =
      app.add_subcommand("generate", "Generate tokens with a decoder's file; no server");
  command->footer(
      "Prompts are lists of token ids, or texts by the tokenizer of the model's folder. All of "
      "them\n"
      "are computed side by side. A line of the answer holds the number of its prompt, why it\n"
      "ended, and its ids or its text. An encoder_model.onnx "
      "makes\n"
      "them with the decoder's files next to it.");
  AddOption(*command, "model", options->path, "MODEL.onnx",
            "Path of a model.onnx or a .gguf, or of its folder")
      ->required();
  AddOption(*command, "--ids", options->prompts, "ID,ID,...", "Prompt as token ids")
      ->allow_extra_args(false);
  AddOption(*command, "--text", options->texts, "TEXT", "Prompt as a text")
      ->allow_extra_args(false);
  AddOption(*command, "--features", options->features, "FILE.npy",
            "Prompt for an encoder that takes no ids: float32 [1, ...]")
      ->allow_extra_args(false);
  AddOption(*command, "--decoder-ids", options->decoder_ids, "ID,ID,...",
            "First ids of the decoder of an encoder-decoder; the ids in its files if not "
            "given")
      ->delimiter(',')
      ->allow_extra_args(false);
  SamplingOptions& sampling = options->sampling;
  command->add_option("--max-tokens", sampling.max_tokens, "Most new tokens of an answer")
      ->capture_default_str();
  command
      ->add_option("--temperature", sampling.temperature,
                   "Sampling temperature; 0 takes the "
                   "best token")
      ->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "Sample from this many best tokens; 0: from all")
      ->capture_default_str();
  command
      ->add_option("--top-p", sampling.top_p,
                   "Sample from the best tokens whose probabilities "
                   "add up to this")
      ->capture_default_str();
  command->add_option("--seed", sampling.seed, "Makes draws repeatable");
  command->add_option("--n", sampling.n, "Answers to each prompt")->capture_default_str();
  command
      ->add_option("--beams", options->beams.beams,
                   "Beam search with this many beams; prints the best --n answers")
      ->capture_default_str();
  command
      ->add_option("--length-penalty", options->beams.length_penalty,
                   "Beams: divide the score of an answer by its number of tokens to this power")
      ->capture_default_str();
  command->add_flag_callback(
      "--early-stopping", [options] { options->beams.early_stopping = BeamOptions::Early::kFirst; },
      "Beams: stop when the number of ended answers equals the number of beams");
  command
      ->add_option("--logprobs", sampling.logprobs,
                   "Print the log-probability of each token below its answer: 0, or more")
      ->capture_default_str();
  command
      ->add_option("--eos", options->eos_ids,
                   "Id that ends an answer; may be given more than "
                   "once")
      ->allow_extra_args(false);
  command->add_option("--context", options->context, "Positions of a sequence; 0: the model's")
      ->capture_default_str();
  command->add_option("--cache-dtype", options->cache_dtype, "Type of the KV cache")
      ->check(CLI::IsMember({"f32", "bf16", "int8"}))
      ->capture_default_str();
  AddPrecision(*command, options->precision, "As `reprise.precision` of config.pbtxt");
  command->add_option("--cache-mb", options->memory_mb, "Memory for the KV cache, in MiB")
      ->capture_default_str();
  command->add_option("--step-tokens", options->step_tokens, "Most new tokens of a step")
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads of a step")->capture_default_str();
  command->add_flag("!--no-speculation", options->speculate,
                    "No speculative decoding: one token "
                    "of a sequence in each step");
  command->add_flag("--speed", options->speed, "Say how fast it was");
  AddJson(*command, options->json);
  command->callback([options, &action] { action = [options] { return Generate(*options); }; });
}

}  // namespace reprise::cli
