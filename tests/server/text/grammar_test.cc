#include "server/text/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int64_t kEos = 97;

// Letters that print, some words of several, and an id that ends answers.
std::unique_ptr<Tokenizer> Letters() {
  Json vocabulary = Json::object();
  int id = 0;
  for (char c = ' '; c <= '~'; ++c) vocabulary[std::string(1, c)] = id++;
  for (const char* word : {"\n", "</s>"}) vocabulary[word] = id++;
  vocabulary["<end>"] = id++;
  for (const char* word : {"\"name\"", "true", "{\"", "\": ", "12", "}]", "unused"})
    vocabulary[word] = id++;
  const Json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", Json::array({{{"id", kEos},
                                     {"content", "<end>"},
                                     {"single_word", false},
                                     {"lstrip", false},
                                     {"rstrip", false},
                                     {"normalized", false},
                                     {"special", true}}})},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "</s>"}}},
      {"decoder", {{"type", "Fuse"}}}};
  auto loaded = Tokenizer::Load({.kind = TokenizerKind::kJson, .data = tokenizer.dump()});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return *std::move(loaded);
}

class GrammarTest : public ::testing::Test {
 protected:
  GrammarTest() : tokenizer_(Letters()), vocabulary_(tokenizer_->size() + 3) {
    auto made = Grammars::Make(*tokenizer_, {kEos}, vocabulary_);
    EXPECT_TRUE(made.ok()) << made.status();
    grammars_ = *std::move(made);
  }

  absl::StatusOr<std::unique_ptr<Grammar>> Compile(GrammarKind kind, const std::string& text) {
    return grammars_->Compile({.kind = kind, .text = text}, nullptr);
  }

  // Samples a text that is drawn from the tokens that may follow; "" and false where it has not
  // ended in time.
  bool Sample(const Grammar& of, std::mt19937& random, std::string& text) {
    auto grammar = of.Copy();
    EXPECT_TRUE(grammar.ok()) << grammar.status();
    std::vector<uint32_t> bits((static_cast<size_t>(vocabulary_) + 31) / 32);
    text.clear();
    for (int step = 0; step < 400; ++step) {
      const absl::Status masked = (*grammar)->Mask(absl::MakeSpan(bits));
      EXPECT_TRUE(masked.ok()) << masked << " after " << text;
      std::vector<uint32_t> allowed;
      for (uint32_t id = 0; id < vocabulary_; ++id) {
        if ((bits[id / 32] >> (id % 32) & 1) != 0) allowed.push_back(id);
      }
      EXPECT_FALSE(allowed.empty()) << text;
      // Ends are likely, so that texts are short.
      const bool ends = std::find(allowed.begin(), allowed.end(), kEos) != allowed.end();
      uint32_t id = allowed[random() % allowed.size()];
      for (const uint32_t closing :
           {uint32_t{'"' - ' '}, uint32_t{'}' - ' '}, uint32_t{']' - ' '}}) {
        if (random() % 3 == 0 &&
            std::find(allowed.begin(), allowed.end(), closing) != allowed.end()) {
          id = closing;
        }
      }
      if (ends && random() % 2 == 0) id = kEos;
      const absl::StatusOr<bool> complete = (*grammar)->Take(id);
      EXPECT_TRUE(complete.ok()) << complete.status();
      if (id != kEos) text += tokenizer_->Bytes(id);
      if (id == kEos || *complete) return true;
    }
    return false;
  }

  // `is_valid` holds for each of a thousand samples.
  void CheckSamples(GrammarKind kind, const std::string& text,
                    const std::function<bool(const std::string&)>& is_valid) {
    const auto grammar = Compile(kind, text);
    ASSERT_TRUE(grammar.ok()) << grammar.status();
    std::mt19937 random(11);
    int ended = 0;
    std::string sample;
    for (int i = 0; ended < 1000 && i < 4000; ++i) {
      if (!Sample(**grammar, random, sample)) continue;
      ++ended;
      ASSERT_TRUE(is_valid(sample)) << sample;
    }
    EXPECT_EQ(ended, 1000);
  }

  const std::unique_ptr<Tokenizer> tokenizer_;
  const int64_t vocabulary_;
  std::unique_ptr<Grammars> grammars_;
};

TEST_F(GrammarTest, SamplesOfASchemaAreOfIt) {
  CheckSamples(GrammarKind::kJsonSchema,
               R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 9},
                   "is": {"type": "boolean"}, "of": {"type": "array", "maxItems": 2,
                   "items": {"enum": [1, 2, "x"]}}}, "required": ["name", "is"],
                   "additionalProperties": false})",
               [](const std::string& text) {
                 const Json json = Json::parse(text, nullptr, false);
                 return json.is_object() && json.contains("name") && json["name"].is_string() &&
                        json.contains("is") && json["is"].is_boolean() && json.size() <= 3 &&
                        (!json.contains("of") || json["of"].size() <= 2);
               });
}

TEST_F(GrammarTest, SamplesOfObjectsOfAnyNamesAreJson) {
  CheckSamples(
      GrammarKind::kJsonSchema, R"({"type": "object", "maxProperties": 2,
                   "additionalProperties": {"type": ["string", "boolean", "null"]}})",
      [](const std::string& text) { return Json::parse(text, nullptr, false).is_object(); });
}

TEST_F(GrammarTest, SamplesOfAPatternMatchIt) {
  const std::regex pattern("[a-c]{2,5}-[0-9]{1,3}(x|yz)?");
  CheckSamples(GrammarKind::kRegex, "[a-c]{2,5}-[0-9]{1,3}(x|yz)?",
               [&](const std::string& text) { return std::regex_match(text, pattern); });
}

TEST_F(GrammarTest, SamplesOfALarkGrammarAreOfIt) {
  const std::regex pattern("(add|sub)\\([0-9]{1,2}, [0-9]{1,2}\\)");
  CheckSamples(GrammarKind::kLark,
               "start: op \"(\" NUMBER \", \" NUMBER \")\"\nop: \"add\" | \"sub\"\n"
               "NUMBER: /[0-9]{1,2}/\n",
               [&](const std::string& text) { return std::regex_match(text, pattern); });
}

TEST_F(GrammarTest, SamplesOfChoicesAreAmongThem) {
  CheckSamples(GrammarKind::kChoice, R"(["yes", "no", "a \"quoted\" one"])",
               [](const std::string& text) {
                 return text == "yes" || text == "no" || text == "a \"quoted\" one";
               });
}

TEST_F(GrammarTest, WhatIsNoGrammarIsRefused) {
  const struct {
    GrammarKind kind;
    std::string text;
    const char* why;
  } cases[] = {
      {GrammarKind::kJsonSchema, "{", "not JSON"},
      {GrammarKind::kJsonSchema, "3", "must be a JSON object"},
      {GrammarKind::kJsonSchema, R"({"type": "objekt"})", "objekt"},
      {GrammarKind::kRegex, "a(", ""},
      {GrammarKind::kLark, "start: missing", "missing"},
      {GrammarKind::kChoice, "[]", "choices"},
      {GrammarKind::kLark, std::string(2 << 20, 'a'), "the limit is"},
  };
  for (const auto& each : cases) {
    const auto grammar = Compile(each.kind, each.text);
    ASSERT_FALSE(grammar.ok()) << each.text.substr(0, 60);
    EXPECT_EQ(grammar.status().code(), absl::StatusCode::kInvalidArgument) << grammar.status();
    EXPECT_THAT(grammar.status().message(), HasSubstr(each.why));
  }
}

// The library would call itself until the stack ends.
TEST_F(GrammarTest, NumbersBelowTheLeastAreRefused) {
  const GrammarKind schema = GrammarKind::kJsonSchema;
  for (const auto& [kind, text] : std::vector<std::pair<GrammarKind, std::string>>{
           {schema, R"({"const":-9223372036854775808})"},
           {schema, R"({"anyOf":[{"enum":[1,[-9.3e18]]}]})"},
           {schema, R"({"type":"integer","minimum":-1e300,"maximum":-1e299})"},
           {schema, R"({"type":"integer","exclusiveMaximum":-9223372036854775807})"},
           {GrammarKind::kLark, R"(start: %json {"const": -9223372036854775808})"},
       }) {
    const auto grammar = Compile(kind, text);
    EXPECT_EQ(grammar.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(grammar.status().message(), HasSubstr("the least is -9223372036854774784"));
  }
  for (const char* const text :
       {R"({"const":-9223372036854774784})", R"({"const":"a \" -9e99","type":"string"})",
        R"({"type":"integer","minimum":-9007199254740991})"}) {
    const auto grammar = Compile(schema, text);
    EXPECT_TRUE(grammar.ok()) << text << grammar.status();
  }
}

}  // namespace
}  // namespace reprise
