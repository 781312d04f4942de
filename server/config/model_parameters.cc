#include "server/config/model_parameters.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/nearest_name.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/bucket/axis_sizes.h"
#include "runtime/bucket/boundaries.h"
#include "runtime/passes/kit/precision_rules.h"
#include "server/config/parameter_values.h"

namespace reprise {
namespace {

constexpr int64_t kMostOfText = int64_t{1} << 30;

absl::Status WantBuckets(absl::string_view value, const std::string& axis,
                         ModelSettings& settings) {
  ASSIGN_OR_RETURN(BoundaryRule rule, ParseBoundaryRule(value));
  if (rule.learns() && axis == "batch") {
    return absl::InvalidArgumentError(
        "numbers of rows do not follow the traffic; write a list, linear: or exponential:");
  }
  if (rule.learns()) {
    settings.learnt_buckets[axis] = std::move(rule);
  } else {
    settings.buckets[axis] = std::move(rule.sizes);
  }
  return absl::OkStatus();
}

struct Parameter {
  const char* name;  // a name that ends in '.' is a family: the rest is the axis or input
  const char* rest;
  const char* type;
  const char* default_value;
  const char* meaning;
  absl::Status (*apply)(absl::string_view rest, absl::string_view value, ModelSettings& settings);
};

// The functions of most rows: each reads the field that the path of members leads to.

template <int64_t kLeast, int64_t kMost, auto... kMembers>
absl::Status ReadInteger(absl::string_view, absl::string_view value, ModelSettings& settings) {
  return WantInteger(value, kLeast, kMost, (settings.*....*kMembers));
}

template <auto... kMembers>
absl::Status ReadMegabytes(absl::string_view, absl::string_view value, ModelSettings& settings) {
  return WantMegabytes(value, 0, (settings.*....*kMembers));
}

template <auto kMember>
absl::Status ReadAutoOrOff(absl::string_view, absl::string_view value, ModelSettings& settings) {
  return WantChoice<bool>(value, {{"auto", true}, {"off", false}}, settings.*kMember);
}

// Checks a number that another room reads.
template <int64_t kLeast>
absl::Status ReadIntegerOfText(absl::string_view, absl::string_view value, ModelSettings&) {
  int64_t ignored = 0;
  return WantInteger(value, kLeast, kMostOfText, ignored);
}

// THE table of parameters.
constexpr Parameter kParameters[] = {
    {"reprise.batch_buckets", "", "list of sizes or rule", "1,2,4,8,16,32",
     "Numbers of rows that recipes are captured for: 1,2,4 or linear:FIRST,STEP,LAST or "
     "exponential:FIRST,FACTOR,LAST. The default goes on to 4096 for a model whose rows are small "
     "and have no other axis",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return WantBuckets(value, "batch", settings);
     }},
    {"reprise.sequence_buckets", "", "list of sizes or rule", "auto:8",
     "Lengths that recipes are captured for: a list or rule as for rows, which is fixed; or auto:K "
     "(at most K lengths that cost the least time) or percentile:K, which begin with "
     "16,32,64,128,256,512 and follow the traffic",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return WantBuckets(value, "sequence", settings);
     }},
    {"reprise.buckets.", "<axis>", "list of sizes or rule", "auto:8",
     "Sizes of the axis of this label that recipes are captured for, as for "
     "reprise.sequence_buckets",
     [](absl::string_view axis, absl::string_view value, ModelSettings& settings) {
       return WantBuckets(value, std::string(axis), settings);
     }},
    {"reprise.range.", "<axis>", "sizes", "any",
     "Sizes that requests may have along the axis: min 8, max 512, multiple 8, usual 128, of which "
     "each part may be left out. Others are refused; the usual size is captured before the model "
     "is ready",
     [](absl::string_view axis, absl::string_view value, ModelSettings& settings) {
       ASSIGN_OR_RETURN(const SizeRange range, ParseSizeRange(value));
       settings.ranges.insert_or_assign(std::string(axis), range);
       if (range.usual.has_value()) settings.warmup.usual[std::string(axis)] = *range.usual;
       return absl::OkStatus();
     }},
    {"reprise.bucket_policy", "", "apply|suggest|off", "apply",
     "Use of better buckets that the traffic suggests. apply: capture them in the background and "
     "switch to them; suggest: show them in the log and in reprise explain; off: do not look for "
     "them",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return WantChoice<BucketPolicyMode>(value,
                                           {{"apply", BucketPolicyMode::kApply},
                                            {"suggest", BucketPolicyMode::kSuggest},
                                            {"off", BucketPolicyMode::kOff}},
                                           settings.bucket_policy);
     }},
    {"reprise.bucket_payback_seconds", "", "integer", "600",
     "Payback time: a bucket change must recoup its capture cost within this many seconds",
     ReadInteger<1, kMostInteger / 1'000'000'000, &ModelSettings::bucket_payback_seconds>},
    {"reprise.max_batch_tokens", "", "integer", "4096",
     "Largest product of rows and lengths of one bucket",
     ReadInteger<1, kMostInteger, &ModelSettings::max_batch_tokens>},
    {"reprise.overflow", "", "exact|reject", "exact",
     "A request beyond the largest bucket: capture its exact shape, or refuse it",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return WantChoice<Overflow>(
           value, {{"exact", Overflow::kExact}, {"reject", Overflow::kReject}}, settings.overflow);
     }},
    {"reprise.max_exact", "", "integer", "32", "Most recipes of exact shapes that are kept at once",
     ReadInteger<1, kMostInteger, &ModelSettings::max_exact>},
    {"reprise.capture", "", "quick|inline|background|off", "quick",
     "Handling of a request whose bucket has no ready recipe. quick: run on a larger recipe, or "
     "wait for a capture if none is ready; inline: always wait for the capture; background: never "
     "wait, and run eagerly if no larger recipe is ready; off: capture nothing, run every request "
     "op by op",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return WantChoice<CaptureMode>(value,
                                      {{"quick", CaptureMode::kQuick},
                                       {"inline", CaptureMode::kInline},
                                       {"background", CaptureMode::kBackground},
                                       {"off", CaptureMode::kOff}},
                                      settings.capture);
     }},
    {"reprise.tune", "", "auto|off", "auto",
     "Autotuning. auto: time kernels in the background and replace a captured recipe by one with "
     "the fastest; off: keep the default or already timed kernels. A frozen model is never tuned",
     ReadAutoOrOff<&ModelSettings::tune>},
    {"reprise.frozen", "", "true|false", "false",
     "Never capture for a request: refuse a request that no ready recipe can serve",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return WantChoice<bool>(value, {{"true", true}, {"false", false}}, settings.frozen);
     }},
    {"reprise.warmup", "", "all, or lists of buckets and sizes", "nothing",
     "Recipes to capture before the model is ready, the largest first: all; buckets "
     "(b1_s16,b8_s128); or exact sizes, one for each axis, separated by semicolons "
     "(height=300,width=300; height=600,width=600)",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       if (value == "all") {
         settings.warmup.all = true;
         return absl::OkStatus();
       }
       for (const absl::string_view group : absl::StrSplit(value, ';')) {
         if (absl::StrContains(group, '=')) {
           ASSIGN_OR_RETURN(settings.warmup.sizes.emplace_back(), ParseAxisSizes(group));
           continue;
         }
         for (absl::string_view part : absl::StrSplit(group, ',')) {
           part = absl::StripAsciiWhitespace(part);
           if (part.empty()) return absl::InvalidArgumentError("must be all, buckets or sizes");
           settings.warmup.buckets.emplace_back(part);
         }
       }
       return absl::OkStatus();
     }},
    {"reprise.warmup_lengths", "", "file", "nothing",
     "File in the model's folder with lines LENGTH [COUNT]: capture the buckets of these lengths, "
     "the most valuable first",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       if (value.empty()) return absl::InvalidArgumentError("must name a file");
       settings.warmup.lengths_file = std::string(value);
       return absl::OkStatus();
     }},
    {"reprise.warmup_ready", "", "largest|all", "largest",
     "Part of the warm-up after which the model is ready: the largest buckets, or all",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return WantChoice<bool>(value, {{"largest", false}, {"all", true}},
                               settings.warmup.ready_when_all);
     }},
    {"reprise.warmup_seconds", "", "integer", "300",
     "Time limit of a warm-up, in seconds; later captures are skipped. 0: no limit",
     ReadInteger<0, kMostInteger / 1'000'000'000, &ModelSettings::warmup,
                 &WarmupSettings::max_seconds>},
    {"reprise.warmup_memory_mb", "", "integer", "0",
     "Memory limit of a warm-up, recipes and their arena, in MiB. 0: no limit",
     ReadMegabytes<&ModelSettings::warmup, &WarmupSettings::max_bytes>},
    {"reprise.max_recipe_mb", "", "integer", "0",
     "Memory for recipes of the model, in MiB; above it the least recently used are evicted. 0: "
     "only the limit for all models",
     ReadMegabytes<&ModelSettings::max_recipe_bytes>},
    {"reprise.max_arena_mb", "", "integer", "0",
     "Most memory of one replay of the model, in MiB; a request that needs more is refused. 0: no "
     "limit",
     ReadMegabytes<&ModelSettings::max_arena_bytes>},
    {"reprise.max_parameter_mb", "", "integer", "0",
     "Memory for the parameters of the model, as stored and as packed for kernels, in MiB; a model "
     "that needs more is not loaded. 0: only the limit for all models",
     ReadMegabytes<&ModelSettings::max_parameter_bytes>},
    {"reprise.release_after_ms", "", "integer", "0",
     "Idle time after which a stream returns the memory of its arena, in milliseconds; the "
     "shortest time of all models counts. 0: only arenas above 512 MiB are returned, after a "
     "minute in which no replay needed that much",
     ReadInteger<0, kMostInteger / 1'000'000, &ModelSettings::release_after_ms>},
    {"reprise.max_request_ms", "", "integer", "60000",
     "Most computing time of one request, in milliseconds, without time in the queue and in "
     "captures. 0: no limit",
     ReadInteger<0, kMostInteger / 1'000'000, &ModelSettings::max_request_ms>},
    {"reprise.max_request_mb", "", "integer", "2048",
     "Most memory that one request may allocate depending on its data, in MiB: results of loops "
     "and of nodes after a graph break, replays whose size a value of the request decides, and "
     "allocations of reference kernels. 0: no limit",
     ReadMegabytes<&ModelSettings::max_request_bytes>},
    {"reprise.packing", "", "auto|off", "auto; off where buckets are named",
     "auto: place requests of different lengths one after another in a replay, without padding, if "
     "the model allows it; buckets are then numbers of tokens. off: pad",
     ReadAutoOrOff<&ModelSettings::packing>},
    {"reprise.precision", "", "exact|bf16|int8|auto:COSINE|fast[:COSINE]", "exact",
     "bf16: products with weights round both operands to bfloat16 and sum in float32, which is "
     "faster; each rounded number is off by up to 2^-9 of itself. int8: they round rows to bytes, "
     "and weights of floats too, and sum in int32. auto:COSINE, such as auto:0.9995: they round to "
     "int8, but for those that have to stay exact for answers to keep this cosine with the exact "
     "ones. fast: each rounds to int8 or bf16, whichever is measured faster, within a cosine of "
     "0.999 or COSINE",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) -> absl::Status {
       if (const std::optional<Precision> precision = ParsePrecision(value)) {
         settings.precision = *precision;
         return absl::OkStatus();
       }
       ASSIGN_OR_RETURN(settings.precision_goal, PrecisionGoal::Parse(value));
       return absl::OkStatus();
     }},
    {"reprise.calibration", "", "FILE", "nothing",
     "File in the model's folder with requests that reprise.precision auto and fast measure "
     "answers with, one on each line: a text where the model takes texts, or a JSON object with "
     "the lists of each input. Without it requests are made up",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       if (value.empty()) return absl::InvalidArgumentError("must be the name of a file");
       settings.calibration = std::string(value);
       return absl::OkStatus();
     }},
    {"reprise.precision_ops", "", "PRECISION: OP|NODE,...; ...", "nothing",
     "Precision of some nodes, by op type or by a pattern of names with *, such as `bf16: "
     "MatMul,Gemm; exact: Attention,/encoder/layer.11/*`; @FILE is a list in the model's folder, "
     "one entry on each line. Other nodes use reprise.precision",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       settings.precision_ops = std::string(value);
       // Files are read when the model is loaded.
       const auto read = [](const std::string&) { return std::string("any"); };
       return PrecisionRules::Parse(value, read).status();
     }},
    {"reprise.weights", "", "stored|int8|int4", "stored",
     "int8, int4: weights of products that are stored as floats are kept as bytes with a factor "
     "for each column, or as four bits with one for each 32 of a column, whatever the precision; "
     "stored: only where reprise.precision is int8 do they become bytes",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       const std::optional<WeightBits> form = ParseWeightBits(value);
       if (!form.has_value()) return absl::InvalidArgumentError("must be stored, int8 or int4");
       settings.weights = *form;
       return absl::OkStatus();
     }},
    {"reprise.promote", "", "auto, or names", "nothing",
     "Constants that become optional inputs: a request without one gets the file's value, and a "
     "request with its own value is padded and batched without a capture. auto: constants that "
     "differ from another version of the model, and small initialisers that the file lists as "
     "inputs",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       for (absl::string_view name : absl::StrSplit(value, ',')) {
         name = absl::StripAsciiWhitespace(name);
         if (name.empty()) return absl::InvalidArgumentError("must be auto, or names of constants");
         if (name == "auto") {
           settings.promote_found = true;
         } else {
           settings.promote.emplace_back(name);
         }
       }
       return absl::OkStatus();
     }},
    {"reprise.cut", "", "NODE,...", "nothing",
     "Nodes that run by themselves, between recipes, by patterns of names with *, such as "
     "`/encoder/layer.11/*`: the model is cut there, and the nodes after it run at each request's "
     "own sizes",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return ReadNames(value, settings.cut.patterns);
     }},
    {"reprise.eager_ops", "", "OP,...", "nothing",
     "Ops all of whose nodes run by themselves, like nodes of reprise.cut",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return ReadNames(value, settings.cut.ops);
     }},
    {"reprise.fusion", "", "auto|off", "auto",
     "off: compute each node of the file by one kernel, so that its bits depend on the node alone; "
     "slow, to see the effect of fusion",
     ReadAutoOrOff<&ModelSettings::fusion>},
    {"reprise.generation", "", "auto|off", "auto",
     "auto: for a decoder with inputs for its KV cache, keep the cache in the server and generate "
     "tokens; off: clients send and receive the cache",
     ReadAutoOrOff<&ModelSettings::generation>},
    {"reprise.cache_mb", "", "integer", "1024",
     "Memory for the KV cache of all sequences, in MiB; allocated as sequences need it",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return WantMegabytes(value, 1, settings.cache_bytes);
     }},
    {"reprise.cache_dtype", "", "f32|bf16|int8", "f32",
     "Type of the KV cache: bf16 takes half of the memory and int8 (with a scale for each position "
     "and head) a quarter; both round, and reprise check measures the error",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       const std::optional<ops::CacheDType> dtype = ops::ParseCacheDType(value);
       if (!dtype.has_value()) return absl::InvalidArgumentError("must be f32, bf16 or int8");
       settings.cache_dtype = *dtype;
       return absl::OkStatus();
     }},
    {"reprise.context", "", "integer", "the model's own",
     "Most tokens of a sequence, prompt and answer together",
     ReadInteger<2, int64_t{1} << 24, &ModelSettings::context>},
    {"reprise.max_stall_ms", "", "integer", "20",
     "Most time that prompts may add between two tokens of another sequence, in milliseconds: "
     "prompts are computed in chunks",
     ReadInteger<1, int64_t{1} << 20, &ModelSettings::max_stall_ms>},
    {"reprise.max_sequences", "", "integer", "64",
     "Most sequences that are computed at the same time; others wait",
     ReadInteger<1, 512, &ModelSettings::max_sequences>},
    {"reprise.speculation", "", "auto|off", "auto",
     "auto: propose the tokens that followed the same tokens before and verify several at once "
     "(speculative decoding), where measured times say that it pays; the answer is the same. off: "
     "one token in each step",
     ReadAutoOrOff<&ModelSettings::speculation>},
    {"reprise.max_live_sequences", "", "integer", "1024",
     "Most sequences whose state is kept at once, for models with sequence_batching",
     ReadInteger<1, int64_t{1} << 24, &ModelSettings::max_live_sequences>},
    {"reprise.state_mb", "", "integer", "1024",
     "Memory for the state of all sequences, in MiB, for models with sequence_batching",
     ReadMegabytes<&ModelSettings::state_bytes>},
    {"reprise.eos_token_ids", "", "list of ids", "from genai_config.json and similar files",
     "Ids that end an answer",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       for (const absl::string_view part : absl::StrSplit(value, ',')) {
         RETURN_IF_ERROR(WantInteger(absl::StripAsciiWhitespace(part), 0, kMostInteger,
                                     settings.eos_ids.emplace_back()));
       }
       return absl::OkStatus();
     }},
    {"reprise.padding.", "<axis>", "auto|off", "auto",
     "off: never pad along the axis (for batch: never batch), also where the certificate allows it",
     [](absl::string_view axis, absl::string_view value, ModelSettings& settings) {
       RETURN_IF_ERROR(WantWord(value, {"auto", "off"}));
       if (value == "off") settings.padding_off.insert(std::string(axis));
       return absl::OkStatus();
     }},
    {"reprise.fill.", "<input>", "number", "0", "Value that padding of the input is filled with",
     [](absl::string_view input, absl::string_view value, ModelSettings& settings) {
       double number = 0;
       if (!absl::SimpleAtod(value, &number) || !std::isfinite(number)) {
         return absl::InvalidArgumentError("must be a number");
       }
       settings.fills[std::string(input)] = number;
       return absl::OkStatus();
     }},
    // Read by server/repository/model_loader.cc, for the rooms that define them.
    {"reprise.pooling", "",
     "cls|max|mean|mean_sqrt_len_tokens|weightedmean|lasttoken|splade|tokens|none",
     "as the model's folder says, else mean",
     "How the vectors of a text's tokens become one; splade: the scores of a masked language model "
     "become weights of words; tokens: a vector a token is answered; none: texts are not taken, "
     "and the model's own outputs are answered",
     [](absl::string_view, absl::string_view value, ModelSettings&) {
       return WantWord(value, {"cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean",
                               "lasttoken", "splade", "tokens", "none"});
     }},
    {"reprise.max_text_bytes", "", "integer", "1048576", "Most bytes of one text",
     ReadIntegerOfText<1>},
    {"reprise.max_audio_seconds", "", "integer", "7200",
     "Most seconds of a sound that is transcribed", ReadIntegerOfText<1>},
    {"reprise.max_text_tokens", "", "integer", "0",
     "Most tokens of one text, also where it is truncated then; 0: no limit", ReadIntegerOfText<0>},
    {"reprise.image_transforms", "", "transforms", "as preprocessor_config.json says",
     "Transforms of pictures that are sent as files: Resize(256), CenterCrop(224), ToTensor",
     [](absl::string_view, absl::string_view value, ModelSettings&) {
       return value.empty() ? absl::InvalidArgumentError("must name transforms") : absl::OkStatus();
     }},
    {"reprise.detector", "", "yolov5|yolov8|detr|rt_detr", "as the outputs look",
     "Kind of the detector's outputs",
     [](absl::string_view, absl::string_view value, ModelSettings&) {
       return WantWord(value, {"yolov5", "yolov8", "detr", "rt_detr"});
     }},
    {"reprise.max_image_pixels", "", "integer", "67108864", "Most pixels of one picture",
     ReadIntegerOfText<1>},
    {"reprise.cores", "", "CPUs", "all",
     "CPUs that replays of the model run on, such as 0-3 or 0,2,4-5, and that a lone replay may "
     "use all of; replays of models without it may run there too",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       return ReadCpus(value, settings.cores);
     }},
    {"reprise.streams", "", "integer", "as many as the server has",
     "Most replays of the model at the same time, as instance_group.count",
     [](absl::string_view, absl::string_view value, ModelSettings& settings) {
       if (settings.max_running > 0) {
         return absl::InvalidArgumentError(
             "and instance_group say the same: leave one of them out");
       }
       return WantInteger(value, 1, 1024, settings.max_running);
     }},
    {"reprise.max_queue_tokens", "", "integer", "64 full batches, or 64 requests of any size",
     "Limit on rows times lengths of the requests that wait",
     ReadInteger<1, kMostInteger, &ModelSettings::max_queue_tokens>},
    {"reprise.max_queue_bytes", "", "integer", "1073741824",
     "Limit on the bytes of the requests that wait",
     ReadInteger<1, kMostInteger, &ModelSettings::max_queue_bytes>},
};

// Families among them without their axis or input.
std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Parameter& parameter : kParameters) names.emplace_back(parameter.name);
  return names;
}

}  // namespace

std::vector<ModelParameterInfo> ModelParameterTable() {
  std::vector<ModelParameterInfo> table;
  for (const Parameter& parameter : kParameters) {
    table.push_back({absl::StrCat(parameter.name, parameter.rest), parameter.type,
                     parameter.default_value, parameter.meaning});
  }
  return table;
}

absl::Status ApplyModelParameter(absl::string_view name, absl::string_view value,
                                 ModelSettings& settings) {
  for (const Parameter& parameter : kParameters) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, parameter.name)) continue;
    const bool family = absl::EndsWith(parameter.name, ".");
    if (family == rest.empty()) continue;
    absl::Status status = parameter.apply(rest, value, settings);
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", name, " is \"", value, "\": ", status.message()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", ShownText(name), " is not known", DidYouMean(name, Names())));
}

bool IsNearModelParameter(absl::string_view name) { return !NearestName(name, Names()).empty(); }

}  // namespace reprise
