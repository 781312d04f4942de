// Help, manual pages and completion scripts of a small program.

#include "command_line/program.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "command_line/completion.h"
#include "command_line/help.h"
#include "command_line/manual.h"
#include "command_line/parse.h"
#include "command_line/text_width.h"

namespace reprise::command_line {
namespace {

// A program with a switch, a choice, a file, a bound and a command below a command.
struct Small {
  CLI::App app{"Cuts wood", "saw"};
  std::string kind, file, server;
  int count = 1;
  bool dry = false;

  Small() {
    app.require_subcommand(1);
    CLI::App* cut = app.add_subcommand("cut", "Cut one board: straight");
    cut->group("Work");
    cut->add_option("board", file, "Board")->required()->type_name("FILE");
    cut->add_option("-k,--kind", kind, "Kind of wood")
        ->check(CLI::IsMember({"oak", "pine"}))
        ->type_name("KIND");
    cut->add_option("--count", count, "Pieces")
        ->check(CLI::Range(1, 9))
        ->capture_default_str()
        ->type_name("N");
    cut->add_option("--server", server, "Where it is")->type_name("HOST:PORT")->envname("SAW");
    cut->add_flag("--dry", dry, "It's a trial");
    cut->footer("A note.\nExamples:\nsaw cut a.board --kind oak");
    CLI::App* shed = app.add_subcommand("shed", "Look after the shed");
    shed->group("Rest");
    shed->add_subcommand("list", "List what is in it");
  }
  absl::StatusOr<Parsed> Parse(std::vector<const char*> words) {
    words.insert(words.begin(), "saw");
    return command_line::Parse(app, "1.2", static_cast<int>(words.size()), words.data());
  }
};

TEST(DescribeTest, ValuesAreReadFromTheirChecks) {
  Small small;
  const Program program = Describe(small.app, "1.2");
  const Command& cut = program.command.commands[0];
  EXPECT_EQ(cut.name, "cut");
  ASSERT_EQ(cut.positionals.size(), 1u);
  EXPECT_EQ(cut.positionals[0].kind, ValueKind::kFile);
  ASSERT_EQ(cut.options.size(), 5u);  // one is --help
  EXPECT_EQ(cut.options[1].short_flag, "-k");
  EXPECT_EQ(cut.options[1].choices, (std::vector<std::string>{"oak", "pine"}));
  EXPECT_EQ(cut.options[2].bounds, "1 to 9");
  EXPECT_EQ(cut.options[2].default_value, "1");
  EXPECT_EQ(cut.options[3].value, "HOST:PORT");
  EXPECT_EQ(cut.options[3].environment, "SAW");
  EXPECT_EQ(cut.options[4].value, "");
  EXPECT_EQ(cut.notes, "A note.");
  EXPECT_EQ(cut.examples, std::vector<std::string>{"saw cut a.board --kind oak"});
  ASSERT_EQ(AllCommands(program.command).size(), 3u);
  EXPECT_EQ(AllCommands(program.command)[2]->name, "shed list");
}

TEST(HelpTest, GroupsValuesAndExamplesAreShownWithinTheWidth) {
  Small small;
  const Program program = Describe(small.app, "1.2");
  const std::string top = HelpText(program, program.command, 60);
  EXPECT_NE(top.find("\nWork:\n  cut  Cut one board: straight\n\nRest:\n  shed  "),
            std::string::npos)
      << top;
  const std::string cut = HelpText(program, program.command.commands[0], 60);
  EXPECT_NE(cut.find("Usage: saw cut [OPTIONS] BOARD\n"), std::string::npos) << cut;
  EXPECT_NE(cut.find("-k, --kind KIND"), std::string::npos) << cut;
  EXPECT_NE(cut.find("(oak|pine)"), std::string::npos) << cut;
  EXPECT_NE(cut.find("(default 1; 1 to 9)"), std::string::npos) << cut;
  EXPECT_NE(cut.find("\nExamples:\n  saw cut a.board --kind oak\n"), std::string::npos) << cut;
  for (const absl::string_view line : absl::StrSplit(cut, '\n')) EXPECT_LE(WidthOf(line), 60u);
}

TEST(WrapTest, LinesBreakAtBlanksAndLongWordsStayWhole) {
  EXPECT_EQ(Wrap("a bc def", 4, 2, 0), "a bc\n  def");
  EXPECT_EQ(Wrap("abcdefgh ij", 4, 0, 0), "abcdefgh\nij");
  EXPECT_EQ(Wrap("\u00e9\u00e9 \u00e9\u00e9", 5, 0, 0), "\u00e9\u00e9 \u00e9\u00e9");
  EXPECT_EQ(Wrap("a\nb", 10, 2, 0), "a\n  b");
  EXPECT_EQ(BreakWords("a bc", 2), "a bc");
  EXPECT_EQ(BreakWords("rows=1,size=16 x", 8), "rows=1,\nsize=16 x");
  EXPECT_EQ(BreakWords("\u00e9\u00e9\u00e9", 2), "\u00e9\u00e9\n\u00e9");
}

TEST(ManualTest, FlagsCannotBeReadAsHyphenations) {
  Small small;
  const std::string page = ManualPage(Describe(small.app, "1.2"));
  EXPECT_NE(page.find("\\fB\\-k\\fR, \\fB\\-\\-kind\\fR \\fIKIND\\fR\n"), std::string::npos)
      << page;
  EXPECT_NE(page.find(".SH COMMANDS\n"), std::string::npos);
  EXPECT_NE(page.find("saw shed list"), std::string::npos);
}

TEST(CompletionTest, EveryShellKnowsCommandsFlagsAndChoices) {
  Small small;
  const Program program = Describe(small.app, "1.2");
  for (const char* shell : kShells) {
    const std::string script = CompletionScript(program, shell);
    for (const char* word : {"shed", "list", "kind", "oak pine", "dry"}) {
      EXPECT_NE(script.find(word), std::string::npos) << shell << " lacks " << word;
    }
  }
}

TEST(ParseTest, MistakesAreOneLineThatNamesWhatWasProbablyMeant) {
  EXPECT_EQ(Small().Parse({"cutt"}).status().message(),
            "there is no command 'cutt'; did you mean cut?");
  const std::string flag(Small().Parse({"cut", "a", "--knid", "oak"}).status().message());
  EXPECT_NE(flag.find("did you mean --kind?"), std::string::npos) << flag;
  EXPECT_EQ(Small().Parse({"cut", "a", "--kind"}).status().message(),
            "--kind needs a value, KIND:{oak,pine}");
}

TEST(ParseTest, HelpAndVersionAreAnswersOfTheCommandThatWasCalled) {
  const auto help = Small().Parse({"shed", "list", "--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_NE(help->answer.find("Usage: saw shed list"), std::string::npos) << help->answer;
  const auto version = Small().Parse({"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->answer, "saw 1.2\n");
  Small small;
  const auto parsed = small.Parse({"cut", "a"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->command, "cut");
}

}  // namespace
}  // namespace reprise::command_line
