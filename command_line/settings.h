// Settings: flags that are not on the command line, from environment variables and from a
// file.
//
// The command line counts first, then the variable PREFIX_FLAG_NAME, then the file of
// --config (YAML: names of flags without dashes in front, `http-port: 9000`), then the default.
//
//   ASSIGN_OR_RETURN(Settings settings, Settings::Read(app, "REPRISED_", argc, argv));
//   ASSIGN_OR_RETURN(Parsed parsed, settings.Parse(app, version));
//   std::string yaml = settings.Text(app);   // all values, and where each comes from
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "command_line/parse.h"

namespace reprise::command_line {

class Settings {
 public:
  // Reads values of flags of `app` that are not on the command line. A list is a sequence in the
  // file, and has commas in a variable. Errors: INVALID_ARGUMENT naming the file and the line,
  // or the variable.
  static absl::StatusOr<Settings> Read(const CLI::App& app, const std::string& prefix, int argc,
                                       const char* const* argv);

  // Parses all of them. Errors as of Parse, with the source of the value.
  absl::StatusOr<Parsed> Parse(CLI::App& app, const std::string& version) const;

  // YAML of each flag of the parsed `app`, as a file of --config may have it, with the place that
  // its value comes from. User, password and query of an address are not shown.
  std::string Text(const CLI::App& app) const;

  // Variables that begin with the prefix, and name no flag: "REPRISED_HTP_PORT (did you mean
  // ...?)".
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  std::string program_;
  std::vector<std::string> words_;  // the whole command line, after the program
  std::map<std::string, std::string>
      origins_;  // keys are flags: "--http-port" -> "$REPRISED_HTTP_PORT"
  std::vector<std::string> unknown_;
};

}  // namespace reprise::command_line
