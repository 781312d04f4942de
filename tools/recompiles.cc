// reprise recompiles: the modules that a static graph would recompile, and why.

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
#include "absl/strings/str_split.h"
#include "client/cli/table.h"
#include "runtime/base/status_macros.h"
#include "runtime/bucket/axis_sizes.h"
#include "runtime/recipe/record_file.h"
#include "server/hub/model_file.h"
#include "tools/command.h"
#include "tools/files/length_file.h"
#include "tools/local_engine.h"

namespace reprise::cli {
namespace {

// The columns of a row after its step, as CSV and JSON name them.
struct Column {
  const char* name;
  std::string RecompileRow::*cell;
};
constexpr Column kColumns[] = {
    {"module", &RecompileRow::module},   {"op", &RecompileRow::op},
    {"new_in", &RecompileRow::new_in},   {"new_out", &RecompileRow::new_out},
    {"cause", &RecompileRow::cause},     {"location", &RecompileRow::location},
    {"comment", &RecompileRow::comment}, {"class", &RecompileRow::type},
    {"request", &RecompileRow::request}};

void SortModules(std::vector<ModuleRow>& modules) {
  std::stable_sort(modules.begin(), modules.end(), [](const ModuleRow& a, const ModuleRow& b) {
    return a.recompilations > b.recompilations;
  });
}

// Returns the rows with their keys as names, the most recompiled first.
std::vector<ModuleRow> Listed(const std::map<std::string, ModuleRow>& by_name) {
  std::vector<ModuleRow> rows;
  for (const auto& [name, row] : by_name) {
    rows.push_back(row);
    rows.back().module = name;
  }
  SortModules(rows);
  return rows;
}

void AddModules(const std::vector<ModuleRow>& modules, const char* kind, size_t most_rows,
                std::string& text) {
  Table table({{kind}, {"recompilations", kRight}, {"at fault", kRight}});
  for (size_t i = 0; i < std::min(most_rows, modules.size()); ++i) {
    table.AddRow({Shorten(modules[i].module, 60), absl::StrCat(modules[i].recompilations),
                  absl::StrCat(modules[i].at_fault)});
  }
  if (!table.empty()) absl::StrAppend(&text, "\n", table.Text());
}

nlohmann::ordered_json JsonOf(const std::vector<ModuleRow>& modules, const char* kind) {
  auto json = nlohmann::ordered_json::array();
  for (const ModuleRow& row : modules) {
    json.push_back(
        {{kind, row.module}, {"recompilations", row.recompilations}, {"at_fault", row.at_fault}});
    if (!row.type.empty()) json.back()["class"] = row.type;
  }
  return json;
}

std::string CsvLine(const std::vector<std::string>& cells) {
  return absl::StrCat(absl::StrJoin(cells, ",",
                                    [](std::string* out, const std::string& cell) {
                                      absl::StrAppend(out, CsvCell(cell));
                                    }),
                      "\n");
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

// Returns the steps of a file: shapes a line, or a column an axis.
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
    ASSIGN_OR_RETURN(const auto record, client->GetRecompilations(flags.what, flags.version));
    table = RecompilationsOf(record);
  }
  if (!flags.csv.empty()) {
    for (const auto& [name, text] :
         {std::pair{".steps.csv", StepsCsv(table)},
          std::pair{".modules.csv", ModulesCsv(table.modules, "module")},
          std::pair{".classes.csv", ModulesCsv(ByClass(table), "class")},
          std::pair{".sources.csv", ModulesCsv(BySource(table), "source")}}) {
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
      return absl::InvalidArgumentError(absl::StrCat("'", part, "' is not a size"));
    }
    AxisSizes& sizes = steps.emplace_back();
    for (const std::string& name : axes) sizes[name] = name == varies ? size : 1;
  }
  return steps;
}

Recompilations RecompilationsOf(const v1::GetRecompilationsResponse& record) {
  Recompilations table;
  for (const v1::ModelRecompilations& model : record.models()) {
    const std::string prefix = record.models_size() > 1 ? absl::StrCat(model.model(), ": ") : "";
    table.steps += static_cast<int64_t>(model.steps());
    table.recompiled += static_cast<int64_t>(model.recompiled());
    table.captured += static_cast<int64_t>(model.captured());
    for (const v1::RecompileRow& row : model.rows()) {
      table.rows.push_back({.step = static_cast<int64_t>(row.step()),
                            .module = absl::StrCat(prefix, row.module()),
                            .op = row.op(),
                            .new_in = row.new_in(),
                            .new_out = row.new_out(),
                            .cause = row.cause(),
                            .type = row.type(),
                            .location = row.location(),
                            .request = row.request_id(),
                            .comment = row.comment()});
    }
    for (const v1::RecompiledModule& module : model.modules()) {
      table.modules.push_back({.module = absl::StrCat(prefix, module.module()),
                               .type = module.type(),
                               .recompilations = static_cast<int64_t>(module.recompilations()),
                               .at_fault = static_cast<int64_t>(module.at_fault())});
    }
  }
  SortModules(table.modules);
  return table;
}

std::vector<ModuleRow> ByClass(const Recompilations& table) {
  std::map<std::string, ModuleRow> classes;
  for (const ModuleRow& module : table.modules) {
    if (module.type.empty()) continue;
    ModuleRow& row = classes[module.type];
    row.recompilations += module.recompilations;
    row.at_fault += module.at_fault;
  }
  return Listed(classes);
}

std::vector<ModuleRow> BySource(const Recompilations& table) {
  std::map<std::string, ModuleRow> sources;
  for (const RecompileRow& row : table.rows) {
    if (row.location.empty() || row.step == 1) continue;
    ModuleRow& source = sources[row.location];
    ++source.recompilations;
    ++source.at_fault;
  }
  return Listed(sources);
}

std::string RecompilationsText(const Recompilations& table, size_t most_rows) {
  std::string text = absl::StrCat(table.steps, " steps; a static graph would recompile at ",
                                  table.recompiled, " of them, Reprise captures ", table.captured,
                                  table.captured == 1 ? " recipe\n" : " recipes\n");
  Table steps({{"step", kRight},
               {"request"},
               {"module"},
               {"op"},
               {"new in"},
               {"new out"},
               {"cause"},
               {"location"},
               {"comment"}});
  for (size_t i = 0; i < std::min(most_rows, table.rows.size()); ++i) {
    const RecompileRow& row = table.rows[i];
    steps.AddRow({absl::StrCat(row.step), Shorten(row.request, 24), Shorten(row.module, 40),
                  Shorten(row.op, 40), Shorten(row.new_in, 48), Shorten(row.new_out, 48), row.cause,
                  row.location, row.comment});
  }
  if (!steps.empty()) absl::StrAppend(&text, "\n", steps.Text());
  if (table.rows.size() > most_rows) {
    absl::StrAppend(&text, "and ", table.rows.size() - most_rows,
                    " rows more (--csv writes all)\n");
  }
  AddModules(table.modules, "module", most_rows, text);
  AddModules(ByClass(table), "class", most_rows, text);
  AddModules(BySource(table), "source", most_rows, text);
  return text;
}

std::string StepsCsv(const Recompilations& table) {
  std::vector<std::string> cells = {"step"};
  for (const Column& column : kColumns) cells.emplace_back(column.name);
  std::string text = CsvLine(cells);
  for (const RecompileRow& row : table.rows) {
    cells = {absl::StrCat(row.step)};
    for (const Column& column : kColumns) cells.push_back(row.*column.cell);
    text += CsvLine(cells);
  }
  return text;
}

std::string ModulesCsv(const std::vector<ModuleRow>& modules, const std::string& kind) {
  std::string text = absl::StrCat(kind, ",recompilations,at_fault\n");
  for (const ModuleRow& row : modules) {
    text += CsvLine({row.module, absl::StrCat(row.recompilations), absl::StrCat(row.at_fault)});
  }
  return text;
}

std::string RecompilationsJson(const Recompilations& table) {
  nlohmann::ordered_json json = {{"steps", table.steps},
                                 {"recompiled", table.recompiled},
                                 {"captured", table.captured},
                                 {"rows", nlohmann::ordered_json::array()},
                                 {"modules", JsonOf(table.modules, "module")},
                                 {"classes", JsonOf(ByClass(table), "class")},
                                 {"sources", JsonOf(BySource(table), "source")}};
  for (const RecompileRow& row : table.rows) {
    nlohmann::ordered_json& cells = json["rows"].emplace_back();
    cells["step"] = row.step;
    for (const Column& column : kColumns) cells[column.name] = row.*column.cell;
  }
  return JsonText(json);
}

void AddRecompiles(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RecompilesFlags>();
  CLI::App* command = app.add_subcommand(
      "recompiles", "List the modules that a static graph would recompile, at which step and why");
  command->footer(
      "A model file is run once a step with made-up inputs, without a server. Without .onnx at "
      "its\n"
      "end the name is a model of the server, and the requests that it answered are the steps.\n"
      "Only the module at fault has a row. A module is a scope in the names of nodes; its class "
      "and\n"
      "the location are those that the exporter wrote down.");
  flags->server.Add(*command);
  AddOption(*command, "what", flags->what, "MODEL.onnx|NAME",
            "Model file, or model of the server; all models of the "
            "server if not given");
  command->add_option("--version", flags->version, "Only this version of the server's model");
  CLI::Option* steps = AddOption(*command, "--steps", flags->steps_file, "FILE",
                                 "Shapes of the steps, as for dynamicity")
                           ->check(CLI::ExistingFile);
  AddOption(*command, "--sizes", flags->sizes, "SIZES",
            "Sizes of the steps: 20,20,30,30, or \"batch=1,sequence=20; ...\"")
      ->excludes(steps);
  AddOption(*command, "--axis", flags->axis, "AXIS",
            "The axis of --sizes, where the model has several");
  AddOption(*command, "--csv", flags->csv, "PREFIX",
            "Write the tables: PREFIX.steps.csv, .modules.csv, .classes.csv, .sources.csv");
  AddOption(*command, "--rows", flags->rows, "N", "Rows of a table to print")
      ->capture_default_str();
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunRecompiles(*flags); }; });
}

}  // namespace reprise::cli
