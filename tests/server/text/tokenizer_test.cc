#include "server/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kVocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n!\n";

std::unique_ptr<Tokenizer> Bert() {
  auto tokenizer = Tokenizer::Load({.kind = TokenizerKind::kVocabTxt, .data = kVocab});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(TokenizerTest, TextHasSpecialTokensTypesAndOffsetsInCharacters) {
  const auto tokenizer = Bert();
  const auto tokens =
      tokenizer->Encode("H\u00e9llo worlds!", std::nullopt, {.offsets = Offsets::kChars});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(tokens->ids, ElementsAre(2, 5, 6, 7, 8, 3));
  EXPECT_THAT(tokens->special, ElementsAre(true, false, false, false, false, true));
  EXPECT_THAT(tokens->offsets, ElementsAre(Pair(0, 0), Pair(0, 5), Pair(6, 11), Pair(11, 12),
                                           Pair(12, 13), Pair(0, 0)));
  const auto bytes =
      tokenizer->Encode("H\u00e9llo worlds!", std::nullopt, {.offsets = Offsets::kBytes});
  EXPECT_THAT(bytes->offsets[1], Pair(0, 6));
}

TEST(TokenizerTest, SecondTextHasTypeOne) {
  const auto tokens = Bert()->Encode("hello", "world", {});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(tokens->ids, ElementsAre(2, 5, 3, 6, 3));
  EXPECT_THAT(tokens->type_ids, ElementsAre(0, 0, 0, 1, 1));
  // An empty second text is one all the same.
  EXPECT_THAT(Bert()->Encode("hello", "", {})->ids, ElementsAre(2, 5, 3, 3));
}

TEST(TokenizerTest, TooManyTokensAreAnErrorUnlessTruncationIsAskedFor) {
  const auto tokenizer = Bert();
  const std::string text = "hello world hello world !";
  const auto refused = tokenizer->Encode(text, std::nullopt, {.max_tokens = 4});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("7 tokens, the model takes 4"));
  const auto right =
      tokenizer->Encode(text, std::nullopt, {.truncation = Truncation::kRight, .max_tokens = 4});
  EXPECT_THAT(right->ids, ElementsAre(2, 5, 6, 3));
  EXPECT_TRUE(right->truncated());
  EXPECT_GT(right->full_count, 4);
  const auto left =
      tokenizer->Encode(text, std::nullopt, {.truncation = Truncation::kLeft, .max_tokens = 4});
  EXPECT_THAT(left->ids, ElementsAre(2, 6, 8, 3));
}

TEST(TokenizerTest, LongerTextOfAPairGivesFirst) {
  const EncodeOptions options = {.truncation = Truncation::kRight, .max_tokens = 7};
  const auto tokens = Bert()->Encode("hello", "world world world world world", options);
  EXPECT_THAT(tokens->ids, ElementsAre(2, 5, 3, 6, 6, 6, 3));
  const auto both = Bert()->Encode("hello hello hello", "world world world world", options);
  EXPECT_THAT(both->ids, ElementsAre(2, 5, 5, 3, 6, 6, 3));
}

TEST(TokenizerTest, NoRoomForTextsBesideSpecialTokensIsAnError) {
  const auto tokens =
      Bert()->Encode("hello", std::nullopt, {.truncation = Truncation::kRight, .max_tokens = 2});
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TokenizerTest, SizesAreBoundedWithTheNumbers) {
  const auto tokenizer = Bert();
  const auto bytes = tokenizer->Encode(std::string(11, 'a'), std::nullopt, {.max_bytes = 10});
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(bytes.status().message(), HasSubstr("11 bytes, the limit is 10"));
  const auto many = tokenizer->Encode("! ! ! ! !", std::nullopt,
                                      {.truncation = Truncation::kRight, .most_tokens = 3});
  EXPECT_EQ(many.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(many.status().message(), HasSubstr("more than 3 tokens"));
}

std::string Repeated(const std::string& text, size_t count) {
  std::string many;
  for (size_t i = 0; i < count; ++i) many += text;
  return many;
}

TEST(TokenizerTest, TextFarBeyondTheContextIsCutOrRefusedWithBothNumbers) {
  const auto tokenizer = Bert();
  const std::string text = Repeated("hello world ", 10'000);
  const auto cut =
      tokenizer->Encode(text, std::nullopt, {.truncation = Truncation::kRight, .max_tokens = 4});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(cut->ids, ElementsAre(2, 5, 6, 3));
  const auto end = tokenizer->Encode(text + "!", std::nullopt,
                                     {.truncation = Truncation::kLeft, .max_tokens = 4});
  EXPECT_THAT(end->ids, ElementsAre(2, 6, 8, 3));
  const auto refused = tokenizer->Encode(text, std::nullopt, {.max_tokens = 4});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("more than 18 tokens, the model takes 4"));
}

// The longer one of the two keeps the odd token, however far both are beyond it.
TEST(TokenizerTest, BothTextsOfAPairFarBeyondTheContextAreCutAsShortOnesAre) {
  const auto tokenizer = Bert();
  const EncodeOptions options = {.truncation = Truncation::kRight, .max_tokens = 8};
  const auto first = tokenizer->Encode(Repeated("hello ", 500), Repeated("world ", 400), options);
  EXPECT_THAT(first->ids, ElementsAre(2, 5, 5, 5, 3, 6, 6, 3));
  const auto second = tokenizer->Encode(Repeated("hello ", 400), Repeated("world ", 500), options);
  EXPECT_THAT(second->ids, ElementsAre(2, 5, 5, 3, 6, 6, 6, 3));
}

// Returns a tokenizer of words whose post-processor is given.
std::unique_ptr<Tokenizer> PostProcessed(absl::string_view post_processor) {
  auto tokenizer =
      Tokenizer::Load({.kind = TokenizerKind::kJson,
                       .data = absl::StrCat(
                           R"({"version": "1.0", "added_tokens": [], "normalizer": null,
               "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": null, "post_processor": )",
                           post_processor,
                           R"(, "model": {"type": "WordLevel", "unk_token": "?", "vocab":
               {"?": 0, "<": 1, ">": 2, "a": 3, "b": 4, "c": 5}}})")});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(TokenizerTest, AFirstTextThatIsTokenizedOnceMakesTheTokensOfEachPair) {
  const std::vector<std::string> processors = {
      "null", R"({"type": "BertProcessing", "sep": [">", 2], "cls": ["<", 1]})",
      R"({"type": "RobertaProcessing", "sep": [">", 2], "cls": ["<", 1], "trim_offsets": true,
          "add_prefix_space": false})",
      R"({"type": "TemplateProcessing",
          "single": [{"SpecialToken": {"id": "<", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
          "pair": [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": ">", "type_id": 1}},
                   {"Sequence": {"id": "A", "type_id": 0}}],
          "special_tokens": {"<": {"id": "<", "ids": [1], "tokens": ["<"]},
                             ">": {"id": ">", "ids": [2], "tokens": [">"]}}})",
      R"({"type": "Sequence", "processors": [
          {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
          {"type": "BertProcessing", "sep": [">", 2], "cls": ["<", 1]}]})"};
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const std::string& processor : processors) tokenizers.push_back(PostProcessed(processor));
  tokenizers.push_back(Bert());
  const std::vector<std::string> texts = {
      "", "a", "b c", "a b c a b c a", Repeated("c a ", 9), "hello worlds! hello", "x"};
  for (const auto& tokenizer : tokenizers) {
    for (const Truncation side : {Truncation::kNone, Truncation::kRight, Truncation::kLeft}) {
      for (const int64_t most : {0, 2, 3, 4, 7, 8, 16, 64}) {
        for (const bool special : {true, false}) {
          for (const int64_t before : {0, 9}) {
            const EncodeOptions options = {.add_special = special,
                                           .truncation = side,
                                           .max_tokens = most,
                                           .most_tokens = before};
            for (const std::string& text : texts) {
              const auto first = tokenizer->EncodeFirst(text, options);
              for (const std::string& second : texts) {
                const auto wanted = tokenizer->Encode(text, second, options);
                if (!first.ok()) {
                  EXPECT_EQ(first.status(), wanted.status());
                  continue;
                }
                const auto tokens = tokenizer->EncodePair(*first, second, options);
                ASSERT_EQ(tokens.status(), wanted.status()) << text << " | " << second;
                if (!tokens.ok()) continue;
                EXPECT_EQ(tokens->ids, wanted->ids) << text << " | " << second;
                EXPECT_EQ(tokens->type_ids, wanted->type_ids);
                EXPECT_EQ(tokens->special, wanted->special);
                EXPECT_EQ(tokens->full_count, wanted->full_count);
              }
            }
          }
        }
      }
    }
  }
}

TEST(TokenizerTest, LongTextEndsWithTheErrorOfItsQuestion) {
  int asked = 0;
  const auto tokens = Bert()->Encode(
      Repeated("hello ! ", 100'000), std::nullopt,
      {.go_on = [&] { return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("gone"); }});
  EXPECT_EQ(tokens.status(), absl::CancelledError("gone"));
  EXPECT_EQ(asked, 3);
  int looks = 0;
  const std::vector<uint32_t> ids(200'000, 5);
  const auto text = Bert()->Decode(ids, false, [&] {
    return ++looks < 3 ? absl::OkStatus() : absl::DeadlineExceededError("late");
  });
  EXPECT_EQ(text.status(), absl::DeadlineExceededError("late"));
}

// Returns a tokenizer of WordPiece whose normalizer, pre-tokenizer and longest word are given.
std::unique_ptr<Tokenizer> Words(absl::string_view normalizer, absl::string_view pre_tokenizer) {
  auto tokenizer = Tokenizer::Load(
      {.kind = TokenizerKind::kJson,
       .data =
           absl::StrCat(R"({"version": "1.0", "added_tokens": [], "normalizer": )", normalizer,
                        R"(, "pre_tokenizer": )", pre_tokenizer,
                        R"(, "post_processor": null, "decoder": null, "model": {"type": "WordPiece",
               "unk_token": "[UNK]", "continuing_subword_prefix": "##",
               "max_input_chars_per_word": 10000000,
               "vocab": {"[UNK]": 0, "a": 1, "##a": 2, "\u00e9": 3, "##\u00e9\u00e9": 4}}})")});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

constexpr char kBlanks[] = R"({"type": "WhitespaceSplit"})";

TEST(TokenizerTest, LongWordsTakeTimeByTheirLengthAndHaveTheTokensOfShortOnes) {
  const auto tokenizer = Words("null", kBlanks);
  const auto letters = tokenizer->Encode(std::string(300'000, 'a'), std::nullopt, {});
  ASSERT_TRUE(letters.ok()) << letters.status();
  ASSERT_EQ(letters->ids.size(), 300'000u);
  EXPECT_EQ(letters->ids.front(), 1u);
  EXPECT_EQ(letters->ids.back(), 2u);
  const auto accents = tokenizer->Encode(Repeated("\u00e9", 1001), std::nullopt, {});
  ASSERT_EQ(accents->ids.size(), 501u);
  EXPECT_THAT(absl::MakeConstSpan(accents->ids).first(3), ElementsAre(3, 4, 4));
  // A part that no token is makes it the unknown one.
  const auto unknown = tokenizer->Encode(Repeated("\u00e9", 1000), std::nullopt, {});
  EXPECT_THAT(unknown->ids, ElementsAre(0));
}

TEST(TokenizerTest, TextThatATokenizerMakesLargeEndsAtItsMemory) {
  const std::string bomb =
      absl::StrCat(R"({"type": "Replace", "pattern": {"String": "a"}, "content": ")",
                   std::string(100'000, 'a'), R"("})");
  const auto tokenizer = Words(bomb, kBlanks);
  const auto tokens = tokenizer->Encode(std::string(100'000, 'a'), std::nullopt, {});
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument) << tokens.status();
  EXPECT_THAT(tokens.status().message(), HasSubstr("bytes of memory"));
  EXPECT_TRUE(tokenizer->Encode("b", std::nullopt, {}).ok());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// In a process of its own, which may grow by some megabytes only.
TEST(TokenizerTest, WithoutMemoryATextIsRefusedAndTheProcessGoesOn) {
  const auto starved = [] {
    const auto tokenizer = Bert();
    const std::string text = Repeated("hello ! ", 100'000);
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (int64_t{12} << 20));
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    bool right = true;
    for (int i = 0; i < 20; ++i) {
      right =
          right && absl::IsResourceExhausted(tokenizer->Encode(text, std::nullopt, {}).status());
      right = right && tokenizer->Encode("hello", std::nullopt, {}).ok();
    }
    _exit(right ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(starved(), ::testing::ExitedWithCode(0), "");
}
#endif

TEST(TokenizerTest, TextIsShortWhereAPatternLooksAroundWithoutBound) {
  const auto pattern = [](absl::string_view regex) {
    return absl::StrCat(R"({"type": "Split", "pattern": {"Regex": ")", regex,
                        R"("}, "behavior": "Isolated", "invert": false})");
  };
  const std::string text(40'000, 'a');
  const auto refused = Words("null", pattern("(?=.*x)a"))->Encode(text, std::nullopt, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("40000 bytes, the limit is 32768"));
  EXPECT_THAT(refused.status().message(), HasSubstr("(?=.*x)a"));
  EXPECT_TRUE(
      Words("null", pattern("\\\\s+(?!\\\\S)|b[+(?=*]"))->Encode(text, std::nullopt, {}).ok());
}

TEST(TokenizerTest, BrokenUtf8IsNamedByItsPlace) {
  const auto tokens = Bert()->Encode("hello \xff", std::nullopt, {});
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(tokens.status().message(), HasSubstr("no UTF-8 at byte 6"));
  const auto pair = Bert()->Encode("hello", "\xc3", {});
  EXPECT_THAT(pair.status().message(), HasSubstr("the second text is no UTF-8 at byte 0"));
}

TEST(TokenizerTest, IdsBecomeTextsAgain) {
  const auto tokenizer = Bert();
  EXPECT_EQ(*tokenizer->Decode({2, 5, 6, 7, 8, 3}, true), "hello worlds!");
  EXPECT_EQ(*tokenizer->Decode({2, 5, 3, 4'000'000}, false), "[CLS] hello [SEP]");
  EXPECT_EQ(*tokenizer->Decode({}, true), "");
  EXPECT_EQ(tokenizer->Token(7), "##s");
  EXPECT_EQ(tokenizer->Token(99), "");
  EXPECT_EQ(tokenizer->Id("world"), 6u);
  EXPECT_EQ(tokenizer->Id("worlds"), std::nullopt);
  EXPECT_EQ(tokenizer->size(), 9);
}

TEST(TokenizerTest, ClassesThatAreNotKnownAreRefusedByName) {
  TokenizerFiles files{.kind = TokenizerKind::kVocabTxt,
                       .data = kVocab,
                       .config = R"({"tokenizer_class": "BertJapaneseTokenizer"})"};
  const auto refused = Tokenizer::Load(files);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("tokenizer_config.json names the class BertJapaneseTokenizer"));
  // Where no file names a class, the kind of model does.
  files.config.clear();
  files.model_config = R"({"model_type": "rembert"})";
  EXPECT_THAT(Tokenizer::Load(files).status().message(), HasSubstr("model_type is \"rembert\""));
  files.model_config = R"({"model_type": "electra"})";
  EXPECT_TRUE(Tokenizer::Load(files).ok());
}

TEST(TokenizerTest, AddedTokensHaveTheIdsThatFilesSay) {
  TokenizerFiles files{
      .kind = TokenizerKind::kVocabTxt, .data = kVocab, .added_tokens = R"({"[special]": 9})"};
  const auto tokenizer = Tokenizer::Load(files);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT((*tokenizer)->Encode("hello [special]", std::nullopt, {})->ids,
              ElementsAre(2, 5, 9, 3));
  files.config = R"({"added_tokens_decoder": {"9": {"content": "hello world", "special": true}}})";
  EXPECT_THAT((*Tokenizer::Load(files))->Encode("a hello world", std::nullopt, {})->ids,
              ElementsAre(2, 1, 9, 3));
  files.config.clear();
  files.added_tokens = R"({"[special]": 12})";
  EXPECT_THAT(Tokenizer::Load(files).status().message(),
              HasSubstr("\"[special]\" has the id 12, and the vocabulary gives it 9"));
}

TEST(TokenizerTest, TextsAreLoweredAsPythonDoesIt) {
  const TokenizerFiles files{
      .kind = TokenizerKind::kVocabTxt,
      .data = "[UNK]\n[CLS]\n[SEP]\n\u00e9\n\u0434\n\u03c3\u03b1\u03c2\ni\n\u0307\n##\u0307\nb\n",
      .config = R"({"do_lower_case": false, "strip_accents": false})",
      .lower_case = true};
  const auto tokenizer = Tokenizer::Load(files);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const EncodeOptions options = {.add_special = false, .offsets = Offsets::kChars};
  EXPECT_THAT((*tokenizer)->Encode("\u00c9 \u0414 \u03a3\u0391\u03a3", std::nullopt, options)->ids,
              ElementsAre(3, 4, 5));
  // One letter becomes two, and offsets count in the text as it was sent.
  const auto tokens = (*tokenizer)->Encode("\u0130 b", std::nullopt, options);
  EXPECT_THAT(tokens->ids, ElementsAre(6, 8, 9));
  EXPECT_THAT(tokens->offsets, ElementsAre(Pair(0, 1), Pair(0, 1), Pair(2, 3)));
}

TEST(TokenizerTest, TheSideThatFilesNameIsCut) {
  TokenizerFiles files{
      .kind = TokenizerKind::kVocabTxt, .data = kVocab, .config = R"({"truncation_side": "left"})"};
  const EncodeOptions options = {.truncation = Truncation::kBySide, .max_tokens = 4};
  const auto ids = [&] {
    return (*Tokenizer::Load(files))->Encode("hello world !", std::nullopt, options)->ids;
  };
  EXPECT_THAT(ids(), ElementsAre(2, 6, 8, 3));
  files.config.clear();
  EXPECT_THAT(ids(), ElementsAre(2, 5, 6, 3));
}

TEST(TokenizerTest, DamagedFilesAreRefusedByName) {
  for (const char* json : {"", "{", "[]", R"({"model": {"type": "BPE"}})"}) {
    const auto tokenizer = Tokenizer::Load({.kind = TokenizerKind::kJson, .data = json});
    EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument) << json;
    EXPECT_THAT(tokenizer.status().message(), HasSubstr("tokenizer.json")) << json;
  }
  const auto vocab = Tokenizer::Load({.kind = TokenizerKind::kVocabTxt, .data = "a\nb\n"});
  EXPECT_THAT(vocab.status().message(), HasSubstr("vocab.txt has no unk_token [UNK]"));
  for (const std::string& bytes :
       {std::string("\x0a\x7f"), std::string(), std::string(64, '\xff')}) {
    const auto piece = Tokenizer::Load({.kind = TokenizerKind::kSentencePiece, .data = bytes});
    EXPECT_EQ(piece.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(TokenizerTest, TruncationPaddingAndDropoutOfTheFileAreSwitchedOff) {
  const auto tokenizer = Tokenizer::Load({.kind = TokenizerKind::kJson, .data = R"({
      "version": "1.0",
      "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
      "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null,
                  "pad_id": 0, "pad_type_id": 0, "pad_token": "a"},
      "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
      "decoder": null,
      "model": {"type": "BPE", "dropout": 0.9, "unk_token": null,
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
                "byte_fallback": false, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})"});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT((*tokenizer)->Encode("ababa", std::nullopt, {})->ids, ElementsAre(2, 2, 0));
  }
}

TEST(TokenizerTest, SeveralThreadsShareOne) {
  const auto tokenizer = Bert();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        EXPECT_THAT(tokenizer->Encode("hello worlds", std::nullopt, {})->ids,
                    ElementsAre(2, 5, 6, 7, 3));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace reprise
