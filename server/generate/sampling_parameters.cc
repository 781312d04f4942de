#include "server/generate/sampling_parameters.h"

#include <simdjson.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

absl::Status Wants(absl::string_view name, absl::string_view kind) {
  return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' must be ", kind));
}

absl::StatusOr<int64_t> WholeOf(const std::string& name, const ParameterValue& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value)) return *number;
  if (const double* number = std::get_if<double>(&value)) {
    constexpr double kBeyond = 0x1.0p63;
    if (*number == std::floor(*number) && std::abs(*number) < kBeyond) {
      return static_cast<int64_t>(*number);
    }
  }
  return Wants(name, "an integer");
}

absl::StatusOr<float> NumberOf(const std::string& name, const ParameterValue& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value)) return static_cast<float>(*number);
  if (const double* number = std::get_if<double>(&value)) {
    if (std::isfinite(*number)) return static_cast<float>(*number);
  }
  return Wants(name, "a number");
}

absl::StatusOr<bool> BoolOf(const std::string& name, const ParameterValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  return Wants(name, "true or false");
}

// Parses with a parser of its own: its memory is let go of with it.
absl::StatusOr<element> Parse(absl::string_view name, absl::string_view text,
                              simdjson::dom::parser& parser) {
  element root;
  const simdjson::padded_string padded(text.data(), text.size());
  if (parser.parse(padded).get(root) != simdjson::SUCCESS) return Wants(name, "JSON");
  return root;
}

absl::Status TakeIds(const std::string& name, const element& json, std::vector<int64_t>& ids) {
  simdjson::dom::array list;
  if (json.get(list) != simdjson::SUCCESS) return Wants(name, "a JSON list of ids");
  ids.reserve(list.size());
  for (const element one : list) {
    int64_t id = 0;
    if (one.get(id) != simdjson::SUCCESS) return Wants(name, "a JSON list of ids");
    ids.push_back(id);
  }
  return absl::OkStatus();
}

absl::Status TakeBias(const std::string& name, const element& json,
                      std::map<int64_t, float>& bias) {
  constexpr absl::string_view kKind = "a JSON object of ids and numbers";
  constexpr double kMost = std::numeric_limits<float>::max();
  simdjson::dom::object map;
  if (json.get(map) != simdjson::SUCCESS) return Wants(name, kKind);
  for (const auto& [key, one] : map) {
    int64_t id = 0;
    double number = 0;
    if (!absl::SimpleAtoi(absl::string_view(key.data(), key.size()), &id) ||
        one.get(number) != simdjson::SUCCESS) {
      return Wants(name, kKind);
    }
    if (!(std::abs(number) <= kMost)) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' = ", number,
                                                     " for id ", id, " is out of range [", -kMost,
                                                     ", ", kMost, "]"));
    }
    bias[id] = static_cast<float>(number);
  }
  return absl::OkStatus();
}

absl::Status AddStop(const std::string& name, absl::string_view text, SamplingParameters& to) {
  constexpr size_t kMostStops = 64, kMostBytes = 4096;
  std::vector<std::string>& stops = to.texts.stops;
  if (text.empty() || text.size() > kMostBytes || stops.size() == kMostStops) {
    return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' must be at most ",
                                                   kMostStops, " texts of 1 to ", kMostBytes,
                                                   " bytes, one has ", text.size()));
  }
  stops.emplace_back(text);
  return absl::OkStatus();
}

absl::Status TakeStops(const std::string& name, const element& json, SamplingParameters& to) {
  constexpr absl::string_view kKind = "a text or a list of texts";
  std::string_view text;
  if (json.get(text) == simdjson::SUCCESS) return AddStop(name, {text.data(), text.size()}, to);
  simdjson::dom::array list;
  if (json.get(list) != simdjson::SUCCESS) return Wants(name, kKind);
  for (const element one : list) {
    if (one.get(text) != simdjson::SUCCESS) return Wants(name, kKind);
    RETURN_IF_ERROR(AddStop(name, {text.data(), text.size()}, to));
  }
  return absl::OkStatus();
}

template <GrammarKind kind>
absl::Status TakeGrammar(const std::string& name, const ParameterValue& value,
                         SamplingParameters& to) {
  const std::string* text = std::get_if<std::string>(&value);
  if (text == nullptr) return Wants(name, "a text");
  if (to.texts.grammar.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", name, "' is a second grammar, and an answer has one"));
  }
  to.texts.grammar = {.kind = kind, .text = *text};
  return absl::OkStatus();
}

template <GrammarKind kind>
absl::Status TakeGrammarJson(const std::string& name, const element& json, SamplingParameters& to) {
  return TakeGrammar<kind>(name, std::string(simdjson::minify(json)), to);
}

template <bool TextWishes::*member>
absl::Status TakeTextFlag(const std::string& name, const ParameterValue& value,
                          SamplingParameters& to) {
  ASSIGN_OR_RETURN(to.texts.*member, BoolOf(name, value));
  return absl::OkStatus();
}

// A parameter: its name, and how it is taken. Lists and maps are JSON, of a text or of a document.
struct Row {
  absl::string_view name;
  absl::Status (*take)(const std::string& name, const ParameterValue& value,
                       SamplingParameters& to) = nullptr;
  absl::Status (*take_json)(const std::string& name, const element& json,
                            SamplingParameters& to) = nullptr;
};

absl::Status TakeText(const Row& row, const std::string& name, const ParameterValue& value,
                      SamplingParameters& to) {
  if (row.take != nullptr) return row.take(name, value, to);
  const std::string* text = std::get_if<std::string>(&value);
  if (text == nullptr) return Wants(name, "JSON");
  simdjson::dom::parser parser;
  ASSIGN_OR_RETURN(const element root, Parse(name, *text, parser));
  return row.take_json(name, root, to);
}

template <auto SamplingOptions::*member>
absl::Status TakeWhole(const std::string& name, const ParameterValue& value,
                       SamplingParameters& to) {
  ASSIGN_OR_RETURN(to.sampling.*member, WholeOf(name, value));
  return absl::OkStatus();
}
template <auto SamplingOptions::*member>
absl::Status TakeNumber(const std::string& name, const ParameterValue& value,
                        SamplingParameters& to) {
  ASSIGN_OR_RETURN(to.sampling.*member, NumberOf(name, value));
  return absl::OkStatus();
}

// THE table of parameters of a request for tokens.
constexpr Row kRows[] = {
    {"max_tokens", TakeWhole<&SamplingOptions::max_tokens>},
    {"min_tokens", TakeWhole<&SamplingOptions::min_tokens>},
    {"temperature", TakeNumber<&SamplingOptions::temperature>},
    {"top_p", TakeNumber<&SamplingOptions::top_p>},
    {"top_k", TakeWhole<&SamplingOptions::top_k>},
    {"min_p", TakeNumber<&SamplingOptions::min_p>},
    {"repetition_penalty", TakeNumber<&SamplingOptions::repetition_penalty>},
    {"presence_penalty", TakeNumber<&SamplingOptions::presence_penalty>},
    {"frequency_penalty", TakeNumber<&SamplingOptions::frequency_penalty>},
    {"num_beams",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       ASSIGN_OR_RETURN(to.beams.beams, WholeOf(name, value));
       return absl::OkStatus();
     }},
    {"length_penalty",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       ASSIGN_OR_RETURN(to.beams.length_penalty, NumberOf(name, value));
       return absl::OkStatus();
     }},
    {"early_stopping",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       const bool* flag = std::get_if<bool>(&value);
       const std::string* text = std::get_if<std::string>(&value);
       if (flag == nullptr && (text == nullptr || *text != "never")) {
         return Wants(name, "true, false or \"never\"");
       }
       to.beams.early_stopping = flag == nullptr ? BeamOptions::Early::kNever
                                 : *flag         ? BeamOptions::Early::kFirst
                                                 : BeamOptions::Early::kBest;
       return absl::OkStatus();
     }},
    {"logprobs", TakeWhole<&SamplingOptions::logprobs>},
    {"n", TakeWhole<&SamplingOptions::n>},
    {"seed",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       if (const uint64_t* large = std::get_if<uint64_t>(&value)) {
         to.sampling.seed = *large;
         return absl::OkStatus();
       }
       ASSIGN_OR_RETURN(const int64_t seed, WholeOf(name, value));
       to.sampling.seed = static_cast<uint64_t>(seed);
       return absl::OkStatus();
     }},
    {"ignore_eos",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       ASSIGN_OR_RETURN(to.sampling.ignore_eos, BoolOf(name, value));
       return absl::OkStatus();
     }},
    {"stop_token_ids", nullptr,
     [](const std::string& name, const element& json, SamplingParameters& to) {
       return TakeIds(name, json, to.sampling.stop_ids);
     }},
    {"allowed_token_ids", nullptr,
     [](const std::string& name, const element& json, SamplingParameters& to) {
       RETURN_IF_ERROR(TakeIds(name, json, to.sampling.allowed_ids));
       // No id at all would mean all of them.
       return to.sampling.allowed_ids.empty() ? Wants(name, "a list of at least one id")
                                              : absl::OkStatus();
     }},
    {"decoder_input_ids", nullptr,
     [](const std::string& name, const element& json, SamplingParameters& to) {
       return TakeIds(name, json, to.decoder_ids);
     }},
    {"logit_bias", nullptr,
     [](const std::string& name, const element& json, SamplingParameters& to) {
       return TakeBias(name, json, to.sampling.logit_bias);
     }},
    {"cache_salt",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       const std::string* text = std::get_if<std::string>(&value);
       if (text == nullptr) return Wants(name, "a text");
       to.cache_salt = *text;
       return absl::OkStatus();
     }},
    {"timeout",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       ASSIGN_OR_RETURN(to.timeout_us, WholeOf(name, value));
       return *to.timeout_us < 0 ? Wants(name, "microseconds") : absl::OkStatus();
     }},
    {"priority",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       ASSIGN_OR_RETURN(const int64_t priority, WholeOf(name, value));
       if (priority < 0) return Wants(name, "at least 0");
       to.priority = static_cast<uint64_t>(priority);
       return absl::OkStatus();
     }},
    {"stop",
     [](const std::string& name, const ParameterValue& value, SamplingParameters& to) {
       const std::string* text = std::get_if<std::string>(&value);
       if (text == nullptr) return Wants(name, "a text or a list of texts");
       if (text->empty() || text->front() != '[') return AddStop(name, *text, to);
       simdjson::dom::parser parser;
       const absl::StatusOr<element> list = Parse(name, *text, parser);
       return list.ok() ? TakeStops(name, *list, to) : AddStop(name, *text, to);
     },
     TakeStops},
    {"include_stop_str_in_output", TakeTextFlag<&TextWishes::include_stop>},
    {"skip_special_tokens", TakeTextFlag<&TextWishes::skip_special>},
    {"add_special_tokens", TakeTextFlag<&TextWishes::add_special>},
    {"guided_json", TakeGrammar<GrammarKind::kJsonSchema>,
     TakeGrammarJson<GrammarKind::kJsonSchema>},
    {"guided_regex", TakeGrammar<GrammarKind::kRegex>},
    {"guided_grammar", TakeGrammar<GrammarKind::kLark>},
    {"guided_choice", TakeGrammar<GrammarKind::kChoice>, TakeGrammarJson<GrammarKind::kChoice>},
    // The transport reads these.
    {"stream", [](const std::string& name, const ParameterValue& value,
                  SamplingParameters&) { return BoolOf(name, value).status(); }},
    {"triton_enable_empty_final_response",
     [](const std::string& name, const ParameterValue& value, SamplingParameters&) {
       return BoolOf(name, value).status();
     }},
};

// Parameters of drawing a token, and of beams alone.
constexpr const char* kOfDraws[] = {"top_p",
                                    "top_k",
                                    "min_p",
                                    "seed",
                                    "repetition_penalty",
                                    "presence_penalty",
                                    "frequency_penalty",
                                    "logit_bias",
                                    "allowed_token_ids"};
constexpr const char* kOfBeams[] = {"length_penalty", "early_stopping"};

}  // namespace

absl::Status SamplingParameters::CheckTogether() const {
  if (beams.beams <= 1) {
    for (const char* name : kOfBeams) {
      if (!given_.contains(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter '", name, "' is of beams alone, and 'num_beams' = ", beams.beams));
    }
    return absl::OkStatus();
  }
  const auto refuse = [&](absl::string_view name) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", name, "' does not apply where 'num_beams' = ", beams.beams,
                     ": nothing is drawn"));
  };
  for (const char* name : kOfDraws) {
    if (given_.contains(name)) return refuse(name);
  }
  if (texts.grammar.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a grammar does not apply where 'num_beams' = ", beams.beams, ": nothing is drawn"));
  }
  if (given_.contains("temperature") && sampling.temperature != 0) return refuse("temperature");
  if (sampling.logprobs > 0) {
    return absl::InvalidArgumentError(absl::StrCat("parameter 'logprobs' = ", sampling.logprobs,
                                                   " asks for alternatives, and "
                                                   "'num_beams' = ",
                                                   beams.beams,
                                                   " gives the tokens' own alone (0)"));
  }
  return absl::OkStatus();
}

bool SamplingParameters::Knows(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return true;
  }
  return false;
}

absl::StatusOr<size_t> SamplingParameters::Begin(const std::string& name) {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].name != name) continue;
    if (given_.insert(name).second) return i;
    return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' is given twice"));
  }
  return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' is not known"));
}

absl::Status SamplingParameters::Set(const std::string& name, const ParameterValue& value) {
  ASSIGN_OR_RETURN(const size_t row, Begin(name));
  return TakeText(kRows[row], name, value, *this);
}

absl::Status SamplingParameters::SetAll(absl::string_view json) {
  simdjson::dom::parser parser;
  ASSIGN_OR_RETURN(const element root, Parse("sampling_parameters", json, parser));
  return SetAll(root);
}

absl::Status SamplingParameters::SetAll(const element& json) {
  simdjson::dom::object map;
  if (json.get(map) != simdjson::SUCCESS) return Wants("sampling_parameters", "a JSON object");
  for (const auto& [key, one] : map) RETURN_IF_ERROR(SetOne(std::string(key), one));
  return absl::OkStatus();
}

absl::Status SamplingParameters::SetOne(const std::string& name, const element& json) {
  switch (json.type()) {
    case element_type::NULL_VALUE:
      return absl::OkStatus();
    case element_type::BOOL:
      return Set(name, bool(json));
    case element_type::INT64:
      return Set(name, int64_t(json));
    case element_type::UINT64:
      return Set(name, uint64_t(json));
    case element_type::DOUBLE:
      return Set(name, double(json));
    case element_type::STRING:
      return Set(name, std::string(std::string_view(json)));
    default: {
      // As it lies in the document: a list may be long.
      ASSIGN_OR_RETURN(const size_t row, Begin(name));
      if (kRows[row].take_json == nullptr) return Wants(name, "a single value");
      return kRows[row].take_json(name, json, *this);
    }
  }
}

}  // namespace reprise
