#include "server/chat/tool_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "server/chat/tool_forms.h"

namespace reprise {
namespace {

constexpr char kTools[] = R"([{"type": "function", "function": {"name": "get", "parameters": {
    "type": "object", "properties": {
      "place": {"type": "string"}, "kind": {"anyOf": [{"type": "string"}, {"type": "null"}]},
      "word": {"enum": ["a", "b"]}, "days": {"type": "integer"}, "any": {}}}}}, {"type": 3}])";

struct Read {
  std::string content;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
};

// Reads the text in parts of `size` bytes.
Read ReadAll(const ToolForm& form, const std::string& text, size_t size) {
  const ArgumentTypes types(kTools);
  ToolCallReader reader(form, types);
  Read read;
  const auto add = [&](const ToolCallParts& parts) {
    read.content += parts.content;
    for (const ToolCallPart& part : parts.calls) {
      if (static_cast<size_t>(part.index) == read.calls.size())
        read.calls.emplace_back(part.name, "");
      read.calls[static_cast<size_t>(part.index)].second += part.arguments;
    }
  };
  for (size_t at = 0; at < text.size(); at += size) add(reader.Push(text.substr(at, size)));
  add(reader.Finish());
  EXPECT_EQ(static_cast<size_t>(reader.calls()), read.calls.size());
  return read;
}

struct Case {
  const char* mark;  // a text of the template
  const char* text;
  const char* content;
  std::vector<std::pair<std::string, std::string>> calls;
};

TEST(ToolCallReaderTest, CallsOfEachFamilyAreReadWhereverTheTextIsCut) {
  const std::vector<Case> cases = {
      {"<tool_call>",
       "Let me see.\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": "
       "\"}{\\\"\"}}\n</tool_call>",
       "Let me see.\n",
       {{"get", "{\"a\": \"}{\\\"\"}"}}},
      {"<tool_call>",
       "<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n"
       "{\"arguments\": {\"x\": [1, {}]}, \"name\": \"b\"}\n</tool_call>",
       "",
       {{"a", "{}"}, {"b", "{\"x\": [1, {}]}"}}},
      {"<tool_call>",
       "<tool_call>[{\"name\": \"a\", \"arguments\": {\"q\": 1}}, {\"name\": \"b\", \"arguments\": "
       "{}}]</tool_call>",
       "",
       {{"a", "{\"q\": 1}"}, {"b", "{}"}}},
      {"[TOOL_CALLS]",
       "[TOOL_CALLS] [{\"name\": \"get\", \"arguments\": {\"a\": 1}, \"id\": \"x}\"}]",
       "",
       {{"get", "{\"a\": 1}"}}},
      {"[TOOL_CALLS]",
       "[TOOL_CALLS]get_it[ARGS]{\"a\": 1}[TOOL_CALLS]b{\"c\": {}}",
       "",
       {{"get_it", "{\"a\": 1}"}, {"b", "{\"c\": {}}"}}},
      {"<|python_tag|>",
       "{\"name\": \"get\", \"parameters\": {\"a\": null}}",
       "",
       {{"get", "{\"a\": null}"}}},
      {"<|python_tag|>",
       "<|python_tag|>{\"name\": \"a\", \"parameters\": {}}; {\"name\": \"b\", \"parameters\": "
       "{\"c\": 2}}",
       "",
       {{"a", "{}"}, {"b", "{\"c\": 2}"}}},
      {"<｜tool▁calls▁begin｜>",
       "ok<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{\"a\": "
       "1}\n```"
       "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>b\n```json\n{}\n```"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "ok",
       {{"get", "{\"a\": 1}"}, {"b", "{}"}}},
      {"<｜tool▁calls▁begin｜>",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>",
       "",
       {{"get", "{\"a\": 1}"}}},
      {"[TOOL_CALLS]",
       "[TOOL_CALLS]get[CALL_ID]a1B2c3D4e[ARGS]{\"a\": 1}",
       "",
       {{"get", "{\"a\": 1}"}}},
      {"<function=",
       "Let me see.\n\n<tool_call>\n<function=get>\n<parameter=place>\nSão \"Paulo\"\n\n</para"
       "\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=any>\n[1, {\"b\": "
       "\"</x>\"}]\n"
       "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=b>\n</function>\n</"
       "tool_call>",
       "Let me see.\n\n",
       {{"get",
         "{\"place\": \"São \\\"Paulo\\\"\\n\\n</para\", \"days\": 3, \"any\": [1, {\"b\": "
         "\"</x>\"}]}"},
        {"b", "{}"}}},
      // Texts by their schemas; what is no JSON is a text, too.
      {"<function=",
       "<function=get>\n<parameter=kind>\n3</parameter><parameter=word>\ntrue\n</parameter>"
       "<parameter=days>\nTrue\n</parameter><parameter=any>\nabc\n</parameter>\n</function>",
       "",
       {{"get", "{\"kind\": \"3\", \"word\": \"true\", \"days\": true, \"any\": \"abc\"}"}}},
      {"<function=",
       "<tool_call><function=get>{\"a\": 1}</function></tool_call>",
       "",
       {{"get", "{\"a\": 1}"}}},
      {"<function=",
       "<tool_call>\n{\"name\": \"get\", \"arguments\": {}}\n</tool_call>",
       "",
       {{"get", "{}"}}},
      // A call without its end is ended by that of the calls.
      {"<function=",
       "<tool_call>\n<function=get>\n<parameter=days>\n3\n</parameter>\n</tool_call>",
       "",
       {{"get", "{\"days\": 3}"}}},
      {"<function=", "a <functional= b", "a <functional= b", {}},
      {"<function=", "<tool_call>\n<function=get", "<tool_call>\n<function=get", {}},
      {"", "[{\"name\": \"get\", \"arguments\": {\"a\": 1}}]", "", {{"get", "{\"a\": 1}"}}},
      // Everything else is content, to the byte.
      {"", "{\"answer\": 42}", "{\"answer\": 42}", {}},
      {"", "  plain <tool", "  plain <tool", {}},
      {"<tool_call>", "a < b and <tool_calls", "a < b and <tool_calls", {}},
      {"<tool_call>", "<tool_call>\nnot json", "<tool_call>\nnot json", {}},
      {"<|python_tag|>", "{\"name\": 3, \"x\"", "{\"name\": 3, \"x\"", {}},
      // An answer that ends in a call tells the part that there is.
      {"<tool_call>",
       "<tool_call>{\"name\": \"a\", \"arguments\": {\"b\": \"c",
       "",
       {{"a", "{\"b\": \"c"}}},
  };
  for (const Case& each : cases) {
    const std::string text = each.text;
    for (size_t size = 1; size <= text.size() + 1; ++size) {
      const Read read = ReadAll(ToolFormOf(each.mark), text, size);
      EXPECT_EQ(read.content, each.content) << text << " in parts of " << size;
      EXPECT_EQ(read.calls, each.calls) << text << " in parts of " << size;
    }
  }
}

TEST(ToolCallReaderTest, TextsOfAnyPartsAreReadAlikeWhereverTheyAreCut) {
  const std::vector<std::string> parts = {"<tool_call>",
                                          "</tool_call>",
                                          "<function=get>",
                                          "<function=",
                                          "</function>",
                                          "<parameter=a>",
                                          "</parameter>",
                                          "<parameter=place>",
                                          "[TOOL_CALLS]",
                                          "[ARGS]",
                                          "[CALL_ID]",
                                          "get",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          "\"",
                                          "\\",
                                          "\n",
                                          " ",
                                          ":",
                                          ",",
                                          "\"name\": \"get\"",
                                          "\"arguments\": ",
                                          "<｜tool▁sep｜>",
                                          "é",
                                          "<|python_tag|>",
                                          "<",
                                          "3",
                                          "```json\n"};
  std::mt19937 random(7);
  for (const char* mark : {"<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>",
                           "<｜tool▁calls▁begin｜>", "<|tool_call|>", ""}) {
    const ToolForm& form = ToolFormOf(mark);
    for (int round = 0; round < 3000; ++round) {
      std::string text = round % 2 == 0 ? mark : "";
      for (size_t count = random() % 16; count > 0; --count) text += parts[random() % parts.size()];
      const Read whole = ReadAll(form, text, text.size() + 1);
      for (const size_t size : {1, 2, 5}) {
        const Read read = ReadAll(form, text, size);
        ASSERT_EQ(read.content, whole.content) << form.name << ": " << text << " by " << size;
        ASSERT_EQ(read.calls, whole.calls) << form.name << ": " << text << " by " << size;
      }
    }
  }
}

}  // namespace
}  // namespace reprise
