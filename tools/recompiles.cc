// reprise recompiles: which modules a static graph would compile anew, and why.

#include "tools/recompiles.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/table.h"
#include "runtime/base/status_macros.h"
#include "runtime/bucket/axis_sizes.h"
#include "runtime/recipe/record_file.h"
#include "server/hub/model_file.h"
#include "tools/command.h"
#include "tools/files/length_file.h"
#include "tools/files/node_places.h"
#include "tools/local_engine.h"

namespace reprise::cli {
namespace {

// Quoted where a comma or a quote is in it.
std::string Cell(const std::string& text) {
  if (!absl::StrContains(text, ',') && !absl::StrContains(text, '"')) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string CsvLine(const std::vector<std::string>& cells) {
  return absl::StrCat(absl::StrJoin(cells, ",",
                                    [](std::string* out, const std::string& cell) {
                                      absl::StrAppend(out, Cell(cell));
                                    }),
                      "\n");
}

// The cause in the words of this table of a reason in a server's record.
std::string CauseOf(const v1::MissRecord& miss) {
  if (!miss.section().empty()) return kCauseChild;
  if (miss.reason() == "first_request") return kCauseFirst;
  if (miss.reason() == "new_shape") return kCauseNewInput;
  if (miss.reason() == "evicted") return kCauseEviction;
  if (miss.reason() == "graph_changed") return kCauseConstants;
  return miss.reason();
}

struct RecompilesFlags {
  ServerFlags server;
  std::string what;  // a model file, or a model of the server
  std::string version;
  std::string steps_file;
  std::string sizes;
  std::string axis;
  std::string csv;
  size_t rows = 40;
  bool json = false;
};

// The steps of a file: shapes a line, or a column an axis.
absl::StatusOr<std::vector<AxisSizes>> StepsOfFile(const std::string& path, const Model& model) {
  ASSIGN_OR_RETURN(const ShapeColumns shapes, ReadShapes(path));
  std::vector<AxisSizes> steps;
  for (size_t row = 0; row < shapes.rows.size(); ++row) {
    AxisSizes sizes;
    for (size_t i = 0; i < shapes.inputs.size(); ++i) {
      const std::vector<int64_t>& shape = shapes.rows[row][i];
      for (const ModelAxis& axis : model.axes()) {
        if (axis.label == shapes.inputs[i] && shape.size() == 1) sizes[axis.label] = shape[0];
      }
      // A column is an input, or where there is one column the first input.
      for (size_t k = 0; k < model.inputs().size(); ++k) {
        const ModelIo& input = model.inputs()[k];
        const bool is_it = input.name == shapes.inputs[i] ||
                           (shapes.inputs.size() == 1 && k == 0 && sizes.empty());
        if (!is_it || input.dims.size() != shape.size()) continue;
        for (size_t d = 0; d < shape.size(); ++d) {
          for (const ModelAxis& axis : model.axes()) {
            if (input.dims[d].symbol == axis.symbol) sizes[axis.label] = shape[d];
          }
        }
      }
    }
    if (sizes.size() < model.axes().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": step ", row + 1, " names no sizes of the model's inputs"));
    }
    steps.insert(steps.end(), static_cast<size_t>(std::max(1.0, shapes.counts[row])), sizes);
  }
  return steps;
}

absl::StatusOr<Recompilations> OfFile(const RecompilesFlags& flags) {
  std::vector<AxisSizes> steps;
  {
    LocalEngine local(kEveryIsa);
    ASSIGN_OR_RETURN(const std::shared_ptr<Model> model,
                     local.LoadToStudy(flags.what, Precision::kExact));
    std::vector<std::string> axes;
    for (const ModelAxis& axis : model->axes()) axes.push_back(axis.label);
    if (!flags.steps_file.empty()) {
      ASSIGN_OR_RETURN(steps, StepsOfFile(flags.steps_file, *model));
    } else if (!flags.sizes.empty()) {
      ASSIGN_OR_RETURN(steps, ParseSteps(flags.sizes, axes, flags.axis));
    } else {
      return absl::InvalidArgumentError(
          "a model file needs --sizes or --steps: the sizes that it is run at");
    }
  }
  return TraceRecompilations(flags.what, steps);
}

absl::Status RunRecompiles(const RecompilesFlags& flags) {
  Recompilations table;
  if (IsModelName(flags.what)) {
    ASSIGN_OR_RETURN(table, OfFile(flags));
  } else {
    ASSIGN_OR_RETURN(const auto client, flags.server.Connect());
    ASSIGN_OR_RETURN(const auto record, client->ExplainMisses(flags.what, flags.version, 0));
    table = RecompilationsOf(record);
  }
  if (!flags.csv.empty()) {
    for (const auto& [name, text] :
         {std::pair{".steps.csv", StepsCsv(table)}, std::pair{".modules.csv", ModulesCsv(table)}}) {
      const auto path = std::filesystem::absolute(absl::StrCat(flags.csv, name));
      RETURN_IF_ERROR(
          WriteFileAtomically(path.parent_path().string(), path.filename().string(), text));
    }
  }
  std::printf(
      "%s",
      (flags.json ? RecompilationsJson(table) : RecompilationsText(table, flags.rows)).c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<AxisSizes>> ParseSteps(const std::string& text,
                                                  const std::vector<std::string>& axes,
                                                  const std::string& axis) {
  std::vector<AxisSizes> steps;
  if (absl::StrContains(text, '=')) {
    for (const absl::string_view step : absl::StrSplit(text, ';')) {
      ASSIGN_OR_RETURN(steps.emplace_back(), ParseAxisSizes(step));
    }
    return steps;
  }
  if (axes.empty()) return absl::InvalidArgumentError("the model has no axis: it has one shape");
  if (axis.empty() && axes.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has the axes ", absl::StrJoin(axes, ", "),
                     ": name one with --axis, or all, as in --sizes \"", absl::StrJoin(axes, "=1,"),
                     "=20; ...\""));
  }
  const std::string& varies = axis.empty() ? axes[0] : axis;
  if (std::find(axes.begin(), axes.end(), varies) == axes.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no axis '", varies, "', only ", absl::StrJoin(axes, ", ")));
  }
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 1) {
      return absl::InvalidArgumentError(absl::StrCat("'", part, "' is no size"));
    }
    AxisSizes& sizes = steps.emplace_back();
    for (const std::string& name : axes) sizes[name] = name == varies ? size : 1;
  }
  return steps;
}

Recompilations RecompilationsOf(const v1::ExplainMissesResponse& record) {
  Recompilations table;
  std::map<std::string, ModuleRow> modules;
  for (const v1::MissRecord& miss : record.misses()) {
    ++table.steps;
    ++table.captured;
    RecompileRow row = {.step = static_cast<int64_t>(miss.sequence()),
                        .module = miss.section().empty()
                                      ? absl::StrCat("(", miss.model(), ")")
                                      : absl::StrCat("(", miss.model(), ") ", miss.section()),
                        .new_in = absl::StrJoin(miss.inputs(), ", "),
                        .new_out = absl::StrJoin(miss.outputs(), ", "),
                        .cause = CauseOf(miss)};
    std::vector<std::string> comment = {
        absl::StrCat("recipe ", miss.recipe(), ", ", miss.bucket())};
    if (!miss.cause().empty()) comment.push_back(miss.cause());
    if (!miss.suggestion().empty())
      comment.push_back(absl::StrCat("to avoid it: ", miss.suggestion()));
    row.comment = absl::StrJoin(comment, "; ");
    ModuleRow& module = modules[row.module];
    module.module = row.module;
    if (row.cause != kCauseFirst) {
      ++table.recompiled;
      ++module.recompilations;
      ++module.at_fault;
    }
    table.rows.push_back(std::move(row));
  }
  for (auto& [name, module] : modules) table.modules.push_back(std::move(module));
  std::stable_sort(
      table.modules.begin(), table.modules.end(),
      [](const ModuleRow& a, const ModuleRow& b) { return a.recompilations > b.recompilations; });
  return table;
}

std::string RecompilationsText(const Recompilations& table, size_t most_rows) {
  std::string text = absl::StrCat(table.steps, " steps; a static graph would recompile at ",
                                  table.recompiled, " of them, Reprise captures ", table.captured,
                                  table.captured == 1 ? " recipe\n" : " recipes\n");
  Table steps({{"step", kRight},
               {"module"},
               {"op"},
               {"new in"},
               {"new out"},
               {"cause"},
               {"location"},
               {"comment"}});
  for (size_t i = 0; i < std::min(most_rows, table.rows.size()); ++i) {
    const RecompileRow& row = table.rows[i];
    steps.AddRow({absl::StrCat(row.step), Shorten(row.module, 40), Shorten(row.op, 40),
                  Shorten(row.new_in, 48), Shorten(row.new_out, 48), row.cause, row.location,
                  row.comment});
  }
  if (!steps.empty()) absl::StrAppend(&text, "\n", steps.Text());
  if (table.rows.size() > most_rows) {
    absl::StrAppend(&text, "and ", table.rows.size() - most_rows,
                    " rows more (--csv writes all)\n");
  }
  Table modules({{"module"}, {"recompilations", kRight}, {"at fault", kRight}});
  for (size_t i = 0; i < std::min(most_rows, table.modules.size()); ++i) {
    const ModuleRow& row = table.modules[i];
    modules.AddRow(
        {Shorten(row.module, 60), absl::StrCat(row.recompilations), absl::StrCat(row.at_fault)});
  }
  if (!modules.empty()) absl::StrAppend(&text, "\n", modules.Text());
  return text;
}

std::string StepsCsv(const Recompilations& table) {
  std::string text = "step,module,op,new_in,new_out,cause,location,comment\n";
  for (const RecompileRow& row : table.rows) {
    text += CsvLine({absl::StrCat(row.step), row.module, row.op, row.new_in, row.new_out, row.cause,
                     row.location, row.comment});
  }
  return text;
}

std::string ModulesCsv(const Recompilations& table) {
  std::string text = "module,recompilations,at_fault\n";
  for (const ModuleRow& row : table.modules) {
    text += CsvLine({row.module, absl::StrCat(row.recompilations), absl::StrCat(row.at_fault)});
  }
  return text;
}

std::string RecompilationsJson(const Recompilations& table) {
  nlohmann::ordered_json json = {{"steps", table.steps},
                                 {"recompiled", table.recompiled},
                                 {"captured", table.captured},
                                 {"rows", nlohmann::ordered_json::array()},
                                 {"modules", nlohmann::ordered_json::array()}};
  for (const RecompileRow& row : table.rows) {
    json["rows"].push_back({{"step", row.step},
                            {"module", row.module},
                            {"op", row.op},
                            {"new_in", row.new_in},
                            {"new_out", row.new_out},
                            {"cause", row.cause},
                            {"location", row.location},
                            {"comment", row.comment}});
  }
  for (const ModuleRow& row : table.modules) {
    json["modules"].push_back({{"module", row.module},
                               {"recompilations", row.recompilations},
                               {"at_fault", row.at_fault}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void AddRecompiles(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RecompilesFlags>();
  CLI::App* command = app.add_subcommand(
      "recompiles", "List the modules that a static graph would recompile, at which step and why");
  command->footer(
      "A model file is run once a step with made-up inputs, without a server. Without .onnx at "
      "its\n"
      "end the name is a model of the server, and its captures are the steps. Only the module at\n"
      "fault has a row. A module is a scope in the names of nodes; the location is that which the\n"
      "exporter wrote down.");
  flags->server.Add(*command);
  command
      ->add_option("what", flags->what,
                   "Model file, or model of the server; all models of the "
                   "server if not given")
      ->type_name("MODEL.onnx|NAME");
  command->add_option("--version", flags->version, "Only this version of the server's model");
  CLI::Option* steps =
      command->add_option("--steps", flags->steps_file, "Shapes of the steps, as for dynamicity")
          ->check(CLI::ExistingFile)
          ->type_name("FILE");
  command
      ->add_option("--sizes", flags->sizes,
                   "Sizes of the steps: 20,20,30,30, or \"batch=1,sequence=20; ...\"")
      ->excludes(steps)
      ->type_name("SIZES");
  command->add_option("--axis", flags->axis, "The axis of --sizes, where the model has several")
      ->type_name("AXIS");
  command
      ->add_option("--csv", flags->csv, "Write both tables: PREFIX.steps.csv, PREFIX.modules.csv")
      ->type_name("PREFIX");
  command->add_option("--rows", flags->rows, "Rows of a table to print")
      ->capture_default_str()
      ->type_name("N");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunRecompiles(*flags); }; });
}

}  // namespace reprise::cli
