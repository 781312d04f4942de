#include "server/repository/model_loader.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/allowed_cpus.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/generate/encoder_decoder.h"
#include "runtime/onnx/importer.h"
#include "runtime/onnx/usual_ranks.h"
#include "server/hub/json_file.h"
#include "server/hub/load_texts.h"
#include "server/hub/model_file.h"
#include "server/hub/two_sides.h"
#include "server/pictures/picture_model.h"
#include "server/repository/generation_loop.h"
#include "server/repository/precision_files.h"
#include "server/repository/ranked_servables.h"
#include "server/repository/start_generation.h"
#include "server/repository/warmup_sizes.h"

namespace reprise {
namespace {

// Returns the folder with the model's config.pbtxt: the folder of a version lies in it, a flat one
// is it.
std::filesystem::path ModelFolderOf(const ServableSource& source) {
  const std::filesystem::path own(source.folder);
  return own.filename() == source.version.version ? own.parent_path() : own;
}

ModelOptions EngineOptionsOf(const ModelVersion& version, const std::string& path,
                             const ModelSettings& settings, PrecisionRules precision_ops) {
  return {
      .id = {.name = version.name, .version = version.number},
      .path = path,
      .buckets = settings.buckets,
      .learnt_buckets = settings.learnt_buckets,
      .ranges = settings.ranges,
      .bucket_mode = settings.bucket_policy == BucketPolicyMode::kApply     ? BucketMode::kApply
                     : settings.bucket_policy == BucketPolicyMode::kSuggest ? BucketMode::kSuggest
                                                                            : BucketMode::kOff,
      .bucket_payback_ns = settings.bucket_payback_seconds * 1'000'000'000,
      .max_batch_tokens = settings.max_batch_tokens,
      .max_batch_size = settings.config.max_batch_size(),
      .overflow = settings.overflow == Overflow::kReject ? BucketPolicy::Overflow::kReject
                                                         : BucketPolicy::Overflow::kExact,
      .max_exact = settings.max_exact,
      .max_recipe_bytes = settings.max_recipe_bytes,
      .max_arena_bytes = settings.max_arena_bytes,
      .max_parameter_bytes = settings.max_parameter_bytes,
      .max_request_ns = settings.max_request_ms * 1'000'000,
      .max_request_bytes = settings.max_request_bytes,
      .no_padding = settings.padding_off,
      .packing = WantsPacking(settings) ? PackingMode::kAuto : PackingMode::kOff,
      .precision = settings.precision,
      .precision_ops = std::move(precision_ops),
      .precision_goal = settings.precision_goal,
      .weights = settings.weights,
      .cut = settings.cut,
      .fusion = settings.fusion,
      .one_order = settings.generation && FindEncoderDecoder(path).has_value(),
      .fills = settings.fills,
      .capture = settings.capture == CaptureMode::kInline       ? CapturePolicy::kInline
                 : settings.capture == CaptureMode::kBackground ? CapturePolicy::kBackground
                 : settings.capture == CaptureMode::kOff        ? CapturePolicy::kOff
                                                                : CapturePolicy::kQuick,
      .frozen = settings.frozen,
      .tune = settings.tune ? TuneMode::kAuto : TuneMode::kOff,
      .warmup = settings.warmup.all ? std::vector<std::string>{"all"} : settings.warmup.buckets};
}

// Returns the files of the other versions, next to `folder`.
std::vector<std::string> OtherVersions(const std::string& folder, const ModelSettings& settings) {
  std::vector<std::string> files;
  std::error_code error;
  const std::filesystem::path own(folder);
  int64_t number = 0;
  if (!absl::SimpleAtoi(own.filename().string(), &number)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(own.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (name == own.filename() || !absl::SimpleAtoi(name, &number)) continue;
    const std::filesystem::path file = ResolveModelFile(entry.path() / settings.model_filename);
    if (std::filesystem::is_regular_file(file, error)) files.push_back(file.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Returns the whole number that config.pbtxt gives a parameter; it was checked when the file was
// read.
int64_t IntParameter(const ModelSettings& settings, const char* name, int64_t fallback) {
  const auto parameter = settings.config.parameters().find(name);
  int64_t value = fallback;
  if (parameter == settings.config.parameters().end()) return fallback;
  return absl::SimpleAtoi(parameter->second.string_value(), &value) ? value : fallback;
}

// Returns the settings of texts: a model whose config names outputs of its own keeps them with the
// vector of a text.
TextSettings TextSettingsOf(const ModelSettings& settings) {
  TextSettings texts;
  const auto pooling = settings.config.parameters().find("reprise.pooling");
  if (pooling != settings.config.parameters().end()) {
    texts.pooling = ParsePooling(pooling->second.string_value());
    texts.off = pooling->second.string_value() == "none";
    texts.words = pooling->second.string_value() == "splade";
    texts.tokens = pooling->second.string_value() == "tokens";
  }
  texts.limits.max_bytes = IntParameter(settings, "reprise.max_text_bytes", texts.limits.max_bytes);
  texts.limits.most_tokens = IntParameter(settings, "reprise.max_text_tokens", 0);
  texts.limits.most_audio_seconds =
      IntParameter(settings, "reprise.max_audio_seconds", texts.limits.most_audio_seconds);
  for (const auto& output : settings.config.output()) {
    texts.keep_outputs = texts.keep_outputs || output.name() != kTextVectors;
  }
  return texts;
}

// Returns the text that config.pbtxt gives a parameter; "" where it gives none.
std::string ParameterText(const ModelSettings& settings, const char* name) {
  const auto parameter = settings.config.parameters().find(name);
  return parameter == settings.config.parameters().end() ? "" : parameter->second.string_value();
}

// Reads the files of labels that outputs name, in the model's folder.
absl::Status ReadLabels(const std::filesystem::path& folder, Servable& servable) {
  constexpr int64_t kMostBytes = 16 << 20;
  const std::vector<ModelIo>& outputs = servable.signature.outputs;
  for (const auto& declared : servable.settings.config.output()) {
    if (declared.label_filename().empty()) continue;
    const std::filesystem::path name(declared.label_filename());
    const std::string who = absl::StrCat("output \"", declared.name(), "\": label_filename \"",
                                         declared.label_filename(), "\"");
    if (name.is_absolute() || absl::StrContains(declared.label_filename(), "..")) {
      return absl::InvalidArgumentError(absl::StrCat(who, " leaves the model's folder"));
    }
    ASSIGN_OR_RETURN(const auto text, ReadFileIfThere(folder / name, kMostBytes));
    if (!text.has_value()) return absl::NotFoundError(absl::StrCat(who, " is not there"));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].name != declared.name()) continue;
      std::vector<std::string>& labels = servable.output_labels[static_cast<int>(i)];
      for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
        labels.emplace_back(absl::StripAsciiWhitespace(line));
      }
      while (!labels.empty() && labels.back().empty()) labels.pop_back();
    }
  }
  return absl::OkStatus();
}

// Finds out whether pictures may be sent to the model, and how.
void ReadPictures(const ServableSource& source, const std::string& path, Servable& servable) {
  const ModelSettings& settings = source.settings;
  PictureSettings pictures;
  pictures.transforms = ParameterText(settings, "reprise.image_transforms");
  pictures.detector = ParameterText(settings, "reprise.detector");
  pictures.max_pixels = IntParameter(settings, "reprise.max_image_pixels", pictures.max_pixels);
  auto made =
      PictureModel::Make(path, pictures, servable.signature.inputs, servable.signature.outputs);
  const std::string who = absl::StrCat("model ", source.version.name, ": ");
  if (made.ok()) {
    servable.pictures = *std::move(made);
    source.engine.options().log(who + servable.pictures->Describe());
    return;
  }
  servable.pictures_refusal = std::string(made.status().message());
  // A folder with impossible settings is reported; most models take no pictures.
  if (!absl::IsFailedPrecondition(made.status())) {
    source.engine.options().log(absl::StrCat(who, "takes no pictures: ", made.status().message()));
  }
}

// Returns the file of the version.
std::string PathOf(const ServableSource& source) {
  return ChooseModelFile(std::filesystem::path(source.folder) / source.settings.model_filename)
      .string();
}

// The part of a file that is loaded: all of it, or one of its two sides where it has them.
struct Part {
  InputRanks ranks;
  Side side = Side::kTexts;
};

// Loads the model itself, with the head that the texts of its folder need. Returns whether its file
// has two sides.
absl::StatusOr<bool> LoadModel(const ServableSource& source, const Part& part, Servable& servable) {
  Engine& engine = source.engine;
  const std::string path = PathOf(source);
  TextSettings texts = TextSettingsOf(source.settings);
  // A decoder next to it reads the encoder's result.
  texts.keep_outputs = texts.keep_outputs || FindEncoderDecoder(path).has_value();
  TextLoad text(path, texts);
  const PrecisionFolders folders = {.version = std::filesystem::path(path).parent_path(),
                                    .model = ModelFolderOf(source)};
  ASSIGN_OR_RETURN(PrecisionRules rules, PrecisionRulesOf(folders, source.settings));
  ModelOptions options = EngineOptionsOf(source.version, path, source.settings, std::move(rules));
  // Positions of RoBERTa's kind do not count its own padding, and so stay within their table.
  if (text.package().first_position > 0) {
    options.fills.try_emplace("input_ids", static_cast<double>(text.package().padding_id));
  }
  options.ranks = part.ranks;
  options.freeze = source.freeze;
  options.cores = source.cores;
  const inference::ModelConfig& config = source.settings.config;
  if (config.has_ensemble_scheduling()) {
    options.import = [&] { return ImportEnsemble(config, source.file_of); };
  } else if (source.weights.bytes != nullptr) {
    options.import = [&] { return ImportWithWeights(path, source.weights); };
  }
  options.promote = source.settings.promote;
  options.promote_found = source.settings.promote_found;
  if (source.settings.promote_found) {
    options.other_versions = OtherVersions(source.folder, source.settings);
  }
  bool has_two_sides = false;
  options.extend = [&](ImportedModel& imported) -> absl::Status {
    const bool may_part = !texts.off && !texts.keep_outputs && text.package().tokenizer.has_value();
    has_two_sides = may_part && HasTwoSides(imported);
    if (has_two_sides) KeepSide(part.side, imported);
    return has_two_sides && part.side == Side::kPictures ? absl::OkStatus() : text.Extend(imported);
  };
  // The file is for the side of texts.
  if (part.side == Side::kTexts) {
    const bool given = !source.settings.calibration.empty();
    options.calibration = [&, given](const std::vector<ModelIo>& inputs)
        -> absl::StatusOr<std::vector<std::vector<Tensor>>> {
      if (given) return CalibrationRequests(folders, source.settings.calibration, inputs, text);
      std::vector<std::vector<Tensor>> usual = UsualRequests(inputs, text);
      if (!usual.empty()) {
        engine.options().log(absl::StrCat("model ", source.version.name,
                                          ": precision is chosen by ", usual.size(),
                                          " usual texts: reprise.calibration names no others"));
      }
      return usual;
    };
  }
  ASSIGN_OR_RETURN(servable.model, engine.Load(std::move(options)));
  std::shared_ptr<const TextModel> made = text.Finish(*servable.model);
  if (source.texts != nullptr && part.side == Side::kTexts) {
    source.texts->Add(servable.model, std::move(made), text.refusal());
  }
  if (!text.note().empty()) {
    engine.options().log(absl::StrCat("model ", source.version.name, ": ", text.note()));
  }
  return has_two_sides;
}

// Takes the inputs and outputs of the model that is loaded, and its settings.
absl::Status TakeSignature(const ServableSource& source, Servable& servable) {
  const Model& model = *servable.model;
  servable.settings = source.settings;
  // These may have named axes as the file does.
  servable.settings.buckets = model.options().buckets;
  servable.settings.learnt_buckets = model.options().learnt_buckets;
  servable.settings.padding_off = model.options().no_padding;
  ModelFacts facts = {.inputs = model.inputs(),
                      .outputs = model.outputs(),
                      .max_batch = model.batches_requests() ? model.max_batch() : 0};
  for (const ModelAxis& axis : model.axes()) facts.axes.push_back(axis.label);
  ASSIGN_OR_RETURN(servable.signature, Reconcile(servable.settings, source.version.name, facts));
  return absl::OkStatus();
}

// Returns the settings with buckets of the sides that pictures have once they are transformed,
// besides the usual ones, where config.pbtxt names none; nullopt where it does, or no axis is such
// a side.
std::optional<ModelSettings> WithSidesOfPictures(const ModelSettings& settings,
                                                 const Servable& servable) {
  if (servable.pictures == nullptr || servable.picture_side != nullptr ||
      !settings.buckets.empty() || !settings.learnt_buckets.empty()) {
    return std::nullopt;
  }
  const auto& inputs = servable.signature.inputs;
  const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const ModelIo& io) {
    return io.name == servable.pictures->input();
  });
  ModelSettings sized = settings;
  int64_t elements = BucketPolicy::DefaultRows().back();
  for (const auto& [dim, side] : servable.pictures->OpenSides()) {
    for (const ModelAxis& axis : servable.model->axes()) {
      if (axis.is_batch || axis.symbol != input->dims[dim].symbol) continue;
      std::vector<int64_t> sizes = BucketPolicy::DefaultPositions();
      sizes.push_back(side);
      std::sort(sizes.begin(), sizes.end());
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
      sized.buckets[axis.label] = std::move(sizes);
      elements *= side;
    }
  }
  if (sized.buckets.empty()) return std::nullopt;
  sized.max_batch_tokens = std::max(settings.max_batch_tokens, elements);
  return sized;
}

absl::StatusOr<std::shared_ptr<Servable>> LoadAt(const ServableSource& source, const Part& part) {
  const ModelSettings& settings = source.settings;
  auto servable = std::make_shared<Servable>();
  ASSIGN_OR_RETURN(const bool has_two_sides, LoadModel(source, part, *servable));
  RETURN_IF_ERROR(TakeSignature(source, *servable));
  if (has_two_sides && part.side == Side::kTexts) {
    ASSIGN_OR_RETURN(const std::shared_ptr<Servable> pictures,
                     LoadAt(source, {.ranks = part.ranks, .side = Side::kPictures}));
    source.open_queue(*pictures);
    servable->pictures = pictures->pictures;
    servable->pictures_refusal = pictures->pictures_refusal;
    servable->picture_side = pictures;
  } else {
    ReadPictures(source, PathOf(source), *servable);
  }
  if (auto sized = WithSidesOfPictures(settings, *servable); sized.has_value()) {
    ServableSource again = source;
    again.settings = *std::move(sized);
    RETURN_IF_ERROR(LoadModel(again, part, *servable).status());
  }
  const Model& model = *servable->model;
  servable->frozen = settings.frozen || source.engine.options().frozen;
  servable->freeze = source.freeze;
  ASSIGN_OR_RETURN(const WarmupSettings warmup,
                   WarmupOfSamples(settings, model, servable->signature));
  servable->warmup = std::make_shared<Warmup>(source.engine, servable->model, warmup,
                                              source.version.warmup, source.state);
  const std::string model_folder = ModelFolderOf(source).string();
  RETURN_IF_ERROR(ReadLabels(model_folder, *servable));
  if (settings.config.has_sequence_batching()) {
    ASSIGN_OR_RETURN(StatefulForm form,
                     MakeStatefulForm(settings, servable->signature, model_folder));
    servable->stateful = std::make_shared<const StatefulForm>(std::move(form));
  }
  ASSIGN_OR_RETURN(const std::vector<AxisSizes> bindings,
                   WarmupBindings(model, warmup, model_folder));
  ASSIGN_OR_RETURN(const std::vector<AxisSizes> usual, UsualBinding(model, warmup));
  servable->warmup->RunUntilReady(usual, bindings, UsedBefore(model));
  return servable;
}

// Returns the rank that config.pbtxt gives an input by its dims; the batch is not among them.
std::optional<int64_t> ConfiguredRank(const ModelSettings& settings, const std::string& input) {
  for (const auto& declared : settings.config.input()) {
    if (declared.name() != input || declared.dims().empty()) continue;
    return declared.dims_size() + (settings.config.max_batch_size() > 0 ? 1 : 0);
  }
  return std::nullopt;
}

// `usual`, at one choice of ranks, in the place of all choices.
std::shared_ptr<Servable> StandIn(const Servable& usual, const std::vector<std::string>& open) {
  auto servable = std::make_shared<Servable>();
  servable->model = usual.model;
  servable->settings = usual.settings;
  servable->frozen = usual.frozen;
  servable->freeze = usual.freeze;
  servable->signature = WithOpenRanks(usual.signature, open);
  servable->queue = usual.queue;
  servable->warmup = usual.warmup;
  servable->generation_refusal = "each request decides the ranks of the model's inputs";
  servable->shapes = usual.shapes;
  servable->unused_settings = usual.unused_settings;
  return servable;
}

// Requests decide the ranks of `open`; those in `fixed` are said.
absl::StatusOr<std::shared_ptr<Servable>> LoadRanked(const ServableSource& source,
                                                     const std::vector<std::string>& open,
                                                     const InputRanks& fixed) {
  const auto load =
      [source, fixed](const InputRanks& asked) -> absl::StatusOr<std::shared_ptr<const Servable>> {
    InputRanks ranks = fixed;
    ranks.insert(asked.begin(), asked.end());
    ASSIGN_OR_RETURN(const std::shared_ptr<Servable> loaded, LoadAt(source, {.ranks = ranks}));
    source.open_queue(*loaded);
    return loaded;
  };
  std::shared_ptr<Servable> servable;
  RETURN_IF_ERROR(AtUsualRanks(open, [&](const InputRanks& ranks) -> absl::Status {
    ASSIGN_OR_RETURN(std::shared_ptr<const Servable> usual, load(ranks));
    servable = StandIn(*usual, open);
    servable->ranked = std::make_shared<RankedServables>(open, load);
    servable->ranked->Add(ranks, std::move(usual));
    return absl::OkStatus();
  }));
  return servable;
}

}  // namespace

std::vector<std::string> UnusedSettings(const Servable& servable) {
  const Model& model = *servable.model;
  const bool is_off = model.options().capture == CapturePolicy::kOff;
  std::vector<std::string> unused;
  const auto parameter_of = [](const std::string& label) {
    return label == "batch" || label == "sequence" ? absl::StrCat("reprise.", label, "_buckets")
                                                   : absl::StrCat("reprise.buckets.", label);
  };
  const auto add = [&](const std::string& parameter, absl::string_view why) {
    unused.push_back(absl::StrCat("model ", model.id().name, ": ", parameter,
                                  " is configured and has no effect, since ", why));
  };
  constexpr absl::string_view kOff = "nothing is captured (reprise.capture: off, or --eager)";
  if (is_off && WantsWarmup(servable.settings.warmup)) add("reprise.warmup", kOff);
  if (!servable.settings.calibration.empty() && !servable.settings.precision_goal.has_value()) {
    add("reprise.calibration", "reprise.precision is neither auto nor fast");
  }
  const auto look = [&](const std::string& label) {
    if (is_off) return add(parameter_of(label), kOff);
    for (size_t i = 0; i < model.axes().size(); ++i) {
      const ModelAxis& axis = model.axes()[i];
      if (axis.label != label || model.packing() != nullptr) continue;
      const AxisCertificate certificate = model.CertificateOf(i);
      if (certificate.certified) continue;
      add(parameter_of(label),
          absl::StrCat("axis ", label, " may not be padded: ", certificate.reason));
    }
  };
  for (const auto& [label, sizes] : servable.settings.buckets) look(label);
  for (const auto& [label, rule] : servable.settings.learnt_buckets) look(label);
  return unused;
}

absl::StatusOr<std::shared_ptr<Servable>> LoadServable(const ServableSource& as_asked) {
  ServableSource source = as_asked;
  if (!source.settings.cores.empty()) {
    if (const int cpu = AllowedCpus::Forbidden(source.settings.cores); cpu >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("config.pbtxt: reprise.cores: the process may not run on CPU ", cpu));
    }
    source.cores = std::make_shared<HelperPool>(source.settings.cores);
  }
  // The load explains why it cannot be read.
  const absl::StatusOr<std::vector<std::string>> without = InputsWithoutRank(PathOf(source));
  InputRanks fixed;
  std::vector<std::string> open;
  if (without.ok()) {
    for (const std::string& name : *without) {
      if (const std::optional<int64_t> rank = ConfiguredRank(source.settings, name)) {
        fixed[name] = *rank;
      } else {
        open.push_back(name);
      }
    }
  }
  if (!open.empty()) {
    ASSIGN_OR_RETURN(std::shared_ptr<Servable> ranked, LoadRanked(source, open, fixed));
    RETURN_IF_ERROR(CheckGraph(source.weights, ranked->model->fingerprint()));
    return ranked;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Servable> servable, LoadAt(source, {.ranks = fixed}));
  RETURN_IF_ERROR(CheckGraph(source.weights, servable->model->fingerprint()));
  RETURN_IF_ERROR(StartGeneration(source.engine, source.version, PathOf(source), source.settings,
                                  source.gate, source.ranks, *servable));
  if (servable->generation != nullptr && source.texts != nullptr) {
    const Generator& generator = servable->generation->generator();
    // Answers of an encoder-decoder are seldom of a grammar.
    if (!generator.has_encoder()) {
      source.texts->PrepareGrammars(*servable->model, generator.options().eos_ids,
                                    generator.vocabulary());
    }
  }
  source.open_queue(*servable);
  return servable;
}

}  // namespace reprise
