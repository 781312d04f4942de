#include "tests/fuzz/texts/seeds.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/text/tokenizer.h"

namespace reprise {
namespace {

using namespace std::string_literals;

std::string File(TokenizerKind kind, absl::string_view data) {
  return absl::StrCat(std::string(1, static_cast<char>(kind)), data);
}

constexpr char kVocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n!\n";

constexpr char kWordPiece[] = R"({"version": "1.0", "added_tokens": [
  {"id": 1, "content": "[CLS]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
  {"id": 2, "content": "[SEP]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
  "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3, "world": 4, "##s": 5, "!": 6}}})";

constexpr char kBpe[] = R"({"version": "1.0", "added_tokens": [], "normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
  "fuse_unk": false, "byte_fallback": false, "vocab": {"h": 0, "e": 1, "l": 2, "o": 3, "he": 4, "ll": 5, "hell": 6},
  "merges": ["h e", "l l", "he ll"]}})";

constexpr char kUnigram[] =
    R"({"version": "1.0", "added_tokens": [], "normalizer": {"type": "NFKC"},
  "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
  "post_processor": null, "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
  "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
  "vocab": [["<unk>", 0.0], ["▁", -1.0], ["h", -2.0], ["hello", -1.5], ["e", -2.5], ["l", -2.5], ["o", -2.5]]}})";

std::string Pair(const std::string& text, const std::string& pair) { return text + '\0' + pair; }

// Returns a vocabulary with the files next to it.
std::string WithFiles(TokenizerKind kind, const std::string& data, const std::string& config,
                      const std::string& added, const std::string& special) {
  constexpr char kLowers = 4;
  std::string file = File(kind, Pair(Pair(data, ""), Pair(Pair(config, added), special)));
  file[0] = static_cast<char>(file[0] + kLowers);
  return file;
}

}  // namespace

std::vector<TextSeed> TokenizerFileSeeds() {
  const auto json = [](absl::string_view text) { return File(TokenizerKind::kJson, text); };
  return {
      {"vocab", File(TokenizerKind::kVocabTxt, kVocab), true},
      {"word_piece", json(kWordPiece), true},
      {"bpe", json(kBpe), true},
      {"unigram", json(kUnigram), true},
      {"merges",
       File(TokenizerKind::kVocabAndMerges,
            Pair(R"({"h": 0, "e": 1, "he": 2})", "#version: 0.2\nh e\n")),
       true},
      {"added_tokens",
       WithFiles(TokenizerKind::kVocabTxt, kVocab, R"({"tokenizer_class": "BertTokenizer"})",
                 R"({"[x]": 9, "y": 10})", R"({"additional_special_tokens": ["[x]", "z"]})"),
       true},
      {"added_decoder",
       WithFiles(TokenizerKind::kJson, kWordPiece,
                 R"({"added_tokens_decoder": {"7": {"content": "[x]", "lstrip": true}},
                     "truncation_side": "left", "split_special_tokens": true})",
                 "", ""),
       true},
      {"unknown_class", WithFiles(TokenizerKind::kVocabTxt, kVocab,
                                  R"({"tokenizer_class": "FunnelTokenizer"})", "", "")},
      {"added_gap", WithFiles(TokenizerKind::kVocabTxt, kVocab, "", R"({"[x]": 4294967295})", "")},
      {"empty_json", json("")},
      {"no_model", json(R"({"version": "1.0"})")},
      {"deep", json(std::string(20000, '['))},
      {"negative_ids", json(R"({"model": {"type": "WordPiece", "vocab": {"a": -1}}})")},
      {"regex", json(R"({"version": "1.0", "added_tokens": [], "normalizer": {"type": "Replace",
        "pattern": {"Regex": "(a+)+$"}, "content": "b"}, "pre_tokenizer": null, "post_processor": null,
        "decoder": null, "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})")},
      {"wrong_merges", File(TokenizerKind::kVocabAndMerges, Pair(R"({"h": 0})", "x y\nz"))},
      {"no_proto", File(TokenizerKind::kSentencePiece, "\x0A\xFF\xFF\xFF\xFF\x0F"s)},
      {"empty_vocab", File(TokenizerKind::kVocabTxt, "")},
  };
}

std::vector<TextSeed> TextSeeds() {
  // Each tokenizer with each choice of the options, by a few texts.
  const std::string texts[] = {"",
                               "hello worlds!",
                               "H\u00e9llo \U0001F600\u200d\U0001F469 \u65e5\u672c\u8a9e",
                               "\u0000\u0001\u001b[31m\u202e"s,
                               "\xff\xfe broken",
                               "e\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
                               std::string(5000, 'a'),
                               Pair("hello", "world"),
                               std::string(300, ' ') + "[CLS][SEP]<unk>\u2581"};
  std::vector<TextSeed> seeds;
  for (size_t i = 0; i < std::size(texts); ++i) {
    for (int options = 0; options < 18; ++options) {
      const std::string head = {static_cast<char>(options % 5), static_cast<char>(options % 6),
                                static_cast<char>(options % 3 + (options % 2) * 129),
                                static_cast<char>(options * 14)};
      seeds.push_back({absl::StrCat("text_", i, "_", options), head + texts[i]});
    }
  }
  return seeds;
}

}  // namespace reprise
