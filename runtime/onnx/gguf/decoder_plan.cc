#include "runtime/onnx/gguf/decoder_plan.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

enum class Window {
  kNone,   // a window that the file names is refused
  kAll,    // every layer has the file's
  kMixed,  // some layers have it
};

// The facts of an architecture that no file states.
struct Family {
  const char* name;
  bool neighbours;
  Window window;
  bool gemma;                     // embeddings times the root of their size, tanh GELU
  int64_t period;                 // kMixed: the last layer of each period has no window
  int64_t deepest;                // layers of the one model that scales scores by heads
  double scores_cap, logits_cap;  // where the file names none
};
constexpr Family kFamilies[] = {
    {"llama", true, Window::kAll, false, 0, 0, 0, 0},
    {"granite", true, Window::kNone, false, 0, 0, 0, 0},
    {"qwen2", false, Window::kNone, false, 0, 0, 0, 0},
    {"qwen3", false, Window::kNone, false, 0, 0, 0, 0},
    {"phi3", false, Window::kAll, false, 0, 0, 0, 0},
    {"gemma2", false, Window::kMixed, true, 2, 46, 50, 30},
    {"gemma3", false, Window::kMixed, true, 6, 62, 0, 0},
};

const Family* FamilyOf(absl::string_view architecture) {
  for (const Family& family : kFamilies) {
    if (architecture == family.name) return &family;
  }
  return nullptr;
}

// Members of features that are not computed here: a model that has them would be computed wrongly.
constexpr const char* kRefused[] = {"expert_count",
                                    "expert_used_count",
                                    "attention.max_alibi_bias",
                                    "attention.clamp_kqv",
                                    "attention.layer_norm_epsilon",
                                    "attention.key_length_mla",
                                    "rope.dimension_sections",
                                    "rope.scaling.yarn_log_multiplier",
                                    "use_parallel_residual"};

// Returns a number that means nothing where it is 0.
absl::StatusOr<double> Optional(const GgufSettings& settings, const char* name, double fallback) {
  ASSIGN_OR_RETURN(const double value, settings.Number(name, fallback));
  if (value >= 0 && std::isfinite(value)) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("member '", settings.Key(name), "' is ", value, ", below 0"));
}

absl::Status CheckRefused(const GgufSettings& settings) {
  for (const char* name : kRefused) {
    if (!settings.Has(name)) continue;
    ASSIGN_OR_RETURN(const double value, settings.Number(name, 0));
    if (value == 0) continue;
    return absl::UnimplementedError(
        absl::StrCat("member '", settings.Key(name), "' is ", value, ", which is not supported"));
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(const GgufSettings& settings, DecoderPlan& plan) {
  ASSIGN_OR_RETURN(plan.layers, settings.Size("block_count"));
  ASSIGN_OR_RETURN(plan.hidden, settings.Size("embedding_length"));
  ASSIGN_OR_RETURN(plan.heads, settings.Size("attention.head_count"));
  ASSIGN_OR_RETURN(plan.kv_heads, settings.Size("attention.head_count_kv", plan.heads));
  ASSIGN_OR_RETURN(plan.context, settings.Size("context_length"));
  ASSIGN_OR_RETURN(plan.inner, settings.Size("feed_forward_length", 0));
  constexpr int64_t kMostLayers = 1000;
  if (plan.layers > kMostLayers) {
    return absl::InvalidArgumentError(
        absl::StrCat("member '", settings.Key("block_count"), "' is ", plan.layers));
  }
  if (plan.heads % plan.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(plan.heads, " heads are not a multiple of ",
                                                   plan.kv_heads, " of keys and values"));
  }
  if (!settings.Has("attention.key_length") && plan.hidden % plan.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("embeddings of ", plan.hidden, " do not divide by ", plan.heads, " heads"));
  }
  ASSIGN_OR_RETURN(plan.head_size, settings.Size("attention.key_length", plan.hidden / plan.heads));
  ASSIGN_OR_RETURN(const int64_t values, settings.Size("attention.value_length", plan.head_size));
  if (values != plan.head_size) {
    return absl::UnimplementedError(absl::StrCat("keys of ", plan.head_size, " and values of ",
                                                 values, " numbers a head are not supported"));
  }
  ASSIGN_OR_RETURN(const double epsilon,
                   settings.Positive("attention.layer_norm_rms_epsilon", std::nullopt));
  plan.epsilon = static_cast<float>(epsilon);
  return absl::OkStatus();
}

absl::Status ReadRopeScaling(const GgufSettings& settings, DecoderPlan& plan) {
  ASSIGN_OR_RETURN(const std::string kind, settings.Text("rope.scaling.type", "none"));
  RopeScaling& scaling = plan.rope_scaling;
  if (kind == "linear" || kind == "yarn") {
    ASSIGN_OR_RETURN(scaling.factor, settings.Positive("rope.scaling.factor", 1.0));
    scaling.kind = kind == "linear" ? RopeScaling::Kind::kLinear : RopeScaling::Kind::kYarn;
  } else if (kind != "none" && kind != "longrope") {
    return absl::UnimplementedError(absl::StrCat("member '", settings.Key("rope.scaling.type"),
                                                 "' is '", kind, "', which is not supported"));
  }
  ASSIGN_OR_RETURN(scaling.attention_factor, settings.Positive("rope.scaling.attn_factor", 1.0));
  ASSIGN_OR_RETURN(scaling.original_context,
                   settings.Size("rope.scaling.original_context_length", plan.context));
  ASSIGN_OR_RETURN(scaling.beta_fast, settings.Positive("rope.scaling.yarn_beta_fast", 32.0));
  ASSIGN_OR_RETURN(scaling.beta_slow, settings.Positive("rope.scaling.yarn_beta_slow", 1.0));
  const GgufFile& file = settings.file();
  if (file.Tensor("rope_freqs.weight") != nullptr) plan.rope_factors = "rope_freqs.weight";
  // Two sets of factors, for contexts up to the original one and beyond: a cache has one, and the
  // short ones hold for all answers that fit.
  if (file.Tensor("rope_factors_short.weight") != nullptr) {
    plan.rope_factors = "rope_factors_short.weight";
    plan.context = std::min(plan.context, scaling.original_context);
  }
  return absl::OkStatus();
}

absl::Status ReadRope(const GgufSettings& settings, DecoderPlan& plan) {
  ASSIGN_OR_RETURN(plan.rope_width, settings.Size("rope.dimension_count", plan.head_size));
  if (plan.rope_width > plan.head_size || plan.rope_width % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("member '", settings.Key("rope.dimension_count"),
                                                   "' is ", plan.rope_width, " of heads of ",
                                                   plan.head_size));
  }
  ASSIGN_OR_RETURN(plan.rope_base, settings.Positive("rope.freq_base", 10000.0));
  RETURN_IF_ERROR(ReadRopeScaling(settings, plan));
  // More would take gigabytes for tables.
  constexpr int64_t kMostNumbers = int64_t{1} << 26;
  if (plan.context > kMostNumbers / plan.rope_width) {
    return absl::UnimplementedError(
        absl::StrCat("member '", settings.Key("context_length"), "': tables of ", plan.context,
                     " positions of ", plan.rope_width, " numbers are more than ", kMostNumbers));
  }
  return absl::OkStatus();
}

// Which layers have a window, as a list of the file says.
absl::Status ReadMixed(const GgufSettings& settings, const Family& family, int64_t window,
                       DecoderPlan& plan) {
  const std::string key = settings.Key("attention.sliding_window_pattern");
  const GgufValue* const pattern = settings.file().Find(key);
  if (const auto* list =
          pattern == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(pattern)) {
    if (static_cast<int64_t>(list->size()) != plan.layers) {
      return absl::InvalidArgumentError(absl::StrCat("member '", key, "' has ", list->size(),
                                                     " entries of ", plan.layers, " layers"));
    }
    for (int64_t i = 0; i < plan.layers; ++i) {
      plan.windows[static_cast<size_t>(i)] = (*list)[static_cast<size_t>(i)] != 0 ? window : 0;
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const int64_t period,
                   settings.Size("attention.sliding_window_pattern", family.period));
  for (int64_t i = 0; i < plan.layers; ++i) {
    if (i % period < period - 1) plan.windows[static_cast<size_t>(i)] = window;
  }
  return absl::OkStatus();
}

absl::Status ReadWindows(const GgufSettings& settings, const Family& family, DecoderPlan& plan) {
  plan.windows.assign(static_cast<size_t>(plan.layers), 0);
  ASSIGN_OR_RETURN(const double given, Optional(settings, "attention.sliding_window", 0));
  const auto window = static_cast<int64_t>(std::min(given, static_cast<double>(plan.context)));
  if (family.window == Window::kMixed) {
    constexpr int64_t kUsual = 4096;
    return ReadMixed(settings, family, given > 0 ? window : std::min(kUsual, plan.context), plan);
  }
  if (window == 0 || window == plan.context) return absl::OkStatus();
  if (family.window == Window::kNone) {
    return absl::UnimplementedError(
        absl::StrCat("member '", settings.Key("attention.sliding_window"), "' is ", given,
                     ", and which layers have it is not known of ", family.name));
  }
  plan.windows.assign(plan.windows.size(), window);
  return absl::OkStatus();
}

absl::Status ReadFactors(const GgufSettings& settings, const Family& family, DecoderPlan& plan) {
  plan.tanh_gelu = family.gemma;
  const bool by_heads = family.deepest == plan.layers && family.deepest != 0;
  const double scaled = by_heads
                            ? static_cast<double>(plan.hidden) / static_cast<double>(plan.heads)
                            : static_cast<double>(plan.head_size);
  ASSIGN_OR_RETURN(plan.attention_scale, Optional(settings, "attention.scale", 0));
  if (plan.attention_scale == 0) plan.attention_scale = 1 / std::sqrt(scaled);
  ASSIGN_OR_RETURN(plan.attention_cap,
                   Optional(settings, "attn_logit_softcapping", family.scores_cap));
  ASSIGN_OR_RETURN(plan.final_cap,
                   Optional(settings, "final_logit_softcapping", family.logits_cap));
  const double usual = family.gemma ? std::sqrt(static_cast<double>(plan.hidden)) : 1;
  ASSIGN_OR_RETURN(plan.embedding_scale, Optional(settings, "embedding_scale", usual));
  ASSIGN_OR_RETURN(plan.residual_scale, Optional(settings, "residual_scale", 1));
  ASSIGN_OR_RETURN(plan.logit_divisor, Optional(settings, "logit_scale", 1));
  for (double* const factor : {&plan.embedding_scale, &plan.residual_scale, &plan.logit_divisor}) {
    if (*factor == 0) *factor = 1;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecoderPlan> ReadDecoderPlan(const GgufSettings& settings) {
  const Family* const family = FamilyOf(settings.architecture());
  if (family == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("architecture '", settings.architecture(), "' is not supported"));
  }
  DecoderPlan plan;
  plan.neighbours = family->neighbours;
  RETURN_IF_ERROR(CheckRefused(settings));
  RETURN_IF_ERROR(ReadSizes(settings, plan));
  RETURN_IF_ERROR(ReadRope(settings, plan));
  RETURN_IF_ERROR(ReadWindows(settings, *family, plan));
  RETURN_IF_ERROR(ReadFactors(settings, *family, plan));
  if (settings.architecture() == "gemma3") {
    ASSIGN_OR_RETURN(plan.window_rope_base, settings.Positive("rope.freq_base_swa", 10000.0));
  }
  return plan;
}

}  // namespace reprise
