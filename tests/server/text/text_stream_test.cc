#include "server/text/text_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using Json = nlohmann::json;

std::unique_ptr<Tokenizer> LoadJson(const Json& vocabulary, const Json& decoder,
                                    const std::vector<std::string>& special) {
  Json added = Json::array();
  for (const std::string& token : special) {
    added.push_back({{"id", vocabulary[token]},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json tokenizer = {{"version", "1.0"},
                          {"added_tokens", added},
                          {"model",
                           {{"type", "BPE"},
                            {"vocab", vocabulary},
                            {"merges", Json::array()},
                            {"byte_fallback", true}}},
                          {"decoder", decoder}};
  auto loaded = Tokenizer::Load({.kind = TokenizerKind::kJson, .data = tokenizer.dump()});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return *std::move(loaded);
}

// Makes a tokenizer as Llama's: blanks are U+2581, bytes are "<0x0A>", and the first blank of a
// text goes.
std::unique_ptr<Tokenizer> Llama() {
  Json vocabulary = Json::object();
  int id = 0;
  for (const char* token :
       {"<s>", "</s>", "\u2581", "\u2581the", "a", "\u2581\u2581", "\u00e9", "\ufffd", "b\u2581"}) {
    vocabulary[token] = id++;
  }
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[absl::StrCat(
        "<0x", absl::AsciiStrToUpper(absl::StrCat(absl::Hex(byte, absl::kZeroPad2))), ">")] = id++;
  }
  const Json decoder = {
      {"type", "Sequence"},
      {"decoders",
       {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
        {{"type", "ByteFallback"}},
        {{"type", "Fuse"}},
        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  return LoadJson(vocabulary, decoder, {"<s>", "</s>"});
}

// Makes a tokenizer as GPT-2's: each byte is a letter.
std::unique_ptr<Tokenizer> Gpt() {
  Json vocabulary = Json::object();
  int id = 0, next = 256;
  const auto append = [](int code, std::string& text) {
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xC0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  };
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    std::string token;
    append(prints ? byte : next++, token);
    vocabulary[token] = id++;
  }
  vocabulary["\u0120the"] = id++;
  vocabulary["<end>"] = id++;
  return LoadJson(vocabulary,
                  {{"type", "ByteLevel"},
                   {"add_prefix_space", true},
                   {"trim_offsets", true},
                   {"use_regex", true}},
                  {"<end>"});
}

void CheckWholes(const Tokenizer& tokenizer, const std::vector<uint32_t>& often) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint32_t> ids;
    for (size_t i = 0, count = 1 + random() % 20; i < count; ++i) {
      ids.push_back(random() % 2 == 0 ? often[random() % often.size()]
                                      : random() % static_cast<uint32_t>(tokenizer.size()));
    }
    for (const bool skip : {true, false}) {
      TextStream stream(tokenizer, skip);
      std::string text;
      for (const uint32_t id : ids) {
        const auto part = stream.Push(id);
        ASSERT_TRUE(part.ok()) << part.status();
        text += *part;
      }
      text += *stream.Finish();
      EXPECT_EQ(text, *tokenizer.Decode(ids, skip)) << testing::PrintToString(ids);
    }
  }
}

std::vector<uint32_t> IdsOf(const Tokenizer& tokenizer, const std::vector<std::string>& tokens) {
  std::vector<uint32_t> ids;
  for (const std::string& token : tokens) ids.push_back(*tokenizer.Id(token));
  return ids;
}

TEST(TextStreamTest, PartsOfATextOfBytesAreTheWholeText) {
  const auto tokenizer = Gpt();
  CheckWholes(*tokenizer, IdsOf(*tokenizer, {"\u00e2", "\u0124", "\u00ac", "a", "\u0120the",
                                             "<end>", "\u00f0", "\u0141", "\u013a", "\u0122"}));
}

TEST(TextStreamTest, PartsOfATextOfBlanksAndBytesAreTheWholeText) {
  const auto tokenizer = Llama();
  CheckWholes(*tokenizer, IdsOf(*tokenizer, {"\u2581", "\u2581the", "a", "\u2581\u2581", "<0xE2>",
                                             "<0x82>", "<0xAC>", "<s>", "\ufffd", "b\u2581"}));
}

TEST(TextStreamTest, ALetterOfSeveralTokensComesWhole) {
  const auto tokenizer = Gpt();
  TextStream stream(*tokenizer, true);
  EXPECT_EQ(*stream.Push(*tokenizer->Id("a")), "a");
  EXPECT_EQ(*stream.Push(*tokenizer->Id("\u00e2")), "");  // the three bytes of the euro sign
  EXPECT_EQ(*stream.Push(*tokenizer->Id("\u0124")), "");
  EXPECT_EQ(*stream.Push(*tokenizer->Id("\u00ac")), "\u20ac");
  EXPECT_EQ(*stream.Push(*tokenizer->Id("<end>")), "");
  EXPECT_EQ(*stream.Push(*tokenizer->Id("\u00e2")), "");
  EXPECT_EQ(*stream.Finish(), "\ufffd");
}

TEST(TextStreamTest, BlanksAreThoseOfTheWhole) {
  const auto tokenizer = Llama();
  TextStream stream(*tokenizer, true);
  EXPECT_EQ(*stream.Push(*tokenizer->Id("<s>")), "");
  EXPECT_EQ(*stream.Push(*tokenizer->Id("\u2581the")), "the");
  EXPECT_EQ(*stream.Push(*tokenizer->Id("\u2581the")), " the");
  EXPECT_EQ(*stream.Push(*tokenizer->Id("\u2581")), " ");
  EXPECT_EQ(*stream.Push(*tokenizer->Id("a")), "a");
}

}  // namespace
}  // namespace reprise
