// reprise infer: one request, for people. Prints the outputs' shapes and first values, and how the
// server served it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/json_inputs.h"
#include "client/cli/random_inputs.h"
#include "client/cli/table.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using client::InferResult;
using client::OutputTensor;

struct InferFlags {
  ServerFlags server;
  std::string model;
  std::string version;
  std::string inputs_file;
  std::vector<std::string> outputs;
  std::vector<std::string> shapes;
  RandomInputOptions random;
  uint64_t seed = 1;
  int repeat = 1;
  bool json = false;
};

// "input_ids=1x16".
std::string CheckShape(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (parts.size() != 2 || parts[0].empty()) return "'" + text + "' is not NAME=1x16";
  int64_t dim = 0;
  for (absl::string_view part : absl::StrSplit(parts[1], 'x')) {
    if (!absl::SimpleAtoi(part, &dim) || dim < 0) return "'" + text + "' is not NAME=1x16";
  }
  return "";
}

std::map<std::string, std::vector<int64_t>> ParseShapes(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& text : texts) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    auto& shape = shapes[parts[0]];
    for (absl::string_view part : absl::StrSplit(parts[1], 'x')) {
      int64_t dim = 0;
      if (absl::SimpleAtoi(part, &dim)) shape.push_back(dim);
    }
  }
  return shapes;
}

template <typename T>
std::string Head(const OutputTensor& output) {
  constexpr size_t kShown = 6;
  const size_t count = output.data.size() / sizeof(T);
  std::string text;
  for (size_t i = 0; i < std::min(count, kShown); ++i) {
    T value;
    std::memcpy(&value, output.data.data() + i * sizeof(T), sizeof(T));
    absl::StrAppend(&text, i > 0 ? " " : "");
    if constexpr (std::is_floating_point_v<T>) {
      absl::StrAppendFormat(&text, "%.5g", value);
    } else {
      absl::StrAppend(&text, +value);
    }
  }
  return absl::StrCat(text, count > kShown ? " …" : "");
}

// Returns the first texts, in quotes; unprintable characters are escaped.
std::string HeadOfTexts(const OutputTensor& output) {
  constexpr size_t kShown = 6;
  constexpr size_t kShownBytes = 40;  // each element's
  absl::string_view left(reinterpret_cast<const char*>(output.data.data()), output.data.size());
  std::string text;
  for (size_t i = 0; left.size() >= sizeof(uint32_t); ++i) {
    if (i == kShown) return text + " …";
    uint32_t size = 0;
    std::memcpy(&size, left.data(), sizeof(size));
    left.remove_prefix(sizeof(size));
    const absl::string_view element = left.substr(0, size);
    left.remove_prefix(element.size());
    absl::StrAppend(&text, i > 0 ? " " : "", "'",
                    absl::Utf8SafeCEscape(element.substr(0, kShownBytes)),
                    element.size() > kShownBytes ? "…'" : "'");
  }
  return text;
}

std::string HeadOf(const OutputTensor& output) {
  if (output.datatype == "BYTES") return HeadOfTexts(output);
  if (output.datatype == "FP32") return Head<float>(output);
  if (output.datatype == "FP64") return Head<double>(output);
  if (output.datatype == "INT64") return Head<int64_t>(output);
  if (output.datatype == "INT32") return Head<int32_t>(output);
  if (output.datatype == "INT8") return Head<int8_t>(output);
  if (output.datatype == "UINT8" || output.datatype == "BOOL") return Head<uint8_t>(output);
  return Bytes(output.data.size());
}

void Print(const InferResult& result, double milliseconds) {
  std::printf("model %s version %s answered in %.2f ms\n\n", result.model().c_str(),
              result.version().c_str(), milliseconds);
  Table outputs({{"output"}, {"datatype"}, {"shape"}, {"first values"}});
  for (const OutputTensor& output : result.outputs()) {
    outputs.AddRow({std::string(output.name), std::string(output.datatype),
                    client::ShapeText(output.shape), HeadOf(output)});
  }
  std::printf("%s\n", outputs.Text().c_str());
  std::vector<std::string> names;
  for (const auto& [name, value] : result.message().parameters()) names.push_back(name);
  std::sort(names.begin(), names.end());
  Table parameters({{"parameter"}, {"value"}});
  for (const std::string& name : names) parameters.AddRow({name, result.Parameter(name)});
  if (!parameters.empty()) std::printf("%s", parameters.Text().c_str());
}

using OrderedJson = nlohmann::ordered_json;

template <typename T>
OrderedJson NumbersOf(const OutputTensor& output) {
  OrderedJson numbers = OrderedJson::array();
  for (size_t i = 0; i < output.data.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, output.data.data() + i * sizeof(T), sizeof(T));
    numbers.push_back(value);
  }
  return numbers;
}

OrderedJson TextsOf(const OutputTensor& output) {
  absl::string_view left(reinterpret_cast<const char*>(output.data.data()), output.data.size());
  OrderedJson texts = OrderedJson::array();
  while (left.size() >= sizeof(uint32_t)) {
    uint32_t size = 0;
    std::memcpy(&size, left.data(), sizeof(size));
    left.remove_prefix(sizeof(size));
    texts.push_back(std::string(left.substr(0, size)));
    left.remove_prefix(std::min<size_t>(size, left.size()));
  }
  return texts;
}

// Returns all elements in one list; null for types that JSON has no number for.
OrderedJson DataOf(const OutputTensor& output) {
  if (output.datatype == "BYTES") return TextsOf(output);
  if (output.datatype == "FP32") return NumbersOf<float>(output);
  if (output.datatype == "FP64") return NumbersOf<double>(output);
  if (output.datatype == "INT64") return NumbersOf<int64_t>(output);
  if (output.datatype == "INT32") return NumbersOf<int32_t>(output);
  if (output.datatype == "INT16") return NumbersOf<int16_t>(output);
  if (output.datatype == "INT8") return NumbersOf<int8_t>(output);
  if (output.datatype == "UINT64") return NumbersOf<uint64_t>(output);
  if (output.datatype == "UINT32") return NumbersOf<uint32_t>(output);
  if (output.datatype == "UINT16") return NumbersOf<uint16_t>(output);
  if (output.datatype == "UINT8" || output.datatype == "BOOL") return NumbersOf<uint8_t>(output);
  return nullptr;
}

OrderedJson AnswerJson(const InferResult& result, double milliseconds) {
  OrderedJson json = {{"model", result.model()},
                      {"version", result.version()},
                      {"milliseconds", milliseconds},
                      {"outputs", OrderedJson::array()},
                      {"parameters", OrderedJson::object()}};
  for (const OutputTensor& output : result.outputs()) {
    json["outputs"].push_back(
        {{"name", std::string(output.name)},
         {"datatype", std::string(output.datatype)},
         {"shape", std::vector<int64_t>(output.shape.begin(), output.shape.end())},
         {"data", DataOf(output)}});
  }
  std::map<std::string, std::string> parameters;
  for (const auto& [name, value] : result.message().parameters()) {
    parameters[name] = result.Parameter(name);
  }
  for (const auto& [name, value] : parameters) json["parameters"][name] = value;
  return json;
}

absl::Status RunInfer(const InferFlags& flags) {
  ASSIGN_OR_RETURN(auto client, flags.server.Connect());
  ASSIGN_OR_RETURN(auto metadata, client->ModelMetadata(flags.model, flags.version));
  std::vector<OwnedTensor> tensors;
  if (flags.inputs_file.empty()) {
    RandomInputOptions options = flags.random;
    options.shapes = ParseShapes(flags.shapes);
    std::mt19937_64 random(flags.seed);
    // An input that may be left out is made up where --shape is given.
    auto wanted = metadata;
    if (options.shapes.empty()) {
      ASSIGN_OR_RETURN(wanted, client->RequiredMetadata(flags.model, flags.version));
    }
    ASSIGN_OR_RETURN(tensors, RandomInputs(wanted, options, random));
  } else {
    std::string text = flags.inputs_file;
    if (text[0] != '{') {
      std::ifstream file(flags.inputs_file);
      if (!file) return absl::NotFoundError(absl::StrCat("cannot read '", flags.inputs_file, "'"));
      text.assign((std::istreambuf_iterator<char>(file)), {});
    }
    ASSIGN_OR_RETURN(tensors, ParseJsonInputs(text, metadata));
  }
  const client::InferRequest request{.model = flags.model,
                                     .version = flags.version,
                                     .inputs = Views(tensors),
                                     .outputs = flags.outputs};
  OrderedJson answers = OrderedJson::array();
  for (int i = 0; i < flags.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const InferResult result, client->Infer(request));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (flags.json) {
      answers.push_back(AnswerJson(result, took.count()));
      continue;
    }
    std::printf("%s", i > 0 ? "\n" : "");
    Print(result, took.count());
  }
  if (flags.json) {
    const OrderedJson all = {{"answers", std::move(answers)}};
    std::printf("%s\n", all.dump(2, ' ', false, OrderedJson::error_handler_t::replace).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddInfer(CLI::App& app, Action& action) {
  auto flags = std::make_shared<InferFlags>();
  CLI::App* command = app.add_subcommand("infer", "Send one request and show the answer");
  command->footer(kRandomInputsHelp);
  flags->server.Add(*command);
  command->add_option("model", flags->model, "Name of the model")->required();
  command->add_option("--version", flags->version, "Version; the newest if not given");
  CLI::Option* file = AddOption(*command, "-i,--inputs", flags->inputs_file, "JSON|FILE",
                                "JSON with the inputs, or a file of it: {\"name\": nested lists}, "
                                "{\"text\": [\"a text\"]}, or as in the REST API")
                          ->check([](const std::string& text) {
                            return text[0] == '{' ? "" : CLI::ExistingFile(text);
                          });
  AddOption(*command, "-l,--length", flags->random.length, "N", "Length of made-up inputs")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
      ->excludes(file)
      ->capture_default_str();
  AddOption(*command, "-b,--batch", flags->random.batch, "N", "Batch of made-up inputs")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->excludes(file)
      ->capture_default_str();
  AddOption(*command, "--max-id", flags->random.max_id, "N", "Largest made-up id")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddOption(*command, "--shape", flags->shapes, "NAME=1x16", "Shape of one made-up input")
      ->check(CheckShape)
      ->excludes(file);
  AddOption(*command, "--seed", flags->seed, "N", "Seed of made-up inputs")->capture_default_str();
  AddOption(*command, "-o,--output", flags->outputs, "NAME", "Only this output");
  AddOption(*command, "--repeat", flags->repeat, "N", "Send it this many times")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunInfer(*flags); }; });
}

}  // namespace reprise::cli
