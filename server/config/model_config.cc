#include "server/config/model_config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/config/config_hints.h"
#include "server/config/model_parameters.h"

namespace reprise {
namespace {

// THE list of fields that something here or in server/repository acts on. A path that ends in a
// message stands for the message alone, not for its fields.
constexpr const char* kSupported[] = {
    "name",
    "platform",
    "backend",
    "default_model_filename",
    "max_batch_size",
    "parameters",
    "version_policy",
    "version_policy.latest",
    "version_policy.latest.num_versions",
    "version_policy.all",
    "version_policy.specific",
    "version_policy.specific.versions",
    "input",
    "input.name",
    "input.data_type",
    "input.dims",
    "output",
    "output.name",
    "output.data_type",
    "output.dims",
    "output.label_filename",
    "model_warmup",
    "model_warmup.name",
    "model_warmup.batch_size",
    "model_warmup.count",
    "model_warmup.inputs",
    "instance_group",
    "instance_group.name",
    "instance_group.count",
    "instance_group.kind",
    "dynamic_batching",
    "dynamic_batching.preferred_batch_size",
    "dynamic_batching.max_queue_delay_microseconds",
    "dynamic_batching.priority_levels",
    "dynamic_batching.default_priority_level",
    "dynamic_batching.default_queue_policy",
    "dynamic_batching.default_queue_policy.timeout_action",
    "dynamic_batching.default_queue_policy.default_timeout_microseconds",
    "dynamic_batching.default_queue_policy.allow_timeout_override",
    "dynamic_batching.default_queue_policy.max_queue_size",
    "sequence_batching",
    "sequence_batching.max_sequence_idle_microseconds",
    "sequence_batching.control_input",
    "sequence_batching.control_input.name",
    "sequence_batching.control_input.control",
    "sequence_batching.control_input.control.kind",
    "sequence_batching.control_input.control.int32_false_true",
    "sequence_batching.control_input.control.fp32_false_true",
    "sequence_batching.control_input.control.bool_false_true",
    "sequence_batching.control_input.control.data_type",
    "sequence_batching.state",
    "sequence_batching.state.input_name",
    "sequence_batching.state.output_name",
    "sequence_batching.state.data_type",
    "sequence_batching.state.dims",
    "sequence_batching.state.initial_state",
    "sequence_batching.state.initial_state.name",
    "sequence_batching.state.initial_state.data_type",
    "sequence_batching.state.initial_state.dims",
    "sequence_batching.state.initial_state.zero_data",
    "sequence_batching.state.initial_state.data_file",
    // Where state lies is the server's business: both say nothing of answers.
    "sequence_batching.state.use_same_buffer_for_input_output",
    "sequence_batching.state.use_growable_memory",
    "ensemble_scheduling",
    "ensemble_scheduling.step",
    "ensemble_scheduling.step.model_name",
    "ensemble_scheduling.step.model_version",
    "ensemble_scheduling.step.input_map",
    "ensemble_scheduling.step.output_map",
    "sequence_batching.direct",
    "sequence_batching.direct.max_queue_delay_microseconds",
    "sequence_batching.direct.minimum_slot_utilization",
    "sequence_batching.oldest",
    "sequence_batching.oldest.max_candidate_sequences",
    "sequence_batching.oldest.preferred_batch_size",
    "sequence_batching.oldest.max_queue_delay_microseconds",
};

// Keeps the first error: later ones are often its echo.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text.empty()) text = absl::StrCat("line ", line + 1, ": ", message);
  }
  std::string text;
};

absl::Status Unsupported(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat("config.pbtxt: ", what, " is not supported"));
}

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: ", what));
}

// Notes a field or value that would be a hint where hints are taken, else refuses it by name.
absl::Status TakeHint(absl::string_view what, absl::string_view instead, ModelSettings& settings) {
  if (settings.strictness == ConfigStrictness::kStrict) {
    return Unsupported(
        absl::StrCat(what, " (--config-strictness warn takes it as a hint: ", instead, ")"));
  }
  settings.hints.push_back(absl::StrCat(what, " is a hint that is left out: ", instead));
  return absl::OkStatus();
}

// Fails on the first field that is set and not in the list, also where it is an empty message: that
// alone chooses a scheduler, for one.
absl::Status CheckFields(const google::protobuf::Message& message, const std::string& prefix,
                         ModelSettings& settings) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(prefix, field->name());
    const bool supported = std::any_of(std::begin(kSupported), std::end(kSupported),
                                       [&path](const char* known) { return path == known; });
    const bool is_message = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    if (!supported) {
      if (const absl::string_view instead = FieldHint(path); !instead.empty()) {
        RETURN_IF_ERROR(TakeHint(path, instead, settings));
        continue;
      }
      if (!is_message || field->is_repeated()) return Unsupported(path);
    }
    if (!is_message || field->is_map()) continue;
    if (field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        RETURN_IF_ERROR(
            CheckFields(reflection.GetRepeatedMessage(message, field, i), path + ".", settings));
      }
    } else {
      RETURN_IF_ERROR(CheckFields(reflection.GetMessage(message, field), path + ".", settings));
      if (!supported) return Unsupported(path);  // it has no field of its own to be named
    }
  }
  return absl::OkStatus();
}

absl::Status CheckChoice(const char* field, const std::string& value,
                         const std::set<std::string>& choices) {
  if (value.empty() || choices.count(value) > 0) return absl::OkStatus();
  return Unsupported(
      absl::StrCat(field, " \"", value, "\" (known: ", absl::StrJoin(choices, ", "), ")"));
}

absl::Status ReadInstanceGroups(const inference::ModelConfig& config, ModelSettings& settings) {
  for (const inference::ModelInstanceGroup& group : config.instance_group()) {
    if (group.kind() != inference::ModelInstanceGroup::KIND_AUTO &&
        group.kind() != inference::ModelInstanceGroup::KIND_CPU) {
      RETURN_IF_ERROR(TakeHint(absl::StrCat("instance_group.kind ",
                                            inference::ModelInstanceGroup::Kind_Name(group.kind())),
                               FieldHint("instance_group.kind"), settings));
      continue;  // its count is one of other devices
    }
    if (group.count() < 0) {
      return Invalid(absl::StrCat("instance_group.count is ", group.count()));
    }
    settings.max_running += std::max(1, group.count());
  }
  return absl::OkStatus();
}

constexpr uint64_t kLongestUs = uint64_t{1} << 40;  // 12 days

absl::Status CheckTime(const char* field, uint64_t us) {
  if (us <= kLongestUs) return absl::OkStatus();
  return Invalid(absl::StrCat(field, " is ", us, ", the most is ", kLongestUs));
}

// Reads how long to wait for a batch of sequences. The state's fields are read with the model.
absl::Status ReadSequenceBatching(const inference::ModelSequenceBatching& batching,
                                  int64_t max_batch_size, ModelSettings& settings) {
  RETURN_IF_ERROR(CheckTime("sequence_batching.max_sequence_idle_microseconds",
                            batching.max_sequence_idle_microseconds()));
  if (batching.has_direct()) {
    const auto& direct = batching.direct();
    RETURN_IF_ERROR(CheckTime("sequence_batching.direct.max_queue_delay_microseconds",
                              direct.max_queue_delay_microseconds()));
    const float used = direct.minimum_slot_utilization();
    if (!(used >= 0 && used <= 1)) {
      return Invalid(absl::StrCat("sequence_batching.direct.minimum_slot_utilization is ", used,
                                  ", it is from 0 to 1"));
    }
    // Without a least number nothing is waited for.
    if (used > 0) {
      settings.queue_delay_us = static_cast<int64_t>(direct.max_queue_delay_microseconds());
      settings.enough_rows = std::max<int64_t>(
          1, static_cast<int64_t>(std::ceil(used * static_cast<float>(max_batch_size))));
    }
  }
  if (!batching.has_oldest()) return absl::OkStatus();
  const auto& oldest = batching.oldest();
  RETURN_IF_ERROR(CheckTime("sequence_batching.oldest.max_queue_delay_microseconds",
                            oldest.max_queue_delay_microseconds()));
  if (oldest.max_candidate_sequences() < 0) {
    return Invalid(absl::StrCat("sequence_batching.oldest.max_candidate_sequences is ",
                                oldest.max_candidate_sequences()));
  }
  settings.queue_delay_us = static_cast<int64_t>(oldest.max_queue_delay_microseconds());
  for (const int32_t rows : oldest.preferred_batch_size()) {
    if (rows <= 0) {
      return Invalid(absl::StrCat("sequence_batching.oldest.preferred_batch_size holds ", rows));
    }
    settings.enough_rows =
        settings.enough_rows == 0 ? rows : std::min<int64_t>(settings.enough_rows, rows);
  }
  return absl::OkStatus();
}

absl::Status ReadDynamicBatching(const inference::ModelDynamicBatching& batching,
                                 ModelSettings& settings) {
  RETURN_IF_ERROR(CheckTime("dynamic_batching.max_queue_delay_microseconds",
                            batching.max_queue_delay_microseconds()));
  settings.queue_delay_us = static_cast<int64_t>(batching.max_queue_delay_microseconds());
  for (const int32_t rows : batching.preferred_batch_size()) {
    if (rows <= 0) {
      return Invalid(absl::StrCat("dynamic_batching.preferred_batch_size holds ", rows));
    }
    settings.enough_rows =
        settings.enough_rows == 0 ? rows : std::min<int64_t>(settings.enough_rows, rows);
  }
  settings.priority_levels = batching.priority_levels();
  settings.default_priority = batching.default_priority_level();
  if (settings.default_priority > settings.priority_levels ||
      (settings.priority_levels > 0 && settings.default_priority == 0)) {
    return Invalid(absl::StrCat("dynamic_batching.default_priority_level is ",
                                settings.default_priority, ", priority_levels is ",
                                settings.priority_levels));
  }
  if (!batching.has_default_queue_policy()) return absl::OkStatus();
  const inference::ModelQueuePolicy& policy = batching.default_queue_policy();
  if (policy.timeout_action() != inference::ModelQueuePolicy::REJECT) {
    return Unsupported("dynamic_batching.default_queue_policy.timeout_action DELAY");
  }
  RETURN_IF_ERROR(CheckTime("dynamic_batching.default_queue_policy.default_timeout_microseconds",
                            policy.default_timeout_microseconds()));
  if (policy.default_timeout_microseconds() > 0) {
    settings.default_timeout_us = static_cast<int64_t>(policy.default_timeout_microseconds());
  }
  settings.allow_timeout_override = policy.allow_timeout_override();
  settings.max_queue_requests = policy.max_queue_size();
  return absl::OkStatus();
}

// `reprise.` ones are ours, some are hints, and all others are the user's own: clients that ask for
// the config find them there.
absl::Status ReadParameter(const std::string& name, const std::string& value,
                           ModelSettings& settings) {
  if (const absl::string_view instead = ParameterHint(name); !instead.empty()) {
    return TakeHint(absl::StrCat("parameter ", ShownText(name)), instead, settings);
  }
  absl::Status status;
  if (absl::StartsWith(name, "reprise.") || IsNearModelParameter(name)) {
    status = ApplyModelParameter(name, value, settings);
  }
  return status.ok() ? status : Invalid(status.message());
}

// Checks the steps: models of the repositories, which are looked for when this one is loaded.
absl::Status CheckEnsemble(const inference::ModelConfig& config) {
  if (!config.has_ensemble_scheduling()) {
    if (config.platform() != "ensemble") return absl::OkStatus();
    return Invalid("platform is \"ensemble\", and ensemble_scheduling names no step");
  }
  if (config.ensemble_scheduling().step().empty()) {
    return Invalid("ensemble_scheduling names no step");
  }
  if (config.input().empty() || config.output().empty()) {
    return Invalid("an ensemble has to name its input and output");
  }
  for (const auto& step : config.ensemble_scheduling().step()) {
    const std::string& name = step.model_name();
    if (name.empty()) return Invalid("a step of ensemble_scheduling has no model_name");
    if (step.input_map().empty() || step.output_map().empty()) {
      return Invalid(absl::StrCat("step \"", name, "\" of ensemble_scheduling has no ",
                                  step.input_map().empty() ? "input_map" : "output_map"));
    }
  }
  return absl::OkStatus();
}

// Powers of two up to the configured batch size, and that size itself.
std::vector<int64_t> BatchBucketsUpTo(int64_t max_batch_size) {
  std::vector<int64_t> buckets;
  for (int64_t size = 1; size < max_batch_size; size *= 2) buckets.push_back(size);
  buckets.push_back(max_batch_size);
  return buckets;
}

absl::Status ReadVersionPolicy(const inference::ModelVersionPolicy& policy) {
  if (policy.has_specific() && policy.specific().versions().empty()) {
    return Invalid("version_policy.specific names no version");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> SupportedConfigFields() {
  return {std::begin(kSupported), std::end(kSupported)};
}

absl::StatusOr<ModelSettings> ParseModelConfig(absl::string_view text, absl::string_view model_name,
                                               ConfigStrictness strictness) {
  ModelSettings settings;
  settings.strictness = strictness;
  inference::ModelConfig& config = settings.config;
  FirstError error;
  google::protobuf::TextFormat::ParseInfoTree places;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  if (!parser.ParseFromString(std::string(text), &config)) return Invalid(error.text);
  settings.max_batch_size_given =
      places.GetLocation(config.GetDescriptor()->FindFieldByName("max_batch_size"), -1).line >= 0;

  RETURN_IF_ERROR(CheckFields(config, "", settings));
  if (!config.name().empty() && config.name() != model_name) {
    return Invalid(absl::StrCat("name is \"", config.name(), "\", but the model's folder is \"",
                                model_name, "\""));
  }
  RETURN_IF_ERROR(CheckChoice("platform", config.platform(), {"onnxruntime_onnx", "ensemble"}));
  RETURN_IF_ERROR(CheckEnsemble(config));
  RETURN_IF_ERROR(CheckChoice("backend", config.backend(), {"onnxruntime", "reprise"}));
  if (!config.default_model_filename().empty()) {
    if (absl::StrContains(config.default_model_filename(), '/')) {
      return Invalid(absl::StrCat("default_model_filename is \"", config.default_model_filename(),
                                  "\", it must be a file of the version's folder"));
    }
    settings.model_filename = config.default_model_filename();
  }
  if (config.max_batch_size() < 0) {
    return Invalid(absl::StrCat("max_batch_size is ", config.max_batch_size()));
  }
  RETURN_IF_ERROR(ReadVersionPolicy(config.version_policy()));
  RETURN_IF_ERROR(ReadInstanceGroups(config, settings));
  if (config.has_dynamic_batching()) {
    RETURN_IF_ERROR(ReadDynamicBatching(config.dynamic_batching(), settings));
  }
  if (config.has_sequence_batching()) {
    RETURN_IF_ERROR(
        ReadSequenceBatching(config.sequence_batching(), config.max_batch_size(), settings));
  }
  // Ordered by name, so that the first error is always the same one.
  const std::map<std::string, inference::ModelParameter> parameters(config.parameters().begin(),
                                                                    config.parameters().end());
  for (const auto& [name, parameter] : parameters) {
    RETURN_IF_ERROR(ReadParameter(name, parameter.string_value(), settings));
  }
  if (config.max_batch_size() > 0 && settings.buckets.count("batch") == 0) {
    settings.buckets["batch"] = BatchBucketsUpTo(config.max_batch_size());
  }
  if (settings.max_batch_size_given && config.max_batch_size() == 0) {
    settings.padding_off.insert("batch");
  }
  return settings;
}

absl::StatusOr<std::string> ConfigTextFromJson(const std::string& json) {
  inference::ModelConfig config;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &config);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the config is not the JSON of a ModelConfig: ",
                                                   std::string(parsed.message())));
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  return text;
}

}  // namespace reprise
