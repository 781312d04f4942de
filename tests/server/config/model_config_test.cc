#include "server/config/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/config/model_parameters.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ModelConfigTest, NoConfigGivesTheDefaults) {
  auto settings = ParseModelConfig("", "bert");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_FALSE(settings->max_batch_size_given);
  EXPECT_EQ(settings->max_batch_tokens, 4096);
  EXPECT_EQ(settings->model_filename, "model.onnx");
  EXPECT_TRUE(settings->buckets.empty());
  EXPECT_TRUE(settings->allow_timeout_override);
}

TEST(ModelConfigTest, FieldsReachTheSettings) {
  auto settings = ParseModelConfig(
      R"pb(
        name: "bert"
        backend: "onnxruntime"
        max_batch_size: 12
        default_model_filename: "bert.onnx"
        version_policy { all {} }
        input { name: "ids" data_type: TYPE_INT64 dims: -1 }
        instance_group { count: 2 kind: KIND_CPU }
        dynamic_batching {
          preferred_batch_size: [ 8, 4 ]
          max_queue_delay_microseconds: 500
          priority_levels: 3
          default_priority_level: 2
          default_queue_policy { default_timeout_microseconds: 70000 max_queue_size: 9 }
        }
        parameters {
          key: "reprise.sequence_buckets"
          value { string_value: "16, 48,96" }
        }
        parameters {
          key: "reprise.padding.batch"
          value { string_value: "off" }
        }
        parameters {
          key: "reprise.fill.ids"
          value { string_value: "-1" }
        }
        parameters {
          key: "reprise.overflow"
          value { string_value: "reject" }
        }
        parameters {
          key: "reprise.buckets.past"
          value { string_value: "8" }
        }
      )pb",
      "bert");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->max_batch_size_given);
  EXPECT_THAT(settings->buckets["batch"], ElementsAre(1, 2, 4, 8, 12));
  EXPECT_THAT(settings->buckets["sequence"], ElementsAre(16, 48, 96));
  EXPECT_THAT(settings->buckets["past"], ElementsAre(8));
  EXPECT_EQ(settings->model_filename, "bert.onnx");
  EXPECT_TRUE(settings->config.version_policy().has_all());
  EXPECT_EQ(settings->max_running, 2);
  EXPECT_EQ(settings->enough_rows, 4);
  EXPECT_EQ(settings->queue_delay_us, 500);
  EXPECT_EQ(settings->priority_levels, 3);
  EXPECT_EQ(settings->default_priority, 2);
  EXPECT_EQ(settings->default_timeout_us, 70000);
  EXPECT_FALSE(settings->allow_timeout_override);
  EXPECT_EQ(settings->max_queue_requests, 9);
  EXPECT_THAT(settings->padding_off, ElementsAre("batch"));
  EXPECT_EQ(settings->fills["ids"], -1);
  EXPECT_EQ(settings->overflow, Overflow::kReject);
}

TEST(ModelConfigTest, BatchSizeZeroWrittenOutMeansNoBatching) {
  auto settings = ParseModelConfig("max_batch_size: 0", "bert");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->max_batch_size_given);
  EXPECT_THAT(settings->padding_off, ElementsAre("batch"));
}

TEST(ModelConfigTest, WhatIsNotHonouredFailsByName) {
  const struct {
    const char* text;
    const char* culprit;
  } cases[] = {
      {"no_such_field: 1", "no_such_field"},
      {"max_batch_size: \"many\"", "line 1"},
      {"name: \"other\"", "other"},
      {"platform: \"tensorrt_plan\"", "tensorrt_plan"},
      {"backend: \"python\"", "python"},
      {"max_batch_size: -4", "-4"},
      {"optimization { cuda { graphs: true } }", "optimization"},
      {"sequence_batching { iterative_sequence: true }", "sequence_batching.iterative_sequence"},
      {"sequence_batching { oldest { preserve_ordering: true } }",
       "sequence_batching.oldest.preserve_ordering"},
      {"sequence_batching { oldest { max_candidate_sequences: -1 } }", "-1"},
      {"sequence_batching { direct { minimum_slot_utilization: 2 } }", "it is from 0 to 1"},
      {"ensemble_scheduling { step { model_name: \"a\" } }", "name its input and output"},
      {"input { name: \"x\" } output { name: \"y\" } ensemble_scheduling { step { model_name: "
       "\"a\" } }",
       "step \"a\" of ensemble_scheduling has no input_map"},
      {"platform: \"ensemble\"", "ensemble_scheduling names no step"},
      {"ensemble_scheduling { max_inflight_requests: 2 }", "max_inflight_requests"},
      {"instance_group { count: 2 } parameters { key: \"reprise.streams\" value { string_value: "
       "\"1\" } }",
       "leave one of them out"},
      {"parameters { key: \"reprise.streams\" value { string_value: \"0\" } }", "reprise.streams"},
      {"parameters { key: \"reprise.cores\" value { string_value: \"3-1\" } }", "0-3 or 0,2,4-5"},
      {"parameters { key: \"reprise.cores\" value { string_value: \"one\" } }", "reprise.cores"},
      {"instance_group { kind: KIND_GPU }", "KIND_GPU"},
      {"instance_group { gpus: 0 }", "instance_group.gpus"},
      {"input { name: \"x\" reshape { shape: 1 } }", "input.reshape.shape"},
      {"input { name: \"x\" allow_ragged_batch: true }", "input.allow_ragged_batch"},
      {"model_transaction_policy { decoupled: true }", "model_transaction_policy.decoupled"},
      {"response_cache { enable: true }", "response_cache.enable"},
      {"metric_tags { key: \"a\" value: \"b\" }", "metric_tags"},
      {"dynamic_batching { preserve_ordering: true }", "preserve_ordering"},
      {"dynamic_batching { default_queue_policy { timeout_action: DELAY } }", "DELAY"},
      {"dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
       "default_priority_level"},
      {"default_model_filename: \"../x.onnx\"", "../x.onnx"},
      {"parameters { key: \"intra_op_thread_count\" value { string_value: \"1\" } }",
       "intra_op_thread_count"},
      {"parameters { key: \"reprise.no_such\" value { string_value: \"1\" } }", "reprise.no_such"},
      {"parameters { key: \"reprise.sequence_buckets\" value { string_value: \"16,8\" } }",
       "8 follows 16"},
      {"parameters { key: \"reprise.batch_buckets\" value { string_value: \"auto\" } }",
       "do not follow the traffic"},
      {"parameters { key: \"reprise.bucket_policy\" value { string_value: \"auto\" } }",
       "apply, suggest or off"},
      {"parameters { key: \"reprise.bucket_payback_seconds\" value { string_value: \"0\" } }",
       "reprise.bucket_payback_seconds"},
      {"parameters { key: \"reprise.batch_buckets\" value { string_value: \"\" } }",
       "reprise.batch_buckets"},
      {"parameters { key: \"reprise.max_exact\" value { string_value: \"0\" } }",
       "reprise.max_exact"},
      {"parameters { key: \"reprise.padding.\" value { string_value: \"off\" } }",
       "reprise.padding."},
      {"parameters { key: \"reprise.fill.x\" value { string_value: \"nan\" } }", "nan"},
      {"parameters { key: \"reprise.overflow\" value { string_value: \"cut\" } }", "cut"},
      {"parameters { key: \"reprise.range.x\" value { string_value: \"min 9, max 8\" } }",
       "min 9, which is above max 8"},
  };
  for (const auto& test : cases) {
    auto settings = ParseModelConfig(test.text, "bert");
    ASSERT_FALSE(settings.ok()) << test.text;
    EXPECT_THAT(std::string(settings.status().message()), HasSubstr(test.culprit)) << test.text;
    EXPECT_THAT(std::string(settings.status().message()), HasSubstr("config.pbtxt"));
  }
}

TEST(ModelConfigTest, CoresAreListsAndRanges) {
  const auto settings = ParseModelConfig(
      "parameters { key: \"reprise.cores\" value { string_value: \"4, 0-2,1\" } }"
      "parameters { key: \"reprise.streams\" value { string_value: \"3\" } }",
      "bert");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->cores, (std::vector<int>{0, 1, 2, 4}));
  EXPECT_EQ(settings->max_running, 3);
}

TEST(ModelConfigTest, EmptySectionsAreRefusedLikeFullOnes) {
  for (const char* section :
       {"ensemble_scheduling {}", "response_cache {}", "model_transaction_policy {}",
        "model_operations {}", "model_repository_agents {}", "optimization {}",
        "optimization { cuda {} }"}) {
    const auto settings = ParseModelConfig(section, "bert");
    ASSERT_FALSE(settings.ok()) << section;
    const std::string name(section, strcspn(section, " "));
    EXPECT_THAT(std::string(settings.status().message()), HasSubstr(name));
  }
  EXPECT_TRUE(ParseModelConfig("dynamic_batching {} version_policy { all {} }", "bert").ok());
}

TEST(ModelConfigTest, HintsAreLeftOutWithALineEachWhereThatIsAskedFor) {
  constexpr char kText[] = R"pb(
    optimization {
      graph { level: 1 }
      cuda { graphs: true }
    }
    metric_tags { key: "team" value: "search" }
    instance_group {
      kind: KIND_GPU
      count: 4
      gpus: [ 0, 1 ]
    }
    parameters {
      key: "intra_op_thread_count"
      value { string_value: "4" }
    }
    parameters {
      key: "session.disable_prepacking"
      value { string_value: "1" }
    }
  )pb";
  const absl::Status refused = ParseModelConfig(kText, "bert").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--config-strictness warn"));
  const auto settings = ParseModelConfig(kText, "bert", ConfigStrictness::kWarn);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->hints,
              ::testing::UnorderedElementsAre(
                  HasSubstr("optimization"), HasSubstr("metric_tags"),
                  HasSubstr("instance_group.kind KIND_GPU"), HasSubstr("instance_group.gpus"),
                  HasSubstr("intra_op_thread_count"), HasSubstr("session.disable_prepacking")));
  EXPECT_EQ(settings->max_running, 0) << "a number of GPUs' instances says nothing of CPUs";
}

TEST(ModelConfigTest, WhatChangesAnswersIsNoHint) {
  for (const char* text : {"sequence_batching { iterative_sequence: true }",
                           "model_transaction_policy { decoupled: true }",
                           "input { name: \"x\" reshape { shape: 1 } }", "backend: \"python\"",
                           "instance_group { passive: true }"}) {
    EXPECT_FALSE(ParseModelConfig(text, "bert", ConfigStrictness::kWarn).ok()) << text;
  }
}

TEST(ModelConfigTest, ParametersOfTheUsersOwnPassThrough) {
  const auto settings = ParseModelConfig(
      "parameters { key: \"tokenizer\" value { string_value: \"bert-base\" } }", "bert");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->config.parameters().at("tokenizer").string_value(), "bert-base");
}

TEST(ModelConfigTest, ParameterThatIsNearlyOneOfOursNamesIt) {
  for (const char* name : {"reprise.warmup_second", "repris.warmup_seconds"}) {
    const auto settings = ParseModelConfig(
        absl::StrCat("parameters { key: \"", name, "\" value { string_value: \"9\" } }"), "bert");
    ASSERT_FALSE(settings.ok()) << name;
    EXPECT_THAT(std::string(settings.status().message()),
                HasSubstr("did you mean reprise.warmup_seconds?"));
  }
}

TEST(ModelConfigTest, BatchesOfSequencesAreWaitedForAsTheFileSays) {
  const auto direct = ParseModelConfig(
      "max_batch_size: 8 sequence_batching { direct { max_queue_delay_microseconds: 300 "
      "minimum_slot_utilization: 0.5 } }",
      "m");
  ASSERT_TRUE(direct.ok()) << direct.status();
  EXPECT_EQ(direct->queue_delay_us, 300);
  EXPECT_EQ(direct->enough_rows, 4);
  const auto at_once =
      ParseModelConfig("sequence_batching { direct { max_queue_delay_microseconds: 300 } }", "m");
  EXPECT_EQ(at_once->queue_delay_us, 0);
  const auto oldest = ParseModelConfig(
      "sequence_batching { oldest { preferred_batch_size: [ 6, 2 ] "
      "max_queue_delay_microseconds: 70 } }",
      "m");
  EXPECT_EQ(oldest->queue_delay_us, 70);
  EXPECT_EQ(oldest->enough_rows, 2);
}

TEST(ModelConfigTest, BucketsThatFollowTheTrafficKeepTheirRule) {
  const auto settings = ParseModelConfig(
      "parameters { key: \"reprise.sequence_buckets\" value { string_value: \"percentile:5\" } }"
      "parameters { key: \"reprise.buckets.past\" value { string_value: \"auto\" } }"
      "parameters { key: \"reprise.bucket_policy\" value { string_value: \"suggest\" } }",
      "bert");
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_EQ(settings->learnt_buckets.at("sequence").kind, BoundaryRule::Kind::kPercentile);
  EXPECT_EQ(settings->learnt_buckets.at("sequence").most, 5);
  EXPECT_EQ(settings->learnt_buckets.at("past").kind, BoundaryRule::Kind::kAuto);
  EXPECT_TRUE(settings->buckets.empty());
  EXPECT_EQ(settings->bucket_policy, BucketPolicyMode::kSuggest);
}

TEST(ModelConfigTest, BucketsByRuleAreTheirSizes) {
  const auto settings = ParseModelConfig(
      "parameters { key: \"reprise.sequence_buckets\" value { string_value: \"linear:64,64,200\" } "
      "}"
      "parameters { key: \"reprise.buckets.past\" value { string_value: \"exponential:8,2,40\" } }",
      "bert");
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_THAT(settings->buckets.at("sequence"), ElementsAre(64, 128, 192, 200));
  EXPECT_THAT(settings->buckets.at("past"), ElementsAre(8, 16, 32, 40));
}

TEST(ModelConfigTest, SupportedFieldsAreFieldsOfTheMessage) {
  for (const std::string& path : SupportedConfigFields()) {
    const google::protobuf::Descriptor* message = inference::ModelConfig::descriptor();
    size_t start = 0;
    while (start <= path.size()) {
      const size_t end = std::min(path.find('.', start), path.size());
      ASSERT_NE(message, nullptr) << path;
      const auto* field = message->FindFieldByName(path.substr(start, end - start));
      ASSERT_NE(field, nullptr) << path;
      message = field->message_type();
      start = end + 1;
    }
  }
}

TEST(ModelParameterTest, TableNamesDefaultAndMeaningOfEach) {
  for (const ModelParameterInfo& info : ModelParameterTable()) {
    EXPECT_EQ(info.name.rfind("reprise.", 0), 0u) << info.name;
    EXPECT_FALSE(info.type.empty()) << info.name;
    EXPECT_FALSE(info.default_value.empty()) << info.name;
    EXPECT_FALSE(info.meaning.empty()) << info.name;
  }
}

}  // namespace
}  // namespace reprise
