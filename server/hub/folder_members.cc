#include "server/hub/folder_members.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "server/hub/json_file.h"

namespace reprise {
namespace {

using Json = nlohmann::json;
using enum MemberUse;

constexpr char kModules[] = "modules.json";
constexpr char kBert[] = "sentence_bert_config.json";
constexpr char kSentence[] = "config_sentence_transformers.json";
constexpr char kPooling[] = "Pooling/config.json";
constexpr char kDense[] = "Dense/config.json";
constexpr char kNormalize[] = "Normalize/config.json";
constexpr char kLayerNorm[] = "LayerNorm/config.json";
constexpr char kDropout[] = "Dropout/config.json";
constexpr char kSplade[] = "SpladePooling/config.json";
constexpr char kVectorMask[] = "MultiVectorMask/config.json";
constexpr char kModel[] = "config.json";
constexpr char kTokenizer[] = "tokenizer_config.json";
constexpr char kSpecial[] = "special_tokens_map.json";
constexpr char kAdded[] = "added_tokens.json";

constexpr char kFlag[] =
    "a pooling, where pooling_mode does not name them; they are joined in this order";
constexpr char kOnlyGraph[] = "concerns weights, which the ONNX file has";
constexpr char kToken[] = "a special token";
constexpr char kList[] = "further special tokens";

constexpr FolderMember kMembers[] = {
    {kModules, "path", kRead, "text", "the module's folder"},
    {kModules, "type", kRead, "text", "the module; they run in the order of the list"},
    {kModules, "kwargs", kOnly, "[null, []]", "arguments of a call are not supported"},
    {kModules, "idx", kUnread, "", "the order of the list counts"},
    {kModules, "name", kUnread, "", "a name for people"},
    {kModules, "*", kOnly, "[]", "is not known"},

    {kBert, "max_seq_length", kRead, "number", "how many tokens a text may have"},
    {kBert, "do_lower_case", kRead, "bool",
     "texts are lowered first, as Python's str.lower does it"},
    {kBert, "transformer_task", kOnly,
     R"([null, "feature-extraction", "sequence-classification", "fill-mask"])",
     "causal language models are not supported"},
    {kBert, "modality_config", kRead, "object", "the output of the model that counts for texts"},
    {kBert, "module_output_name", kRead, "text", "the name that modules read this output by"},
    {kBert, "processing_kwargs", kOnly, "[null, {}]",
     "arguments of the tokenizer are not supported"},
    {kBert, "query_length", kRead, "number", "late interaction: how many tokens a query may have"},
    {kBert, "document_length", kRead, "number",
     "late interaction: how many tokens a document may have"},
    {kBert, "query_expansion", kRead, "object",
     "late interaction: queries are filled up with tokens of masks"},
    {kBert, "tokenizer_name_or_path", kOnly, "[null]", "the tokenizer is the folder's own"},
    {kBert, "tokenizer_args", kOnly, "[null, {}]", "arguments of the tokenizer are not supported"},
    {kBert, "processor_kwargs", kOnly, "[null, {}]",
     "arguments of the tokenizer are not supported"},
    {kBert, "config_args", kOnly, "[null, {}]", "changes of config.json are not supported"},
    {kBert, "config_kwargs", kOnly, "[null, {}]", "changes of config.json are not supported"},
    {kBert, "model_args", kUnread, "", kOnlyGraph},
    {kBert, "model_kwargs", kUnread, "", kOnlyGraph},
    {kBert, "unpad_inputs", kUnread, "", "concerns speed"},
    {kBert, "*", kOnly, "[]", "is not known"},

    {kSentence, "model_type", kOnly,
     R"([null, "SentenceTransformer", "CrossEncoder", "SparseEncoder", "MultiVectorEncoder", "ColBERT"])",
     "whether a vector, a score, weights of words or a vector a token are answered"},
    {kSentence, "prompts", kRead, "object", "prompts by name"},
    {kSentence, "default_prompt_name", kRead, "text",
     "the prompt of texts that name none; refused for a cross encoder"},
    {kSentence, "similarity_fn_name", kOnly,
     R"([null, "cosine", "dot", "euclidean", "manhattan", "maxsim", "MaxSim", "meanmaxsim"])",
     "how two vectors are compared"},
    {kSentence, "truncate_dim", kRead, "number", "vectors are cut to this many elements"},
    {kSentence, "max_active_dims", kRead, "number", "the largest weights of words are answered"},
    {kSentence, "query_prefix", kRead, "text", "PyLate: a token that follows a query's first"},
    {kSentence, "document_prefix", kRead, "text",
     "PyLate: a token that follows a document's first"},
    {kSentence, "query_length", kRead, "number", "PyLate: how many tokens a query may have"},
    {kSentence, "document_length", kRead, "number", "PyLate: how many tokens a document may have"},
    {kSentence, "do_query_expansion", kRead, "bool",
     "PyLate: queries are filled up with tokens of masks"},
    {kSentence, "attend_to_expansion_tokens", kRead, "bool",
     "PyLate: other tokens attend to these as well"},
    {kSentence, "skiplist_words", kRead, "list",
     "PyLate: tokens of documents whose vectors are left out; without it, punctuation"},
    {kSentence, "activation_fn", kRead, "text", "the activation of a cross encoder's score"},
    {kSentence, "keep_in_fp32_modules", kUnread, "", kOnlyGraph},
    {kSentence, "requirements", kUnread, "", "versions of packages"},
    {kSentence, "__version__", kUnread, "", "versions of packages"},
    {kSentence, "*", kOnly, "[]", "is not known"},

    {kPooling, "word_embedding_dimension", kRead, "number", "the width of a token's vector"},
    {kPooling, "embedding_dimension", kRead, "number", "its newer name"},
    {kPooling, "pooling_mode", kRead, "text|list", "the poolings, joined in the order of the list"},
    {kPooling, "pooling_mode_cls_token", kRead, "bool", kFlag},
    {kPooling, "pooling_mode_max_tokens", kRead, "bool", kFlag},
    {kPooling, "pooling_mode_mean_tokens", kRead, "bool", kFlag},
    {kPooling, "pooling_mode_mean_sqrt_len_tokens", kRead, "bool", kFlag},
    {kPooling, "pooling_mode_weightedmean_tokens", kRead, "bool", kFlag},
    {kPooling, "pooling_mode_lasttoken", kRead, "bool", kFlag},
    {kPooling, "include_prompt", kOnly, "[null, true]",
     "prompts that are not pooled are not supported"},
    {kPooling, "*", kOnly, "[]", "is not known"},

    {kDense, "in_features", kRead, "number", "must be the width of the weights"},
    {kDense, "out_features", kRead, "number", "must be the height of the weights"},
    {kDense, "bias", kRead, "bool", "must agree with the weights"},
    {kDense, "activation_function", kRead, "text", "Identity, Tanh, ReLU, GELU or Sigmoid"},
    {kDense, "module_input_name", kRead, "text",
     "the vectors that are read: a text's or each token's"},
    {kDense, "module_output_name", kRead, "text", "the name that modules read the result by"},
    {kDense, "use_residual", kRead, "bool", "the input is added to the result"},
    {kDense, "*", kOnly, "[]", "is not known"},

    {kNormalize, "module_input_name", kRead, "text", "the vectors that are read"},
    {kNormalize, "module_output_name", kRead, "text", "the name that modules read the result by"},
    {kNormalize, "*", kOnly, "[]", "is not known"},
    {kLayerNorm, "dimension", kRead, "number", "must be the width of the weights"},
    {kLayerNorm, "*", kOnly, "[]", "is not known"},
    {kDropout, "*", kUnread, "", "concerns training"},
    {kSplade, "pooling_strategy", kOnly, R"([null, "max", "sum"])",
     "how weights of a word in several places become one"},
    {kSplade, "activation_function", kOnly, R"([null, "relu", "log1p_relu"])",
     "the logarithm is taken once or twice"},
    {kSplade, "embedding_dimension", kRead, "number", "the number of words"},
    {kSplade, "word_embedding_dimension", kRead, "number", "its older name"},
    {kSplade, "chunk_size", kUnread, "", "concerns memory"},
    {kSplade, "*", kOnly, "[]", "is not known"},
    {kVectorMask, "skiplist_words", kRead, "list", "tokens whose vectors are left out"},
    {kVectorMask, "skiplist_tasks", kRead, "text|list", "of documents unless it says others"},
    {kVectorMask, "keep_only_token_ids", kOnly, "[null, []]",
     "tokens of pictures are not supported"},
    {kVectorMask, "*", kOnly, "[]", "is not known"},

    {kModel, "architectures", kRead, "list",
     "whether vectors, labels or labels of tokens are answered"},
    {kModel, "model_type", kRead, "text",
     "the tokenizer's class where no file names it; where positions begin"},
    {kModel, "tokenizer_class", kRead, "text", "as in tokenizer_config.json, which counts first"},
    {kModel, "id2label", kRead, "object", "the labels"},
    {kModel, "problem_type", kRead, "text",
     "whether labels exclude each other, or are numbers (regression)"},
    {kModel, "max_position_embeddings", kRead, "number", "how many tokens a text may have"},
    {kModel, "pad_token_id", kRead, "number",
     "the id of padding, after which positions of RoBERTa's kind begin"},
    {kModel, "sentence_transformers", kRead, "object", "activation_fn of older cross encoders"},
    {kModel, "sbert_ce_default_activation_function", kRead, "text", "activation_fn of the oldest"},
    {kModel, "*", kUnread, "", "concerns the graph, which the ONNX file has"},

    {kTokenizer, "tokenizer_class", kRead, "text",
     "which tokenizer is made of the files; one that is not known is refused without "
     "tokenizer.json"},
    {kTokenizer, "model_max_length", kRead, "number", "how many tokens a text may have"},
    {kTokenizer, "truncation_side", kOnly, R"([null, "left", "right"])",
     "which end goes where a request does not say"},
    {kTokenizer, "model_input_names", kRead, "list", "without token_type_ids all types are 0"},
    {kTokenizer, "do_lower_case", kRead, "bool", "BERT's, ALBERT's and DeBERTa-v2's normalizer"},
    {kTokenizer, "strip_accents", kRead, "bool", "BERT's normalizer"},
    {kTokenizer, "tokenize_chinese_chars", kRead, "bool", "BERT's normalizer"},
    {kTokenizer, "keep_accents", kRead, "bool", "ALBERT's normalizer"},
    {kTokenizer, "add_prefix_space", kRead, "bool", "a blank in front of a text, of BPE of bytes"},
    {kTokenizer, "add_bos_token", kRead, "bool",
     "Llama's and GPT-2's; of Llama it must agree with tokenizer.json"},
    {kTokenizer, "add_eos_token", kRead, "bool",
     "Llama's and GPT-2's; of Llama it must agree with tokenizer.json"},
    {kTokenizer, "split_special_tokens", kRead, "bool", "special tokens in a text are plain text"},
    {kTokenizer, "extra_ids", kRead, "number", "T5's tokens <extra_id_0> and on"},
    {kTokenizer, "added_tokens_decoder", kRead, "object", "tokens beside the vocabulary, by id"},
    {kTokenizer, "bos_token", kRead, "text|object", kToken},
    {kTokenizer, "eos_token", kRead, "text|object", kToken},
    {kTokenizer, "unk_token", kRead, "text|object", kToken},
    {kTokenizer, "sep_token", kRead, "text|object", kToken},
    {kTokenizer, "pad_token", kRead, "text|object", kToken},
    {kTokenizer, "cls_token", kRead, "text|object", kToken},
    {kTokenizer, "mask_token", kRead, "text|object", kToken},
    {kTokenizer, "additional_special_tokens", kRead, "list|object", kList},
    {kTokenizer, "extra_special_tokens", kRead, "list|object", kList},
    {kTokenizer, "model_specific_special_tokens", kRead, "list|object", kList},
    {kTokenizer, "do_basic_tokenize", kOnlyAlone, "[null, true]", "words are split at punctuation"},
    {kTokenizer, "never_split", kOnlyAlone, "[null, []]", "words that are not split"},
    {kTokenizer, "wordpieces_prefix", kOnlyAlone, R"([null, "##"])",
     "the mark of tokens that go on with a word"},
    {kTokenizer, "trim_offsets", kOnlyAlone, "[null, true]", "places leave blanks out"},
    {kTokenizer, "remove_space", kOnlyAlone, "[null, true]", "blanks are joined"},
    {kTokenizer, "split_by_punct", kOnlyAlone, "[null, false]", "punctuation stands apart"},
    {kTokenizer, "vocab_type", kOnlyAlone, R"([null, "spm"])", "the vocabulary is sentencepiece's"},
    {kTokenizer, "sp_model_kwargs", kOnlyAlone, "[null, {}]", "sampling"},
    {kTokenizer, "legacy", kRead, "bool", "Llama's blanks after special tokens in a text"},
    {kTokenizer, "auto_map", kOnlyAlone, "[null]", "code of the folder's own"},
    {kTokenizer, "padding_side", kUnread, "", "a text is not padded in front"},
    {kTokenizer, "pad_to_multiple_of", kUnread, "", "concerns padding"},
    {kTokenizer, "pad_token_type_id", kUnread, "", "concerns padding"},
    {kTokenizer, "max_length", kUnread, "", "model_max_length counts"},
    {kTokenizer, "stride", kUnread, "", "a text has one part"},
    {kTokenizer, "truncation_strategy", kUnread, "", "the longer text of a pair is cut first"},
    {kTokenizer, "clean_up_tokenization_spaces", kUnread, "", "concerns ids that become texts"},
    {kTokenizer, "spaces_between_special_tokens", kUnread, "", "concerns ids that become texts"},
    {kTokenizer, "errors", kUnread, "", "concerns ids that become texts"},
    {kTokenizer, "chat_template", kRead, "text|list",
     "how a conversation is written as a text; chat_template.jinja and chat_template.json count "
     "first"},
    {kTokenizer, "use_default_system_prompt", kUnread, "", "the template has it"},
    {kTokenizer, "processor_class", kUnread, "", "concerns images and sound"},
    {kTokenizer, "name_or_path", kUnread, "", "where the files come from"},
    {kTokenizer, "special_tokens_map_file", kUnread, "", "where the files come from"},
    {kTokenizer, "tokenizer_file", kUnread, "", "where the files come from"},
    {kTokenizer, "vocab_file", kUnread, "", "where the files come from"},
    {kTokenizer, "merges_file", kUnread, "", "where the files come from"},
    {kTokenizer, "from_slow", kUnread, "", "how they were made"},
    {kTokenizer, "use_fast", kUnread, "", "how they were made"},
    {kTokenizer, "backend", kUnread, "", "how they were made"},
    {kTokenizer, "is_local", kUnread, "", "how they were made"},
    {kTokenizer, "local_files_only", kUnread, "", "how they were made"},
    {kTokenizer, "trust_remote_code", kUnread, "", "how they were made"},
    {kTokenizer, "*", kOnlyAlone, "[]", "tokenizer.json has its meaning"},

    {kSpecial, "bos_token", kRead, "text|object", kToken},
    {kSpecial, "eos_token", kRead, "text|object", kToken},
    {kSpecial, "unk_token", kRead, "text|object", kToken},
    {kSpecial, "sep_token", kRead, "text|object", kToken},
    {kSpecial, "pad_token", kRead, "text|object", kToken},
    {kSpecial, "cls_token", kRead, "text|object", kToken},
    {kSpecial, "mask_token", kRead, "text|object", kToken},
    {kSpecial, "additional_special_tokens", kRead, "list|object", kList},
    {kSpecial, "extra_special_tokens", kRead, "list|object", kList},
    {kSpecial, "*", kOnlyAlone, "[]", "tokenizer.json has its meaning"},
    {kAdded, "*", kRead, "number",
     "a token and its id, where there is no added_tokens_decoder; an id that the vocabulary does "
     "not "
     "give it is refused"},
};

bool IsOfType(const Json& value, absl::string_view type) {
  if (type == "text") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "bool") return value.is_boolean();
  if (type == "list") return value.is_array();
  return type == "object" && value.is_object();
}

// Returns it as people read it; a long value is cut.
std::string Shown(const Json& value) {
  constexpr size_t kMost = 80;
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : absl::StrCat(text.substr(0, kMost), "...");
}

const FolderMember* FindMember(absl::string_view file, absl::string_view name) {
  const FolderMember* other = nullptr;
  for (const FolderMember& row : kMembers) {
    if (file != row.file) continue;
    if (name == row.member) return &row;
    if (row.member[0] == '*') other = &row;
  }
  return other;
}

absl::Status CheckMember(const FolderMember& row, const std::string& path, const std::string& name,
                         const Json& value, bool alone) {
  if (row.use == kUnread || (row.use == kOnlyAlone && !alone)) return absl::OkStatus();
  if (row.use == kRead) {
    if (value.is_null()) return absl::OkStatus();
    for (const absl::string_view type : absl::StrSplit(row.values, '|')) {
      if (IsOfType(value, type)) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", name, " is ", Shown(value), ", which is no ", row.values));
  }
  const Json values = Json::parse(row.values);
  for (const Json& known : values) {
    if (known == value) return absl::OkStatus();
  }
  if (values.empty()) {
    return absl::UnimplementedError(absl::StrCat(path, ": the member \"", name, "\" is not known"));
  }
  return absl::UnimplementedError(absl::StrCat(path, ": ", name, " is ", Shown(value),
                                               ", which is not supported (known: ", Shown(values),
                                               ")"));
}

}  // namespace

absl::Span<const FolderMember> FolderMembers() { return kMembers; }

absl::Status CheckMembers(absl::string_view file, const std::string& path, const Json& json,
                          bool alone) {
  if (json.is_null()) return absl::OkStatus();
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a JSON object"));
  }
  for (const auto& [name, value] : json.items()) {
    const FolderMember* row = FindMember(file, name);
    if (row == nullptr) continue;
    const absl::Status checked = CheckMember(*row, path, name, value, alone);
    if (checked.ok() || row->use != kOnlyAlone) {
      RETURN_IF_ERROR(checked);
      continue;
    }
    const std::string of = TextMember(json, "tokenizer_class", "the tokenizer");
    return absl::Status(checked.code(),
                        absl::StrCat(checked.message(), " of ", of, " without tokenizer.json"));
  }
  return absl::OkStatus();
}

}  // namespace reprise
